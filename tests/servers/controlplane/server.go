package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	kwokcmd "sigs.k8s.io/kwok/pkg/kwok/cmd"
	kwoklog "sigs.k8s.io/kwok/pkg/log"
)

// server is one of the servers until it ends; returns the exit status.
func server(name string) int {
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
		return 0
	case "kube-apiserver":
		return cli.Run(apiserver.NewAPIServerCommand())
	case "kube-controller-manager":
		return cli.Run(controllermanager.NewControllerManagerCommand())
	case "kwok":
		command, err := kwok()
		if err == nil {
			err = command.Execute()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "kwok:", err)
			return 1
		}
		return 0
	}
	fmt.Fprintf(os.Stderr, "controlplane: there is no server %q here\n", name)
	return 2
}

func kwok() (*cobra.Command, error) {
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ := kwoklog.InitFlags(context.Background(), flags)
	ctx, err := kwokconfig.InitFlags(ctx, flags)
	if err != nil {
		return nil, err
	}
	command := kwokcmd.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	command.SetContext(ctx)
	// Kubernetes has put a flag of this name into every command of the process, with another type.
	command.Version = ""
	return command, nil
}
