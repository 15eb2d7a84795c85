package rota

import (
	"context"
	"errors"
	"math/rand"
	"sort"
	"sync"
	"time"
)

// Backoff is the pauses between attempts: each is twice the one before, with a part drawn at random, so that the clients of a
// daemon that was restarted do not all come at once. Zero fields have the defaults.
type Backoff struct {
	// First is the pause between the loss and the first attempt; 50 ms.
	First time.Duration
	// Longest is the longest pause; 5 s.
	Longest time.Duration
}

func (b Backoff) withDefaults() Backoff {
	if b.First <= 0 {
		b.First = 50 * time.Millisecond
	}
	if b.Longest <= 0 {
		b.Longest = 5 * time.Second
	}
	return b
}

// pause is that after so many attempts: from half of the time to all of it, as chance from 0 to 1 says.
func (b Backoff) pause(attempts int, chance float64) time.Duration {
	whole := b.First
	for ; attempts > 0 && whole <= b.Longest/2; attempts-- {
		whole *= 2
	}
	if attempts > 0 || whole > b.Longest {
		whole = b.Longest
	}
	return whole/2 + time.Duration(chance*float64(whole/2))
}

// earlyBytes is the most of events that may come while groups are joined again, unless Options.UnreadBytes is more.
var earlyBytes = 1 << 30

// Reconnecting is a client that connects again when its connection is lost, joins its groups again, and says so: *Reconnected
// stands where something may be missing.
//
// It connects again while a call of Recv waits for events, and nowhere else, so that nothing is sent or received behind a gap
// that the application has not seen. When Send says that the connection is lost, take events until *Reconnected. A daemon may
// take a while to notice that the old connection is gone; a client with a name of its own is refused as long.
type Reconnecting struct {
	address string
	options Options
	backoff Backoff
	// turn is taken by who receives.
	turn chan struct{}
	// closing ends with Close.
	closing context.Context
	close   context.CancelFunc

	mu     sync.Mutex
	groups map[string]bool
	// client is nil while there is no connection: then there is a loss.
	client *Client
	loss   loss
}

type loss struct {
	lost      *LostError
	since     time.Time
	unsettled uint64
	attempts  int
	next      time.Time
}

// ConnectReconnecting connects for the first time; a failure of this attempt is final.
func ConnectReconnecting(ctx context.Context, address string, options *Options, backoff Backoff) (*Reconnecting, error) {
	client, err := Connect(ctx, address, options)
	if err != nil {
		return nil, err
	}
	closing, end := context.WithCancel(context.Background())
	return &Reconnecting{
		address: address,
		options: options.withDefaults(),
		backoff: backoff.withDefaults(),
		turn:    make(chan struct{}, 1),
		closing: closing,
		close:   end,
		groups:  map[string]bool{},
		client:  client,
	}, nil
}

// Client is the connection, nil while there is none: to list groups, for instance. Joins and leaves made there are not made
// again.
func (r *Reconnecting) Client() *Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.client
}

func (r *Reconnecting) connected() (*Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.client == nil {
		return nil, r.loss.lost
	}
	return r.client, nil
}

// Name is the private name of this client now; that of the earlier connection while there is none is unknown, and empty.
func (r *Reconnecting) Name() string {
	if client := r.Client(); client != nil {
		return client.Name()
	}
	return ""
}

// Join is Client.Join; and again on each new connection, also if this one is lost meanwhile or the answer does not come in
// time. Only a group that the daemon refuses is not joined again.
func (r *Reconnecting) Join(ctx context.Context, group string) error {
	if err := checkName(group, mostGroup); err != nil {
		return err
	}
	client, err := r.connected()
	if err != nil {
		return err
	}
	// On the list before the answer: a connection that is lost meanwhile is followed by one that joins.
	r.note(group, true)
	err = client.Join(ctx, group)
	var would *RequestError
	if errors.As(err, &would) {
		r.note(group, false)
	}
	return err
}

func (r *Reconnecting) note(group string, joined bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if joined {
		r.groups[group] = true
	} else {
		delete(r.groups, group)
	}
}

// Leave is Client.Leave; no new connection joins the group again.
func (r *Reconnecting) Leave(ctx context.Context, group string) error {
	r.note(group, false)
	client, err := r.connected()
	if err != nil {
		return err
	}
	return client.Leave(ctx, group)
}

// Send is Client.Send.
func (r *Reconnecting) Send(ctx context.Context, to string, payload []byte) error {
	return r.SendEnvelope(ctx, &Envelope{To: []string{to}}, payload)
}

// SendEnvelope is Client.SendEnvelope.
func (r *Reconnecting) SendEnvelope(ctx context.Context, envelope *Envelope, payload []byte) error {
	client, err := r.connected()
	if err != nil {
		return err
	}
	return client.SendEnvelope(ctx, envelope, payload)
}

// TrySend is Client.TrySend.
func (r *Reconnecting) TrySend(envelope *Envelope, payload []byte) error {
	client, err := r.connected()
	if err != nil {
		return err
	}
	return client.TrySend(envelope, payload)
}

