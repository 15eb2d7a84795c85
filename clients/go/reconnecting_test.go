package rota

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

var hasty = Backoff{First: 2 * time.Millisecond, Longest: 20 * time.Millisecond}

func (h *house) reconnecting(options *Options) *Reconnecting {
	h.t.Helper()
	client, err := ConnectReconnecting(soon(h.t), h.path, options, hasty)
	if err != nil {
		h.t.Fatal(err)
	}
	return client
}

func TestALostConnectionIsFollowedByAGapInTheSameGroups(t *testing.T) {
	h := newHouse(t)
	end := h.play(func(h *house) {
		first := h.accept()
		first.welcome(1000)
		first.join("orders")
		first.join("stock")
		first.expect(kindSend)
		first.tell(aMessage("before"))
		_ = first.Close()
		refused := h.accept()
		refused.expect(kindHello)
		refused.tell(aReason(kindRefused, nil, CodeNameInUse))
		_ = refused.Close()
		second := h.accept()
		defer second.Close()
		second.welcome(1000)
		second.join("orders")
		request := second.expect(kindJoin)
		second.tell(aMessage("after"), aReason(kindFailed, request[:4], CodeQuota))
		second.untilGone()
	})
	client := h.reconnecting(&Options{Name: "alice"})
	for _, group := range []string{"orders", "stock"} {
		if err := client.Join(soon(t), group); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Send(soon(t), "orders", []byte("lost")); err != nil {
		t.Fatal(err)
	}
	if text := nextPayload(t, client.Recv); text != "before" {
		t.Error(text)
	}
	event, err := client.Recv(soon(t))
	gap, ok := event.(*Reconnected)
	if !ok {
		t.Fatal(event, err)
	}
	if gap.UnsettledBytes != 21 || gap.Name != "#alice#n1" || gap.Lost == nil || gap.Duration <= 0 {
		t.Error(gap)
	}
	if would := gap.NotJoined["stock"]; len(gap.NotJoined) != 1 || would.Code != CodeQuota {
		t.Error(gap.NotJoined)
	}
	if text := nextPayload(t, client.Recv); text != "after" {
		t.Error(text)
	}
	if client.groups["stock"] || !client.groups["orders"] {
		t.Error(client.groups)
	}
	client.Client().HangUp()
	end()
}

// A busy group that sends while the client joins the others again is no reason to begin once more: it would never end.
func TestWhatComesWhileGroupsAreJoinedAgainWaits(t *testing.T) {
	const count = 20
	h := newHouse(t)
	end := h.play(func(h *house) {
		first := h.accept()
		first.welcome(1000)
		first.join("orders")
		first.join("stock")
		_ = first.Close()
		second := h.accept()
		defer second.Close()
		second.welcome(1000)
		second.join("orders")
		for range make([]struct{}, count) {
			second.tell(aMessage(strings.Repeat("x", 1000)))
		}
		second.join("stock")
		second.untilGone()
	})
	client := h.reconnecting(&Options{UnreadBytes: 1000})
	for _, group := range []string{"orders", "stock"} {
		if err := client.Join(soon(t), group); err != nil {
			t.Fatal(err)
		}
	}
	if gap := untilGap(t, client); len(gap.NotJoined) > 0 {
		t.Error(gap.NotJoined)
	}
	for range make([]struct{}, count) {
		if text := nextPayload(t, client.Recv); len(text) != 1000 {
			t.Error(len(text))
		}
	}
	client.Client().HangUp()
	end()
}

func TestWhatComesWhileGroupsAreJoinedAgainHasAnEnd(t *testing.T) {
	usual := earlyBytes
	earlyBytes = 5000
	defer func() { earlyBytes = usual }()
	h := newHouse(t)
	end := h.play(func(h *house) {
		first := h.accept()
		first.welcome(1000)
		first.join("orders")
		_ = first.Close()
		second := h.accept()
		second.welcome(1000)
		request := second.expect(kindJoin)
		for range make([]struct{}, 200) {
			second.tell(aMessage(strings.Repeat("x", 1000)))
		}
		// Nothing behind so much is read.
		second.tell(framed(kindDone, func(out []byte) []byte { return append(out, request[:4]...) }))
		second.untilGone()
		_ = second.Close()
		third := h.accept()
		defer third.Close()
		third.welcome(1000)
		third.join("orders")
		third.untilGone()
	})
	client := h.reconnecting(&Options{UnreadBytes: 1000, Timeout: 200 * time.Millisecond})
	if err := client.Join(soon(t), "orders"); err != nil {
		t.Fatal(err)
	}
	if gap := untilGap(t, client); len(gap.NotJoined) > 0 {
		t.Error(gap.NotJoined)
	}
	if event, err := client.Client().TryRecv(); event != nil || err != nil {
		t.Error(event, err)
	}
	client.Client().HangUp()
	end()
}

func TestNothingIsSentBeforeTheGapWasSeen(t *testing.T) {
	h := newHouse(t)
	end := h.play(func(h *house) {
		first := h.accept()
		first.welcome(1000)
		_ = first.Close()
		second := h.accept()
		defer second.Close()
		second.welcome(1000)
		if body := second.expect(kindSend); !strings.HasSuffix(string(body), "after") {
			panic(string(body))
		}
		second.untilGone()
	})
	client := h.reconnecting(nil)
	for client.Send(soon(t), "orders", []byte("before")) == nil {
		continue
	}
	lossOf(t, client.Send(soon(t), "orders", []byte("too early")))
	untilGap(t, client)
	if err := client.Send(soon(t), "orders", []byte("after")); err != nil {
		t.Error(err)
	}
	_ = client.Client().Flush(soon(t))
	client.Client().HangUp()
	end()
}

func TestAGroupThatWasLeftIsNotJoinedAgain(t *testing.T) {
	h := newHouse(t)
	end := h.play(func(h *house) {
		first := h.accept()
		first.welcome(1000)
		first.join("orders")
		body := first.expect(kindLeave)
		first.tell(framed(kindDone, func(out []byte) []byte { return append(out, body[:4]...) }))
		_ = first.Close()
		second := h.accept()
		defer second.Close()
		second.welcome(1000)
		if kind, _ := second.frame(); kind != kindBye {
			panic(kind)
		}
	})
	client := h.reconnecting(nil)
	if err := client.Join(soon(t), "orders"); err != nil {
		t.Fatal(err)
	}
	if err := client.Leave(soon(t), "orders"); err != nil {
		t.Fatal(err)
	}
	untilGap(t, client)
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	end()
}

func TestAGroupThatIsLeftWhileItIsJoinedAgainIsLeft(t *testing.T) {
	h := newHouse(t)
	begun, left := make(chan struct{}), make(chan struct{})
	end := h.play(func(h *house) {
		first := h.accept()
		first.welcome(1000)
		first.join("orders")
		first.join("stock")
		_ = first.Close()
		second := h.accept()
		defer second.Close()
		second.welcome(1000)
		second.join("orders")
		body := second.expect(kindJoin)
		close(begun)
		<-left
		second.tell(framed(kindDone, func(out []byte) []byte { return append(out, body[:4]...) }))
		for _, group := range []string{"orders", "stock"} {
			body := second.expect(kindLeave)
			if string(body[5:]) != group {
				panic("a leave of " + string(body[5:]))
			}
			second.tell(framed(kindDone, func(out []byte) []byte { return append(out, body[:4]...) }))
		}
		second.untilGone()
	})
	client := h.reconnecting(nil)
	for _, group := range []string{"orders", "stock"} {
		if err := client.Join(soon(t), group); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		<-begun
		for _, group := range []string{"orders", "stock"} {
			// There is no connection yet.
			_ = client.Leave(context.Background(), group)
		}
		close(left)
	}()
	if gap := untilGap(t, client); len(gap.NotJoined) > 0 {
		t.Error(gap.NotJoined)
	}
	client.Client().HangUp()
	end()
}

// A leave that the daemon refuses is no reason to give up: the next connection does not join the group.
func TestALeaveThatIsRefusedBeginsAnotherAttempt(t *testing.T) {
	h := newHouse(t)
	begun, left := make(chan struct{}), make(chan struct{})
	end := h.play(func(h *house) {
		first := h.accept()
		first.welcome(1000)
		first.join("orders")
		_ = first.Close()
		second := h.accept()
		second.welcome(1000)
		body := second.expect(kindJoin)
		close(begun)
		<-left
		second.tell(framed(kindDone, func(out []byte) []byte { return append(out, body[:4]...) }))
		body = second.expect(kindLeave)
		second.tell(aReason(kindFailed, body[:4], CodeQuota))
		second.untilGone()
		_ = second.Close()
		third := h.accept()
		defer third.Close()
		third.welcome(1000)
		third.expect(kindBye)
	})
	client := h.reconnecting(nil)
	if err := client.Join(soon(t), "orders"); err != nil {
		t.Fatal(err)
	}
	go func() {
		<-begun
		_ = client.Leave(context.Background(), "orders")
		close(left)
	}()
	if gap := untilGap(t, client); len(gap.NotJoined) > 0 {
		t.Error(gap.NotJoined)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	end()
}

func TestADaemonThatComesBackIsFound(t *testing.T) {
	h := newHouse(t)
	end := h.play(func(h *house) {
		p := h.accept()
		p.welcome(1000)
		_ = p.Close()
	})
	client := h.reconnecting(nil)
	end()
	_ = h.listener.Close()
	_ = os.Remove(h.path)
	brief, cancel := context.WithTimeout(context.Background(), 60*time.Millisecond)
	defer cancel()
	if _, err := client.Recv(brief); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if client.Client() != nil || client.Name() != "" {
		t.Error("there is no daemon")
	}
	h.open()
	end = h.play(func(h *house) {
		p := h.accept()
		defer p.Close()
		p.welcome(1000)
		p.untilGone()
	})
	untilGap(t, client)
	client.Client().HangUp()
	end()
}

func TestARefusalThatWillStayEndsTheAttempts(t *testing.T) {
	h := newHouse(t)
	end := h.play(func(h *house) {
		p := h.accept()
		p.welcome(1000)
		_ = p.Close()
		for range []int{1, 2} {
			p := h.accept()
			p.expect(kindHello)
			p.tell(aReason(kindRefused, nil, CodeNotAllowed))
			_ = p.Close()
		}
	})
	client := h.reconnecting(nil)
	for range []int{1, 2} {
		_, err := client.Recv(soon(t))
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Code != CodeNotAllowed {
			t.Error(err)
		}
	}
	end()
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

func TestClosingEndsAttempts(t *testing.T) {
	h := newHouse(t)
	end := h.play(func(h *house) {
		p := h.accept()
		p.welcome(1000)
		_ = p.Close()
	})
	client := h.reconnecting(nil)
	end()
	_ = h.listener.Close()
	ended := make(chan error)
	go func() { _, err := client.Recv(soon(t)); ended <- err }()
	time.Sleep(10 * time.Millisecond)
	if err := client.Close(); err != nil {
		lossOf(t, err)
	}
	if lost := lossOf(t, <-ended); lost.Loss != LossEnded {
		t.Error(lost)
	}
}

func TestPausesDoubleUpToTheLongestAndAreNeverLessThanHalf(t *testing.T) {
	backoff := Backoff{}.withDefaults()
	for _, of := range []struct {
		attempts int
		chance   float64
		pause    time.Duration
	}{
		{0, 0, backoff.First / 2}, {0, 1, backoff.First}, {2, 1, 4 * backoff.First},
		{10, 0, backoff.Longest / 2}, {10_000_000, 1, backoff.Longest},
	} {
		if pause := backoff.pause(of.attempts, of.chance); pause != of.pause {
			t.Error(of, pause)
		}
	}
	// Twice the first is more than can be said.
	patient := Backoff{First: math.MaxInt64/2 + 1, Longest: math.MaxInt64}
	if pause := patient.pause(1, 0); pause != math.MaxInt64/2 {
		t.Error(pause)
	}
}
