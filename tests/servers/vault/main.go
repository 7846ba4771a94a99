// The server of a secret store for tests: Vault with its KV secrets engine, the logins that the host knows and the audit
// log in a file.
//
// Usage: vault -listen 127.0.0.1:8200 [-standby 127.0.0.1:8201] -data DIR -cert FILE -key FILE
//
// It is the API that Vault's own program serves, built from the same packages. Data outlives the process. With -standby
// there are two nodes in one process, of which the second answers as a standby does, until the first steps down.
package main

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"

	log "github.com/hashicorp/go-hclog"
	kubernetes "github.com/hashicorp/vault-plugin-auth-kubernetes"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/audit"
	auditfile "github.com/hashicorp/vault/builtin/audit/file"
	"github.com/hashicorp/vault/builtin/credential/approle"

	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical"
	"github.com/hashicorp/vault/sdk/physical/file"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

var (
	listen  = flag.String("listen", "127.0.0.1:8200", "address of the node")
	standby = flag.String("standby", "", "address of a second node; default: there is none")
	data    = flag.String("data", "", "folder of the store; it is created")
	cert    = flag.String("cert", "", "file with the certificate of both")
	key     = flag.String("key", "", "file with the key of the certificate")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "vault:", err)
		os.Exit(1)
	}
}

func run() error {
	logger := log.New(&log.LoggerOptions{Output: os.Stderr, Level: log.Info})
	if err := os.MkdirAll(*data, 0o700); err != nil {
		return err
	}
	store, err := file.NewFileBackend(map[string]string{"path": *data}, logger)
	if err != nil {
		return err
	}
	addresses := []string{*listen}
	var lock physical.HABackend
	if *standby != "" {
		addresses = append(addresses, *standby)
		backend, err := inmem.NewInmemHA(nil, logger)
		if err != nil {
			return err
		}
		lock = backend.(physical.HABackend)
	}
	failed := make(chan error)
	for _, address := range addresses {
		if err := serve(address, store, lock, logger, failed); err != nil {
			return err
		}
	}
	return <-failed
}

func serve(address string, store physical.Backend, lock physical.HABackend, logger log.Logger, failed chan<- error) error {
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical:     store,
		HAPhysical:   lock,
		RedirectAddr: "https://" + address,
		DisableMlock: true,
		DisableCache: lock != nil,
		Logger:       logger.Named(address),
		// Both are looked up in the registry as well, when a mount asks for its plugin's version.
		BuiltinRegistry:    builtins{},
		LogicalBackends:    map[string]logical.Factory{"kv": kv.Factory},
		CredentialBackends: map[string]logical.Factory{"approle": approle.Factory, "kubernetes": kubernetes.Factory},
		AuditBackends:      map[string]audit.Factory{"file": auditfile.Factory},
	})
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: vaulthttp.Handler.Handler(&vault.HandlerProperties{
			Core:           core,
			ListenerConfig: &configutil.Listener{Type: "tcp", Address: address},
		}),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
	}
	go func() { failed <- server.ServeTLS(listener, "", "") }()
	return nil
}

// builtins is what is linked into this program.
type builtins struct{}

var factories = map[consts.PluginType]map[string]logical.Factory{
	consts.PluginTypeSecrets:    {"kv": kv.Factory},
	consts.PluginTypeCredential: {"approle": approle.Factory, "kubernetes": kubernetes.Factory},
}

func (builtins) Contains(name string, kind consts.PluginType) bool {
	_, found := factories[kind][name]
	return found
}

func (builtins) Get(name string, kind consts.PluginType) (func() (interface{}, error), bool) {
	factory, found := factories[kind][name]
	return func() (interface{}, error) { return factory, nil }, found
}

func (builtins) Keys(kind consts.PluginType) []string {
	var names []string
	for name := range factories[kind] {
		names = append(names, name)
	}
	return names
}

func (b builtins) DeprecationStatus(name string, kind consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, b.Contains(name, kind)
}
