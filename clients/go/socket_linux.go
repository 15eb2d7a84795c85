package rota

import (
	"net"
	"syscall"
)

// Options of TCP sockets that package syscall has no names for: netinet/tcp.h.
const tcpUserTimeout = 18

const (
	// After idle seconds without a received byte the system asks the daemon's host for a sign of life, every again seconds
	// without an answer. After so many questions the connection is lost.
	idle, again, questions = 10, 5, 4
	// unansweredMs is how long sent bytes may be without an acknowledgement: as long as all these questions take.
	unansweredMs = 30_000
	// fitBytes are what the daemon's host buffers for sure, even if the daemon reads nothing at all.
	fitBytes = 32 << 10
)

// prepare sets the options of a new TCP connection: it is lost half a minute after the daemon's host has vanished.
func prepare(conn net.Conn) {
	setOption(conn, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1)
	setOption(conn, syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, idle)
	setOption(conn, syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, again)
	setOption(conn, syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, questions)
	setOption(conn, syscall.IPPROTO_TCP, tcpUserTimeout, unansweredMs)
}

// mind sets the patience for so many bytes of messages on their way. The system does not tell a host that is silent from one
// that has no room. A daemon that reads nothing for a while, as without a majority, must not look dead: so while more bytes
// are on their way than fit there, this side is patient.
func (l *link) mind(bytes uint64) {
	patient := bytes > fitBytes
	if patient == l.patient {
		return
	}
	l.patient = patient
	most := unansweredMs
	if patient {
		most = 0
	}
	setOption(l.raw.Conn, syscall.IPPROTO_TCP, tcpUserTimeout, most)
}

// setOption does nothing to what is not a TCP connection, and nothing to one that has failed.
func setOption(conn net.Conn, level, option, value int) {
	socket, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	control, err := socket.SyscallConn()
	if err != nil {
		return
	}
	_ = control.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), level, option, value) })
}
