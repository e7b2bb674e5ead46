package fakeserver

import (
	"net"
	"testing"
)

// TestFreeAddressesAreLeftAlone holds that a free address can be taken, and
// that sockets to which the system gives a port do not get it.
func TestFreeAddressesAreLeftAlone(t *testing.T) {
	free := map[string]bool{}
	for range 50 {
		address, err := FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		free[address] = true
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		if free[l.Addr().String()] {
			t.Errorf("the system gave %s to somebody else", l.Addr())
		}
	}
}
