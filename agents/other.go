package agents

// recogniseOther reads what any client may say. Other clients state no
// session, unless the user gave them the general header. Without one a
// conversation is known by its content, where an opening can place nothing but
// itself. With one, a request that looks like a helper's might be a running
// session's first sight after a loss, and must not place it.
func recogniseOther(r Request) told {
	session := id{sessionOfUserID(r.Outline.UserID), "metadata.user_id"}
	stated := session.value != "" || r.Header.Get("X-Dynamo-Session-Id") != ""
	turn, kind := otherTurn(r, stated)
	return told{session: session, turn: turn, kind: kind}
}

func otherTurn(r Request, statesSession bool) (Turn, Kind) {
	o := r.Outline
	class := r.Header.Get("X-Claude-Code-Request-Class")
	switch {
	case isSubagent(r):
		return Side, KindSubagent
	case class != "" && class != "main":
		return Side, KindHelper
	case openCodeHelper(o) != "":
		// Old OpenCode hides behind its library's User-Agent on a bare base URL.
		return Side, openCodeHelper(o)
	case hasHistory(o):
		return mainTurn(true)
	case o.Tools == 0 && !o.Stream && statesSession:
		return Side, KindHelper
	}
	return mainTurn(false)
}
