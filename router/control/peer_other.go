//go:build !linux && !darwin

package control

import "net"

// peerUID is -1: the system does not tell, and the socket's mode must do.
func peerUID(net.Conn) int { return -1 }

// peerPID is 0: the system does not tell.
func peerPID(net.Conn) int { return 0 }
