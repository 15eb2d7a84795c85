package rota

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// The versions that this client speaks.
const (
	lowestVersion  = 1
	highestVersion = 3
)

// Bytes of a frame's length and kind.
const headBytes = 5

// The largest frame of a daemon, by its length field: a message of 64 MiB.
const maxReplyBytes = 64<<20 + 3243

// Kinds of frames.
const (
	kindHello = 1
	kindJoin  = 2
	kindLeave = 3
	kindSend  = 4
	kindList  = 5
	kindBye   = 6

	kindWelcome      = 0x81
	kindRefused      = 0x82
	kindDone         = 0x83
	kindFailed       = 0x84
	kindMessage      = 0x85
	kindView         = 0x86
	kindTransitional = 0x87
	kindSelfLeave    = 0x88
	kindCredit       = 0x89
	kindGroups       = 0x8a
	kindMembers      = 0x8b
	kindLagging      = 0x8c
	kindGoodbye      = 0x8d
	kindNotSent      = 0x8e
	kindSkipped      = 0x8f
	kindExcluded     = 0x90
	kindIncluded     = 0x91
)

// The most groups that a daemon names to one who has skipped: all its clients together can be in no more.
const mostSkipped = 16_384

// DecodeError is why bytes are no frame of a daemon. Why is one word for each kind of error.
type DecodeError struct {
	Why    string
	Detail string
}

func (e *DecodeError) Error() string { return e.Detail }

func noFrame(why, format string, arguments ...any) *DecodeError {
	return &DecodeError{why, fmt.Sprintf(format, arguments...)}
}

// WhenSlow is what becomes of a client that takes its events too slowly, within the limits of the daemon.
type WhenSlow uint8

// The policies for slow clients.
const (
	SlowDefault                WhenSlow = 0      // What the daemon does with all who do not say.
	SlowDisconnect             WhenSlow = 0b0010 // It is disconnected.
	SlowSkip                   WhenSlow = 0b0100 // What waits is dropped: Skipped says how much.
	SlowThrottleThenDisconnect WhenSlow = 0b1010 // Senders to its groups wait for a time; then as SlowDisconnect.
	SlowThrottleThenSkip       WhenSlow = 0b1100 // The same; then as SlowSkip.
)

// startFrame appends a frame's length, which endFrame sets, and its kind.
func startFrame(out []byte, kind byte) []byte { return append(out, 0, 0, 0, 0, kind) }

// endFrame sets the length of the frame that begins at start, and that payload more bytes follow.
func endFrame(out []byte, start, payload int) {
	binary.LittleEndian.PutUint32(out[start:], uint32(len(out)-start-4+payload))
}

func putText(out []byte, text string) []byte {
	out = append(out, byte(len(text)))
	return append(out, text...)
}

func putU16(out []byte, number uint16) []byte { return append(out, byte(number), byte(number>>8)) }

func putU32(out []byte, number uint32) []byte {
	return append(out, byte(number), byte(number>>8), byte(number>>16), byte(number>>24))
}

// helloFrame never asks for memory: no descriptor can come with what this client reads.
func helloFrame(name string, membership bool, slow WhenSlow) []byte {
	out := startFrame(nil, kindHello)
	out = append(out, "ROTA"...)
	out = putU16(out, lowestVersion)
	out = putU16(out, highestVersion)
	flags := byte(slow)
	if membership {
		flags |= 1
	}
	out = append(out, flags)
	out = putText(out, name)
	endFrame(out, 0, 0)
	return out
}

// putRequest appends a join, a leave or a list; no group lists all.
func putRequest(out []byte, kind byte, request uint32, group string) []byte {
	start := len(out)
	out = startFrame(out, kind)
	out = putU32(out, request)
	out = putText(out, group)
	endFrame(out, start, 0)
	return out
}

func putBye(out []byte) []byte {
	start := len(out)
	out = startFrame(out, kindBye)
	endFrame(out, start, 0)
	return out
}

// sendHead is a send frame without its payload, which has so many bytes.
func sendHead(envelope *Envelope, service Service, payload int) ([]byte, error) {
	if len(envelope.To) < 1 || len(envelope.To) > MaxDestinations {
		return nil, ErrDestinations
	}
	room := headBytes + 5
	for _, to := range envelope.To {
		if err := checkDestination(to); err != nil {
			return nil, err
		}
		room += 1 + len(to)
	}
	if service < Reliable || service > Safe {
		return nil, fmt.Errorf("there is no %v", service)
	}
	out := startFrame(make([]byte, 0, room), kindSend)
	var discard byte
	if envelope.SelfDiscard {
		discard = 1
	}
	out = append(out, byte(service), discard)
	out = putU16(out, envelope.Kind)
	out = append(out, byte(len(envelope.To)))
	for _, to := range envelope.To {
		out = putText(out, to)
	}
	endFrame(out, 0, payload)
	return out, nil
}

