package log

import (
	"slices"
	"testing"
)

func TestALineShowsItsFieldsInOrder(t *testing.T) {
	got := text(LevelWarn, "no owner", [][2]string{{"pod", "web-1"}, {"why", `it is "bare"`}})
	if want := `WARN no owner pod="web-1" why="it is \"bare\""`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestNamesAndValuesComeByTurns(t *testing.T) {
	before := send
	defer Connect(before)
	var sent [][2]string
	Connect(func(_ Level, _ string, fields [][2]string) { sent = fields })
	Info("composed", "layers", "3", "keys", "12", "odd")
	if want := [][2]string{{"layers", "3"}, {"keys", "12"}, {"odd", ""}}; !slices.Equal(sent, want) {
		t.Errorf("got %q, want %q", sent, want)
	}
}
