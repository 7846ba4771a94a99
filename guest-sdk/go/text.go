package configurator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Object is a JSON object whose members stay in their order. Those of a map are written in the order of their names.
//
//	configurator.Object{}.With("replicas", 2).With("image", image)
type Object []Member

// Member is a name and its value.
type Member struct {
	Name  string
	Value any
}

// With is the object with one more member.
func (o Object) With(name string, value any) Object { return append(o, Member{name, value}) }

// MarshalJSON writes the members in their order.
func (o Object) MarshalJSON() ([]byte, error) { return appendObject(nil, o) }

// JSONOf writes a value as JSON: a [JSON] or a [Value] as it is; maps, lists, texts, numbers and an [Object] without reflection; all else as
// encoding/json does, which takes the spaces out of a JSON within. A nil list is an empty one. The signs <, > and & stay themselves.
//
// It is a fatal [HandlerError] when the value has no form in JSON.
func JSONOf(value any) (JSON, error) {
	if text, is := value.(JSON); is && text != "" {
		return text, nil
	}
	text, err := appendJSON(make([]byte, 0, 256), value)
	if err != nil {
		return "", Fatal(fmt.Sprintf("cannot write %T as JSON: %s", value, err))
	}
	return JSON(text), nil
}

func appendJSON(text []byte, value any) ([]byte, error) {
	switch value := value.(type) {
	case nil:
		return append(text, "null"...), nil
	case bool:
		return strconv.AppendBool(text, value), nil
	case string:
		return appendText(text, value), nil
	case int:
		return strconv.AppendInt(text, int64(value), 10), nil
	case int32:
		return strconv.AppendInt(text, int64(value), 10), nil
	case int64:
		return strconv.AppendInt(text, value, 10), nil
	case uint16:
		return strconv.AppendUint(text, uint64(value), 10), nil
	case uint32:
		return strconv.AppendUint(text, uint64(value), 10), nil
	case uint64:
		return strconv.AppendUint(text, value, 10), nil
	case float64:
		return appendFloat(text, value)
	case JSON:
		if value == "" {
			return append(text, "null"...), nil
		}
		return append(text, value...), nil
	case Value:
		return appendJSON(text, value.JSON())
	case Object:
		return appendObject(text, value)
	case map[string]any:
		return appendMap(text, value, appendJSON)
	case map[string]string:
		return appendMap(text, value, appendString)
	case []any:
		return appendList(text, value, appendJSON)
	case []string:
		return appendList(text, value, appendString)
	case []int:
		return appendList(text, value, appendBoxed[int])
	case []JSON:
		return appendList(text, value, appendBoxed[JSON])
	case []Object:
		return appendList(text, value, appendObject)
	case []map[string]any:
		return appendList(text, value, appendBoxed[map[string]any])
	default:
		return appendReflected(text, value)
	}
}

func appendObject(text []byte, object Object) (_ []byte, err error) {
	text = append(text, '{')
	for i, member := range object {
		text = appendName(text, i, member.Name)
		if text, err = appendJSON(text, member.Value); err != nil {
			return nil, err
		}
	}
	return append(text, '}'), nil
}

func appendMap[T any](text []byte, members map[string]T, write func([]byte, T) ([]byte, error)) (_ []byte, err error) {
	text = append(text, '{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		text = appendName(text, i, name)
		if text, err = write(text, members[name]); err != nil {
			return nil, err
		}
	}
	return append(text, '}'), nil
}

func appendName(text []byte, i int, name string) []byte {
	if i > 0 {
		text = append(text, ',')
	}
	return append(appendText(text, name), ':')
}

func appendList[T any](text []byte, items []T, write func([]byte, T) ([]byte, error)) (_ []byte, err error) {
	text = append(text, '[')
	for i, item := range items {
		if i > 0 {
			text = append(text, ',')
		}
		if text, err = write(text, item); err != nil {
			return nil, err
		}
	}
	return append(text, ']'), nil
}

func appendBoxed[T any](text []byte, value T) ([]byte, error) { return appendJSON(text, value) }

func appendString(text []byte, value string) ([]byte, error) { return appendText(text, value), nil }

// Bytes that are no UTF-8 become the sign that stands for such.
func appendText(text []byte, value string) []byte {
	if !utf8.ValidString(value) {
		value = strings.ToValidUTF8(value, "\ufffd")
	}
	text = append(text, '"')
	written := 0
	for at := 0; at < len(value); at++ {
		sign := value[at]
		if sign >= ' ' && sign != '"' && sign != '\\' {
			continue
		}
		text = append(text, value[written:at]...)
		written = at + 1
		switch sign {
		case '"', '\\':
			text = append(text, '\\', sign)
		case '\b':
			text = append(text, `\b`...)
		case '\f':
			text = append(text, `\f`...)
		case '\n':
			text = append(text, `\n`...)
		case '\r':
			text = append(text, `\r`...)
		case '\t':
			text = append(text, `\t`...)
		default:
			const digits = "0123456789abcdef"
			text = append(text, '\\', 'u', '0', '0', digits[sign>>4], digits[sign&15])
		}
	}
	text = append(text, value[written:]...)
	return append(text, '"')
}

func appendFloat(text []byte, value float64) ([]byte, error) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil, errors.New("it is no number of JSON")
	}
	format := byte('f')
	if size := math.Abs(value); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(text, value, format, -1, 64), nil
}

func appendReflected(text []byte, value any) ([]byte, error) {
	var written bytes.Buffer
	encoder := json.NewEncoder(&written)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return append(text, bytes.TrimSuffix(written.Bytes(), []byte("\n"))...), nil
}
