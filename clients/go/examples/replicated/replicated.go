// Package replicated is a state machine that the members of a group have in common: what the example lock is made of. It is
// another copy of what `replicated` of the examples of crates/client is, which says how it works; copies in all languages meet.
package replicated

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"rota"
)

// Kinds of messages.
const (
	kindCommand = 1
	kindOffer   = 2
	kindState   = 3
)

// turn is how long a step waits for an event.
const turn = 10 * time.Millisecond

// Machine is what the copies have in common.
type Machine interface {
	// Apply does a command of this member, the same at each copy; the answer.
	Apply(sender, command string) string
	// Members says who they are from here on.
	Members(members []string)
	// Write is the whole state as text, and Read the opposite.
	Write() string
	Read(text string)
	// Look has what there is to say to the owner of this copy, which is this member, and a command that the machine itself
	// gives; empty for nothing.
	Look(me string, standing Standing) (news, command string)
}

// Standing is how much a copy knows of what counts.
type Standing int

const (
	// Sure is where what counts counts for good.
	Sure Standing = iota
	// Waiting is while the members are about to agree.
	Waiting
	// Apart is without a connection, or without a majority: others may go on.
	Apart
)

// offer is what a member has.
type offer struct {
	epoch, count uint64
	digest       string
}

// command is one of this copy.
type command struct {
	number uint64
	text   string
}

// early is a command behind a view, until there is a state for it.
type early struct{ sender, text string }

// replica is one copy.
type replica struct {
	client   *rota.Reconnecting
	me       string
	group    string
	majority int
	state    state
	session  string
	newest   uint64
	// pending are own commands that are not known to count.
	pending []command
	view    *rota.View
	// regular says that no signal has said that the view ends, agreed that its members have agreed on a state.
	regular, agreed bool
	offers          map[string]offer
	early           []early
	journal         journal
}

// start connects, with what the journal has.
func start(machine Machine, arguments []string) (*replica, error) {
	if len(arguments) != 5 {
		return nil, errors.New("usage: ADDRESS NAME GROUP COPIES JOURNAL")
	}
	copies, err := strconv.Atoi(arguments[3])
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	options := &rota.Options{Name: arguments[1], Membership: true}
	client, err := rota.ConnectReconnecting(ctx, arguments[0], options, rota.Backoff{})
	for attempts := 0; err != nil && rota.MayPass(err) && attempts < 100; attempts++ {
		// A daemon may take a while to notice that an earlier copy of the same name has gone.
		time.Sleep(50 * time.Millisecond)
		client, err = rota.ConnectReconnecting(ctx, arguments[0], options, rota.Backoff{})
	}
	if err != nil {
		return nil, err
	}
	me := client.Name()
	r := &replica{
		client:   client,
		me:       me,
		group:    arguments[2],
		majority: copies/2 + 1,
		state:    state{machine: machine, sessions: map[string]uint64{}},
		session:  fmt.Sprintf("%s/%x.%d", me, time.Now().UnixNano(), os.Getpid()),
		offers:   map[string]offer{},
		journal:  journal{path: arguments[4]},
	}
	found, commands, err := r.journal.read()
	if err != nil {
		return nil, err
	}
	if found != "" {
		if err := r.state.read(found); err != nil {
			return nil, err
		}
		for _, line := range commands {
			sender, text, _ := strings.Cut(line, " ")
			r.state.apply(sender, text)
		}
		fmt.Println("replayed", r.state.count)
	}
	return r, client.Join(ctx, r.group)
}

// command gives a command; its answer comes when it counts.
func (r *replica) command(text string) {
	r.newest++
	given := command{r.newest, text}
	r.pending = append(r.pending, given)
	r.sendCommand(given)
}

func (r *replica) sendCommand(given command) {
	r.send(kindCommand, fmt.Sprintf("%s %d %s", r.session, given.number, given.text))
}

func (r *replica) send(kind uint16, text string) {
	envelope := &rota.Envelope{To: []string{r.group}, Service: rota.Safe, Kind: kind}
	// Where the connection is lost, the next view makes good for it.
	_ = r.client.SendEnvelope(context.Background(), envelope, []byte(text))
}

func (r *replica) hasMajority() bool { return r.view != nil && len(r.view.Members) >= r.majority }

// isSure says whether what counts here counts for good.
func (r *replica) isSure() bool { return r.agreed && r.regular && r.hasMajority() }

