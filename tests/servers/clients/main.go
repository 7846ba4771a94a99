// Clients of the Kubernetes API that tests let loose on a server: informers of client-go, and managers of
// controller-runtime.
//
// Usage:
//
//	clients informer -kubeconfig FILE -namespace NAME    keeps copies of ConfigMaps and Widgets by shared informers
//	clients manager -kubeconfig FILE -namespace NAME     reconciles Widgets, as an operator does
//	clients sets -kubeconfig FILE -namespace NAME        keeps sets of ConfigMaps, to be compared with
//	clients typed -kubeconfig FILE -namespace NAME       does each thing once, in protobuf
//
// Each prints one JSON document a line for what it has seen or done, and ends when its standard input does. What the
// libraries log goes to standard error.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// A set of its own: controller-runtime has put flags into the usual one.
var flags = flag.NewFlagSet("clients", flag.ExitOnError)

var (
	kubeconfig = flags.String("kubeconfig", "", "file that says where the server is")
	namespace  = flags.String("namespace", "default", "namespace of everything")
	resync     = flags.Duration("resync", 0, "how often informers hand out what they have once more; 0: never")
)

func main() {
	clients := map[string]func(context.Context) error{"informer": inform, "manager": manage, "sets": keepSets, "typed": useTyped}
	if len(os.Args) < 2 || clients[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: clients informer|manager|sets|typed [FLAGS]")
		os.Exit(2)
	}
	name := os.Args[1]
	// It ends the program at a mistake.
	_ = flags.Parse(os.Args[2:])
	// One JSON document a line, with its level.
	ctrl.SetLogger(zap.New())
	klog.SetLogger(ctrl.Log)
	ctx, cancel := context.WithCancel(context.Background())
	go answer(cancel)
	if err := clients[name](ctx); err != nil {
		fmt.Fprintf(os.Stderr, "clients: %s: %v\n", name, err)
		os.Exit(1)
	}
}

// line is what a test awaits: what happened, to what, and whatever else is to be known.
type line map[string]any

var output sync.Mutex

func say(what line) {
	output.Lock()
	defer output.Unlock()
	// A map of plain values has a JSON form, with sorted names.
	_ = json.NewEncoder(os.Stdout).Encode(what)
}

// impatient is how long a client keeps an election, so that tests need not wait for the usual fifteen seconds.
const impatient = 4 * time.Second
