// The servers that tests run against: a real control plane, a real etcd and a real Vault, started together.
//
// Usage:
//
//	controlplane up [FLAGS]                          starts them all, and stops them when its standard input ends
//	controlplane SERVER [FLAGS OF THAT SERVER]       is one of them: etcd, kube-apiserver, kube-controller-manager, kwok
//
// The servers are those of their own projects, linked into one program because that is built once and cached.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: controlplane up [FLAGS], or controlplane SERVER [FLAGS]")
		os.Exit(2)
	}
	name := os.Args[1]
	os.Args = append([]string{name}, os.Args[2:]...)
	if name != "up" {
		os.Exit(server(name))
	}
	if err := up(); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}
