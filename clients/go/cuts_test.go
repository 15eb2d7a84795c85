package rota

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// script is a short conversation: what the client says, and what the daemon has said by then.
type script struct {
	fromClient []bool
	steps      [][]byte
}

func shortScript(t *testing.T) script {
	t.Helper()
	requests, replies := named(t, "requests.txt"), named(t, "replies.txt")
	of := func(frames map[string]*vector, names ...string) []byte {
		var all []byte
		for _, name := range names {
			all = append(all, frames[name].bytes(t, "bytes")...)
		}
		return all
	}
	return script{
		fromClient: []bool{true, false, true, false, true, false},
		steps: [][]byte{
			of(requests, "hello-membership"),
			of(replies, "welcome"),
			of(requests, "join"),
			of(replies, "view-own-join", "done", "view-join"),
			of(requests, "send", "send"),
			of(replies, "credit", "message", "view-network", "message"),
		},
	}
}

func (s script) total(fromClient bool) int {
	total := 0
	for at, step := range s.steps {
		if s.fromClient[at] == fromClient {
			total += len(step)
		}
	}
	return total
}

// act plays the daemon, which says and hears so many bytes; what it heard.
func (s script) act(p *peer, says, hears int) []byte {
	var heard []byte
	for at, step := range s.steps {
		most := says
		if s.fromClient[at] {
			most = hears - len(heard)
		}
		if most > len(step) {
			most = len(step)
		}
		if s.fromClient[at] {
			piece := make([]byte, most)
			count, _ := io.ReadFull(p, piece)
			heard = append(heard, piece[:count]...)
			if count < len(step) {
				return heard
			}
			continue
		}
		p.tell(step[:most])
		says -= most
		if most < len(step) {
			return heard
		}
	}
	return heard
}

// use is a client up to its loss: the events, messages that it was told were sent, and the loss. Not let in is a loss, too.
func use(t *testing.T, path string) (events []Event, sent int, unsettled uint64, err error) {
	t.Helper()
	client, err := Connect(soon(t), path, &Options{Name: "alice", Membership: true, Timeout: patience})
	if err != nil {
		return nil, 0, 0, err
	}
	defer client.HangUp()
	if client.Join(soon(t), "orders") == nil {
		for sent < 2 && client.Send(soon(t), "orders", []byte("hello")) == nil {
			sent++
		}
	}
	for {
		event, err := client.Recv(soon(t))
		if err != nil {
			unsettled = client.UnsettledBytes()
			_, again := client.Recv(soon(t))
			if again != err {
				t.Errorf("first %v, then %v", err, again)
			}
			return events, sent, unsettled, err
		}
		events = append(events, event)
	}
}

// Whatever the daemon has said up to a byte is told, and then the loss: of an end between two frames that it has ended, of one
// within a frame that it was cut.
func TestCutsOfWhatTheDaemonSays(t *testing.T) {
	s := shortScript(t)
	requests := s.total(true)
	for says := 0; says <= s.total(false); says++ {
		h := newHouse(t)
		end := h.play(func(h *house) {
			p := h.accept()
			defer p.Close()
			s.act(p, says, requests)
		})
		events, sent, unsettled, err := use(t, h.path)
		end()
		expected, credit, within := expectedOf(t, s, says)
		if len(events) != expected {
			t.Fatalf("byte %d: %d events had come, and %d were told", says, expected, len(events))
		}
		lost := lossOf(t, err)
		isCut := lost.Loss == LossFailed && errors.Is(lost, io.ErrUnexpectedEOF)
		// A daemon that closes before it has read everything resets.
		isReset := lost.Loss == LossFailed && !isCut
		if !isReset && isCut != within || lost.Loss != LossEnded && lost.Loss != LossFailed {
			t.Fatalf("byte %d: %v", says, lost)
		}
		if unsettled != uint64(22*sent)-credit {
			t.Fatalf("byte %d: %d sent, %d unsettled", says, sent, unsettled)
		}
	}
}

