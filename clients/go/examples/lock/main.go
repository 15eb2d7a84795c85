// Command lock is a lock with fencing numbers: lock ADDRESS NAME GROUP COPIES JOURNAL, as many times as there are copies.
//
// Commands are `acquire` and `release`. A copy says `granted NUMBER` when its owner has the lock and `lost NUMBER` when it has it
// no more, or cannot know. Each grant has a larger number than all before: whoever uses the lock's resource says it, and the
// resource refuses any that is smaller than one it has seen. `lock` of the examples of crates/client is another copy of the same.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"rota/examples/replicated"
)

type lock struct {
	// number is that of the newest grant.
	number uint64
	// queue has who waits; the first has the lock.
	queue []string
	// told is what the owner of this copy was told, 0 for nothing, and lost which number it was told to have lost: no parts of
	// the state.
	told, lost uint64
}

// change changes the queue; another first member has a new grant.
func (l *lock) change(queue []string) {
	if len(queue) > 0 && (len(l.queue) == 0 || l.queue[0] != queue[0]) {
		l.number++
	}
	l.queue = queue
}

// keep has the queue of those who stay.
func (l *lock) keep(stays func(string) bool) []string {
	var queue []string
	for _, name := range l.queue {
		if stays(name) {
			queue = append(queue, name)
		}
	}
	return queue
}

func (l *lock) Apply(sender, command string) string {
	others := l.keep(func(name string) bool { return name != sender })
	switch {
	case command == "acquire" && len(others) == len(l.queue):
		l.change(append(others, sender))
	case command == "release":
		l.change(others)
	}
	return strconv.Itoa(len(l.queue))
}

// Members that are gone wait no more.
func (l *lock) Members(members []string) {
	l.change(l.keep(func(name string) bool {
		for _, member := range members {
			if member == name {
				return true
			}
		}
		return false
	}))
}

func (l *lock) Write() string {
	text := fmt.Sprintln(l.number)
	for _, name := range l.queue {
		text += name + "\n"
	}
	return text
}

func (l *lock) Read(text string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	l.number, _ = strconv.ParseUint(lines[0], 10, 64)
	l.queue = lines[1:]
}

// Look has no news while the members agree. Who is apart from them counts the lock as lost, and gives it back when it can: so no
// number is granted twice.
func (l *lock) Look(me string, standing replicated.Standing) (news, command string) {
	if standing == replicated.Waiting {
		return "", ""
	}
	var mine uint64
	if standing == replicated.Sure && len(l.queue) > 0 && l.queue[0] == me && l.number > l.lost {
		mine = l.number
	}
	before := l.told
	l.told = mine
	if before == mine {
		return "", ""
	}
	var lines []string
	if before != 0 {
		l.lost = before
		lines = append(lines, fmt.Sprint("lost ", before))
		if standing == replicated.Apart {
			command = "release"
		}
	}
	if mine != 0 {
		lines = append(lines, fmt.Sprint("granted ", mine))
	}
	return strings.Join(lines, "\n"), command
}

func main() {
	if err := replicated.Run(&lock{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
