package configurator

import (
	"encoding/json"
	"fmt"
	"strings"
)

// JSON is a document as JSON text. The empty text is no document.
//
// It is read in two ways. [JSON.Read] reads it into a value, as encoding/json does. [JSON.At] looks into the text where it lies, which takes
// a small part of the time and is enough where few fields matter:
//
//	name := object.At("metadata", "name").Text()
type JSON string

// Read reads the document into a value, as encoding/json does. Numbers that are read into an interface keep their digits, as
// [json.Number].
//
// It is a fatal [HandlerError] when the document does not fit.
func (j JSON) Read(into any) error { return j.read(into, "the document") }

func (j JSON) read(into any, what string) error {
	decoder := json.NewDecoder(strings.NewReader(string(j)))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return Fatal(fmt.Sprintf("cannot read %s as %T: %s", what, into, err))
	}
	return nil
}

// At is the value under these names, from the outermost object inwards, and that of the document itself without any. It is nothing where
// one of them is missing. Where an object has a name more than once, the last counts, as it does for Read.
func (j JSON) At(path ...string) Value {
	text := string(j)
	return Value{text[skipSpace(text, 0):]}.At(path...)
}

// UnmarshalJSON keeps the text as it is, so that a field of a struct can be one.
func (j *JSON) UnmarshalJSON(text []byte) error {
	*j = JSON(text)
	return nil
}

// MarshalJSON is the text; null where there is none.
func (j JSON) MarshalJSON() ([]byte, error) {
	if j == "" {
		return []byte("null"), nil
	}
	return []byte(j), nil
}
