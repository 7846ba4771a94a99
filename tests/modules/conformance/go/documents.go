package conformance

import (
	"fmt"

	configurator "configurator.dev/sdk"
	"configurator.dev/sdk/kubernetes"
)

func handOn(input *configurator.Input) (*configurator.Output, error) {
	var read any
	if err := input.Object(&read); err != nil {
		return nil, err
	}
	return configurator.NewOutput().Pass("read", read).Pass("untouched", input.ObjectJSON()), nil
}

// Integers of at most 53 bits and fractions, which every language has.
func numbers(input *configurator.Input) (*configurator.Output, error) {
	of := func(name string) configurator.Value { return input.ObjectJSON().At("numbers", name) }
	integer := of("integer").Int()
	return &configurator.Output{Data: object{
		"doubled":  integer * 2,
		"halved":   of("fraction").Float() / 2,
		"negative": -integer,
		"list":     list{of("zero"), of("integer"), of("fraction")},
	}}, nil
}

func unicode(input *configurator.Input) (*configurator.Output, error) {
	text := input.ObjectJSON().At("text").Text()
	points := []int{}
	for _, point := range text {
		points = append(points, int(point))
	}
	body := object{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   object{"namespace": "shop", "name": "texts"},
		"data": object{
			text:      "key",
			"quoted":  `"` + text + `"`,
			"control": "\x00\x1f\t\n\x7f",
			"escapes": "\\ / < > & ' \u2028",
			"astral":  "𝄞 🙂 汉字",
		},
	}
	request := configurator.Request{Name: "名-" + text, Operation: kubernetes.ConfigMap.Apply("shop", "texts", body)}
	return configurator.NewOutput(request).Pass("points", points), nil
}

// As many levels as the parameter `levels` says: arrays in arrays, the innermost empty.
func deep(input *configurator.Input) (*configurator.Output, error) {
	nested := list{}
	for range input.Context.Parameters.At("levels").Int() - 1 {
		nested = list{nested}
	}
	return configurator.NewOutput().Pass("nested", nested), nil
}

// As many items as the parameter `items` says.
func large(input *configurator.Input) (*configurator.Output, error) {
	items := list{}
	for i := range int(input.Context.Parameters.At("items").Int()) {
		items = append(items, object{
			"index": i, "name": fmt.Sprintf("item-%d", i), "even": i%2 == 0, "tags": list{"a", "b", nil},
		})
	}
	return configurator.NewOutput().Pass("items", items), nil
}

// Puts the argument `raw` into documents, as it stands.
func nestedJSON(input *configurator.Input) (*configurator.Output, error) {
	raw := input.ArgJSON("raw")
	return configurator.NewOutput().
		Pass("object", object{"a": raw}).
		Pass("list", list{1, []configurator.JSON{raw, raw}, "é"}), nil
}
