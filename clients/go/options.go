package rota

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"time"
)

// Options are those of a client before it connects. The zero value has the defaults.
type Options struct {
	// Name is what the client asks to be called at its daemon: 1 to 10 characters from '$' to '~', unique among the clients
	// of that daemon. Empty has the daemon invent a name.
	Name string
	// Membership is whether the client gets views, transitional signals and self-leaves.
	Membership bool
	// WhenSlow is the policy for this client if it takes its events too slowly.
	WhenSlow WhenSlow
	// Service is the guarantee for messages whose envelope names none; Agreed.
	Service Service
	// Insecure is whether TCP may leave this machine, although everybody on the way can read and change everything.
	Insecure bool
	// Timeout is how long the daemon may take to let the client in, and to answer a request; 30 s.
	Timeout time.Duration
	// UnreadBytes is about how many bytes of events may lie unread; 16 MiB. At more, nothing is read until some are taken:
	// then the daemon does what it does with clients that read too slowly.
	UnreadBytes int
	// TLS is for addresses tls:HOST:PORT: LoadTLS makes one. Only TLS 1.3 is spoken, whatever it says.
	TLS *tls.Config
}

func (o *Options) withDefaults() Options {
	var options Options
	if o != nil {
		options = *o
	}
	if options.Service == 0 {
		options.Service = Agreed
	}
	if options.Timeout <= 0 {
		options.Timeout = 30 * time.Second
	}
	if options.UnreadBytes <= 0 {
		options.UnreadBytes = 16 << 20
	}
	return options
}

// Envelope is the destinations, the guarantee and the kind of a message.
type Envelope struct {
	// To has groups, and clients by their private names #client#daemon: from 1 to MaxDestinations. A receiver that is in
	// several gets the message once.
	To []string
	// Service is the guarantee; 0 is the client's.
	Service Service
	// Kind is the application's number for this kind of message.
	Kind uint16
	// SelfDiscard says that this client does not want the message back.
	SelfDiscard bool
}

// LoadTLS reads certificates, as PEM: the roots that the daemon's has to come from, and the one that this client shows, with
// its key. The latter two are empty for a client that shows none, as only some daemons take it. The daemon's certificate has
// to be for the host of the address, or for ServerName of the result.
func LoadTLS(ca, certificate, key string) (*tls.Config, error) {
	roots, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(roots) {
		return nil, errors.New(ca + " has no certificate")
	}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
