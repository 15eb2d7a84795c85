package rota

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// link is a connected socket, with TLS or without.
type link struct {
	raw *endingConn
	// stream is raw, or TLS over it.
	stream net.Conn
	// patient is whether sent bytes may be without an acknowledgement for as long as the system likes.
	patient bool
}

// endingConn notes the end of the stream beneath TLS, which takes an end between two records for an orderly one.
type endingConn struct {
	net.Conn
	ended atomic.Bool
}

func (c *endingConn) Read(buffer []byte) (int, error) {
	count, err := c.Conn.Read(buffer)
	if err == io.EOF {
		c.ended.Store(true)
	}
	return count, err
}

func plainLink(conn net.Conn) *link {
	raw := &endingConn{Conn: conn}
	return &link{raw: raw, stream: raw}
}

// shakeHands puts TLS over the link.
func (l *link) shakeHands(ctx context.Context, config *tls.Config, host string) error {
	config = config.Clone()
	config.MinVersion = tls.VersionTLS13
	if config.ServerName == "" {
		config.ServerName = host
	}
	secure := tls.Client(l.raw, config)
	l.stream = secure
	return secure.HandshakeContext(ctx)
}

func (l *link) isTLS() bool { return l.stream != net.Conn(l.raw) }

// closeWrite says that nothing more follows.
func (l *link) closeWrite() {
	if closer, ok := l.stream.(interface{ CloseWrite() error }); ok {
		_ = closer.CloseWrite()
	} else if closer, ok := l.raw.Conn.(interface{ CloseWrite() error }); ok {
		_ = closer.CloseWrite()
	}
}

// drop ends both directions at once.
func (l *link) drop() { _ = l.raw.Close() }

// grace is how long a reader goes on after a write has failed: what has come already says why.
const grace = 100 * time.Millisecond

// lostBy is how the error of a read ends a connection.
func (l *link) lostBy(err error, within bool) *LostError {
	if err != io.EOF {
		return &LostError{Loss: LossFailed, Err: err}
	}
	if within || l.isTLS() && l.raw.ended.Load() {
		return &LostError{Loss: LossFailed, Err: errCut}
	}
	return &LostError{Loss: LossEnded}
}

// isOfTLS says whether an error is about certificates, or what the other side says of them.
func isOfTLS(err error) bool {
	var (
		unknown  x509.UnknownAuthorityError
		invalid  x509.CertificateInvalidError
		hostname x509.HostnameError
		roots    x509.SystemRootsError
		record   tls.RecordHeaderError
		remote   *net.OpError
	)
	if errors.As(err, &remote) && (remote.Op == "remote error" || remote.Op == "local error") {
		return true
	}
	return errors.As(err, &unknown) || errors.As(err, &invalid) || errors.As(err, &hostname) ||
		errors.As(err, &roots) || errors.As(err, &record)
}
