// Sends the transactions of portolan-store with etcd's own client, as fast as they are answered: each compares and
// writes a key and an operation slot. Prints transactions a second.
//
// Usage: etcd-client URL,URL SECONDS WRITERS
package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func main() {
	seconds, _ := strconv.Atoi(os.Args[2])
	writers, _ := strconv.Atoi(os.Args[3])
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(os.Args[1], ","), DialTimeout: 5 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	var count atomic.Int64
	var group sync.WaitGroup
	start := time.Now()
	end := start.Add(time.Duration(seconds) * time.Second)
	for writer := range writers {
		group.Add(1)
		go func() {
			defer group.Done()
			count.Add(write(client, writer, end))
		}()
	}
	group.Wait()
	fmt.Printf("%.0f\n", float64(count.Load())/time.Since(start).Seconds())
}

func write(client *clientv3.Client, writer int, end time.Time) int64 {
	ctx := context.Background()
	key := fmt.Sprintf("/peer/%d", writer)
	slot := fmt.Sprintf("/peer-slot/%d-%d", os.Getpid(), writer)
	value := string(bytes.Repeat([]byte("x"), 256))
	seen, err := client.Get(ctx, key)
	if err != nil {
		log.Fatal(err)
	}
	var revision, slotRevision, count int64
	if len(seen.Kvs) > 0 {
		revision = seen.Kvs[0].ModRevision
	}
	for time.Now().Before(end) {
		answer, err := client.Txn(ctx).If(
			clientv3.Compare(clientv3.ModRevision(key), "=", revision),
			clientv3.Compare(clientv3.ModRevision(slot), "=", slotRevision),
		).Then(
			clientv3.OpPut(key, value),
			clientv3.OpPut(slot, fmt.Sprintf("op %d", count)),
		).Else(clientv3.OpGet(slot)).Commit()
		if err != nil {
			log.Fatal(err)
		}
		if !answer.Succeeded {
			log.Fatal("somebody else writes")
		}
		revision, slotRevision = answer.Header.Revision, answer.Header.Revision
		count++
	}
	return count
}
