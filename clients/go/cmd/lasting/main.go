// Command lasting is a client that outlives its daemon: lasting ADDRESS NAME GROUP [CA CERTIFICATE KEY SERVER-NAME].
//
// It says `ready` when it is in the group, then each event: `got SENDER TEXT`, `view MEMBERS`, `gap UNSETTLED NAME NOT-JOINED`.
// Each line of its input is sent to the group, or, as `@TO TEXT`, to another client; `unsent TEXT` where there is no connection.
// At the input's end it closes.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"rota"
)

func say(event rota.Event) {
	switch event := event.(type) {
	case *rota.Message:
		fmt.Println("got", event.Sender, string(event.Payload))
	case *rota.View:
		fmt.Println("view", len(event.Members))
	case *rota.Reconnected:
		fmt.Println("gap", event.UnsettledBytes, event.Name, len(event.NotJoined))
	}
}

func run(arguments []string) error {
	if len(arguments) != 3 && len(arguments) != 7 {
		return errors.New("usage: lasting ADDRESS NAME GROUP [CA CERTIFICATE KEY SERVER-NAME]")
	}
	ctx := context.Background()
	options := &rota.Options{Name: arguments[1], Membership: true, Timeout: time.Minute}
	if len(arguments) == 7 {
		config, err := rota.LoadTLS(arguments[3], arguments[4], arguments[5])
		if err != nil {
			return err
		}
		config.ServerName = arguments[6]
		options.TLS = config
	}
	backoff := rota.Backoff{First: 10 * time.Millisecond, Longest: 200 * time.Millisecond}
	client, err := rota.ConnectReconnecting(ctx, arguments[0], options, backoff)
	if err != nil {
		return err
	}
	group := arguments[2]
	if err := client.Join(ctx, group); err != nil {
		return err
	}
	fmt.Println("ready")
	ended := make(chan error)
	go func() {
		for {
			event, err := client.Recv(ctx)
			if err != nil {
				ended <- err
				return
			}
			say(event)
		}
	}()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		to, text := group, lines.Text()
		if strings.HasPrefix(text, "@") {
			to, text, _ = strings.Cut(text[1:], " ")
		}
		if err := client.Send(ctx, to, []byte(text)); err != nil {
			fmt.Println("unsent", text)
		}
	}
	err = client.Close()
	var lost *rota.LostError
	if why := <-ended; !errors.As(why, &lost) {
		return why
	}
	return err
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
