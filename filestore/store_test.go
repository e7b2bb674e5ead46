package filestore_test

import (
	"testing"
	"time"
)

// TestReopen wants every form of value and a time to live to be there after
// closing and opening again.
func TestReopen(t *testing.T) {
	path := newPath(t)
	s := open(t, path)
	setDurable(t, s, "json", `{"server":"glm"}`)
	s.Set("binary", "a\"b\xff", time.Hour)
	s.HSet("hash", map[string]string{"a": "1"})
	mustClose(t, s)
	s = open(t, path)
	wantGet(t, s, "json", `{"server":"glm"}`, true)
	wantGet(t, s, "binary", "a\"b\xff", true)
	if got, err := s.HGetAll("hash"); len(got) != 1 || got["a"] != "1" || err != nil {
		t.Errorf("HGetAll = %v, %v; want a: 1", got, err)
	}
	if ttl, err := s.TTL("binary"); ttl <= 59*time.Minute || ttl > time.Hour || err != nil {
		t.Errorf("TTL = %v, %v; want an hour, a little less", ttl, err)
	}
}
