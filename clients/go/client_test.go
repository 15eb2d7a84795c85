package rota

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// follow does what the client of a conversation does.
func follow(t *testing.T, client *Client, v *vector, requests map[string]*vector) {
	t.Helper()
	for _, step := range v.all("client")[1:] {
		for _, name := range strings.Fields(step) {
			frame := requests[name]
			var err error
			switch is := frame.one(t, "is"); is {
			case "join":
				err = client.Join(soon(t), frame.one(t, "group"))
			case "leave":
				err = client.Leave(soon(t), frame.one(t, "group"))
			case "list":
				if group := frame.orEmpty(t, "group"); group != "" {
					_, err = client.Members(soon(t), group)
				} else {
					_, err = client.Groups(soon(t))
				}
			case "send":
				envelope, payload := envelopeOf(t, frame)
				err = client.SendEnvelope(soon(t), envelope, payload)
			case "bye":
				err = client.Close()
			default:
				t.Fatal(is)
			}
			var would *RequestError
			if err != nil && !errors.As(err, &would) {
				t.Fatal(v.name, name, err)
			}
		}
	}
}

func conversation(t *testing.T, name string) *vector {
	t.Helper()
	return named(t, "conversations.txt")[name]
}

func optionsOf(t *testing.T, v *vector, requests map[string]*vector) *Options {
	t.Helper()
	hello := requests[v.all("client")[0]]
	return &Options{
		Name:       hello.orEmpty(t, "client"),
		Membership: hello.one(t, "membership") == "yes",
		WhenSlow:   policies[hello.one(t, "when-slow")],
		Timeout:    patience,
	}
}

// lines are the steps of a conversation, with who takes them.
func stepBytes(t *testing.T, v *vector, requests, replies map[string]*vector) (fromClient []bool, steps [][]byte) {
	t.Helper()
	for _, line := range v.lines {
		frames := requests
		switch line[0] {
		case "client":
		case "daemon":
			frames = replies
		default:
			continue
		}
		var all []byte
		for _, name := range strings.Fields(line[1]) {
			all = append(all, frames[name].bytes(t, "bytes")...)
		}
		fromClient = append(fromClient, line[0] == "client")
		steps = append(steps, all)
	}
	return fromClient, steps
}

func TestTheClientSaysWhatTheConversationsSay(t *testing.T) {
	requests, replies := named(t, "requests.txt"), named(t, "replies.txt")
	for _, name := range []string{"relayed", "not-joined"} {
		t.Run(name, func(t *testing.T) {
			v := conversation(t, name)
			fromClient, steps := stepBytes(t, v, requests, replies)
			h := newHouse(t)
			var said bytes.Buffer
			end := h.play(func(h *house) {
				p := h.accept()
				defer p.Close()
				for at, step := range steps {
					if !fromClient[at] {
						p.tell(step)
						continue
					}
					heard := make([]byte, len(step))
					if _, err := io.ReadFull(p, heard); err != nil {
						panic(fmt.Sprint(at, err))
					}
					said.Write(heard)
				}
			})
			client := h.client(optionsOf(t, v, requests))
			follow(t, client, v, requests)
			end()
			if !bytes.Equal(said.Bytes(), v.bytes(t, "from-client")) {
				t.Errorf("it said %x", short(said.Bytes()))
			}
		})
	}
}

func TestARefusalIsSaid(t *testing.T) {
	h := newHouse(t)
	end := h.play(func(h *house) {
		p := h.accept()
		defer p.Close()
		p.expect(kindHello)
		p.tell(named(t, "replies.txt")["refused-name-in-use"].bytes(t, "bytes"))
	})
	_, err := Connect(soon(t), h.path, nil)
	var refused *RefusedError
	if !errors.As(err, &refused) || refused.Code != CodeNameInUse || refused.Text != "ask later" {
		t.Fatal(err)
	}
	if !MayPass(err) {
		t.Error("the other may go")
	}
	end()
}

