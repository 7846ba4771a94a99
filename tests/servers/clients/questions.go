package main

import (
	"bufio"
	"context"
	"os"
	"strings"
	"sync"
)

// questions are what a test asks on standard input, by their first word.
var questions = struct {
	sync.Mutex
	known map[string]func(argument string) line
}{known: map[string]func(string) line{}}

// onQuestion answers lines that begin with this word.
func onQuestion(word string, answer func(argument string) line) {
	questions.Lock()
	defer questions.Unlock()
	questions.known[word] = answer
}

// answer answers questions until there are no more, and then ends the program.
func answer(end context.CancelFunc) {
	defer end()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		word, argument, _ := strings.Cut(lines.Text(), " ")
		questions.Lock()
		known := questions.known[word]
		questions.Unlock()
		if known == nil {
			say(line{"unknown": word})
			continue
		}
		say(known(argument))
	}
}
