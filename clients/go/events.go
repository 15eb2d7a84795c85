package rota

import (
	"fmt"
	"strings"
	"time"
)

// Service is the guarantee that a message asks for.
type Service uint8

// The services. The zero Service of an Envelope is the client's, that of Options is Agreed.
const (
	Reliable Service = 1 // Delivered once, on receipt, in no particular order.
	Fifo     Service = 2 // In the order of its sender.
	Causal   Service = 3 // Served as agreed.
	Agreed   Service = 4 // In the one order.
	Safe     Service = 5 // In the one order, once every daemon is known to have it.
)

// Event is the next thing in a client's stream: *Message, *View, *Transitional, *SelfLeave, *Lagging, *NotSent, *Skipped,
// *Excluded, *Included, and of a Reconnecting *Reconnected. Later versions may have others.
type Event interface {
	// cost is about how many bytes of memory the event takes.
	cost() int
}

// The bytes that an event counts for beside its content.
const eventBytes = 128

// Message comes once, however many of its destinations the client matches.
type Message struct {
	// Sender is the private name of the sender, which need not be a member of any group.
	Sender string
	// Service is the guarantee it was sent with.
	Service Service
	// SelfDiscard says that its sender did not want it back.
	SelfDiscard bool
	// Kind is the application's number for this kind of message.
	Kind uint16
	// To has all the destinations that it was sent to.
	To []string
	// Payload is the caller's: nothing else has it.
	Payload []byte
}

func (m *Message) cost() int { return eventBytes + len(m.Payload) + 34*len(m.To) }

// RingID names a ring of daemons.
type RingID struct {
	Seq         uint64
	Rep         uint16
	Incarnation uint64
}

func (r RingID) String() string { return fmt.Sprintf("%d.%d.%d", r.Seq, r.Rep, r.Incarnation) }

// ViewID names a view: equal ids are equal views.
type ViewID struct {
	Ring RingID
	// Next is the ring that follows, if HasNext.
	Next    RingID
	HasNext bool
	Index   uint64
}

func (v ViewID) String() string {
	if v.HasNext {
		return fmt.Sprintf("%v>%v/%d", v.Ring, v.Next, v.Index)
	}
	return fmt.Sprintf("%v/%d", v.Ring, v.Index)
}

// Cause is why there is a new view.
type Cause uint8

// The causes of views.
const (
	CauseJoin       Cause = 1 // Changed joined.
	CauseLeave      Cause = 2 // Changed left.
	CauseDisconnect Cause = 3 // Changed is not connected any more.
	CauseNetwork    Cause = 4 // Daemons have come or gone.
)

// View has the members of a group from here on. For clients with membership only, as the next two.
type View struct {
	Group string
	ID    ViewID
	Cause Cause
	// Changed is the private name of who joined, left or disconnected; empty if the cause is the network.
	Changed string
	// Members are private names, in an order that is the same for all of them.
	Members []string
	// Sets is for views by the network: indices of members by who came together. Two of one set had the same view before,
	// and have got the same messages in it. Each member is in one set.
	Sets [][]int
	// Own is the index of the receiver in Members.
	Own int
}

func (v *View) cost() int { return eventBytes + 40*len(v.Members) }

// CameWithMe has the members that came here from the receiver's last view with the same messages in it, the receiver
// included. After a join these are the members from before, or the receiver alone if it is the one that joined.
func (v *View) CameWithMe() []string {
	me := v.Members[v.Own]
	switch v.Cause {
	case CauseNetwork:
		for _, set := range v.Sets {
			var names []string
			mine := false
			for _, at := range set {
				names = append(names, v.Members[at])
				mine = mine || at == v.Own
			}
			if mine {
				return names
			}
		}
		return nil
	case CauseJoin:
		if v.Changed == me {
			return []string{me}
		}
		var names []string
		for _, name := range v.Members {
			if name != v.Changed {
				names = append(names, name)
			}
		}
		return names
	default:
		return append([]string(nil), v.Members...)
	}
}