// Frames of a daemon that are no events.
type (
	welcome struct {
		version        uint16
		name           string
		credit         uint32
		largestPayload uint32
		memory         uint32
	}
	refused struct {
		code Code
		text string
	}
	done   struct{ request uint32 }
	failed struct {
		request uint32
		code    Code
		text    string
	}
	credit struct{ bytes uint32 }
	groups struct {
		request uint32
		groups  []GroupSize
	}
	members struct {
		request uint32
		members []string
	}
	goodbye struct {
		code Code
		text string
	}
)

// reader reads the fields of one frame. After the first error, which it keeps, all fields are zero.
type reader struct {
	bytes []byte
	err   error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
		r.bytes = nil
	}
}

func (r *reader) take(count int) []byte {
	if len(r.bytes) < count {
		r.fail(noFrame("short", "the frame ends before its last field does"))
		return make([]byte, count)
	}
	taken := r.bytes[:count]
	r.bytes = r.bytes[count:]
	return taken
}

func (r *reader) u8() uint8   { return r.take(1)[0] }
func (r *reader) u16() uint16 { return binary.LittleEndian.Uint16(r.take(2)) }
func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }
func (r *reader) u64() uint64 { return binary.LittleEndian.Uint64(r.take(8)) }

// index reads a place in a list. An int may have 32 bits: what it cannot hold is as far behind the end of every list.
func (r *reader) index() int {
	index := r.u32()
	if index > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(index)
}

// count reads the number of things that have at least so many bytes each.
func (r *reader) count(least int) int { return r.room(r.u32(), least) }

// room is a number of things that have at least so many bytes each, if those can have arrived.
func (r *reader) room(count uint32, least int) int {
	if uint64(count) > uint64(len(r.bytes)/least) {
		r.fail(noFrame("short", "the frame ends before its last field does"))
		return 0
	}
	return int(count)
}

func (r *reader) raw() string { return string(r.take(int(r.u8()))) }

func (r *reader) text() string {
	text := r.raw()
	if !utf8.ValidString(text) {
		r.fail(noFrame("text", "a text is not UTF-8"))
	}
	return text
}

func (r *reader) checked(check func(string) error) string {
	text := r.raw()
	if r.err == nil {
		if err := check(text); err != nil {
			r.fail(noFrame("name", "%v", err))
		}
	}
	return text
}

func (r *reader) group() string {
	return r.checked(func(text string) error { return checkName(text, mostGroup) })
}

func (r *reader) private() string     { return r.checked(checkPrivate) }
func (r *reader) destination() string { return r.checked(checkDestination) }

func (r *reader) optionalPrivate() string {
	return r.checked(func(text string) error {
		if text == "" {
			return nil
		}
		return checkPrivate(text)
	})
}

// flag is a byte that is 0 or 1.
func (r *reader) flag() bool {
	flags := r.u8()
	if flags > 1 {
		r.fail(noFrame("flags", "flags %#x have bits that mean nothing", flags))
	}
	return flags == 1
}

func (r *reader) ring() RingID {
	ring := RingID{Seq: r.u64(), Rep: r.u16()}
	if r.err == nil && ring.Rep == 0 {
		r.fail(noFrame("node", "no node has the number 0"))
	}
	ring.Incarnation = r.u64()
	return ring
}

func (r *reader) viewID() ViewID {
	id := ViewID{Ring: r.ring(), HasNext: r.flag()}
	if id.HasNext {
		id.Next = r.ring()
	}
	id.Index = r.u64()
	return id
}

func (r *reader) end() {
	if r.err == nil && len(r.bytes) > 0 {
		r.fail(noFrame("trailing", "%d bytes follow the frame's last field", len(r.bytes)))
	}
}

// decode reads the body of a daemon's frame: an Event, or one of the types above.
func decode(kind byte, body []byte) (any, error) {
	r := &reader{bytes: body}
	reply := r.reply(kind)
	if kind != kindRefused && kind != kindMessage {
		// What follows a refusal's text is a later version's, and what follows a message's head is its payload.
		r.end()
	}
	if r.err != nil {
		return nil, r.err
	}
	return reply, nil
}

