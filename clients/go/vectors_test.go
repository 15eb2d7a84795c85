package rota

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
)

// vector is one block of a file of docs/protocols/vectors.
type vector struct {
	what, name string
	lines      [][2]string
}

func (v *vector) all(key string) []string {
	var values []string
	for _, line := range v.lines {
		if line[0] == key {
			values = append(values, line[1])
		}
	}
	return values
}

func (v *vector) one(t *testing.T, key string) string {
	t.Helper()
	values := v.all(key)
	if len(values) != 1 {
		t.Fatalf("%s has %d lines %s", v.name, len(values), key)
	}
	return values[0]
}

func (v *vector) number(t *testing.T, key string, bits int) uint64 {
	t.Helper()
	number, err := strconv.ParseUint(v.one(t, key), 10, bits)
	if err != nil {
		t.Fatal(v.name, err)
	}
	return number
}

// orEmpty is the value of a line, where - is nothing.
func (v *vector) orEmpty(t *testing.T, key string) string {
	t.Helper()
	if value := v.one(t, key); value != "-" {
		return value
	}
	return ""
}

func (v *vector) bytes(t *testing.T, key string) []byte {
	t.Helper()
	var all []byte
	for _, text := range v.all(key) {
		if text == "-" {
			continue
		}
		digits, count, isRun := strings.Cut(text, "*")
		part, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(v.name, err)
		}
		times := 1
		if isRun {
			if times, err = strconv.Atoi(count); err != nil {
				t.Fatal(v.name, err)
			}
		}
		all = append(all, bytes.Repeat(part, times)...)
	}
	return all
}

