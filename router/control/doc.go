// Package control is the API on agentop.sock that the TUI and the commands
// use: HTTP with JSON over a Unix socket that only this user can open. It has
// both ends, Handler and Client, and knows neither the rules nor the screens.
//
// Every answer is JSON of a type in types.go, or an Error with a status that
// is not 200. Fields may be added within /v1; none changes its name or
// meaning. A request with a field that the proxy does not know is refused.
//
//	GET  /v1/status                                  Status
//	GET  /v1/sessions                                [Session]
//	POST /v1/session          {agent, id}            Session
//	POST /v1/session/price    {agent, id, server}    MovePrice
//	POST /v1/session/move     {agent, id, server}    Session
//	POST /v1/session/forget   {agent, id}            {}
//	POST /v1/agent/use        {agent, server}        Switch
//	POST /v1/agent/reset      {agent}                Switch
//	POST /v1/server/add       ServerSpec + secret    ServerChange
//	POST /v1/server/remove    {name}                 ServerChange
//	POST /v1/server/preflight {name, agents}         Preflight
//	POST /v1/server/test      {name, agents}         Preflight
//	GET  /v1/requests?tail=N                         [Request]
//	POST /v1/restart          {}                     {}
//	GET  /v1/events                                  Event, one a line, until hung up
//
// The API does not judge who asks: the socket's owner, its mode and the check
// of each connection's user do. A key travels in the body of server/add alone
// and is in no answer. Start reading at Backend.
package control