// Recv gives the next event, and waits until there is one or the context ends. Another error means that somebody has to change
// something before an attempt can succeed (MayPass), as a certificate that has expired; or that this client was closed. Each
// further call tries once more: so a program may call again, after a pause of its own, and goes on once that has been done.
func (r *Reconnecting) Recv(ctx context.Context) (Event, error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-r.turn }()
	if client := r.Client(); client != nil {
		// Most have come together with another.
		if event, _ := client.TryRecv(); event != nil {
			return event, nil
		}
	}
	// Attempts end with the call, and with the client.
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-r.closing.Done():
			cancel()
		case <-limited.Done():
		}
	}()
	event, err := r.next(limited)
	cancel()
	<-ended
	if err != nil && ctx.Err() == nil && r.closing.Err() != nil {
		return nil, &LostError{Loss: LossEnded}
	}
	return event, err
}

func (r *Reconnecting) next(ctx context.Context) (Event, error) {
	for {
		client := r.Client()
		if client != nil {
			event, err := client.Recv(ctx)
			var lost *LostError
			if !errors.As(err, &lost) {
				return event, err
			}
			client.HangUp()
			r.lose(client, lost)
			continue
		}
		if r.closing.Err() != nil {
			return nil, &LostError{Loss: LossEnded}
		}
		r.mu.Lock()
		pause := time.NewTimer(time.Until(r.loss.next))
		r.mu.Unlock()
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, ctx.Err()
		}
		gap, err := r.attempt(ctx)
		if gap != nil || err != nil {
			return gap, err
		}
	}
}

func (r *Reconnecting) lose(client *Client, lost *LostError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client = nil
	r.loss = loss{
		lost:      lost,
		since:     time.Now(),
		unsettled: client.UnsettledBytes(),
		// A pause comes before the first attempt too: a daemon may let a client in and lose it at once, over and over.
		next: time.Now().Add(r.backoff.pause(0, rand.Float64())),
	}
}

// attempt connects and joins once more; nil without an error is a failure that may pass.
func (r *Reconnecting) attempt(ctx context.Context) (Event, error) {
	client, err := Connect(ctx, r.address, &r.options)
	if err == nil {
		var gap *Reconnected
		if gap, err = r.rejoin(ctx, client); err == nil {
			return gap, nil
		}
		client.HangUp()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if !MayPass(err) {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loss.attempts++
	r.loss.next = time.Now().Add(r.backoff.pause(r.loss.attempts, rand.Float64()))
	return nil, nil
}

func (r *Reconnecting) rejoin(ctx context.Context, client *Client) (*Reconnected, error) {
	// Events wait until the gap is known, since the application takes none before: very many, but not without end.
	early := earlyBytes
	if early < r.options.UnreadBytes {
		early = r.options.UnreadBytes
	}
	client.setUnreadLimit(early)
	r.mu.Lock()
	var names []string
	for name := range r.groups {
		names = append(names, name)
	}
	r.mu.Unlock()
	sort.Strings(names)
	notJoined := map[string]*RequestError{}
	joined := map[string]bool{}
	for _, name := range names {
		err := client.Join(ctx, name)
		var would *RequestError
		switch {
		case err == nil:
			joined[name] = true
		case errors.As(err, &would):
			notJoined[name] = would
		default:
			// The join may still take effect, unheard: only another connection makes it certain.
			return nil, err
		}
	}
	for {
		gap, left, err := r.goOn(client, joined, notJoined)
		if gap != nil || err != nil {
			return gap, err
		}
		for _, name := range left {
			// Where that fails, another connection will not join it.
			if err := client.Leave(ctx, name); err != nil {
				return nil, err
			}
			delete(joined, name)
		}
	}
}

// goOn takes the new connection into use; not while it is in groups that the application has left meanwhile: those it gives.
func (r *Reconnecting) goOn(
	client *Client, joined map[string]bool, notJoined map[string]*RequestError,
) (gap *Reconnected, left []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing.Err() != nil {
		return nil, nil, &LostError{Loss: LossEnded}
	}
	for name := range joined {
		if !r.groups[name] {
			left = append(left, name)
		}
	}
	if len(left) > 0 {
		sort.Strings(left)
		return nil, left, nil
	}
	client.setUnreadLimit(r.options.UnreadBytes)
	for name := range notJoined {
		delete(r.groups, name)
	}
	r.client = client
	return &Reconnected{
		Lost:           r.loss.lost,
		Duration:       time.Since(r.loss.since),
		UnsettledBytes: r.loss.unsettled,
		Name:           client.Name(),
		NotJoined:      notJoined,
	}, nil, nil
}

func (c *Client) setUnreadLimit(limit int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unreadLimit = limit
}

// Close is Client.Close; while there is no connection it only ends the attempts.
func (r *Reconnecting) Close() error {
	r.close()
	if client := r.Client(); client != nil {
		return client.Close()
	}
	return nil
}
