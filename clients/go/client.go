package rota

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// The most bytes of credit and of one payload, whatever the daemon says: a slice has less than twice this where an int has 32 bits.
const mostCredit = 1 << 30

// Room that an empty buffer of written bytes keeps.
const keptOut = 128 << 10

// signal wakes all that wait for something. Its methods are for who has the client's lock.
type signal struct{ channel chan struct{} }

// wait is closed when the signal fires next.
func (s *signal) wait() <-chan struct{} {
	if s.channel == nil {
		s.channel = make(chan struct{})
	}
	return s.channel
}

func (s *signal) fire() {
	if s.channel != nil {
		close(s.channel)
		s.channel = nil
	}
}

// Client is a connection to a daemon. Any number of goroutines may use one.
//
// Messages are written by a goroutine of the client's own, those that come while it writes together. Another reads; Close and
// HangUp end both.
type Client struct {
	name    string
	largest int
	options Options
	link    *link
	// turn is taken by who waits for credit: first come, first served.
	turn chan struct{}
	// running are the client's own goroutines.
	running sync.WaitGroup

	mu sync.Mutex
	// out waits to be written, spare is an empty buffer for the next, and writing is whether the writer has one.
	out, spare  []byte
	writing     bool
	limit       uint64
	outstanding uint64
	answers     map[uint32]any
	newest      uint32
	events      []Event
	unread      int
	unreadLimit int
	// taken counts the events that the application has taken.
	taken    uint64
	lost     *LostError
	writeErr error
	// closing is whether this side has said bye, or has hung up; hungUp is whether it has ended a connection that stood.
	closing, hungUp bool
	// changed fires with news for who waits for credit, answers, or for all to be written; arrived with events; room with
	// events that were taken; work with something to write. All fire with the loss.
	changed, arrived, room, work signal
}

// Connect connects to the path of a Unix socket, tcp:HOST:PORT or tls:HOST:PORT, and waits until the daemon has let the client
// in. Options may be nil.
func Connect(ctx context.Context, address string, options *Options) (*Client, error) {
	o := options.withDefaults()
	if o.Name != "" {
		if err := checkName(o.Name, mostClient); err != nil {
			return nil, err
		}
	}
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	client, err := connect(limited, address, &o)
	if err == nil {
		return client, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if limited.Err() != nil {
		return nil, ErrTimedOut
	}
	return nil, err
}

func connect(ctx context.Context, address string, options *Options) (*Client, error) {
	link, err := dial(ctx, address, options)
	if err != nil {
		return nil, err
	}
	// What the daemon says comes in time, or not at all.
	over := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-ctx.Done():
			link.drop()
		case <-over:
		}
	}()
	inbox := &inbox{}
	welcome, err := enter(link, inbox, options)
	close(over)
	<-watched
	if err != nil {
		link.drop()
		return nil, err
	}
	client := &Client{
		name:        welcome.name,
		largest:     int(atMost(welcome.largestPayload)),
		options:     *options,
		link:        link,
		turn:        make(chan struct{}, 1),
		limit:       uint64(atMost(welcome.credit)),
		answers:     map[uint32]any{},
		unreadLimit: options.UnreadBytes,
	}
	client.running.Add(2)
	go client.read(inbox)
	go client.write()
	return client, nil
}

func atMost(bytes uint32) uint32 {
	if bytes > mostCredit {
		return mostCredit
	}
	return bytes
}

// enter says hello, and reads up to the welcome.
func enter(link *link, inbox *inbox, options *Options) (*welcome, error) {
	if _, err := link.stream.Write(helloFrame(options.Name, options.Membership, options.WhenSlow)); err != nil {
		return nil, ofConnecting(err)
	}
	buffer := make([]byte, 4096)
	for {
		reply, err := inbox.pull()
		if err != nil {
			return nil, &LostError{Loss: LossProtocol, Err: err}
		}
		switch reply := reply.(type) {
		case nil:
		case *welcome:
			if reply.version < lowestVersion || reply.version > highestVersion {
				return nil, &VersionError{reply.version}
			}
			if reply.memory != 0 {
				// It was not asked for.
				return nil, &LostError{Loss: LossUnexpected}
			}
			return reply, nil
		case *refused:
			return nil, &RefusedError{reply.code, reply.text}
		case *goodbye:
			return nil, &RefusedError{reply.code, reply.text}
		default:
			return nil, &LostError{Loss: LossUnexpected}
		}
		count, err := link.stream.Read(buffer)
		inbox.feed(buffer[:count])
		if err != nil && count == 0 {
			if isOfTLS(err) {
				return nil, &TLSError{err}
			}
			return nil, link.lostBy(err, inbox.within())
		}
	}
}