// Transitional says that until the next view of the group, delivery is only with respect to those who stay with this
// client's daemon.
type Transitional struct {
	Group string
	// View is the id of the view that ends.
	View ViewID
}

func (*Transitional) cost() int { return eventBytes }

// SelfLeave says that the client has left the group. Without membership this comes only if the client has not asked to:
// the daemon's rules do not let it be there any more.
type SelfLeave struct{ Group string }

func (*SelfLeave) cost() int { return eventBytes }

// Lagging is a warning: the client takes its events more slowly than they come.
type Lagging struct {
	// Waiting is how many bytes waited for it at the daemon.
	Waiting uint64
	// Limit is at how many bytes the daemon closes the connection, or skips.
	Limit uint64
}

func (*Lagging) cost() int { return eventBytes }

// NotSent says that the daemon sent a message of this client, from before, to nobody.
type NotSent struct {
	// Kind is the number that the message was given.
	Kind uint16
	// To is the first of its destinations that it may not go to.
	To   string
	Code Code
	Text string
}

func (*NotSent) cost() int { return eventBytes }

// Skipped says that the client has missed something, because it took its events too slowly. For everybody else it has
// disconnected and joined its groups again, here in the order; with membership the views of that follow. The application
// has to ask the members for all that they have agreed on meanwhile.
type Skipped struct {
	// Messages is how many are missing, and Bytes those of their payloads.
	Messages uint64
	Bytes    uint64
	// Groups has those of the client's groups that they went to, ascending.
	Groups []string
}

func (s *Skipped) cost() int { return eventBytes + 32*len(s.Groups) }

// Excluded says that the client's daemon is in no view of the daemons: until Included there are no messages and no views,
// and what the client sends waits.
type Excluded struct{}

func (*Excluded) cost() int { return eventBytes }

// Included says that the daemon is in a view again.
type Included struct {
	// Missed says that deliveries of that time are missing, perhaps own messages too: others have got them. With membership
	// a view of each group follows. Otherwise everything goes on where it stopped.
	Missed bool
}

func (*Included) cost() int { return eventBytes }

// Reconnected says that the connection was lost and that there is a new one, of a Reconnecting only. All that was ordered
// between the last event and the joins of the new connection is missing: messages and views. With membership the first view
// of each group has its members now; the application has to ask them for all that they have agreed on meanwhile.
type Reconnected struct {
	// Lost is the end of the earlier connection.
	Lost *LostError
	// Duration is the time from the discovery of the loss until all joins were done.
	Duration time.Duration
	// UnsettledBytes are those of messages, with their frames, that this client had sent and that the daemon had not said
	// to have taken. It is not known of any of these messages whether it was ordered, nor of those that the daemon had taken
	// and that had no place in the order when it died. None is sent again.
	UnsettledBytes uint64
	// Name is the private name of the client now. A client without a name of its own got a new one.
	Name string
	// NotJoined has the groups that the daemon does not let the client join again, and why.
	NotJoined map[string]*RequestError
}

func (*Reconnected) cost() int { return eventBytes }

// GroupSize is a group that the daemon knows of, and how many members it has.
type GroupSize struct {
	Group   string
	Members uint32
}

func (s Service) String() string {
	names := []string{"", "reliable", "fifo", "causal", "agreed", "safe"}
	if int(s) < len(names) && s > 0 {
		return names[s]
	}
	return fmt.Sprintf("service %d", uint8(s))
}

func (c Cause) String() string {
	names := []string{"", "join", "leave", "disconnect", "network"}
	if int(c) < len(names) && c > 0 {
		return names[c]
	}
	return fmt.Sprintf("cause %d", uint8(c))
}

func (v *View) String() string {
	return fmt.Sprintf("%s %v %v: %s", v.Group, v.ID, v.Cause, strings.Join(v.Members, " "))
}
