package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// process is one server: started, signalled, killed and started again on the same port and data.
type process struct {
	name string
	argv []string
	log  string

	mutex   sync.Mutex
	command *exec.Cmd
	ended   chan struct{}
}

// spawn is where children are started: a child dies with the thread that made it, so that thread must not end.
var spawn = make(chan func())

func init() {
	go func() {
		runtime.LockOSThread()
		for start := range spawn {
			start()
		}
	}()
}

func newProcess(dir, name string, argv ...string) *process {
	return &process{name: name, argv: argv, log: filepath.Join(dir, name+".log")}
}

func (p *process) start() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.command != nil {
		return fmt.Errorf("%s is running already", p.name)
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(p.argv[0], p.argv[1:]...)
	command.Stdout, command.Stderr = log, log
	// A session of its own, so that an interrupt at the terminal reaches this program alone, which then stops it.
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	spawn <- func() { started <- command.Start() }
	if err := <-started; err != nil {
		return fmt.Errorf("%s does not start: %w", p.name, err)
	}
	ended := make(chan struct{})
	p.command, p.ended = command, ended
	go func() {
		_ = command.Wait()
		p.mutex.Lock()
		p.command = nil
		p.mutex.Unlock()
		close(ended)
	}()
	return nil
}

func (p *process) signal(signal syscall.Signal) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.command == nil {
		return fmt.Errorf("%s is not running", p.name)
	}
	return p.command.Process.Signal(signal)
}

// kill returns when the process is gone; a stopped one goes as well.
func (p *process) kill() {
	p.mutex.Lock()
	command, ended := p.command, p.ended
	p.mutex.Unlock()
	if command != nil {
		_ = command.Process.Kill()
		<-ended
	}
}

func (p *process) pid() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.command == nil {
		return 0
	}
	return p.command.Process.Pid
}

// await returns when ready does without an error; fails when the process ends or the time is over.
func (p *process) await(limit time.Duration, ready func() error) error {
	p.mutex.Lock()
	ended := p.ended
	p.mutex.Unlock()
	deadline := time.After(limit)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		if last = ready(); last == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("%s ended while starting; the end of its log:\n%s", p.name, tail(p.log))
		case <-deadline:
			return fmt.Errorf("%s is not ready after %s: %w; the end of its log:\n%s", p.name, limit, last, tail(p.log))
		case <-tick.C:
		}
	}
}

func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	if len(text) > 4000 {
		text = text[len(text)-4000:]
	}
	return string(text)
}