func (r *reader) reply(kind byte) any {
	switch kind {
	case kindMessage:
		return r.message()
	case kindView:
		return r.view()
	case kindWelcome:
		reply := &welcome{version: r.u16(), name: r.private(), credit: r.u32(), largestPayload: r.u32()}
		if len(r.bytes) > 0 {
			reply.memory = r.u32()
		}
		return reply
	case kindRefused:
		return &refused{Code(r.u16()), r.text()}
	case kindDone:
		return &done{r.u32()}
	case kindFailed:
		return &failed{r.u32(), Code(r.u16()), r.text()}
	case kindTransitional:
		return &Transitional{r.group(), r.viewID()}
	case kindSelfLeave:
		return &SelfLeave{r.group()}
	case kindCredit:
		return &credit{r.u32()}
	case kindGroups, kindMembers:
		return r.list(kind)
	case kindLagging:
		return &Lagging{r.u64(), r.u64()}
	case kindGoodbye:
		return &goodbye{Code(r.u16()), r.text()}
	case kindNotSent:
		return &NotSent{r.u16(), r.destination(), Code(r.u16()), r.text()}
	case kindSkipped:
		reply := &Skipped{Messages: r.u64(), Bytes: r.u64()}
		said := r.u32()
		if said > mostSkipped {
			r.fail(noFrame("groups", "%d groups; there may be %d", said, mostSkipped))
		}
		for count := r.room(said, 2); count > 0 && r.err == nil; count-- {
			reply.Groups = append(reply.Groups, r.group())
		}
		return reply
	case kindExcluded:
		return &Excluded{}
	case kindIncluded:
		return &Included{r.flag()}
	}
	r.fail(noFrame("kind", "there is no frame of kind %#x here", kind))
	return nil
}

func (r *reader) list(kind byte) any {
	request := r.u32()
	if kind == kindGroups {
		reply := &groups{request: request}
		for count := r.count(6); count > 0 && r.err == nil; count-- {
			reply.groups = append(reply.groups, GroupSize{r.group(), r.u32()})
		}
		return reply
	}
	reply := &members{request: request}
	for count := r.count(5); count > 0 && r.err == nil; count-- {
		reply.members = append(reply.members, r.private())
	}
	return reply
}

func (r *reader) message() *Message {
	message := &Message{Sender: r.private(), Service: Service(r.u8())}
	if r.err == nil && (message.Service < Reliable || message.Service > Safe) {
		r.fail(noFrame("service", "there is no %v", message.Service))
	}
	message.SelfDiscard = r.flag()
	message.Kind = r.u16()
	count := int(r.u8())
	if r.err == nil && (count < 1 || count > MaxDestinations) {
		r.fail(noFrame("destinations", "a message cannot have %d destinations", count))
		return message
	}
	message.To = make([]string, 0, count)
	for ; count > 0 && r.err == nil; count-- {
		message.To = append(message.To, r.destination())
	}
	message.Payload = append([]byte{}, r.bytes...)
	return message
}

func (r *reader) view() *View {
	view := &View{Group: r.group(), ID: r.viewID(), Cause: Cause(r.u8()), Changed: r.optionalPrivate()}
	for count := r.count(5); count > 0 && r.err == nil; count-- {
		view.Members = append(view.Members, r.private())
	}
	for count := r.count(8); count > 0 && r.err == nil; count-- {
		var set []int
		for indices := r.count(4); indices > 0 && r.err == nil; indices-- {
			set = append(set, r.index())
		}
		view.Sets = append(view.Sets, set)
	}
	view.Own = r.index()
	if r.err == nil {
		if err := view.check(); err != nil {
			r.fail(err)
		}
	}
	return view
}

// check says whether the fields of a view fit each other.
func (v *View) check() error {
	switch {
	case v.Cause < CauseJoin || v.Cause > CauseNetwork:
		return noFrame("cause", "there is no %v", v.Cause)
	case v.Cause != CauseNetwork && len(v.Sets) > 0, v.Cause == CauseNetwork && v.Changed == "" && !v.setsAreMembers():
		return noFrame("sets", "the sets are not the members, each in one set")
	case (v.Cause == CauseNetwork) != (v.Changed == ""):
		return noFrame("changed", "the changed member does not fit the cause")
	case v.Own >= len(v.Members):
		return noFrame("own-index", "the view has no member %d", v.Own)
	}
	return nil
}

// setsAreMembers says whether each member is in one set, and no set is empty.
func (v *View) setsAreMembers() bool {
	seen := make([]bool, len(v.Members))
	count := 0
	for _, set := range v.Sets {
		if len(set) == 0 {
			return false
		}
		for _, at := range set {
			if at >= len(seen) || seen[at] {
				return false
			}
			seen[at] = true
			count++
		}
	}
	return count == len(seen)
}
