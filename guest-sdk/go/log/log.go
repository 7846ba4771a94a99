// Package log writes lines of the host's log. The host adds the Configurator, the phase and the run's id to each, and drops lines past
// its limit: 1,000 lines and 64 KiB a call, 4 KiB a line. Outside of a module they go to standard error.
package log

import (
	"fmt"
	"os"
	"strings"
)

// Level is how much a line matters.
type Level uint8

// How much a line matters.
const (
	LevelTrace Level = iota
	LevelDebug
	LevelInfo
	LevelWarn
	LevelError
)

var levels = [...]string{"TRACE", "DEBUG", "INFO", "WARN", "ERROR"}

func (l Level) String() string {
	if int(l) < len(levels) {
		return levels[l]
	}
	return "UNKNOWN"
}

var send = func(level Level, message string, fields [][2]string) {
	fmt.Fprintln(os.Stderr, text(level, message, fields))
}

// Connect says where lines go; for the entry of a module, and for tests.
func Connect(to func(level Level, message string, fields [][2]string)) { send = to }

// Line is a line with fields, which stay apart from the message in structured logs: names and values by turns.
//
//	log.Line(log.LevelInfo, "composed", "layers", "3", "keys", "12")
func Line(level Level, message string, fields ...string) {
	pairs := make([][2]string, 0, (len(fields)+1)/2)
	for ; len(fields) >= 2; fields = fields[2:] {
		pairs = append(pairs, [2]string{fields[0], fields[1]})
	}
	if len(fields) == 1 {
		pairs = append(pairs, [2]string{fields[0], ""})
	}
	send(level, message, pairs)
}

// Trace is for a person who follows every step.
func Trace(message string, fields ...string) { Line(LevelTrace, message, fields...) }

// Debug is for a person who looks for a fault.
func Debug(message string, fields ...string) { Line(LevelDebug, message, fields...) }

// Info is worth knowing when all is well.
func Info(message string, fields ...string) { Line(LevelInfo, message, fields...) }

// Warn is odd and does no harm yet.
func Warn(message string, fields ...string) { Line(LevelWarn, message, fields...) }

// Error is what went wrong.
func Error(message string, fields ...string) { Line(LevelError, message, fields...) }

func text(level Level, message string, fields [][2]string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s", level, message)
	for _, field := range fields {
		fmt.Fprintf(&text, " %s=%q", field[0], field[1])
	}
	return text.String()
}
