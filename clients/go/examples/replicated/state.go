package replicated

import (
	"errors"
	"fmt"
	"hash/fnv"
	"sort"
	"strconv"
	"strings"
)

// state is what the copies agree on: the machine, and which commands count.
type state struct {
	machine Machine
	// epoch has, of all views with a majority that the state has been through, the numbers of their rings added up.
	epoch uint64
	// count is how many commands count.
	count uint64
	// sessions has the newest command of each that counts.
	sessions map[string]uint64
}

// write is `EPOCH COUNT`, a line `SESSION NUMBER` for each session, an empty line, and the machine's text.
func (s *state) write() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d %d\n", s.epoch, s.count)
	var names []string
	for name := range s.sessions {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(&text, "%s %d\n", name, s.sessions[name])
	}
	return text.String() + "\n" + s.machine.Write()
}

// read is the opposite of write.
func (s *state) read(text string) error {
	head, machine, whole := strings.Cut(text, "\n\n")
	lines := strings.Split(head, "\n")
	sessions := map[string]uint64{}
	for _, line := range lines[1:] {
		name, number, _ := strings.Cut(line, " ")
		value, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return err
		}
		sessions[name] = value
	}
	if _, err := fmt.Sscanf(lines[0], "%d %d", &s.epoch, &s.count); err != nil || !whole {
		return errors.New("not a state")
	}
	s.sessions = sessions
	s.machine.Read(machine)
	return nil
}

// digest is FNV-1a of 64 bits: to tell states apart, not to keep anybody from forging one.
func (s *state) digest() string {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(s.write()))
	return fmt.Sprintf("%016x", hash.Sum64())
}

// apply does a command `SESSION NUMBER TEXT`, unless it counts already: false.
func (s *state) apply(sender, command string) (number uint64, answer string, does bool) {
	words := strings.SplitN(command, " ", 3)
	if len(words) != 3 {
		return 0, "", false
	}
	number, err := strconv.ParseUint(words[1], 10, 64)
	if err != nil || number != s.sessions[words[0]]+1 {
		return 0, "", false
	}
	s.sessions[words[0]] = number
	s.count++
	return number, s.machine.Apply(sender, words[2]), true
}