func vectors(t *testing.T, file string) []*vector {
	t.Helper()
	text, err := os.ReadFile("../../docs/protocols/vectors/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var all []*vector
	var current *vector
	for _, line := range strings.Split(string(text), "\n") {
		key, value, _ := strings.Cut(line, " ")
		switch {
		case strings.HasPrefix(line, "#"):
		case line == "":
			current = nil
		case current == nil:
			current = &vector{what: key, name: value}
			all = append(all, current)
		default:
			current.lines = append(current.lines, [2]string{key, value})
		}
	}
	if len(all) < 3 {
		t.Fatalf("%s has %d vectors", file, len(all))
	}
	return all
}

func named(t *testing.T, file string) map[string]*vector {
	t.Helper()
	all := map[string]*vector{}
	for _, v := range vectors(t, file) {
		all[v.name] = v
	}
	return all
}

var services = map[string]Service{
	"reliable": Reliable, "fifo": Fifo, "causal": Causal, "agreed": Agreed, "safe": Safe,
}

var policies = map[string]WhenSlow{
	"default": SlowDefault, "disconnect": SlowDisconnect, "skip": SlowSkip,
	"throttle-then-disconnect": SlowThrottleThenDisconnect, "throttle-then-skip": SlowThrottleThenSkip,
}

// encodeVector encodes the frame of a client that a vector describes; false for one that this client never says.
func encodeVector(t *testing.T, v *vector) ([]byte, bool) {
	t.Helper()
	switch is := v.one(t, "is"); is {
	case "hello":
		if v.one(t, "memory") == "yes" || v.number(t, "highest", 16) != highestVersion {
			return nil, false
		}
		if lowest := v.number(t, "lowest", 16); lowest != lowestVersion {
			t.Fatal(v.name, lowest)
		}
		return helloFrame(v.orEmpty(t, "client"), v.one(t, "membership") == "yes", policies[v.one(t, "when-slow")]), true
	case "join":
		return putRequest(nil, kindJoin, uint32(v.number(t, "request", 32)), v.one(t, "group")), true
	case "leave":
		return putRequest(nil, kindLeave, uint32(v.number(t, "request", 32)), v.one(t, "group")), true
	case "list":
		return putRequest(nil, kindList, uint32(v.number(t, "request", 32)), v.orEmpty(t, "group")), true
	case "bye":
		return putBye(nil), true
	case "send":
		envelope, payload := envelopeOf(t, v)
		head, err := sendHead(envelope, envelope.Service, len(payload))
		if err != nil {
			t.Fatal(v.name, err)
		}
		return append(head, payload...), true
	default:
		t.Fatalf("%s is %s", v.name, is)
		return nil, false
	}
}

func envelopeOf(t *testing.T, v *vector) (*Envelope, []byte) {
	t.Helper()
	return &Envelope{
		To:          v.all("to"),
		Service:     services[v.one(t, "service")],
		Kind:        uint16(v.number(t, "message-kind", 16)),
		SelfDiscard: v.one(t, "self-discard") == "yes",
	}, v.bytes(t, "payload")
}

func TestRequestsAreThoseOfTheVectors(t *testing.T) {
	encoded := 0
	for _, v := range vectors(t, "requests.txt") {
		found, ours := encodeVector(t, v)
		if !ours {
			continue
		}
		encoded++
		if expected := v.bytes(t, "bytes"); !bytes.Equal(found, expected) {
			t.Errorf("%s: %x is encoded as %x", v.name, short(expected), short(found))
		}
	}
	if encoded < 20 {
		t.Errorf("%d vectors only", encoded)
	}
}

func short(bytes []byte) []byte {
	if len(bytes) > 100 {
		return bytes[:100]
	}
	return bytes
}

// runs writes bytes as vectors do.
func runs(all []byte) []string {
	const run, width = 32, 96
	var lines []string
	var line strings.Builder
	flush := func() {
		if line.Len() > 0 {
			lines = append(lines, line.String())
			line.Reset()
		}
	}
	for at := 0; at < len(all); {
		end := at
		for end < len(all) && all[end] == all[at] {
			end++
		}
		if end-at >= run {
			flush()
			lines = append(lines, fmt.Sprintf("%02x*%d", all[at], end-at))
		} else {
			for ; at < end; at++ {
				if line.Len() >= width {
					flush()
				}
				fmt.Fprintf(&line, "%02x", all[at])
			}
		}
		at = end
	}
	flush()
	if lines == nil {
		return []string{"-"}
	}
	return lines
}

// described is what the lines of a frame of a daemon are.
type described struct{ lines [][2]string }

func (d *described) add(key string, value any) {
	d.lines = append(d.lines, [2]string{key, fmt.Sprint(value)})
}

func (d *described) flag(key string, value bool) {
	if value {
		d.add(key, "yes")
	} else {
		d.add(key, "no")
	}
}

func (d *described) all(key string, values []string) {
	for _, value := range values {
		d.add(key, value)
	}
}

func (d *described) reason(code Code, text string) {
	d.add("code", uint16(code))
	d.add("text", `"`+text+`"`)
}

func describe(reply any) [][2]string {
	d := &described{}
	d.add("from", "daemon")
	switch r := reply.(type) {
	case *welcome:
		d.add("is", "welcome")
		d.add("version", r.version)
		d.add("client", r.name)
		d.add("credit", r.credit)
		d.add("largest-payload", r.largestPayload)
		d.add("memory", r.memory)
	case *refused:
		d.add("is", "refused")
		d.reason(r.code, r.text)
	case *done:
		d.add("is", "done")
		d.add("request", r.request)
	case *failed:
		d.add("is", "failed")
		d.add("request", r.request)
		d.reason(r.code, r.text)
	case *Message:
		d.add("is", "message")
		d.add("sender", r.Sender)
		d.add("service", r.Service)
		d.flag("self-discard", r.SelfDiscard)
		d.add("message-kind", r.Kind)
		d.all("to", r.To)
		d.all("payload", runs(r.Payload))
	case *View:
		describeView(d, r)
	case *Transitional:
		d.add("is", "transitional")
		d.add("group", r.Group)
		d.add("view", r.View)
	case *SelfLeave:
		d.add("is", "self-leave")
		d.add("group", r.Group)
	case *credit:
		d.add("is", "credit")
		d.add("credit", r.bytes)
	case *groups:
		d.add("is", "groups")
		d.add("request", r.request)
		for _, group := range r.groups {
			d.add("group", fmt.Sprintf("%s %d", group.Group, group.Members))
		}
	case *members:
		d.add("is", "members")
		d.add("request", r.request)
		d.all("member", r.members)
	case *Lagging:
		d.add("is", "lagging")
		d.add("waiting", r.Waiting)
		d.add("limit", r.Limit)
	case *goodbye:
		d.add("is", "goodbye")
		d.reason(r.code, r.text)
	case *NotSent:
		d.add("is", "not-sent")
		d.add("message-kind", r.Kind)
		d.add("to", r.To)
		d.reason(r.Code, r.Text)
	case *Skipped:
		d.add("is", "skipped")
		d.add("messages", r.Messages)
		d.add("payload-bytes", r.Bytes)
		d.all("group", r.Groups)
	case *Excluded:
		d.add("is", "excluded")
	case *Included:
		d.add("is", "included")
		d.flag("missed", r.Missed)
	default:
		d.add("is", fmt.Sprintf("%T", reply))
	}
	return d.lines
}

func describeView(d *described, view *View) {
	d.add("is", "view")
	d.add("group", view.Group)
	d.add("view", view.ID)
	d.add("cause", view.Cause)
	if view.Changed == "" {
		d.add("changed", "-")
	} else {
		d.add("changed", view.Changed)
	}
	d.all("member", view.Members)
	for _, set := range view.Sets {
		d.add("set", strings.Trim(fmt.Sprint(set), "[]"))
	}
	d.add("own", view.Own)
}

// readAll reads the frames of bytes that come in pieces.
func readAll(all []byte, piece int) ([]any, error) {
	inbox := &inbox{}
	var frames []any
	for len(all) > 0 {
		if piece > len(all) {
			piece = len(all)
		}
		inbox.feed(all[:piece])
		all = all[piece:]
		for {
			frame, err := inbox.pull()
			if err != nil {
				return frames, err
			}
			if frame == nil {
				break
			}
			frames = append(frames, frame)
		}
	}
	if inbox.within() {
		return frames, fmt.Errorf("a frame is not whole")
	}
	return frames, nil
}

func equalLines(found, expected [][2]string) bool {
	if len(found) != len(expected) {
		return false
	}
	for at := range found {
		if found[at] != expected[at] {
			return false
		}
	}
	return true
}

func TestRepliesAreThoseOfTheVectors(t *testing.T) {
	for _, v := range vectors(t, "replies.txt") {
		var expected [][2]string
		for _, line := range v.lines {
			if line[0] != "bytes" {
				expected = append(expected, line)
			}
		}
		all := v.bytes(t, "bytes")
		for _, piece := range []int{1, 5, len(all)} {
			frames, err := readAll(all, piece)
			if err != nil || len(frames) != 1 {
				t.Fatalf("%s: %v %v", v.name, frames, err)
			}
			if found := describe(frames[0]); !equalLines(found, expected) {
				t.Errorf("%s:\n%v is read as\n%v", v.name, expected, found)
			}
		}
	}
}

func TestBytesThatAreNoFramesAreNone(t *testing.T) {
	for _, v := range vectors(t, "errors.txt") {
		if v.one(t, "from") != "daemon" {
			continue
		}
		all := v.bytes(t, "bytes")
		for _, piece := range []int{1, len(all)} {
			frames, err := readAll(all, piece)
			why, ok := err.(*DecodeError)
			if !ok || len(frames) > 0 || why.Why != v.one(t, "why") {
				t.Errorf("%s is %s: %v %v", v.name, v.one(t, "why"), frames, err)
			}
		}
	}
}

// An index that an int of 32 bits cannot hold is behind the end of the list, and not before its begin.
func TestIndicesOfViewsAreNeverNegative(t *testing.T) {
	far := []byte{0xff, 0xff, 0xff, 0xff}
	if index := (&reader{bytes: far}).index(); index != math.MaxInt32 {
		t.Error(index)
	}
	ring := append(putU16(make([]byte, 8), 1), make([]byte, 8)...)
	view := putText(startFrame(nil, kindView), "orders")
	view = append(append(view, ring...), make([]byte, 1+8)...)
	view = putText(append(view, byte(CauseNetwork)), "")
	view = putText(putU32(view, 1), "#bob#n2")
	for _, of := range []struct {
		why      string
		set, own uint32
	}{{"", 0, 0}, {"sets", math.MaxUint32, 0}, {"own-index", 0, math.MaxUint32}} {
		frame := putU32(append([]byte(nil), view...), 1)
		frame = putU32(putU32(putU32(frame, 1), of.set), of.own)
		endFrame(frame, 0, 0)
		_, err := readAll(frame, len(frame))
		why, ok := err.(*DecodeError)
		if ok != (of.why != "") || ok && why.Why != of.why {
			t.Errorf("%q: %v", of.why, err)
		}
	}
}

func TestTooManySkippedGroupsAreNoFrame(t *testing.T) {
	for _, more := range []int{0, 1} {
		frame := putU32(append(startFrame(nil, kindSkipped), make([]byte, 16)...), uint32(mostSkipped+more))
		for range make([]struct{}, mostSkipped+more) {
			frame = putText(frame, "g")
		}
		endFrame(frame, 0, 0)
		_, err := readAll(frame, len(frame))
		why, ok := err.(*DecodeError)
		if ok != (more > 0) || ok && why.Why != "groups" {
			t.Error(more, err)
		}
	}
}

// Each byte of each frame, changed: an error or some frame, and never a panic.
func TestFlippedBitsAreReadOrRefused(t *testing.T) {
	for _, v := range vectors(t, "replies.txt") {
		all := v.bytes(t, "bytes")
		if len(all) > 4096 {
			continue
		}
		for at := 4; at < len(all); at++ {
			for bit := 0; bit < 8; bit++ {
				changed := append([]byte(nil), all...)
				changed[at] ^= 1 << bit
				frames, err := readAll(changed, len(changed))
				if err == nil && len(frames) != 1 {
					t.Fatalf("%s, byte %d: %v", v.name, at, frames)
				}
			}
		}
	}
}

func TestConversationsAreReadInAnyPieces(t *testing.T) {
	replies := named(t, "replies.txt")
	for _, v := range vectors(t, "conversations.txt") {
		var expected [][2]string
		for _, step := range v.all("daemon") {
			for _, name := range strings.Fields(step) {
				for _, line := range replies[name].lines {
					if line[0] != "bytes" {
						expected = append(expected, line)
					}
				}
			}
		}
		all := v.bytes(t, "from-daemon")
		for _, piece := range []int{1, 3, 64, len(all)} {
			frames, err := readAll(all, piece)
			if err != nil {
				t.Fatal(v.name, err)
			}
			var found [][2]string
			for _, frame := range frames {
				found = append(found, describe(frame)...)
			}
			if !equalLines(found, expected) {
				t.Errorf("%s in pieces of %d differs", v.name, piece)
			}
		}
	}
}
