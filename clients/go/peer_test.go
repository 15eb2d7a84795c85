package rota

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Nothing in these tests takes longer, unless it hangs.
const patience = 20 * time.Second

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// noneLeft fails if goroutines of clients are there at the end of the test.
func noneLeft(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		until := time.Now().Add(patience)
		for {
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			left := false
			for _, of := range []string{"rota.(*Client)", "rota.(*Reconnecting)", "rota.connect", "rota.dialFirst"} {
				left = left || strings.Contains(string(stacks), of)
			}
			if !left {
				return
			}
			if time.Now().After(until) {
				t.Errorf("left behind:\n%s", stacks)
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// house is where a scripted daemon listens.
type house struct {
	t        *testing.T
	path     string
	listener net.Listener
}

func newHouse(t *testing.T) *house {
	t.Helper()
	noneLeft(t)
	h := &house{t: t, path: filepath.Join(t.TempDir(), "s")}
	h.open()
	return h
}

func (h *house) open() {
	h.t.Helper()
	listener, err := net.Listen("unix", h.path)
	if err != nil {
		h.t.Fatal(err)
	}
	h.listener = listener
	h.t.Cleanup(func() { _ = listener.Close() })
}

// play runs a script for the next connections; the result waits for its end.
func (h *house) play(script func(*house)) (end func()) {
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		script(h)
	}()
	return func() {
		h.t.Helper()
		select {
		case failed := <-ended:
			if failed != nil {
				h.t.Fatal(failed)
			}
		case <-time.After(patience):
			h.t.Fatal("the script hangs")
		}
	}
}

// peer is one client, seen from the daemon.
type peer struct{ net.Conn }

func (h *house) accept() *peer {
	_ = h.listener.(*net.UnixListener).SetDeadline(time.Now().Add(patience))
	conn, err := h.listener.Accept()
	if err != nil {
		panic(err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	return &peer{conn}
}

// frame reads the next frame of the client: its kind and body; kind 0 is the end.
func (p *peer) frame() (byte, []byte) {
	var length [4]byte
	if _, err := io.ReadFull(p, length[:]); err != nil {
		if err == io.EOF || !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, nil
		}
		panic(err)
	}
	body := make([]byte, binary.LittleEndian.Uint32(length[:]))
	if _, err := io.ReadFull(p, body); err != nil {
		panic(err)
	}
	return body[0], body[1:]
}

func (p *peer) expect(kind byte) []byte {
	found, body := p.frame()
	if found != kind {
		panic(struct {
			expected, found byte
			body            string
		}{kind, found, string(body)})
	}
	return body
}

func (p *peer) tell(frames ...[]byte) {
	var all []byte
	for _, frame := range frames {
		all = append(all, frame...)
	}
	// A client may have gone.
	_, _ = p.Write(all)
}

// welcome lets a client in with this credit.
func (p *peer) welcome(credit uint32) { p.welcomeWith(credit, 5000) }

func (p *peer) welcomeWith(credit, largest uint32) {
	p.expect(kindHello)
	p.tell(framed(kindWelcome, func(out []byte) []byte {
		out = putText(putU16(out, 3), "#alice#n1")
		return putU32(putU32(out, credit), largest)
	}))
}

// join answers a join of this group.
func (p *peer) join(group string) {
	body := p.expect(kindJoin)
	if string(body[5:]) != group {
		panic("a join of " + string(body[5:]))
	}
	p.tell(framed(kindDone, func(out []byte) []byte { return append(out, body[:4]...) }))
}

func (p *peer) untilGone() {
	for kind := byte(255); kind != 0; kind, _ = p.frame() {
		continue
	}
}

func framed(kind byte, body func([]byte) []byte) []byte {
	out := body(startFrame(nil, kind))
	endFrame(out, 0, 0)
	return out
}

func aMessage(payload string) []byte {
	return framed(kindMessage, func(out []byte) []byte {
		out = putText(out, "#bob#n2")
		out = append(out, byte(Agreed), 0, 0, 0, 1)
		return append(putText(out, "orders"), payload...)
	})
}

func aCredit(bytes uint32) []byte {
	return framed(kindCredit, func(out []byte) []byte { return putU32(out, bytes) })
}

func aReason(kind byte, request []byte, code Code) []byte {
	return framed(kind, func(out []byte) []byte { return putText(putU16(append(out, request...), uint16(code)), "no") })
}

func (h *house) client(options *Options) *Client {
	h.t.Helper()
	client, err := Connect(soon(h.t), h.path, options)
	if err != nil {
		h.t.Fatal(err)
	}
	return client
}

// lossOf is how a connection has ended, by the error of a call.
func lossOf(t *testing.T, err error) *LostError {
	t.Helper()
	var lost *LostError
	if !errors.As(err, &lost) {
		t.Fatalf("%v is no loss", err)
	}
	return lost
}

func nextPayload(t *testing.T, recv func(context.Context) (Event, error)) string {
	t.Helper()
	event, err := recv(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	message, ok := event.(*Message)
	if !ok {
		t.Fatalf("%T %v is no message", event, event)
	}
	return string(message.Payload)
}
