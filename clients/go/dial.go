package rota

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"time"
)

const (
	// stagger is the pause from one attempt to connect to the next, with another address of the host, while the earlier ones
	// go on (RFC 8305 has this number).
	stagger = 250 * time.Millisecond
	// tryAgain is the pause between two attempts while a daemon's queue of connections is full.
	tryAgain = 10 * time.Millisecond
)

// dial connects to the path of a Unix socket, tcp:HOST:PORT or tls:HOST:PORT.
func dial(ctx context.Context, address string, options *Options) (*link, error) {
	switch {
	case strings.HasPrefix(address, "tcp:"):
		conn, err := dialTCP(ctx, address[4:], options.Insecure)
		if err != nil {
			return nil, err
		}
		return plainLink(conn), nil
	case strings.HasPrefix(address, "tls:"):
		return dialTLS(ctx, address[4:], options)
	}
	for {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "unix", address)
		if err == nil {
			return plainLink(conn), nil
		}
		if !errors.Is(err, syscall.EAGAIN) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(tryAgain):
		}
	}
}

func dialTLS(ctx context.Context, hostPort string, options *Options) (*link, error) {
	if options.TLS == nil {
		return nil, &TLSError{errors.New("no certificates to trust are given")}
	}
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	conn, err := dialTCP(ctx, hostPort, true)
	if err != nil {
		return nil, err
	}
	link := plainLink(conn)
	if err := link.shakeHands(ctx, options.TLS, host); err != nil {
		link.drop()
		if isOfTLS(err) {
			return nil, &TLSError{err}
		}
		return nil, err
	}
	return link, nil
}

func dialTCP(ctx context.Context, hostPort string, insecure bool) (net.Conn, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	found, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return nil, err
	}
	var here []net.IPAddr
	for _, address := range found {
		if insecure || address.IP.IsLoopback() {
			here = append(here, address)
		}
	}
	if len(here) == 0 {
		if len(found) > 0 {
			return nil, &InsecureError{net.JoinHostPort(found[0].String(), port)}
		}
		return nil, &net.DNSError{Err: "the host has no address", Name: host}
	}
	var addresses []string
	for _, address := range inTurns(here) {
		addresses = append(addresses, net.JoinHostPort(address.String(), port))
	}
	conn, err := dialFirst(ctx, addresses)
	if err != nil {
		return nil, err
	}
	prepare(conn)
	return conn, nil
}

// inTurns has addresses of both versions in turns, as the system prefers them.
func inTurns(addresses []net.IPAddr) []net.IPAddr {
	isFour := func(address net.IPAddr) bool { return address.IP.To4() != nil }
	var preferred, others, turns []net.IPAddr
	for _, address := range addresses {
		if isFour(address) == isFour(addresses[0]) {
			preferred = append(preferred, address)
		} else {
			others = append(others, address)
		}
	}
	for at := 0; at < len(preferred) || at < len(others); at++ {
		if at < len(preferred) {
			turns = append(turns, preferred[at])
		}
		if at < len(others) {
			turns = append(turns, others[at])
		}
	}
	return turns
}

// dialFirst tries the addresses one behind the other, each soon after the one before, and takes the first that answers: an
// address without an answer does not hold up the next. No attempt goes on behind it.
func dialFirst(ctx context.Context, addresses []string) (net.Conn, error) {
	type outcome struct {
		conn net.Conn
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	outcomes := make(chan outcome)
	underWay := 0
	var taken net.Conn
	var failed error
	for taken == nil && (len(addresses) > 0 || underWay > 0) {
		var pause <-chan time.Time
		if len(addresses) > 0 {
			address := addresses[0]
			addresses = addresses[1:]
			underWay++
			go func() {
				var dialer net.Dialer
				conn, err := dialer.DialContext(ctx, "tcp", address)
				outcomes <- outcome{conn, err}
			}()
			if len(addresses) > 0 {
				pause = time.After(stagger)
			}
		}
		select {
		case ended := <-outcomes:
			underWay--
			taken, failed = ended.conn, ended.err
		case <-pause:
		}
	}
	cancel()
	for ; underWay > 0; underWay-- {
		if late := <-outcomes; late.conn != nil {
			_ = late.conn.Close()
		}
	}
	if taken == nil {
		return nil, failed
	}
	return taken, nil
}
