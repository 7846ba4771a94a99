package conformance

import (
	"math/rand/v2"
	"strconv"
	"time"

	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/configstore"
	"configurator.dev/sdk/kubernetes"
	"configurator.dev/sdk/log"
)

func statuses(*configurator.Input) (*configurator.Output, error) {
	return configurator.NewOutput().
		Status(object{"ready": true}).
		Status(object{"count": 3}).
		Event(configurator.EventNormal, "Configured", "all is well").
		Event(configurator.EventWarning, "Slow", "it took long"), nil
}

func fail(input *configurator.Input) (*configurator.Output, error) {
	kind, err := parameter(input, "error")
	if err != nil {
		return nil, err
	}
	switch failure := configurator.Retry("no quota"); kind {
	case "after":
		return nil, failure.After(30 * time.Second)
	case "code":
		return nil, failure.WithCode("QUOTA")
	case "fatal":
		return nil, configurator.Fatal("no such class")
	default:
		return nil, failure
	}
}

func mistake(*configurator.Input) (*configurator.Output, error) { panic("the sky is falling") }

func outcome(input *configurator.Input) (*configurator.Output, error) {
	outcome, err := parameter(input, "outcome")
	if err != nil {
		return nil, err
	}
	output := configurator.NewOutput()
	switch outcome {
	case "again":
		output.End(configurator.Again{})
	case "again-after":
		output.End(configurator.Again{After: 5 * time.Second})
	case "wait":
		output.End(configurator.Wait{
			After:   time.Minute,
			Signals: []string{"go", "stop"},
			Objects: []configurator.ObjectKey{kubernetes.Pod.Key("shop", "web"), kubernetes.ConfigMap.Key("shop", "a")},
		})
	case "wait-forever":
		output.End(configurator.Wait{})
	case "failed":
		output.Status(object{"ready": false}).Event(configurator.EventWarning, "Failed", "no quota")
		output.Data = list{1}
		output.Progress = &configurator.Progress{Percent: 10, Message: "begun"}
		output.End(configurator.Failed{Error: configurator.Retry("no quota").WithCode("QUOTA")})
	case "next":
		output.NextPhase = "Running"
	case "stop":
		output.Request(configurator.Request{Name: "one", Operation: configstore.Basic("key").Get()})
		output.End(configurator.Stop{})
	}
	return output, nil
}

func lines(*configurator.Input) (*configurator.Output, error) {
	log.Trace("one")
	log.Debug("two")
	log.Info("three")
	log.Warn("four")
	log.Error("fünf")
	log.Line(log.LevelInfo, "six", "b", "2", "a", "1")
	return configurator.NewOutput(), nil
}

// Milliseconds since 1970 by the clock of the language.
func clock(*configurator.Input) (*configurator.Output, error) {
	return configurator.NewOutput().Pass("milliseconds", time.Now().UnixMilli()), nil
}

// Three numbers that splitmix64 makes of the seed, as texts.
func chance(input *configurator.Input) (*configurator.Output, error) {
	state := input.Context.Seed
	numbers := []string{}
	for range 3 {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
		z = (z ^ (z >> 27)) * 0x94d049bb133111eb
		numbers = append(numbers, strconv.FormatUint(z^(z>>31), 10))
	}
	return configurator.NewOutput().Pass("numbers", numbers), nil
}

// A number by the generator of the language.
func random(*configurator.Input) (*configurator.Output, error) {
	return configurator.NewOutput().Pass("number", strconv.FormatUint(rand.Uint64(), 10)), nil
}
