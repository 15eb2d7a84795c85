// Loads a JetStream cluster in a closed loop: each client publishes to a stream of three replicas, the next when the last is acknowledged.
package main

import (
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

func main() {
	servers := flag.String("connect", "nats://127.0.0.1:4222", "servers, with commas")
	clients := flag.Int("clients", 64, "clients")
	size := flag.Int("value-bytes", 1000, "bytes of a message")
	warm := flag.Duration("warmup", time.Second, "before it is measured")
	length := flag.Duration("for", 5*time.Second, "measured")
	flag.Parse()
	all := strings.Split(*servers, ",")
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	first, err := nats.Connect(*servers)
	fail(err)
	admin, err := first.JetStream()
	fail(err)
	_ = admin.DeleteStream("bench")
	for try := 0; ; try++ {
		_, err = admin.AddStream(&nats.StreamConfig{Name: "bench", Subjects: []string{"bench"}, Replicas: 3, Storage: nats.FileStorage})
		if err == nil || try > 50 {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	fail(err)
	value := []byte(strings.Repeat("v", *size))
	begin := time.Now().Add(*warm)
	end := begin.Add(*length)
	var mu sync.Mutex
	var took []time.Duration
	failed := 0
	var wg sync.WaitGroup
	for i := 0; i < *clients; i++ {
		connection, err := nats.Connect(all[i%len(all)])
		fail(err)
		stream, err := connection.JetStream()
		fail(err)
		wg.Add(1)
		go func() {
			defer wg.Done()
			var own []time.Duration
			bad := 0
			for time.Now().Before(end) {
				t := time.Now()
				_, err := stream.Publish("bench", value)
				d := time.Since(t)
				if err != nil {
					bad++
				} else if t.After(begin) && time.Now().Before(end) {
					own = append(own, d)
				}
			}
			mu.Lock()
			took = append(took, own...)
			failed += bad
			mu.Unlock()
		}()
	}
	wg.Wait()
	sort.Slice(took, func(i, j int) bool { return took[i] < took[j] })
	if len(took) == 0 {
		fmt.Println("nothing was done")
		os.Exit(1)
	}
	at := func(q float64) int64 { return took[int(q*float64(len(took)-1))].Microseconds() }
	fmt.Printf("%.0f a second, p50 %d us, p99 %d us, max %d us, failed %d\n", float64(len(took))/length.Seconds(), at(.5), at(.99), at(1), failed)
}
