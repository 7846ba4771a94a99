package configurator

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const document JSON = ` { "name" : "web", "nested": {"list": [1, "two", {"three": 3}, [], true, null], "empty": {}},
	"\u006eumber": -12, "big": 9223372036854775807, "fraction": 0.5, "text": "a \"b\" \\ \/ \n \ud834\udd1e \ud800 é", "":"no name" } `

func TestMembersAreFoundWhereTheyLie(t *testing.T) {
	for path, expected := range map[string]JSON{
		"name":         `"web"`,
		"nested empty": `{}`,
		"nested list":  `[1, "two", {"three": 3}, [], true, null]`,
		"number":       `-12`,
		"fraction":     `0.5`,
		"":             `"no name"`,
		"nothing":      ``,
		"name nothing": ``,
		"nested nam":   ``,
	} {
		names := strings.Split(path, " ")
		if got := document.At(names...).JSON(); got != expected {
			t.Errorf("%q: got %s, want %s", path, got, expected)
		}
	}
	if got, want := document.At().JSON(), strings.TrimSpace(string(document)); string(got) != want {
		t.Errorf("no path is the document itself, got %s", got)
	}
}

func TestScalarsAreRead(t *testing.T) {
	if got := document.At("name").Text(); got != "web" {
		t.Errorf("got %q", got)
	}
	if got, want := document.At("text").Text(), "a \"b\" \\ / \n 𝄞 \ufffd é"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := document.At("big").Int(); got != 9223372036854775807 {
		t.Errorf("got %d", got)
	}
	if got := document.At("big").Uint(); got != 9223372036854775807 {
		t.Errorf("got %d", got)
	}
	if beyond := JSON("18446744073709551615").At(); beyond.Uint() != math.MaxUint64 || beyond.Int() != 0 {
		t.Errorf("got %d and %d", beyond.Uint(), beyond.Int())
	}
	if got := JSON("-1").At().Uint(); got != 0 {
		t.Errorf("got %d", got)
	}
	if got := document.At("fraction").Float(); got != 0.5 {
		t.Errorf("got %g", got)
	}
	if !JSON(" true ").At().Bool() || JSON("false").At().Bool() || JSON(`"true"`).At().Bool() {
		t.Error("only true is true")
	}
	other := document.At("nested")
	if other.Text() != "" || other.Int() != 0 || other.Float() != 0 || other.Bool() {
		t.Error("an object is no scalar")
	}
}

func TestOfANameThatComesTwiceTheLastCounts(t *testing.T) {
	twice := JSON(`{"a": {"b": 1, "b": {"c": 2}}, "a": {"b": 3, "\u0062": [4]}, "z": 0}`)
	if got := twice.At("a", "b").JSON(); got != "[4]" {
		t.Errorf("got %s", got)
	}
	var read struct{ A struct{ B []int } }
	if err := JSON(`{"a": {"b": [3]}, "a": {"b": [4]}}`).Read(&read); err != nil || read.A.B[0] != 4 {
		t.Errorf("got %v, %v", read, err)
	}
}

func TestItemsAndMembersKeepTheirOrder(t *testing.T) {
	var kinds []Kind
	for item := range document.At("nested", "list").Items() {
		kinds = append(kinds, item.Kind())
	}
	if want := []Kind{KindNumber, KindText, KindObject, KindList, KindBool, KindNull}; !slices.Equal(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
	var names []string
	for name := range document.At().Members() {
		names = append(names, name)
	}
	if want := []string{"name", "nested", "number", "big", "fraction", "text", ""}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
	for range document.At("name").Items() {
		t.Error("a text has no items")
	}
	for range document.At().Items() {
		t.Error("an object has no items")
	}
	for range JSON("[1]").At().Members() {
		t.Error("a list has no members")
	}
}

func TestDocumentsOfAHundredLevelsAreRead(t *testing.T) {
	deep := JSON(strings.Repeat("[", 100) + strings.Repeat("]", 100))
	levels := 0
	for level := deep.At(); level.Kind() == KindList; levels++ {
		next := Value{}
		for item := range level.Items() {
			next = item
		}
		level = next
	}
	if levels != 100 {
		t.Errorf("got %d", levels)
	}
	var read any
	if err := deep.Read(&read); err != nil {
		t.Error(err)
	}
	if written, err := JSONOf(read); written != deep || err != nil {
		t.Errorf("got %s, %v", written, err)
	}
}

func TestWhatIsNoJSONIsNoPanic(t *testing.T) {
	texts := []JSON{"", "{", "[", `"`, `"\`, `"\u`, `"\ud800\u1`, "{]", "[}", `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a" 1}`, "[1 2]", "[,]", "]", "}", "nul", `{"a":]}`, "[[", `{"a":"\`}
	for _, text := range texts {
		value := text.At()
		value.At("a", "b")
		value.Text()
		value.Int()
		value.JSON()
		for item := range value.Items() {
			item.Text()
		}
		for _, member := range value.Members() {
			member.Text()
		}
	}
}

// What is read is what encoding/json reads.
func FuzzReading(f *testing.F) {
	f.Add(string(document))
	f.Add(`[{"a":{"b":[1,2,{"c":"\u0000"}]}},"x"]`)
	f.Add(`{"a":1,"a":2}`)
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) || !utf8.ValidString(text) {
			JSON(text).At("a")
			return
		}
		var expected any
		if err := JSON(text).Read(&expected); err != nil {
			t.Fatal(err)
		}
		want, err := JSONOf(expected)
		if err != nil {
			t.Fatal(err)
		}
		if got := rebuilt(t, JSON(text).At()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// The document, made anew of what the methods of JSON find.
func rebuilt(t *testing.T, found Value) JSON {
	var value any
	switch found.Kind() {
	case KindList:
		list := []any{}
		for item := range found.Items() {
			list = append(list, rebuilt(t, item))
		}
		value = list
	case KindObject:
		object := map[string]any{}
		for name, member := range found.Members() {
			object[name] = rebuilt(t, member)
		}
		value = object
	case KindText:
		value = found.Text()
	default:
		value = found
	}
	text, err := JSONOf(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestAValueThatDoesNotFitIsAFatalError(t *testing.T) {
	var wanted struct{ Name int }
	err := document.Read(&wanted)
	refusal, is := err.(*HandlerError)
	if !is || !refusal.Fatal || !strings.HasPrefix(refusal.Message, "cannot read the document as *struct { Name int }: ") {
		t.Errorf("got %v", err)
	}
}

func TestNumbersKeepTheirDigits(t *testing.T) {
	const digits = "12345678901234567890123"
	var read any
	if err := JSON(`{"n":` + digits + `}`).Read(&read); err != nil {
		t.Fatal(err)
	}
	if written, err := JSONOf(read); written != `{"n":`+digits+`}` || err != nil {
		t.Errorf("got %s, %v", written, err)
	}
}

func TestADocumentIsAFieldOfAStruct(t *testing.T) {
	var read struct{ Spec, Status JSON }
	if err := JSON(`{"spec": {"b": 1,  "a": 1e400}}`).Read(&read); err != nil {
		t.Fatal(err)
	}
	if read.Spec != `{"b": 1,  "a": 1e400}` || read.Status != "" {
		t.Errorf("got %+v", read)
	}
	written, err := JSONOf(struct {
		Spec JSON `json:"spec"`
		None JSON `json:"none"`
	}{Spec: "[1]"})
	if written != `{"spec":[1],"none":null}` || err != nil {
		t.Errorf("got %s, %v", written, err)
	}
}
