package configurator

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func nothing(*Input) (*Output, error) { return NewOutput(), nil }

func init() {
	Register(
		Handler{Name: "root", Run: nothing, Description: "Does nothing."},
		Handler{Name: "write-all", Run: nothing, Accepts: AcceptsBatch, View: ViewCheckList},
		Handler{Name: "either", Run: nothing, Accepts: AcceptsEither},
		Handler{Name: "silent", Run: func(*Input) (*Output, error) { return nil, nil }},
	)
}

// That the error is fatal, and says this.
func checkFatal(t *testing.T, err error, expected string) {
	t.Helper()
	var refusal *HandlerError
	if !errors.As(err, &refusal) || !refusal.Fatal || refusal.Message != expected {
		t.Errorf("got  %v\nwant %s", err, expected)
	}
}

func TestAnUnknownNameIsAnsweredWithTheKnownOnes(t *testing.T) {
	_, err := Call("rooot", &Input{})
	checkFatal(t, err, "this module has no handler `rooot`; it has: root, write-all, either, silent")
}

func TestAHandlerGetsOnlyWhatItAccepts(t *testing.T) {
	one, batch := &Input{}, &Input{IsBatch: true}
	for name, input := range map[string]*Input{"root": one, "write-all": batch, "either": one} {
		if _, err := Call(name, input); err != nil {
			t.Error(err)
		}
	}
	if _, err := Call("either", batch); err != nil {
		t.Error(err)
	}
	_, err := Call("root", batch)
	checkFatal(t, err, "handler `root` takes one object, and got a batch: remove `chain.batch` from the Configurator")
	_, err = Call("write-all", one)
	checkFatal(t, err, "handler `write-all` takes a batch, and got one object: add `chain.batch` to the Configurator")
}

func TestAHandlerSaysSomething(t *testing.T) {
	_, err := Call("silent", &Input{})
	checkFatal(t, err, "handler `silent` returned neither an output nor an error")
}

func TestHandlersKeepTheirOrder(t *testing.T) {
	var names []string
	for _, handler := range Handlers() {
		names = append(names, handler.Name)
	}
	if want := []string{"root", "write-all", "either", "silent"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

func TestANameIsUsedOnce(t *testing.T) {
	for _, handler := range []Handler{{Name: "root", Run: nothing}, {Run: nothing}, {Name: "none"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q was taken", handler.Name)
				}
			}()
			Register(handler)
		}()
	}
}

func TestAnErrorSaysWhenAndWhy(t *testing.T) {
	err := Retry("no quota").After(30 * time.Second).WithCode("QUOTA")
	if err.Fatal || err.RetryAfter != 30*time.Second || err.Code != "QUOTA" || err.Error() != "no quota" {
		t.Errorf("got %+v", err)
	}
	if !Fatal("no such class").Fatal {
		t.Error("it is fatal")
	}
}
