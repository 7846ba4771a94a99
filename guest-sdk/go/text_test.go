package configurator

import (
	"encoding/json"
	"math"
	"testing"
)

func TestValuesAreWritten(t *testing.T) {
	type pair struct {
		A int    `json:"a"`
		B string `json:"b"`
	}
	for _, check := range []struct {
		value    any
		expected JSON
	}{
		{nil, `null`},
		{true, `true`},
		{-7, `-7`},
		{int32(7), `7`},
		{int64(math.MaxInt64), `9223372036854775807`},
		{uint64(math.MaxUint64), `18446744073709551615`},
		{0.1, `0.1`},
		{1e-9, `1e-09`},
		{float32(0.5), `0.5`},
		{json.Number("1e400"), `1e400`},
		{"a<b>&\"\\/\b\f\n\r\t\x00\x7f\u2028é🙂", `"a<b>&\"\\/\b\f\n\r\t\u0000` + "\x7f\u2028é🙂" + `"`},
		{"\xff", `"` + "\ufffd" + `"`},
		{JSON(`{ "a": 1.0 }`), `{ "a": 1.0 }`},
		{JSON(""), `null`},
		{json.RawMessage(`[1]`), `[1]`},
		{[]any{1, "a", nil, []any{}}, `[1,"a",null,[]]`},
		{[]string(nil), `[]`},
		{[]JSON{"1", `"a"`}, `[1,"a"]`},
		{map[string]any{"b": 1, "a": map[string]string{"d": "1", "c": "2"}}, `{"a":{"c":"2","d":"1"},"b":1}`},
		{Object{}.With("b", 1).With("a", []Object{{}}), `{"b":1,"a":[{}]}`},
		{pair{1, "<"}, `{"a":1,"b":"<"}`},
		{[]any{pair{1, "x"}, Object{}.With("z", pair{}).With("y", 1)}, `[{"a":1,"b":"x"},{"z":{"a":0,"b":""},"y":1}]`},
		{struct{ O Object }{Object{}.With("b", 1).With("a", 2)}, `{"O":{"b":1,"a":2}}`},
	} {
		written, err := JSONOf(check.value)
		if written != check.expected || err != nil {
			t.Errorf("%#v: got %s, %v, want %s", check.value, written, err, check.expected)
		}
	}
}

func TestWhatHasNoFormInJSONIsAFatalError(t *testing.T) {
	for value, expected := range map[any]string{
		math.NaN(): "cannot write float64 as JSON: it is no number of JSON",
		"":         "",
	} {
		_, err := JSONOf(value)
		switch refusal, is := err.(*HandlerError); {
		case expected == "" && err != nil:
			t.Error(err)
		case expected != "" && (!is || !refusal.Fatal || refusal.Message != expected):
			t.Errorf("got %v, want %s", err, expected)
		}
	}
	if _, err := JSONOf(map[string]any{"a": []any{func() {}}}); err == nil {
		t.Error("a function has no form in JSON")
	}
}
