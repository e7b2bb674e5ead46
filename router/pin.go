package router

import (
	"encoding/json"
	"fmt"
	"time"

	"agentop/agents"
	"agentop/router/placement"
)

// How long a pin is stored after it was last set or renewed, and how often a
// conversation in use renews it. The difference keeps the promise that no pin
// lapses earlier than 30 days after its last use.
const (
	pinTTL   = 31 * 24 * time.Hour
	pinRenew = 24 * time.Hour
)

// maxNames bounds the model names that one conversation keeps.
const maxNames = 16

// pinRecord is a pin as it is stored: a JSON string under pinKey.
type pinRecord struct {
	Agent   agents.Agent `json:"agent"`
	Session string       `json:"session"`
	Server  string       `json:"server"`           // a configured server's name, or own
	Member  string       `json:"member,omitempty"` // of a pool: where its cache is; soft
	Opened  time.Time    `json:"opened"`
	Renewed time.Time    `json:"renewed"`
	Pin     string       `json:"pin"` // how it was made: new, followed, restored
	Why     string       `json:"why"` // the same in one line for people
	// Names maps each model name that was asked for to what was sent for it,
	// renamed or not; the conversation keeps that name for good, whatever the
	// config says later. A name that the server refused is not kept.
	Names map[string]string `json:"names,omitempty"`
	Title string            `json:"title,omitempty"`
	Dir   string            `json:"dir,omitempty"`
}

// PinPrefix begins the store's key of every pin.
const PinPrefix = "pin:"

// pinKey is the store's key of a conversation's pin. An agent's name holds no
// colon, so two conversations never share a key.
func pinKey(c placement.Conversation) string {
	return PinPrefix + string(c.Agent) + ":" + c.Session
}

// decodePin reads a stored record. A record without agent, session or place,
// or that is another conversation's, is an error: it is no pin.
func decodePin(c placement.Conversation, value string) (*pinRecord, error) {
	p, err := readPin(value)
	if err != nil {
		return nil, err
	}
	if p.Agent != c.Agent || p.Session != c.Session || p.Server == "" {
		return nil, fmt.Errorf("pin record of %q, %q names agent %q, session %q, server %q", c.Agent, c.Session, p.Agent, p.Session, p.Server)
	}
	return p, nil
}

// readPin reads a record without asking what it says.
func readPin(value string) (*pinRecord, error) {
	var p pinRecord
	if p.parse(value) {
		return &p, nil
	}
	p = pinRecord{}
	if err := json.Unmarshal([]byte(value), &p); err != nil {
		return nil, fmt.Errorf("decode pin: %w", err)
	}
	return &p, nil
}

// decodePinAny reads a stored record whosever it is.
func decodePinAny(value string) (*pinRecord, error) {
	p, err := readPin(value)
	if err != nil {
		return nil, err
	}
	if p.Agent == "" || p.Session == "" || p.Server == "" {
		return nil, fmt.Errorf("pin record lacks agent, session or server")
	}
	return p, nil
}

func (p *pinRecord) encode() string {
	b, err := json.Marshal(p)
	if err != nil {
		panic("encode pin: " + err.Error()) // strings and times only
	}
	return string(b)
}

// conversation is whose pin it is.
func (p *pinRecord) conversation() placement.Conversation {
	return placement.Conversation{Agent: p.Agent, Session: p.Session}
}

// place is the pin's server as the route header and lists write it.
func (p *pinRecord) place() string { return placeName(p.Server, p.Member) }

func placeName(server, member string) string {
	if member == "" {
		return server
	}
	return server + "/" + member
}
