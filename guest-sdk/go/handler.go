package configurator

import (
	"fmt"
	"strings"
)

// Handler is a function that decides, under the name by which a Configurator's phases call it.
type Handler struct {
	Name string
	// Run decides. It returns an output or an error.
	Run func(*Input) (*Output, error)
	// Description is one sentence for `configurator inspect`.
	Description string
	// View is how a person sees its progress, in a machine.
	View View
	// Accepts is whether it takes one object, which is the default, a batch, or both.
	Accepts Accepts
	// ParametersSchema is the JSON Schema of spec.parameters, as a value that [JSONOf] can write; nil: none. `configurator inspect`
	// shows it; the host does not hold the parameters to it, so the handler has to.
	ParametersSchema any
	// Capabilities is what the handler may ask for at most, in the form of the Configurator's spec.capabilities, as a value that
	// [JSONOf] can write; nil: nothing is said. A host does not run the module where a Configurator grants less.
	Capabilities any
}

// View is what a person sees for a handler.
type View uint8

// What a person sees for a handler.
const (
	ViewNone View = iota
	ViewCheckList
	ViewObjectDetail
)

// Accepts is what a handler takes.
type Accepts uint8

// What a handler takes.
const (
	AcceptsOne Accepts = iota
	AcceptsBatch
	AcceptsEither
)

var registered []Handler

// Register makes functions handlers of the module; to be called by init. It panics when a name is empty or taken.
func Register(handlers ...Handler) {
	for _, handler := range handlers {
		if handler.Name == "" || handler.Run == nil {
			panic(fmt.Sprintf("handler %q needs a name and a function", handler.Name))
		}
		if handlerOf(handler.Name) != nil {
			panic(fmt.Sprintf("two handlers have the name %q", handler.Name))
		}
		registered = append(registered, handler)
	}
}

// Handlers of the module, in the order in which they were registered.
func Handlers() []Handler { return registered }

// Call calls the handler of this name, as the host does.
func Call(name string, input *Input) (*Output, error) {
	handler := handlerOf(name)
	if handler == nil {
		known := make([]string, 0, len(registered))
		for _, one := range registered {
			known = append(known, one.Name)
		}
		return nil, Fatal(fmt.Sprintf("this module has no handler `%s`; it has: %s", name, strings.Join(known, ", ")))
	}
	if handler.Accepts == AcceptsOne && input.IsBatch {
		return nil, Fatal(fmt.Sprintf("handler `%s` takes one object, and got a batch: remove `chain.batch` from the Configurator", name))
	}
	if handler.Accepts == AcceptsBatch && !input.IsBatch {
		return nil, Fatal(fmt.Sprintf("handler `%s` takes a batch, and got one object: add `chain.batch` to the Configurator", name))
	}
	output, err := handler.Run(input)
	if err == nil && output == nil {
		return nil, Fatal(fmt.Sprintf("handler `%s` returned neither an output nor an error", name))
	}
	return output, err
}

func handlerOf(name string) *Handler {
	for i := range registered {
		if registered[i].Name == name {
			return &registered[i]
		}
	}
	return nil
}
