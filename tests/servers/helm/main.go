// Helm, of the packages that its own program is made of: for the tests of the chart in deploy/helm.
package main

import (
	"log/slog"
	"os"

	"helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"
)

func main() {
	kube.ManagedFieldsManager = "helm"
	command, err := cmd.NewRootCmd(os.Stdout, os.Args[1:], cmd.SetupLogging)
	if err != nil {
		slog.Error("helm", slog.Any("error", err))
		os.Exit(1)
	}
	if command.Execute() != nil {
		os.Exit(1)
	}
}
