// Package configurator is for handlers in Go.
//
// A handler is a function from an [Input] to an [Output]: requests that the host carries out, and arguments for the next phase. It talks
// to no server and keeps nothing, and the same input gives the same output.
//
//	package hello
//
//	import (
//		configurator "configurator.dev/sdk"
//		"configurator.dev/sdk/kubernetes"
//	)
//
//	func init() {
//		configurator.Register(configurator.Handler{
//			Name: "root", Run: root, Description: "Gives a Namespace its ConfigMap.",
//		})
//	}
//
//	func root(input *configurator.Input) (*configurator.Output, error) {
//		name := input.ObjectJSON().At("metadata", "name").Text()
//		if name == "" {
//			return nil, configurator.Fatal("the object has no name")
//		}
//		about := map[string]any{
//			"apiVersion": "v1",
//			"kind":       "ConfigMap",
//			"metadata":   map[string]any{"namespace": name, "name": "about"},
//			"data":       map[string]any{"namespace": name},
//		}
//		return configurator.NewOutput(configurator.Request{
//			Name:      "about",
//			Operation: kubernetes.ConfigMap.Apply(name, "about", about),
//		}), nil
//	}
//
// A test calls it like any function, with an input of the package configuratortest. `configurator build` makes a module of the package at
// the root of the Go module: an ordinary package, not main, whose init functions register the handlers.
//
// # Two modes
//
// In a chain the phases of a Configurator follow one another, and the next phase gets the results of this one. In a machine a
// handler is a leaf of a phase's tree and is entered until it is [Done]: it asks and ends with [Again], gets the answers by
// [Input.Answer] and its own notes by [Input.Notes] when it is entered again, and leaves memory with [Wait].
//
// # What a host refuses
//
// An output that asks for any of this does nothing at all, and its run fails with UnsupportedResourceOperation: in a chain [Again],
// [Wait] and Output.NextPhase; in a machine Output.Desired of a node with once, and of all but one of several nodes side by side; in
// chains and machines, today, [Stop], Request.Once, and [Output.Read] and [Output.RemoveFromPlan], which need a pipeline. In a chain,
// Data, Progress, Output and Details of an output are checked and then left unread, and Last and Outputs of the input are empty.
// Request.DependsOn and Request.ReadyWhen need the strategy [Graph], and make any other output invalid.
package configurator
