//go:build !linux

package rota

import "net"

// prepare leaves the system's own keep-alive on.
func prepare(net.Conn) {}

func (*link) mind(uint64) {}