func ofConnecting(err error) error {
	if isOfTLS(err) {
		return &TLSError{err}
	}
	return err
}

// Name is the private name of this client: #client#daemon. Messages to it come to this client alone.
func (c *Client) Name() string { return c.name }

// LargestPayload is the most bytes of one payload.
func (c *Client) LargestPayload() int { return c.largest }

// standing is nil while there is a connection to send by.
func (c *Client) standing() error {
	switch {
	case c.lost != nil:
		return c.lost
	case c.closing:
		return &LostError{Loss: LossEnded}
	case c.writeErr != nil:
		return &LostError{Loss: LossFailed, Err: c.writeErr}
	}
	return nil
}

// await waits for a signal, without the lock; a timer that is nil never ends. It is called and returns with the lock.
func (c *Client) await(ctx context.Context, s *signal, timer <-chan time.Time) (inTime bool, err error) {
	fired := s.wait()
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-fired:
		return true, nil
	case <-timer:
		return false, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

// progress waits until something has changed that a call may wait for. While more is unread than may be, nothing is read:
// then it waits until somebody takes events, and gives up after a while.
func (c *Client) progress(ctx context.Context, deadline <-chan time.Time) error {
	if c.unread <= c.unreadLimit {
		inTime, err := c.await(ctx, &c.changed, deadline)
		if err == nil && !inTime {
			return ErrTimedOut
		}
		return err
	}
	patience := time.NewTimer(c.options.Timeout)
	defer patience.Stop()
	taken := c.taken
	inTime, err := c.await(ctx, &c.changed, patience.C)
	if err == nil && !inTime && c.taken == taken {
		return ErrUnread
	}
	return err
}

// Join joins a group, and waits until that has taken effect in the order. With membership, the view is among the events. A
// group that the client is in already is fine.
func (c *Client) Join(ctx context.Context, group string) error {
	return c.askDone(ctx, kindJoin, group)
}

// Leave leaves a group, and waits until that has taken effect in the order: messages of the group that were ordered before
// are still among the events. A group that the client is not in is fine.
func (c *Client) Leave(ctx context.Context, group string) error {
	return c.askDone(ctx, kindLeave, group)
}

// Groups lists all groups that the daemon knows of.
func (c *Client) Groups(ctx context.Context) ([]GroupSize, error) {
	answer, err := c.ask(ctx, kindList, "")
	if err != nil {
		return nil, err
	}
	if list, ok := answer.(*groups); ok {
		return list.groups, nil
	}
	return nil, wrongAnswer(answer)
}

// Members lists the private names of the members of a group as far as the daemon knows, in the order of views; none if there
// is no such group. The client need not be in it.
func (c *Client) Members(ctx context.Context, group string) ([]string, error) {
	if err := checkName(group, mostGroup); err != nil {
		return nil, err
	}
	answer, err := c.ask(ctx, kindList, group)
	if err != nil {
		return nil, err
	}
	if list, ok := answer.(*members); ok {
		return list.members, nil
	}
	return nil, wrongAnswer(answer)
}

func wrongAnswer(answer any) error {
	if failed, ok := answer.(*failed); ok {
		return &RequestError{failed.code, failed.text}
	}
	return &LostError{Loss: LossUnexpected}
}

func (c *Client) askDone(ctx context.Context, kind byte, group string) error {
	if err := checkName(group, mostGroup); err != nil {
		return err
	}
	answer, err := c.ask(ctx, kind, group)
	if err != nil {
		return err
	}
	if _, ok := answer.(*done); ok {
		return nil
	}
	return wrongAnswer(answer)
}

func (c *Client) ask(ctx context.Context, kind byte, group string) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.standing(); err != nil {
		return nil, err
	}
	c.newest++
	request := c.newest
	c.answers[request] = nil
	// An answer that comes too late has no entry.
	defer delete(c.answers, request)
	c.out = putRequest(c.out, kind, request, group)
	c.work.fire()
	deadline := time.NewTimer(c.options.Timeout)
	defer deadline.Stop()
	for {
		if answer := c.answers[request]; answer != nil {
			return answer, nil
		}
		if err := c.standing(); err != nil {
			return nil, err
		}
		if err := c.progress(ctx, deadline.C); err != nil {
			return nil, err
		}
	}
}

// Send sends a message to a group or a client ("orders", "#alice#n1"). It waits while there is no credit: until the daemon has
// taken enough of the client's earlier messages. Only the client's own copy of a message shows that the message has its place
// in the order. The client does not have to be in the group. The payload may be used again when the call has returned.
//
// A message whose call returns an error was not sent.
func (c *Client) Send(ctx context.Context, to string, payload []byte) error {
	return c.SendEnvelope(ctx, &Envelope{To: []string{to}}, payload)
}

