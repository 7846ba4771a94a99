// The other side of a benchmark of durable workflows: a Temporal server, a worker, and a client that counts steps.
//
// Usage: temporal [-workflows N] [-parallel P] [-warmup W]
//
// A workflow is ten activities that do nothing, one after another; an activity is a step. One line of JSON on standard
// output says how many there were and what they took: wall time, and processor time of all three together, as they are
// one process. What the libraries log goes to standard error, and only where it is an error.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"go.temporal.io/server/common/headers"
)

var (
	workflows = flag.Int("workflows", 200, "how many workflows are measured")
	parallel  = flag.Int("parallel", 64, "how many of them are under way at once")
	warmup    = flag.Int("warmup", 20, "how many workflows come before those, and do not count")
)

// figures are of the measured part: from the start of the first workflow until the last is known to be completed.
type figures struct {
	Steps      int     `json:"steps"`
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"`
	Server     string  `json:"server"`
}

func main() {
	flag.Parse()
	if *workflows < 1 || *parallel < 1 || *warmup < 0 || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: temporal [-workflows N] [-parallel P] [-warmup W], with N and P of at least 1")
		os.Exit(2)
	}
	// A signal ends the waiting, so that what is deferred is done; a second one changes nothing.
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	// Whoever reads the log may be gone before that, and what is deferred is to be done all the same.
	signal.Ignore(syscall.SIGPIPE)
	// Memory is there, and with a heap of five times what is in use, instead of twice, a step takes some 5 % less processor
	// time.
	debug.SetGCPercent(400)
	result, err := run(ctx)
	if ctx.Err() != nil {
		err = errors.New("told to stop before everything was measured")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "temporal:", err)
		os.Exit(1)
	}
	// Numbers and a string have a JSON form.
	_ = json.NewEncoder(os.Stdout).Encode(result)
}

// run starts everything, measures, stops everything and leaves nothing behind.
func run(ctx context.Context) (result figures, err error) {
	dir, err := os.MkdirTemp("", "temporal-")
	if err != nil {
		return figures{}, fmt.Errorf("no folder for the database (TMPDIR says where it is to be): %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	server, address, err := startServer(filepath.Join(dir, "temporal.db"))
	if err != nil {
		return figures{}, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	bench, err := startBench(ctx, address)
	if err != nil {
		return figures{}, err
	}
	defer bench.stop()
	return measure(ctx, bench)
}

// measure runs the workflows that do not count, then those that do.
func measure(ctx context.Context, bench *bench) (figures, error) {
	if err := bench.run(ctx, *warmup, *parallel); err != nil {
		return figures{}, fmt.Errorf("while warming up: %w", err)
	}
	before, begin := processorTime(), time.Now()
	if err := bench.run(ctx, *workflows, *parallel); err != nil {
		return figures{}, err
	}
	seconds, cpu := time.Since(begin).Seconds(), (processorTime() - before).Seconds()
	return figures{Steps: *workflows * steps, Seconds: seconds, CPUSeconds: cpu, Server: headers.ServerVersion}, nil
}

// processorTime is what this process has used until now, in user and in system mode.
func processorTime() time.Duration {
	var usage syscall.Rusage
	// It fails for nothing but a wrong argument.
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
