// Package rota is a client of a Rota daemon: groups by name, and messages to them that all members get in one order.
//
//	client, err := rota.Connect(ctx, "/run/rota/rota.sock", &rota.Options{Name: "alice", Membership: true})
//	if err != nil { ... }
//	defer client.Close()
//	if err := client.Join(ctx, "orders"); err != nil { ... }
//	if err := client.Send(ctx, "orders", []byte("hello")); err != nil { ... }
//	for {
//		event, err := client.Recv(ctx)
//		if err != nil { ... }
//		switch event := event.(type) {
//		case *rota.Message:
//			fmt.Printf("%s: %s\n", event.Sender, event.Payload)
//		case *rota.View:
//			fmt.Println(event.Group, event.Members)
//		}
//	}
//
// A Client is one connection, and its loss is final. A Reconnecting connects again and says what may be missing. Any
// number of goroutines may use either.
//
// The bytes are those of docs/protocols/client.md, without memory for what the client is told: what a daemon says comes
// through the socket.
package rota