func TestWhatHadComeIsDeliveredBeforeAGoodbye(t *testing.T) {
	h := newHouse(t)
	v := conversation(t, "shutting-down")
	requests, replies := named(t, "requests.txt"), named(t, "replies.txt")
	_, steps := stepBytes(t, v, requests, replies)
	end := h.play(func(h *house) {
		p := h.accept()
		defer p.Close()
		p.expect(kindHello)
		p.tell(steps[1])
		p.expect(kindJoin)
		p.tell(steps[3])
		p.untilGone()
	})
	client := h.client(&Options{Name: "alice"})
	if err := client.Join(soon(t), "orders"); err != nil {
		t.Fatal(err)
	}
	if text := nextPayload(t, client.Recv); text != "hello" {
		t.Error(text)
	}
	event, err := client.Recv(soon(t))
	if skipped, ok := event.(*Skipped); !ok || skipped.Messages != 3 || len(skipped.Groups) != 2 {
		t.Error(event, err)
	}
	for range []int{1, 2} {
		_, err = client.Recv(soon(t))
		if lost := lossOf(t, err); lost.Loss != LossGoodbye || lost.Code != CodeShuttingDown {
			t.Error(lost)
		}
	}
	if lost := lossOf(t, client.Send(soon(t), "orders", nil)); lost.Loss != LossGoodbye {
		t.Error(lost)
	}
	end()
}

