// Command cuts is a client that does what the cutting tests of the daemons say, and says what it saw.
//
// An order is a line on standard input: ADDRESS NAME STYLE MESSAGES BYTES CLOSES CA CERTIFICATE KEY. What comes of it are lines
// on standard output: `sent NUMBER`, `got SENDER NUMBER`, `refused WHY`, `lost WHY`, `closed`, `unclosed WHY`, `end`.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"rota"
)

const (
	patience = time.Minute
	// gathered is after how many messages all are flushed, where they are fed.
	gathered = 8
	// most events are taken between two messages: there may always be more.
	most = 100
)

type order struct {
	address, name, style, ca, certificate, key string
	messages, bytes, closes                    int
}

var (
	output = bufio.NewWriter(os.Stdout)
	// saying is for goroutines that say something at the same time.
	saying sync.Mutex
)

func say(words ...any) {
	saying.Lock()
	defer saying.Unlock()
	line := fmt.Sprintln(words...)
	fmt.Fprintln(output, strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\n", " "))
}

func hear(event rota.Event) {
	message, ok := event.(*rota.Message)
	if !ok {
		say(fmt.Sprintf("wrong %T", event))
		return
	}
	number, _, _ := bytes.Cut(message.Payload, []byte("|"))
	say("got", message.Sender, string(number))
}

// listen takes all there is, to the end, behind which nothing may come.
func listen(client *rota.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		event, err := client.Recv(ctx)
		var lost *rota.LostError
		if errors.As(err, &lost) {
			say("lost", err)
			break
		}
		if err != nil {
			say("wrong", err)
			return
		}
		hear(event)
	}
	if event, err := client.Recv(ctx); err == nil {
		say("wrong", event)
	}
}

func (o *order) payload(number int) []byte {
	payload := []byte(fmt.Sprintf("%d|", number))
	if room := o.bytes - len(payload); room > 0 {
		payload = append(payload, bytes.Repeat([]byte("."), room)...)
	}
	return payload
}

// send says whether there may be more to send.
func (o *order) send(client *rota.Client, number int) bool {
	err := client.Send(context.Background(), "g", o.payload(number))
	var lost *rota.LostError
	if errors.As(err, &lost) {
		return false
	}
	if err != nil {
		say("wrong", err)
		return false
	}
	say("sent", number)
	if o.style == "feed" && number%gathered == 0 {
		return client.Flush(context.Background()) == nil
	}
	return true
}

func (o *order) use(client *rota.Client) {
	if err := client.Join(context.Background(), "g"); err != nil {
		listen(client)
		return
	}
	if o.style == "halves" {
		var sending sync.WaitGroup
		sending.Add(1)
		go func() {
			defer sending.Done()
			for number := 1; number <= o.messages && o.send(client, number); number++ {
				continue
			}
		}()
		listen(client)
		sending.Wait()
		return
	}
	for number := 1; number <= o.messages; number++ {
		if !o.send(client, number) {
			listen(client)
			return
		}
		for taken := 0; taken < most; taken++ {
			event, _ := client.TryRecv()
			if event == nil {
				break
			}
			hear(event)
		}
	}
	if o.closes == 0 {
		listen(client)
	} else if err := client.Close(); err != nil {
		say("unclosed", err)
	} else {
		say("closed")
	}
}

func (o *order) play() {
	options := &rota.Options{Name: o.name, Timeout: patience}
	if strings.HasPrefix(o.address, "tls:") {
		config, err := rota.LoadTLS(o.ca, o.certificate, o.key)
		if err != nil {
			say("wrong", err)
			return
		}
		config.ServerName = "daemon.example"
		options.TLS = config
	}
	client, err := rota.Connect(context.Background(), o.address, options)
	if err != nil {
		say("refused", err)
		return
	}
	defer client.HangUp()
	o.use(client)
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var o order
		_, err := fmt.Sscan(lines.Text(), &o.address, &o.name, &o.style, &o.messages, &o.bytes, &o.closes,
			&o.ca, &o.certificate, &o.key)
		if err != nil {
			say("wrong", err)
		} else {
			o.play()
		}
		say("end")
		saying.Lock()
		_ = output.Flush()
		saying.Unlock()
	}
}
