package rota

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Code is why a daemon refuses a client, fails a request, or closes a connection. Later daemons may have others.
type Code uint16

// The codes of the protocol.
const (
	CodeVersion        Code = 1  // The two sides have no version of the protocol in common.
	CodeNameInUse      Code = 2  // Another client of this daemon has the name.
	CodeIllegalName    Code = 3  // The name is none.
	CodeTooManyClients Code = 4  // The daemon has as many clients as it may.
	CodeNotAllowed     Code = 5  // The client may not do that.
	CodeShuttingDown   Code = 6  // The daemon is being stopped.
	CodeTooSlow        Code = 7  // Too much waited for this client.
	CodeProtocolError  Code = 8  // The client sent bytes that are not the protocol.
	CodeCreditExceeded Code = 9  // The client sent more than its credit.
	CodeQuota          Code = 10 // The daemon takes no more of these.
	CodeTooLarge       Code = 11 // A message is larger than the largest.
	CodeTimedOut       Code = 12 // The client did not say hello in time.
	CodeUnavailable    Code = 13 // The daemon cannot do it now.
)

var codeTexts = map[Code]string{
	CodeVersion:        "no version of the protocol in common",
	CodeNameInUse:      "another client of this daemon has that name",
	CodeIllegalName:    "not a name",
	CodeTooManyClients: "the daemon has as many clients as it may",
	CodeNotAllowed:     "not allowed",
	CodeShuttingDown:   "the daemon is shutting down",
	CodeTooSlow:        "the client did not take its events fast enough",
	CodeProtocolError:  "not the protocol",
	CodeCreditExceeded: "more was sent than the credit",
	CodeQuota:          "the daemon takes no more of these",
	CodeTooLarge:       "the message is too large",
	CodeTimedOut:       "no hello in time",
	CodeUnavailable:    "the daemon cannot do it now",
}

func (c Code) String() string {
	if text, ok := codeTexts[c]; ok {
		return text
	}
	return fmt.Sprintf("code %d", uint16(c))
}

// MayPass says whether the same may succeed later without anybody having changed it.
func (c Code) MayPass() bool {
	switch c {
	case CodeVersion, CodeIllegalName, CodeNotAllowed, CodeProtocolError, CodeCreditExceeded, CodeTooLarge:
		return false
	}
	return true
}

// reason is a failure and the daemon's reason; the daemon's words too, unless they say the same.
func reason(what string, code Code, text string) string {
	if text == "" || text == code.String() {
		return fmt.Sprintf("%s: %v", what, code)
	}
	return fmt.Sprintf("%s: %v (%s)", what, code, text)
}

// Loss is how a connection has ended.
type Loss int

const (
	// LossEnded is a daemon that closed without a word, or died; or this side closed.
	LossEnded Loss = iota
	// LossGoodbye is a daemon that closed and said why: Code and Text of the LostError.
	LossGoodbye
	// LossFailed is a socket that failed, or a stream that was cut short: within a frame, or by TLS before the daemon
	// said that it ends. Err of the LostError.
	LossFailed
	// LossProtocol is a daemon that sent bytes which are not the protocol: Err is a DecodeError.
	LossProtocol
	// LossUnexpected is a daemon that sent a frame which does not belong into a connection.
	LossUnexpected
)

// LostError is the end of a connection. It is final: connect again, or use Reconnecting.
type LostError struct {
	Loss Loss
	Code Code
	Text string
	Err  error
}

func (e *LostError) Error() string {
	switch e.Loss {
	case LossEnded:
		return "the connection has ended"
	case LossGoodbye:
		return reason("the daemon closed the connection", e.Code, e.Text)
	case LossFailed:
		return fmt.Sprintf("the connection failed: %v", e.Err)
	case LossProtocol:
		return fmt.Sprintf("not the protocol: %v", e.Err)
	default:
		return "the daemon sent a frame that does not belong here"
	}
}

func (e *LostError) Unwrap() error { return e.Err }

var errCut = fmt.Errorf("the stream was cut: %w", io.ErrUnexpectedEOF)

// RefusedError is a daemon that does not take this client.
type RefusedError struct {
	Code Code
	Text string
}

func (e *RefusedError) Error() string { return reason("refused", e.Code, e.Text) }

// RequestError is a daemon that would not join, leave or list. Nothing has changed.
type RequestError struct {
	Code Code
	Text string
}

func (e *RequestError) Error() string { return reason("failed", e.Code, e.Text) }

// TLSError is a side that does not take the other's certificate, or a client without certificates to trust.
type TLSError struct{ Err error }

func (e *TLSError) Error() string { return fmt.Sprintf("no TLS: %v", e.Err) }
func (e *TLSError) Unwrap() error { return e.Err }

// InsecureError is an address that is not loopback: TCP protects nothing. Use a Unix socket or TLS, or set
// Options.Insecure.
type InsecureError struct{ Address string }

func (e *InsecureError) Error() string {
	return e.Address + " is not loopback, and TCP protects nothing"
}

// VersionError is a daemon that chose a version which was not offered.
type VersionError struct{ Version uint16 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the daemon speaks version %d", e.Version)
}

// TooLargeError is a payload above the limit, in bytes. Nothing of it was sent.
type TooLargeError struct{ Limit int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("a message may have at most %d bytes", e.Limit)
}

var (
	// ErrDestinations is a message without destinations, or with more than MaxDestinations.
	ErrDestinations = errors.New("a message needs from 1 to 100 destinations")
	// ErrWouldBlock says that there is no credit now, and that the call was not to wait. Nothing was sent.
	ErrWouldBlock = errors.New("there is no credit now")
	// ErrUnread says that more events are unread than may be, and that none was taken for Options.Timeout while the call
	// waited: take some, then call again. A message was not sent; a request may still take effect.
	ErrUnread = errors.New("too many events are unread: take some first")
	// ErrTimedOut says that the daemon did not answer within Options.Timeout. A join or leave may still take effect, and
	// may be made again.
	ErrTimedOut = errors.New("the daemon did not answer in time")
)

// MayPass says whether another attempt to connect may succeed without anybody having changed a setting.
func MayPass(err error) bool {
	var (
		refused  *RefusedError
		lost     *LostError
		name     *NameError
		tls      *TLSError
		insecure *InsecureError
		version  *VersionError
	)
	switch {
	case errors.As(err, &refused):
		return refused.Code.MayPass()
	case errors.As(err, &lost):
		return lost.Loss != LossProtocol && lost.Loss != LossUnexpected
	case errors.As(err, &name), errors.As(err, &tls), errors.As(err, &insecure), errors.As(err, &version):
		return false
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	}
	return true
}