// step takes the next event, if there is one soon.
func (r *replica) step() error {
	ctx, cancel := context.WithTimeout(context.Background(), turn)
	defer cancel()
	event, err := r.client.Recv(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	if err != nil {
		return err
	}
	if event == nil && r.client.Client() == nil {
		// While there is no connection nothing is sure.
		r.view, r.agreed = nil, false
	}
	switch event := event.(type) {
	case *rota.View:
		r.onView(event)
	case *rota.Transitional:
		r.regular = false
	case *rota.Message:
		err = r.onMessage(event)
	case *rota.Reconnected:
		fmt.Println("reconnected", event.UnsettledBytes, "bytes unsure")
		r.me = event.Name
		r.view, r.agreed = nil, false
	}
	standing := Apart
	if r.isSure() {
		standing = Sure
	} else if r.hasMajority() {
		standing = Waiting
	}
	news, command := r.state.machine.Look(r.me, standing)
	if news != "" {
		fmt.Println(news)
	}
	if command != "" {
		r.command(command)
	}
	return err
}

func (r *replica) onView(view *rota.View) {
	r.view = view
	r.regular, r.agreed = true, false
	r.offers = map[string]offer{}
	r.early = nil
	r.send(kindOffer, fmt.Sprintf("%v %d %d %s", view.ID, r.state.epoch, r.state.count, r.state.digest()))
}

func (r *replica) onMessage(message *rota.Message) error {
	text := string(message.Payload)
	isOfView := func(of string) bool { return r.view != nil && !r.agreed && of == r.view.ID.String() }
	switch message.Kind {
	case kindCommand:
		if r.agreed {
			return r.onCommand(message.Sender, text)
		}
		r.early = append(r.early, early{message.Sender, text})
	case kindOffer:
		if of, offer, _ := strings.Cut(text, " "); isOfView(of) {
			return r.offered(message.Sender, offer)
		}
	case kindState:
		if of, state, _ := strings.Cut(text, "\n"); isOfView(of) {
			if err := r.state.read(state); err != nil {
				return err
			}
			return r.agree()
		}
	}
	return nil
}

// offered waits until all members have: then either all have the same, or the one with the newest sends it to all.
func (r *replica) offered(sender, text string) error {
	var given offer
	if _, err := fmt.Sscanf(text, "%d %d %s", &given.epoch, &given.count, &given.digest); err != nil {
		return err
	}
	r.offers[sender] = given
	newest, same := "", true
	for _, member := range r.view.Members {
		own, has := r.offers[member]
		if !has {
			return nil
		}
		best := r.offers[newest]
		isNewer := own.epoch > best.epoch || own.epoch == best.epoch && own.count > best.count ||
			own.epoch == best.epoch && own.count == best.count && member > newest
		if newest == "" || isNewer {
			newest = member
		}
		same = same && own.digest == given.digest
	}
	if same {
		return r.agree()
	}
	if newest == r.me {
		r.send(kindState, r.view.ID.String()+"\n"+r.state.write())
	}
	return nil
}

func (r *replica) agree() error {
	r.agreed = true
	if r.hasMajority() {
		ring := r.view.ID.Ring
		if r.view.ID.HasNext {
			ring = r.view.ID.Next
		}
		r.state.epoch += ring.Seq
		fmt.Println("agreed", r.state.count, "of", len(r.view.Members))
		r.state.machine.Members(r.view.Members)
	}
	if err := r.journal.checkpoint(r.state.write()); err != nil {
		return err
	}
	waited := r.early
	r.early = nil
	for _, command := range waited {
		if err := r.onCommand(command.sender, command.text); err != nil {
			return err
		}
	}
	r.sendAgain()
	return nil
}

// sendAgain sends own commands that do not count, as the agreed state tells, in their order.
func (r *replica) sendAgain() {
	last := r.state.sessions[r.session]
	for r.isSure() && len(r.pending) > 0 && r.pending[0].number <= last {
		fmt.Println("ok", r.pending[0].number)
		r.pending = r.pending[1:]
	}
	for _, given := range r.pending {
		if given.number > last {
			r.sendCommand(given)
		}
	}
}

func (r *replica) onCommand(sender, text string) error {
	if !r.hasMajority() {
		return nil
	}
	number, answer, does := r.state.apply(sender, text)
	if !does {
		return nil
	}
	if err := r.journal.append(sender + " " + text); err != nil {
		return err
	}
	if r.journal.commands >= long {
		if err := r.journal.checkpoint(r.state.write()); err != nil {
			return err
		}
	}
	isOwn := strings.HasPrefix(text, r.session+" ")
	if isOwn && r.isSure() && len(r.pending) > 0 && r.pending[0].number == number {
		r.pending = r.pending[1:]
		fmt.Println("ok", number, answer)
	}
	return nil
}

func (r *replica) dump() {
	sure := "unsure"
	if r.isSure() {
		sure = "sure"
	}
	fmt.Println("state", r.state.count, r.state.digest(), sure)
}

// Run runs a copy: lines of the input are commands, and `dump` shows what state it is in. At the end of the input it waits until
// all its commands count, and closes.
func Run(machine Machine) error {
	r, err := start(machine, os.Args[1:])
	if err != nil {
		return err
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for input := bufio.NewScanner(os.Stdin); input.Scan(); {
			lines <- input.Text()
		}
	}()
	open := true
	for open || len(r.pending) > 0 {
		if err := r.step(); err != nil {
			return err
		}
		if !open {
			continue
		}
		select {
		case line, more := <-lines:
			switch {
			case !more:
				open = false
			case line == "dump":
				r.dump()
			default:
				r.command(line)
			}
		default:
		}
	}
	return r.client.Close()
}
