package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

// folders is how the folder of a plane is named, below the system's folder for temporary files.
const folders = "configurator-controlplane-"

// command is one line of standard input; its answer is one line of standard output.
type command struct {
	// Do is start, kill, pause, resume, unseal, or pid.
	Do string `json:"do"`
	// Server is a name such as kube-apiserver, etcd, store, store-1, vault.
	Server string `json:"server"`
}

type answer struct {
	Error string `json:"error,omitempty"`
	PID   int    `json:"pid,omitempty"`
}

// up starts the servers and obeys commands until standard input ends: when whoever started it has closed it or is dead.
// Then nothing is left: no process, no file.
func up() error {
	var o options
	flag.IntVar(&o.stores, "stores", 1, "members of the etcd that is a config store")
	flag.StringVar(&o.vault, "vault", "", "program of the secret store; default: there is none")
	flag.BoolVar(&o.standby, "standby", false, "give the secret store a second node")
	flag.BoolVar(&o.kwok, "kwok", false, "let nodes and pods become ready")
	flag.StringVar(&o.audit, "audit", "", "none: keep no record of requests to the API")
	flag.StringVar(&o.watchHistory, "watch-history", "", "changes that the API keeps for watches, for each kind")
	flag.Parse()

	sweep()
	dir, err := os.MkdirTemp("", folders)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	held, err := hold(dir)
	if err != nil {
		return err
	}
	defer held.Close()
	p, err := newPlane(dir, o)
	if err != nil {
		return err
	}
	defer p.stop()

	ended := make(chan error, 1)
	lines := make(chan []byte)
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			lines <- append([]byte(nil), in.Bytes()...)
		}
		ended <- in.Err()
	}()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	// Whoever reads the answers may be gone before the end of input is seen.
	signal.Ignore(syscall.SIGPIPE)

	started := make(chan error, 1)
	go func() { started <- p.start() }()
	out := json.NewEncoder(os.Stdout)
	// Nobody is listened to before there is something to command.
	var commands <-chan []byte
	for {
		select {
		case err := <-started:
			if err != nil {
				return err
			}
			if err := out.Encode(p.about); err != nil {
				return err
			}
			commands = lines
		case line := <-commands:
			if err := out.Encode(p.obey(line)); err != nil {
				return err
			}
		case err := <-ended:
			return err
		case <-signals:
			return nil
		}
	}
}

func (p *plane) obey(line []byte) answer {
	var c command
	if err := json.Unmarshal(line, &c); err != nil {
		return answer{Error: fmt.Sprintf("%s is no command: %v", line, err)}
	}
	if c.Do == "unseal" {
		return answerOf(p.unseal())
	}
	process, found := p.processes[c.Server]
	if !found {
		return answer{Error: fmt.Sprintf("there is no server %q", c.Server)}
	}
	switch c.Do {
	case "start":
		return answerOf(process.start())
	case "kill":
		process.kill()
		return answer{}
	case "pause":
		return answerOf(process.signal(syscall.SIGSTOP))
	case "resume":
		return answerOf(process.signal(syscall.SIGCONT))
	case "pid":
		return answer{PID: process.pid()}
	}
	return answer{Error: fmt.Sprintf("%q is no command", c.Do)}
}

func answerOf(err error) answer {
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{}
}

// holder is locked as long as the process of a plane lives: who finds it unlocked may remove the folder.
const holder = "held"

func hold(dir string) (*os.File, error) {
	// It appears under its name locked, so that nobody who sweeps finds it in between.
	aside := filepath.Join(dir, holder+".new")
	file, err := os.OpenFile(aside, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lock(file); err != nil {
		file.Close()
		return nil, err
	}
	return file, os.Rename(aside, filepath.Join(dir, holder))
}

func lock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// sweep removes the folders of planes whose process was killed.
func sweep() {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), folders+"*"))
	for _, dir := range found {
		file, err := os.Open(filepath.Join(dir, holder))
		if err != nil {
			continue
		}
		if lock(file) == nil {
			os.RemoveAll(dir)
		}
		file.Close()
	}
}
