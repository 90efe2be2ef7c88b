// A consume-transform-produce chain with one transaction after the other, as fast as franz-go can.
//
// It reads `count` records of the input topic, copies each to the output topic in transactions of at most `size`
// records, and commits its offsets in the same transactions. The next transaction begins as soon as EndTxn is answered.
// It prints the number of committed transactions, and fails at the first one that is refused.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	bootstrap := flag.String("bootstrap", "", "addresses of brokers")
	input := flag.String("input", "", "topic to read")
	output := flag.String("output", "", "topic to write")
	count := flag.Int("count", 0, "number of records to copy")
	size := flag.Int("size", 5, "largest number of records in a transaction")
	timeout := flag.Duration("timeout", time.Minute, "time after which to give up")
	flag.Parse()

	ctx, cancel := context.WithTimeout(context.Background(), *timeout)
	defer cancel()
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(*bootstrap, ",")...),
		kgo.TransactionalID(*input+"-copier"),
		kgo.ConsumerGroup(*input+"-copiers"),
		kgo.ConsumeTopics(*input),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.RequireStableFetchOffsets(),
		kgo.ProducerLinger(0),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	check(err)
	defer session.Close()

	transactions := 0
	for copied := 0; copied < *count; {
		records := session.PollRecords(ctx, *size)
		check(records.Err0())
		check(session.Begin())
		promise := kgo.AbortingFirstErrPromise(session.Client())
		records.EachRecord(func(record *kgo.Record) {
			session.Produce(ctx, &kgo.Record{
				Topic: *output, Partition: record.Partition, Key: record.Key, Value: record.Value,
			}, promise.Promise())
		})
		check(promise.Err())
		committed, err := session.End(ctx, kgo.TryCommit)
		check(err)
		if !committed {
			check(fmt.Errorf("transaction %d was aborted", transactions))
		}
		transactions++
		copied += records.NumRecords()
	}
	fmt.Println(transactions)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