// SendEnvelope is Send for all that an envelope can say.
func (c *Client) SendEnvelope(ctx context.Context, envelope *Envelope, payload []byte) error {
	head, err := c.head(envelope, payload)
	if err != nil {
		return err
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.turn }()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if taken, err := c.put(head, payload); taken || err != nil {
			return err
		}
		if err := c.progress(ctx, nil); err != nil {
			return err
		}
	}
}

// TrySend is SendEnvelope that does not wait: ErrWouldBlock if there is no credit now, or others wait for it.
func (c *Client) TrySend(envelope *Envelope, payload []byte) error {
	head, err := c.head(envelope, payload)
	if err != nil {
		return err
	}
	select {
	case c.turn <- struct{}{}:
	default:
		return ErrWouldBlock
	}
	defer func() { <-c.turn }()
	c.mu.Lock()
	defer c.mu.Unlock()
	if taken, err := c.put(head, payload); taken || err != nil {
		return err
	}
	return ErrWouldBlock
}

func (c *Client) head(envelope *Envelope, payload []byte) ([]byte, error) {
	if len(payload) > c.largest {
		return nil, &TooLargeError{c.largest}
	}
	service := envelope.Service
	if service == 0 {
		service = c.options.Service
	}
	return sendHead(envelope, service, len(payload))
}

// put takes a frame if there is credit for it. One larger than the credit may go when nothing is outstanding.
func (c *Client) put(head, payload []byte) (bool, error) {
	if err := c.standing(); err != nil {
		return false, err
	}
	bytes := uint64(len(head) + len(payload))
	if c.outstanding > 0 && c.outstanding+bytes > c.limit {
		return false, nil
	}
	// A daemon may give credit back without having read anything.
	if len(c.out) > 0 && uint64(len(c.out))+bytes > c.limit {
		return false, nil
	}
	c.outstanding += bytes
	c.link.mind(c.outstanding)
	c.out = append(append(c.out, head...), payload...)
	c.work.fire()
	return true, nil
}

// Flush waits until all that was sent has been given to the socket.
func (c *Client) Flush(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out) > 0 || c.writing {
		if err := c.standing(); err != nil {
			return err
		}
		if _, err := c.await(ctx, &c.changed, nil); err != nil {
			return err
		}
	}
	return nil
}

// UnsettledBytes are those of messages, with their frames, that the daemon has not said to have taken.
func (c *Client) UnsettledBytes() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.outstanding
}

// Recv gives the next event, and waits until there is one or the context ends. When the connection is lost, the events that
// arrived before come first; then all calls give the LostError.
func (c *Client) Recv(ctx context.Context) (Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if event := c.next(); event != nil {
			return event, nil
		}
		if c.lost != nil {
			return nil, c.lost
		}
		if _, err := c.await(ctx, &c.arrived, nil); err != nil {
			return nil, err
		}
	}
}

// TryRecv gives the next event, nil if there is none now.
func (c *Client) TryRecv() (Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if event := c.next(); event != nil {
		return event, nil
	}
	if c.lost != nil {
		return nil, c.lost
	}
	return nil, nil
}

func (c *Client) next() Event {
	if len(c.events) == 0 {
		return nil
	}
	event := c.events[0]
	c.events[0] = nil
	c.events = c.events[1:]
	wasFull := c.unread > c.unreadLimit
	c.unread -= event.cost()
	c.taken++
	if wasFull {
		c.room.fire()
		c.changed.fire()
	}
	return event
}

// Close says bye behind all that was sent, and waits until the daemon has read it, Options.Timeout at most: after an error the
// daemon may not have read everything. Events that nobody has taken are dropped. Closing again is fine.
//
// A program that sends and ends should close: what the daemon has not read of a client that just ends may be lost.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		c.running.Wait()
		return nil
	}
	if err := c.standing(); err != nil {
		c.mu.Unlock()
		c.HangUp()
		return err
	}
	c.out = putBye(c.out)
	c.closing = true
	c.events, c.unread = nil, 0
	c.work.fire()
	c.room.fire()
	c.changed.fire()
	deadline := time.NewTimer(c.options.Timeout)
	defer deadline.Stop()
	inTime := true
	for c.lost == nil && inTime {
		// The loss comes as an arrival.
		inTime, _ = c.await(context.Background(), &c.arrived, deadline.C)
	}
	if c.lost == nil {
		c.lose(&LostError{Loss: LossFailed, Err: fmt.Errorf("the daemon has not read everything: %w", os.ErrDeadlineExceeded)})
	}
	lost, whole := c.lost, c.lost.Loss == LossEnded && c.writeErr == nil && !c.hungUp
	c.mu.Unlock()
	c.running.Wait()
	if whole {
		return nil
	}
	return lost
}

