package replicated

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// So many commands behind a checkpoint are enough for another.
const long = 100

// journal is a file `LENGTH`, so many bytes of a state, and a line for each command behind it.
type journal struct {
	path     string
	file     *os.File
	commands int
}

// read has what there is; a last line that was cut off is none.
func (j *journal) read() (state string, commands []string, err error) {
	all, err := os.ReadFile(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	first, rest, _ := bytes.Cut(all, []byte("\n"))
	length, err := strconv.Atoi(string(first))
	if err != nil || length > len(rest) {
		return "", nil, errors.New(j.path + " is not a journal")
	}
	whole := rest[length:]
	whole = whole[:bytes.LastIndexByte(whole, '\n')+1]
	commands = strings.Split(string(whole), "\n")
	return string(rest[:length]), commands[:len(commands)-1], nil
}

// checkpoint begins anew with this state: the old file stays until the new one is on disk.
func (j *journal) checkpoint(state string) error {
	file, err := os.Create(j.path + ".new")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%d\n%s", len(state), state)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(j.path+".new", j.path)
	}
	if err != nil {
		return err
	}
	if j.file != nil {
		_ = j.file.Close()
	}
	j.commands = 0
	j.file, err = os.OpenFile(j.path, os.O_APPEND|os.O_WRONLY, 0o600)
	return err
}

// append adds a command, in one write.
func (j *journal) append(command string) error {
	j.commands++
	_, err := j.file.WriteString(command + "\n")
	return err
}
