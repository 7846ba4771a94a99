package configurator

import (
	"iter"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Value is a part of a document, where it lies in the text; [JSON.At] finds it. Nothing is read before it is asked for.
//
// What the host gives is JSON; of text that is none, these methods find nothing or anything, and never panic.
type Value struct {
	// The text of the document from where the value begins.
	text string
}

// Kind is what a value is.
type Kind uint8

// What a value is.
const (
	// KindNothing is that of a value that is not there.
	KindNothing Kind = iota
	KindNull
	KindBool
	KindNumber
	KindText
	KindList
	KindObject
)

// Kind says what it is.
func (v Value) Kind() Kind {
	if v.text == "" {
		return KindNothing
	}
	switch v.text[0] {
	case '{':
		return KindObject
	case '[':
		return KindList
	case '"':
		return KindText
	case 't', 'f':
		return KindBool
	case 'n':
		return KindNull
	default:
		return KindNumber
	}
}

// At is the value under these names, from the outermost object inwards; nothing where one of them is missing. Where an object has a name more
// than once, the last counts, as it does for Read.
func (v Value) At(path ...string) Value {
	at := 0
	for _, name := range path {
		if at = memberOf(v.text, at, name); at < 0 {
			return Value{}
		}
	}
	return Value{v.text[at:]}
}

// JSON is its text, as it stands in the document; empty where there is none.
func (v Value) JSON() JSON { return JSON(v.text[:skipValue(v.text, 0)]) }

// Read reads it into a value, as [JSON.Read] does.
func (v Value) Read(into any) error { return v.JSON().Read(into) }

// Text is the text that it is; empty where it is none.
func (v Value) Text() string {
	if v.Kind() != KindText {
		return ""
	}
	end := skipText(v.text, 0)
	return unquoted(v.text[1:max(1, end-1)])
}

// Int is the integer that it is; zero where it is none of 64 bits with a sign: for what is beyond 2^63-1 there is [Value.Uint].
func (v Value) Int() int64 {
	number, err := strconv.ParseInt(v.number(), 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// Uint is the integer that it is; zero where it is none of 64 bits, or below zero.
func (v Value) Uint() uint64 {
	number, err := strconv.ParseUint(v.number(), 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// Float is the number that it is; zero where it is none.
func (v Value) Float() float64 {
	number, err := strconv.ParseFloat(v.number(), 64)
	if err != nil {
		return 0
	}
	return number
}

func (v Value) number() string {
	if v.Kind() != KindNumber {
		return ""
	}
	return v.text[:skipValue(v.text, 0)]
}

// Bool says whether it is true.
func (v Value) Bool() bool { return strings.HasPrefix(v.text, "true") }

// Items are those of a list; none where it is none.
func (v Value) Items() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		text := v.text
		at := begin(text, 0, '[')
		for at < len(text) && text[at] != ']' && yield(Value{text[at:]}) {
			at = skipComma(text, skipValue(text, at))
		}
	}
}

// Members are the names and values of an object, as they stand in the text; none where it is none.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		at := begin(v.text, 0, '{')
		for {
			name, value := member(v.text, at)
			if value < 0 || !yield(unquoted(name), Value{v.text[value:]}) {
				return
			}
			at = skipComma(v.text, skipValue(v.text, value))
		}
	}
}

// Where the first item or member is, of the list or object that begins here with this sign; the end of the text where none does.
func begin(text string, at int, sign byte) int {
	if at == len(text) || text[at] != sign {
		return len(text)
	}
	return skipSpace(text, at+1)
}

// The name of the member that begins here, as it is between its quotes, and where its value begins; -1 where there is none.
func member(text string, at int) (string, int) {
	if at == len(text) || text[at] != '"' {
		return "", -1
	}
	end := skipText(text, at)
	colon := skipSpace(text, end)
	if colon == len(text) || text[colon] != ':' {
		return "", -1
	}
	return text[at+1 : end-1], skipSpace(text, colon+1)
}

// Where the value of this member begins, of the object that begins here, or of the last where there are several; -1 where there is none.
func memberOf(text string, at int, wanted string) int {
	found := -1
	for at = begin(text, at, '{'); ; {
		name, value := member(text, at)
		if value < 0 {
			return found
		}
		if isText(name, wanted) {
			found = value
		}
		at = skipComma(text, skipValue(text, value))
	}
}

func skipSpace(text string, at int) int {
	for at < len(text) && isSpace(text[at]) {
		at++
	}
	return at
}

func isSpace(sign byte) bool {
	return sign <= ' ' && (sign == ' ' || sign == '\n' || sign == '\t' || sign == '\r')
}

// From the end of an item to the next one, or to the end of the list or object.
func skipComma(text string, at int) int {
	at = skipSpace(text, at)
	if at < len(text) && text[at] == ',' {
		return skipSpace(text, at+1)
	}
	return at
}

// From the quote that begins a text to behind the one that ends it.
func skipText(text string, at int) int {
	for at++; at < len(text); at++ {
		switch text[at] {
		case '"':
			return at + 1
		case '\\':
			at++
		}
	}
	return len(text)
}

// Signs at which something begins or ends.
var marks = [256]bool{'"': true, '{': true, '[': true, '}': true, ']': true}

// From the beginning of a value to behind it. It goes on at least by one byte, unless the text is at its end.
func skipValue(text string, at int) int {
	if at < len(text) && !marks[text[at]] {
		for at++; at < len(text) && !ends(text[at]); at++ {
		}
		return at
	}
	for depth := 0; at < len(text); {
		sign := text[at]
		if !marks[sign] {
			at++
			continue
		}
		switch sign {
		case '"':
			at = skipText(text, at)
		case '{', '[':
			depth++
			at++
		default:
			depth--
			at++
		}
		if depth <= 0 {
			return at
		}
	}
	return at
}

// Whether a number or word ends before this sign.
func ends(sign byte) bool {
	switch sign {
	case ',', '}', ']', ' ', '\n', '\t', '\r', ':':
		return true
	}
	return false
}

// Whether the text between quotes stands for this one. It is never shorter than what it stands for.
func isText(quoted, text string) bool {
	if len(quoted) <= len(text) {
		return quoted == text && strings.IndexByte(quoted, '\\') < 0
	}
	return strings.IndexByte(quoted, '\\') >= 0 && unquoted(quoted) == text
}

// What the text between quotes stands for.
func unquoted(quoted string) string {
	escape := strings.IndexByte(quoted, '\\')
	if escape < 0 {
		return quoted
	}
	text := make([]byte, 0, len(quoted))
	for escape >= 0 {
		text = append(text, quoted[:escape]...)
		quoted = quoted[escape+1:]
		if quoted == "" {
			break
		}
		sign := quoted[0]
		quoted = quoted[1:]
		switch sign {
		case 'b':
			text = append(text, '\b')
		case 'f':
			text = append(text, '\f')
		case 'n':
			text = append(text, '\n')
		case 'r':
			text = append(text, '\r')
		case 't':
			text = append(text, '\t')
		case 'u':
			var point rune
			point, quoted = codePoint(quoted)
			text = utf8.AppendRune(text, point)
		default:
			text = append(text, sign)
		}
		escape = strings.IndexByte(quoted, '\\')
	}
	return string(append(text, quoted...))
}

// The code point of the digits behind \u, with those of the escape that follows where they are halves of one; and the rest.
func codePoint(quoted string) (rune, string) {
	first, rest := codeUnit(quoted)
	if !utf16.IsSurrogate(first) {
		return first, rest
	}
	if digits, follows := strings.CutPrefix(rest, `\u`); follows {
		second, behind := codeUnit(digits)
		if point := utf16.DecodeRune(first, second); point != utf8.RuneError {
			return point, behind
		}
	}
	return utf8.RuneError, rest
}

func codeUnit(digits string) (rune, string) {
	if len(digits) < 4 {
		return utf8.RuneError, ""
	}
	unit, err := strconv.ParseUint(digits[:4], 16, 16)
	if err != nil {
		return utf8.RuneError, digits[4:]
	}
	return rune(unit), digits[4:]
}
