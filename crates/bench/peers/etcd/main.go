// Loads an etcd cluster in a closed loop: each client puts, or reads linearizably, one key after the other.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func main() {
	endpoints := flag.String("connect", "127.0.0.1:2379", "members, with commas")
	clients := flag.Int("clients", 64, "clients")
	conns := flag.Int("connections", 16, "connections they share")
	keys := flag.Int("keys", 10000, "keys")
	size := flag.Int("value-bytes", 1000, "bytes of a value")
	warm := flag.Duration("warmup", time.Second, "before it is measured")
	length := flag.Duration("for", 5*time.Second, "measured")
	reads := flag.Bool("get", false, "reads instead of writes")
	flag.Parse()
	all := strings.Split(*endpoints, ",")
	var to []*clientv3.Client
	for i := 0; i < *conns; i++ {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{all[i%len(all)]}, DialTimeout: 5 * time.Second})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		to = append(to, c)
	}
	value := strings.Repeat("v", *size)
	begin := time.Now().Add(*warm)
	end := begin.Add(*length)
	var mu sync.Mutex
	var took []time.Duration
	failed := 0
	var wg sync.WaitGroup
	for i := 0; i < *clients; i++ {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			r := rand.New(rand.NewSource(int64(i)))
			c := to[i%len(to)]
			var own []time.Duration
			bad := 0
			for time.Now().Before(end) {
				key := fmt.Sprintf("user%020d", r.Intn(*keys))
				t := time.Now()
				var err error
				if *reads {
					_, err = c.Get(context.Background(), key)
				} else {
					_, err = c.Put(context.Background(), key, value)
				}
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
		}(i)
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