func TestSendsWaitForCreditInTheirTurn(t *testing.T) {
	h := newHouse(t)
	go1 := make(chan struct{})
	end := h.play(func(h *house) {
		p := h.accept()
		defer p.Close()
		p.welcome(50)
		// Two frames of 22 bytes fit.
		p.expect(kindSend)
		p.expect(kindSend)
		<-go1
		p.tell(aCredit(44))
		p.expect(kindSend)
		p.tell(aCredit(22))
		p.untilGone()
	})
	client := h.client(nil)
	for range []int{1, 2} {
		if err := client.Send(soon(t), "orders", []byte("hello")); err != nil {
			t.Fatal(err)
		}
	}
	envelope := &Envelope{To: []string{"orders"}}
	if err := client.TrySend(envelope, []byte("hello")); err != ErrWouldBlock {
		t.Error(err)
	}
	brief, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := client.Send(brief, "orders", []byte("hello")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if unsettled := client.UnsettledBytes(); unsettled != 44 {
		t.Error(unsettled)
	}
	sent := make(chan error)
	go func() { sent <- client.Send(soon(t), "orders", []byte("third")) }()
	close(go1)
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if err := client.Flush(soon(t)); err != nil {
		t.Error(err)
	}
	client.HangUp()
	end()
}

func TestAMessageAboveTheCreditGoesAlone(t *testing.T) {
	h := newHouse(t)
	end := h.play(func(h *house) {
		p := h.accept()
		defer p.Close()
		p.welcome(50)
		p.expect(kindSend)
		if body := p.expect(kindSend); len(body) != 4012 {
			panic(len(body))
		}
		p.untilGone()
	})
	client := h.client(nil)
	large := make([]byte, 4000)
	if err := client.Send(soon(t), "orders", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := client.TrySend(&Envelope{To: []string{"orders"}}, large); err != ErrWouldBlock {
		t.Fatal(err)
	}
	// The daemon has taken the first.
	client.mu.Lock()
	client.outstanding = 0
	client.mu.Unlock()
	if err := client.Send(soon(t), "orders", large); err != nil {
		t.Fatal(err)
	}
	if err := client.Flush(soon(t)); err != nil {
		t.Fatal(err)
	}
	client.HangUp()
	end()
}

func TestWhatADaemonAllowsHasAnEnd(t *testing.T) {
	h := newHouse(t)
	end := h.play(func(h *house) {
		p := h.accept()
		defer p.Close()
		p.welcomeWith(math.MaxUint32, math.MaxUint32)
		p.untilGone()
	})
	client := h.client(nil)
	if client.limit != mostCredit || client.LargestPayload() != mostCredit {
		t.Error(client.limit, client.LargestPayload())
	}
	client.HangUp()
	end()
}

// Otherwise a daemon that reads nothing could fill the memory of a client that never waits.
func TestCreditForWhatWasNotReadIsNone(t *testing.T) {
	const most = 4000
	h := newHouse(t)
	goOn, read := make(chan struct{}), make(chan int, 1)
	end := h.play(func(h *house) {
		p := h.accept()
		defer p.Close()
		p.welcome(50_000)
		for waiting := true; waiting; {
			p.tell(aCredit(math.MaxUint32))
			select {
			case <-goOn:
				waiting = false
			case <-time.After(time.Millisecond / 10):
			}
		}
		count := 0
		for kind, _ := p.frame(); kind == kindSend; kind, _ = p.frame() {
			count++
		}
		read <- count
	})
	client := h.client(nil)
	envelope := &Envelope{To: []string{"orders"}}
	sent := 0
	for ; sent < most; sent++ {
		err := client.TrySend(envelope, make([]byte, 5000))
		if err == ErrWouldBlock {
			for client.UnsettledBytes() > 0 {
				time.Sleep(time.Millisecond)
			}
			err = client.TrySend(envelope, make([]byte, 5000))
		}
		if err == ErrWouldBlock {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if sent == most {
		t.Error("all waits in memory")
	}
	close(goOn)
	if err := client.Send(soon(t), "orders", []byte("room")); err != nil {
		t.Fatal(err)
	}
	if err := client.Flush(soon(t)); err != nil {
		t.Fatal(err)
	}
	client.HangUp()
	end()
	if count := <-read; count != sent+1 {
		t.Error(count, sent)
	}
}

func TestWhatCannotBeSentIsSaidAndNothingIsSent(t *testing.T) {
	h := newHouse(t)
	end := h.play(func(h *house) {
		p := h.accept()
		defer p.Close()
		p.welcome(5000)
		p.expect(kindBye)
	})
	client := h.client(nil)
	ctx := soon(t)
	var name *NameError
	for _, to := range []string{"", "a b", "#alice", "#alice#", "##n1", strings.Repeat("g", 32), "#elevenchars#n1"} {
		if err := client.Send(ctx, to, nil); !errors.As(err, &name) {
			t.Errorf("%q: %v", to, err)
		}
		if err := client.Join(ctx, to); !errors.As(err, &name) {
			t.Errorf("%q: %v", to, err)
		}
	}
	var large *TooLargeError
	if err := client.Send(ctx, "g", make([]byte, 5001)); !errors.As(err, &large) || large.Limit != 5000 {
		t.Error(err)
	}
	for _, count := range []int{0, 101} {
		to := make([]string, count)
		for at := range to {
			to[at] = fmt.Sprint("g", at)
		}
		if err := client.SendEnvelope(ctx, &Envelope{To: to}, nil); err != ErrDestinations {
			t.Error(count, err)
		}
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if err := client.Close(); err != nil {
		t.Error("closing again is fine:", err)
	}
	lossOf(t, client.Send(ctx, "g", nil))
	end()
}

func TestSendsOfManyGoroutinesAreWhole(t *testing.T) {
	const writers, each = 8, 200
	h := newHouse(t)
	seen := map[string]int{}
	end := h.play(func(h *house) {
		p := h.accept()
		defer p.Close()
		p.welcome(500)
		for at := 0; at < writers*each; at++ {
			body := p.expect(kindSend)
			writer, number, _ := strings.Cut(string(body[5+2:]), " ")
			if number != fmt.Sprint(seen[writer]) {
				panic(string(body))
			}
			seen[writer]++
			p.tell(aCredit(uint32(len(body) + 5)))
		}
		p.untilGone()
	})
	client := h.client(nil)
	var all sync.WaitGroup
	for writer := 0; writer < writers; writer++ {
		all.Add(1)
		go func(writer int) {
			defer all.Done()
			for at := 0; at < each; at++ {
				if err := client.Send(soon(t), "g", []byte(fmt.Sprint(writer, " ", at))); err != nil {
					t.Error(err)
					return
				}
			}
		}(writer)
	}
	all.Wait()
	if err := client.Flush(soon(t)); err != nil {
		t.Error(err)
	}
	client.HangUp()
	end()
	if len(seen) != writers {
		t.Error(seen)
	}
}

func TestTooMuchUnreadStopsReadingAndIsSaid(t *testing.T) {
	h := newHouse(t)
	end := h.play(func(h *house) {
		p := h.accept()
		defer p.Close()
		p.welcome(50)
		p.expect(kindSend)
		for range make([]struct{}, 100) {
			p.tell(aMessage(strings.Repeat("x", 1000)))
		}
		p.tell(aCredit(22))
		p.expect(kindSend)
		p.untilGone()
	})
	client := h.client(&Options{UnreadBytes: 5000, Timeout: 200 * time.Millisecond})
	if err := client.Send(soon(t), "orders", []byte("hello")); err != nil {
		t.Fatal(err)
	}
	large := make([]byte, 100)
	var err error
	for err = ErrWouldBlock; err == ErrWouldBlock; {
		err = client.SendEnvelope(soon(t), &Envelope{To: []string{"orders"}}, large)
	}
	if err != ErrUnread {
		t.Fatal(err)
	}
	taken := make(chan error, 1)
	go func() { taken <- client.Send(soon(t), "orders", large) }()
	for range make([]struct{}, 100) {
		if text := nextPayload(t, client.Recv); len(text) != 1000 {
			t.Fatal(len(text))
		}
	}
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	if err := client.Flush(soon(t)); err != nil {
		t.Fatal(err)
	}
	client.HangUp()
	end()
}

func TestAnAnswerThatDoesNotComeIsSaid(t *testing.T) {
	h := newHouse(t)
	end := h.play(func(h *house) {
		p := h.accept()
		defer p.Close()
		p.welcome(50)
		late := p.expect(kindJoin)
		p.join("stock")
		p.tell(framed(kindDone, func(out []byte) []byte { return append(out, late[:4]...) }))
		p.tell(aMessage("behind"))
		p.untilGone()
	})
	client := h.client(&Options{Timeout: 100 * time.Millisecond})
	if err := client.Join(soon(t), "orders"); err != ErrTimedOut {
		t.Error(err)
	}
	if err := client.Join(soon(t), "stock"); err != nil {
		t.Error(err)
	}
	if text := nextPayload(t, client.Recv); text != "behind" {
		t.Error(text)
	}
	client.HangUp()
	end()
}

func TestADaemonThatDoesNotAnswerAHelloIsSaid(t *testing.T) {
	h := newHouse(t)
	end := h.play(func(h *house) { h.accept().untilGone() })
	if _, err := Connect(soon(t), h.path, &Options{Timeout: 50 * time.Millisecond}); err != ErrTimedOut {
		t.Error(err)
	}
	end()
	end = h.play(func(h *house) { h.accept().untilGone() })
	brief, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := Connect(brief, h.path, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	end()
}

func TestTCPLeavesThisMachineOnlyWhenTold(t *testing.T) {
	noneLeft(t)
	_, err := Connect(soon(t), "tcp:203.0.113.1:4805", nil)
	var insecure *InsecureError
	if !errors.As(err, &insecure) || MayPass(err) {
		t.Error(err)
	}
	_, err = Connect(soon(t), "tls:localhost:4805", nil)
	var tls *TLSError
	if !errors.As(err, &tls) || MayPass(err) {
		t.Error(err)
	}
}

func TestAnAddressThatNothingAnswersForKeepsNobodyFromTheNext(t *testing.T) {
	noneLeft(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	none := closed.Addr().String()
	_ = closed.Close()
	conn, err := dialFirst(soon(t), []string{none, none, listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if _, err := dialFirst(soon(t), []string{none, none}); err == nil || !MayPass(err) {
		t.Error(err)
	}
}

func TestBothVersionsOfAddressesAreTriedInTurns(t *testing.T) {
	var addresses []net.IPAddr
	for _, text := range []string{"::1", "::2", "::3", "1.0.0.1"} {
		addresses = append(addresses, net.IPAddr{IP: net.ParseIP(text)})
	}
	var found []string
	for _, address := range inTurns(addresses) {
		found = append(found, address.String())
	}
	if strings.Join(found, " ") != "::1 1.0.0.1 ::2 ::3" {
		t.Error(found)
	}
}

func TestHangingUpEndsAllThatWait(t *testing.T) {
	h := newHouse(t)
	end := h.play(func(h *house) {
		p := h.accept()
		p.welcome(20)
		p.expect(kindSend)
		p.untilGone()
	})
	client := h.client(nil)
	if err := client.Send(soon(t), "orders", []byte("more than the credit")); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- client.Send(soon(t), "orders", nil) }()
	go func() { ended <- client.Join(soon(t), "orders") }()
	go func() { _, err := client.Recv(soon(t)); ended <- err }()
	time.Sleep(10 * time.Millisecond)
	client.HangUp()
	for range []int{1, 2, 3} {
		if lost := lossOf(t, <-ended); lost.Loss != LossEnded {
			t.Error(lost)
		}
	}
	end()
}

// Closing says that the daemon has read everything only where it has: not where this side has hung up meanwhile, and not where
// something could not be written.
func TestClosingClaimsNothingThatIsNotSo(t *testing.T) {
	h := newHouse(t)
	over := make(chan struct{})
	end := h.play(func(h *house) {
		p := h.accept()
		p.welcome(5000)
		<-over
		_ = p.Close()
		p = h.accept()
		p.welcome(1 << 20)
		p.expect(kindSend)
		// It reads nothing more, and ends.
		time.Sleep(20 * time.Millisecond)
		_ = p.Close()
	})
	client := h.client(nil)
	closed := make(chan error)
	go func() { closed <- client.Close() }()
	time.Sleep(10 * time.Millisecond)
	client.HangUp()
	lossOf(t, <-closed)
	close(over)
	client = h.client(nil)
	for range make([]struct{}, 100) {
		if err := client.Send(soon(t), "orders", make([]byte, 5000)); err != nil {
			break
		}
	}
	lossOf(t, client.Close())
	end()
}
