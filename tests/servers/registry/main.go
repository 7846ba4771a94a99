// A registry of OCI artifacts for tests: that of the CNCF project Distribution, with TLS, and a login where there is one.
//
// Usage: registry -data DIR -cert FILE -key FILE [-listen 127.0.0.1:0] [-user NAME -password PASSWORD]
//
// It says where it listens in one line on standard output. With a user, anonymous requests are refused. It ends when standard input does. Data
// outlives the process.
package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/distribution/distribution/v3/configuration"
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	"github.com/sirupsen/logrus"
	"golang.org/x/crypto/bcrypt"
)

var (
	listen   = flag.String("listen", "127.0.0.1:0", "address")
	data     = flag.String("data", "", "folder of what is pushed")
	cert     = flag.String("cert", "", "file with the certificate")
	key      = flag.String("key", "", "file with the key of the certificate")
	user     = flag.String("user", "", "who may log in; default: everybody may do everything")
	password = flag.String("password", "", "the password of this user")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

func run() error {
	logrus.SetOutput(io.Discard)
	config := &configuration.Configuration{
		Storage: configuration.Storage{
			"filesystem": {"rootdirectory": *data},
			"delete":     {"enabled": true},
		},
	}
	config.Log.Level = "error"
	config.Catalog.MaxEntries = 1000
	if *user != "" {
		hash, err := bcrypt.GenerateFromPassword([]byte(*password), bcrypt.MinCost)
		if err != nil {
			return err
		}
		file := filepath.Join(*data, "htpasswd")
		if err := os.WriteFile(file, []byte(*user+":"+string(hash)+"\n"), 0o600); err != nil {
			return err
		}
		config.Auth = configuration.Auth{"htpasswd": {"realm": "tests", "path": file}}
	}
	pair, err := tls.LoadX509KeyPair(*cert, *key)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:   handlers.NewApp(context.Background(), config),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
	}
	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(listener, "", "") }()
	fmt.Println(listener.Addr())
	go func() {
		in := bufio.NewReader(os.Stdin)
		_, err := io.Copy(io.Discard, in)
		failed <- err
	}()
	return <-failed
}
