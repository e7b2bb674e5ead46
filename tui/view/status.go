package view

// StatusText is a status of an upstream in a few words, for those who do not
// know the numbers by heart.
func StatusText(status int) string {
	switch status {
	case 400, 422:
		return "request refused as malformed"
	case 401:
		return "key refused"
	case 402:
		return "payment wanted"
	case 403:
		return "not allowed"
	case 404:
		return "no such model or path"
	case 408, 504:
		return "timed out"
	case 413:
		return "request too long"
	case 429:
		return "too many requests"
	case 502:
		return "bad gateway"
	case 503:
		return "unavailable"
	case 529:
		return "overloaded"
	}
	switch {
	case status >= 500:
		return "server error"
	case status >= 400:
		return "request refused"
	}
	return ""
}

// Failure is how a conversation's last turn failed, "" when it did not.
func Failure(c *Session) string {
	switch {
	case c.Streams > 0:
		return "" // the next one is under way
	case c.Error != "":
		return c.Error
	case c.Status >= 400:
		return itoa(c.Status) + " from " + c.Server + ": " + StatusText(c.Status)
	}
	return ""
}