// expectedOf is how many events are whole in so many bytes, the credit in them, and whether they end within a frame.
func expectedOf(t *testing.T, s script, says int) (events int, credited uint64, within bool) {
	t.Helper()
	inbox := &inbox{}
	for at, step := range s.steps {
		if !s.fromClient[at] {
			if says < len(step) {
				step = step[:says]
			}
			says -= len(step)
			inbox.feed(step)
		}
	}
	for {
		frame, err := inbox.pull()
		if err != nil {
			t.Fatal(err)
		}
		switch frame := frame.(type) {
		case nil:
			return events, credited, inbox.within()
		case Event:
			events++
		case *credit:
			credited += uint64(frame.bytes)
		}
	}
}

// A daemon that hears up to a byte only has heard a first part of what the client says, which ends all the same.
func TestCutsOfWhatTheClientSays(t *testing.T) {
	s := shortScript(t)
	var whole []byte
	for at, step := range s.steps {
		if s.fromClient[at] {
			whole = append(whole, step...)
		}
	}
	for hears := 0; hears < len(whole); hears++ {
		h := newHouse(t)
		var heard []byte
		end := h.play(func(h *house) {
			p := h.accept()
			defer p.Close()
			heard = s.act(p, s.total(false), hears)
		})
		_, _, _, err := use(t, h.path)
		end()
		lossOrIO(t, err)
		if !bytes.Equal(heard, whole[:hears]) {
			t.Fatalf("byte %d: it heard %x", hears, heard)
		}
	}
}

// lossOrIO takes the loss of a connection, or that there was none.
func lossOrIO(t *testing.T, err error) {
	t.Helper()
	var lost *LostError
	var io *net.OpError
	if !errors.As(err, &lost) && !errors.As(err, &io) {
		t.Fatalf("%T %v", err, err)
	}
}

// At each cut the client connects again: it says what is unsure, and sends nothing twice.
func TestNothingIsSentTwiceBehindACut(t *testing.T) {
	s := shortScript(t)
	first := len(s.steps[1])
	for says := first; says <= s.total(false); says += 3 {
		h := newHouse(t)
		var numbers []string
		end := h.play(func(h *house) {
			p := h.accept()
			p.expect(kindHello)
			p.tell(s.steps[1])
			p.expect(kindJoin)
			rest := append(append([]byte{}, s.steps[3]...), s.steps[5]...)
			if says-first < len(rest) {
				rest = rest[:says-first]
			}
			p.tell(rest)
			// What it reads before it goes is some part of what was sent.
			_ = p.SetReadDeadline(time.Now().Add(time.Millisecond))
			for kind, body := p.frame(); kind == kindSend; kind, body = p.frame() {
				numbers = append(numbers, string(body[12:]))
			}
			_ = p.Close()
			p = h.accept()
			defer p.Close()
			p.welcome(5000)
			p.join("orders")
			for kind, body := p.frame(); kind == kindSend; kind, body = p.frame() {
				numbers = append(numbers, string(body[12:]))
			}
		})
		client, err := ConnectReconnecting(soon(t), h.path, &Options{Name: "alice", Membership: true, Timeout: patience}, hasty)
		if err != nil {
			t.Fatal(err)
		}
		_ = client.Join(soon(t), "orders")
		sent := 0
		for number := 1; number <= 2; number++ {
			if client.Send(soon(t), "orders", []byte(fmt.Sprint(number))) == nil {
				sent++
			}
		}
		gap := untilGap(t, client)
		if gap.UnsettledBytes > uint64(18*sent) {
			t.Fatalf("%d sent, %d unsettled", sent, gap.UnsettledBytes)
		}
		if err := client.Send(soon(t), "orders", []byte("3")); err != nil {
			t.Fatal(err)
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
		end()
		last := "0"
		for _, number := range numbers {
			if number <= last {
				t.Fatalf("byte %d: it heard %v", says, numbers)
			}
			last = number
		}
		if last != "3" {
			t.Fatalf("byte %d: it heard %v", says, numbers)
		}
	}
}

func untilGap(t *testing.T, client *Reconnecting) *Reconnected {
	t.Helper()
	for {
		event, err := client.Recv(soon(t))
		if err != nil {
			t.Fatal(err)
		}
		if gap, ok := event.(*Reconnected); ok {
			return gap
		}
	}
}