// HangUp ends the connection at once: what the daemon has not read by then may be lost.
func (c *Client) HangUp() {
	c.mu.Lock()
	c.closing = true
	c.hungUp = c.hungUp || c.lost == nil
	c.lose(&LostError{Loss: LossEnded})
	c.mu.Unlock()
	c.running.Wait()
}

// lose ends the connection, unless it has ended.
func (c *Client) lose(lost *LostError) {
	if c.lost != nil {
		return
	}
	c.lost = lost
	c.link.drop()
	c.changed.fire()
	c.arrived.fire()
	c.room.fire()
	c.work.fire()
}

// write is the writer: it ends with the connection, or behind a bye.
func (c *Client) write() {
	defer c.running.Done()
	for {
		c.mu.Lock()
		for len(c.out) == 0 && c.lost == nil && !c.closing {
			_, _ = c.await(context.Background(), &c.work, nil)
		}
		if c.lost != nil {
			c.mu.Unlock()
			return
		}
		bytes := c.out
		c.out, c.spare = c.spare[:0], nil
		c.writing = len(bytes) > 0
		c.mu.Unlock()
		if len(bytes) == 0 {
			// Nothing comes behind a bye.
			c.link.closeWrite()
			return
		}
		_, err := c.link.stream.Write(bytes)
		c.mu.Lock()
		c.writing = false
		if cap(bytes) <= keptOut {
			c.spare = bytes[:0]
		}
		if err != nil {
			c.writeErr = err
			// What has come already says why.
			_ = c.link.stream.SetReadDeadline(time.Now().Add(grace))
		}
		c.changed.fire()
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// read is the reader: it ends with the connection.
func (c *Client) read(inbox *inbox) {
	defer c.running.Done()
	buffer := make([]byte, 64<<10)
	if c.settle(inbox) {
		return
	}
	for {
		c.mu.Lock()
		for c.unread > c.unreadLimit && c.lost == nil && !c.closing {
			_, _ = c.await(context.Background(), &c.room, nil)
		}
		lost, failed := c.lost, c.writeErr
		c.mu.Unlock()
		if lost != nil {
			return
		}
		if failed != nil {
			_ = c.link.stream.SetReadDeadline(time.Now().Add(grace))
		}
		count, err := c.link.stream.Read(buffer)
		inbox.feed(buffer[:count])
		if count > 0 && c.settle(inbox) {
			return
		}
		if err == nil || (failed == nil && errors.Is(err, os.ErrDeadlineExceeded)) {
			// The writer has failed meanwhile: there may be something that came in time.
			continue
		}
		c.mu.Lock()
		if failed != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			err = failed
		}
		c.lose(c.link.lostBy(err, inbox.within()))
		c.mu.Unlock()
		return
	}
}

// settle takes all whole frames; whether the connection has ended with one of them.
func (c *Client) settle(inbox *inbox) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	news, events := false, false
	for c.lost == nil {
		reply, err := inbox.pull()
		if err != nil {
			c.lose(&LostError{Loss: LossProtocol, Err: err})
			break
		}
		switch reply := reply.(type) {
		case nil:
			full := c.unread > c.unreadLimit
			if news || full {
				c.changed.fire()
			}
			if events {
				c.arrived.fire()
			}
			return false
		case Event:
			if !c.closing {
				c.events = append(c.events, reply)
				c.unread += reply.cost()
				events = true
			}
		case *credit:
			news = true
			back := uint64(reply.bytes)
			if back > c.outstanding {
				back = c.outstanding
			}
			c.outstanding -= back
			c.link.mind(c.outstanding)
		case *done:
			news = c.answer(reply.request, reply) || news
		case *failed:
			news = c.answer(reply.request, reply) || news
		case *groups:
			news = c.answer(reply.request, reply) || news
		case *members:
			news = c.answer(reply.request, reply) || news
		case *goodbye:
			c.lose(&LostError{Loss: LossGoodbye, Code: reply.code, Text: reply.text})
		default:
			c.lose(&LostError{Loss: LossUnexpected})
		}
	}
	return true
}

func (c *Client) answer(request uint32, answer any) bool {
	if _, waits := c.answers[request]; !waits {
		return false
	}
	c.answers[request] = answer
	return true
}
