package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"golang.org/x/sync/errgroup"
)

const (
	steps = 10
	queue = "steps"
)

// walk is the workflow. Each of its activities is an ordinary one: scheduled, started and completed in the history of
// the workflow on the server.
func walk(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * time.Second})
	for range steps {
		if err := workflow.ExecuteActivity(ctx, step).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// step is the activity, which costs nothing but what its durability does.
func step(context.Context) error {
	return nil
}

// bench is who carries workflows out, and who asks for them.
type bench struct {
	client client.Client
	worker worker.Worker
}

func startBench(ctx context.Context, address string) (*bench, error) {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	connection, err := client.DialContext(ctx, client.Options{
		HostPort:  address,
		Namespace: namespace,
		Logger:    log.NewStructuredLogger(logger),
	})
	if err != nil {
		return nil, fmt.Errorf("the server is up, but no client reaches it at %s: %w", address, err)
	}
	scaled := worker.NewPollerBehaviorAutoscaling(worker.PollerBehaviorAutoscalingOptions{})
	worker := worker.New(connection, queue, worker.Options{
		// As many pollers as there is work for: with the default of two of each kind a step takes some 10 % more processor
		// time. With eager activities, the default, the server hands an activity to the worker in its answer to the task
		// that asked for it; without them a step takes some 20 % more. As many as a thousand are carried out at once, and as
		// many as ten thousand workflows are kept in memory, by default.
		WorkflowTaskPollerBehavior: scaled,
		ActivityTaskPollerBehavior: scaled,
	})
	worker.RegisterWorkflow(walk)
	worker.RegisterActivity(step)
	if err := worker.Start(); err != nil {
		connection.Close()
		return nil, fmt.Errorf("the worker does not start: %w", err)
	}
	return &bench{connection, worker}, nil
}

func (b *bench) stop() {
	b.worker.Stop()
	b.client.Close()
}

// run returns when as many workflows are completed, or one is not.
func (b *bench) run(ctx context.Context, count, parallel int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for range count {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return b.one(ctx) })
	}
	return group.Wait()
}

func (b *bench) one(ctx context.Context) error {
	// The worker is in the same process, so the answer to the start may bring the first task along.
	options := client.StartWorkflowOptions{TaskQueue: queue, EnableEagerStart: true}
	run, err := b.client.ExecuteWorkflow(ctx, options, walk)
	if err != nil {
		return fmt.Errorf("a workflow does not start: %w", err)
	}
	if err := run.Get(ctx, nil); err != nil {
		return fmt.Errorf("workflow %s is not completed: %w", run.GetID(), err)
	}
	return nil
}
