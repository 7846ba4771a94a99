package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	nodes "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	pods "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
)

// options say which servers there are.
type options struct {
	stores       int
	vault        string
	standby      bool
	kwok         bool
	audit        string
	watchHistory string
}

// plane is the servers of one test, in one folder.
type plane struct {
	options    options
	dir        string
	authority  *authority
	client     *http.Client
	etcdClient *http.Client
	processes  map[string]*process
	order      []string
	about      about
}

// about is what a client has to know; it is printed as one line of JSON.
type about struct {
	Dir        string     `json:"dir"`
	CA         string     `json:"ca"`
	Kubernetes kubernetes `json:"kubernetes"`
	Store      store      `json:"store"`
	Vault      *vault     `json:"vault,omitempty"`
}

type kubernetes struct {
	URL        string `json:"url"`
	Kubeconfig string `json:"kubeconfig"`
	Token      string `json:"token"`
	Audit      string `json:"audit"`
	Etcd       string `json:"etcd"`
}

type store struct {
	Endpoints []string `json:"endpoints"`
	Cert      string   `json:"cert"`
	Key       string   `json:"key"`
}

type vault struct {
	URL     string `json:"url"`
	Standby string `json:"standby,omitempty"`
	Token   string `json:"token"`
	Unseal  string `json:"unseal"`
	Audit   string `json:"audit"`
}

const (
	// adminToken is that of a user who may do everything.
	adminToken = "admin-token"
	// patience is how long a server may take until it is ready, on a machine that compiles at the same time.
	patience = 3 * time.Minute
)

func newPlane(dir string, o options) (*plane, error) {
	a, err := newAuthority(dir)
	if err != nil {
		return nil, err
	}
	p := &plane{options: o, dir: dir, authority: a, processes: map[string]*process{}}
	for _, who := range [][3]string{
		{"server", "server", ""},
		{"admin", "admin", "system:masters"},
		{"controller-manager", "system:kube-controller-manager", ""},
		{"root", "root", ""},
	} {
		if err := a.issue(who[0], who[1], who[2]); err != nil {
			return nil, err
		}
	}
	if err := a.signingKey("sa.key"); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(a.path("root.crt"), a.path("root.key"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.certificate)
	p.client = &http.Client{
		Timeout: 10 * time.Second,
		// Only etcd knows users by their certificates alone; the API would take one before a token.
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
	}
	p.etcdClient = &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}},
	}
	p.about = about{Dir: dir, CA: a.path("ca.crt")}
	return p, nil
}

func (p *plane) add(name string, argv ...string) *process {
	process := newProcess(p.dir, name, argv...)
	p.processes[name] = process
	p.order = append(p.order, name)
	return process
}

// start starts every server, those that depend on others after them.
func (p *plane) start() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	etcd, err := p.etcd(self, "etcd", 1)
	if err != nil {
		return err
	}
	stores, err := p.etcd(self, "store", p.options.stores)
	if err != nil {
		return err
	}
	p.about.Store = store{Endpoints: stores, Cert: p.authority.path("root.crt"), Key: p.authority.path("root.key")}
	if p.options.vault != "" {
		if err := p.startVault(); err != nil {
			return err
		}
	}
	for _, endpoint := range append(etcd, stores...) {
		if err := p.processes[nameOf(p, endpoint)].await(patience, p.answers(p.etcdClient, endpoint+"/health", "")); err != nil {
			return err
		}
	}
	if err := p.startKubernetes(self, etcd[0]); err != nil {
		return err
	}
	if p.options.vault != "" {
		return p.openVault()
	}
	return nil
}

// nameOf is the name of the etcd member with this endpoint.
func nameOf(p *plane, endpoint string) string {
	for name, process := range p.processes {
		for _, argument := range process.argv {
			if argument == "--advertise-client-urls="+endpoint {
				return name
			}
		}
	}
	return ""
}

// etcd starts a cluster and returns its endpoints.
func (p *plane) etcd(self, cluster string, members int) ([]string, error) {
	names, clients, peers, initial := []string{}, []string{}, []string{}, []string{}
	for i := range members {
		name := cluster
		if members > 1 {
			name = fmt.Sprintf("%s-%d", cluster, i)
		}
		names = append(names, name)
		clients = append(clients, "https://"+address())
		peers = append(peers, "http://"+address())
		initial = append(initial, name+"="+peers[i])
	}
	for i, name := range names {
		process := p.add(name, self, "etcd", "--name="+name, "--data-dir="+filepath.Join(p.dir, name),
			"--listen-client-urls="+clients[i], "--advertise-client-urls="+clients[i],
			"--listen-peer-urls="+peers[i], "--initial-advertise-peer-urls="+peers[i],
			"--initial-cluster="+strings.Join(initial, ","), "--initial-cluster-token="+cluster,
			"--cert-file="+p.authority.path("server.crt"), "--key-file="+p.authority.path("server.key"),
			"--trusted-ca-file="+p.authority.path("ca.crt"), "--client-cert-auth",
			"--heartbeat-interval=100", "--election-timeout=1000", "--log-level=warn")
		if err := process.start(); err != nil {
			return nil, err
		}
	}
	return clients, nil
}

// auditPolicy keeps what changes something as it was sent, and of the rest that it was asked.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  userGroups: ["system:nodes", "system:serviceaccounts:kube-system"]
- level: None
  users: ["system:apiserver", "system:kube-controller-manager", "kwok"]
- level: None
  nonResourceURLs: ["/*"]
- level: Request
  verbs: [create, update, patch, delete, deletecollection]
- level: Metadata
`

func (p *plane) startKubernetes(self, etcd string) error {
	a := p.authority
	address := address()
	url := "https://" + address
	_, port, _ := net.SplitHostPort(address)
	tokens := adminToken + `,admin,admin,"system:masters"` + "\nkwok-token,kwok,kwok,\"system:masters\"\n"
	p.about.Kubernetes = kubernetes{
		URL: url, Kubeconfig: a.path("kubeconfig"), Token: adminToken, Etcd: etcd, Audit: a.path("audit.log"),
	}
	for name, text := range map[string]string{
		"tokens.csv":        tokens,
		"audit-policy.yaml": auditPolicy,
		"kubeconfig":        a.kubeconfig(url, "token: "+adminToken),
		// What becomes of nodes and pods, in kwok's own quickest way.
		"kwok.yaml": strings.Join([]string{
			nodes.DefaultNodeInit, heartbeat.DefaultNodeHeartbeatWithLease,
			pods.DefaultPodReady, pods.DefaultPodComplete, pods.DefaultPodDelete,
		}, "\n---\n"),
		"kwok.kubeconfig": a.kubeconfig(url, "token: kwok-token"),
		"controller-manager.kubeconfig": a.kubeconfig(url, "client-certificate: "+a.path("controller-manager.crt"),
			"client-key: "+a.path("controller-manager.key")),
	} {
		if err := os.WriteFile(a.path(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	arguments := []string{self, "kube-apiserver",
		"--etcd-servers=" + etcd, "--etcd-cafile=" + a.path("ca.crt"),
		"--etcd-certfile=" + a.path("root.crt"), "--etcd-keyfile=" + a.path("root.key"),
		// Compaction is a test's to ask for; by itself it would come every five minutes.
		"--etcd-compaction-interval=0",
		"--secure-port=" + port, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		"--tls-cert-file=" + a.path("server.crt"), "--tls-private-key-file=" + a.path("server.key"),
		"--client-ca-file=" + a.path("ca.crt"), "--token-auth-file=" + a.path("tokens.csv"),
		"--service-account-key-file=" + a.path("sa.key"), "--service-account-signing-key-file=" + a.path("sa.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=RBAC",
		"--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount",
		// The service `kubernetes` may not lead to loopback.
		"--endpoint-reconciler-type=none",
	}
	if p.options.audit != "none" {
		arguments = append(arguments, "--audit-policy-file="+a.path("audit-policy.yaml"),
			"--audit-log-path="+p.about.Kubernetes.Audit, "--audit-log-mode=blocking")
	}
	if p.options.watchHistory != "" {
		arguments = append(arguments, "--default-watch-cache-size="+p.options.watchHistory)
	}
	apiserver := p.add("kube-apiserver", arguments...)
	if err := apiserver.start(); err != nil {
		return err
	}
	if err := apiserver.await(patience, p.answers(p.client, url+"/readyz", adminToken)); err != nil {
		return err
	}
	manager := p.add("kube-controller-manager", self, "kube-controller-manager",
		"--kubeconfig="+a.path("controller-manager.kubeconfig"), "--leader-elect=false",
		"--service-account-private-key-file="+a.path("sa.key"), "--root-ca-file="+a.path("ca.crt"),
		"--use-service-account-credentials=true", "--secure-port=0",
		// Garbage and namespaces go at once in tests: the default allows 20 requests a second.
		"--kube-api-qps=500", "--kube-api-burst=1000")
	if err := manager.start(); err != nil {
		return err
	}
	if p.options.kwok {
		kwok := p.add("kwok", self, "kwok", "--kubeconfig="+a.path("kwok.kubeconfig"), "--manage-all-nodes=true",
			"--config="+a.path("kwok.yaml"))
		if err := kwok.start(); err != nil {
			return err
		}
	}
	// The namespace's own account shows that the controllers are at work.
	return manager.await(patience, p.answers(p.client, url+"/api/v1/namespaces/default/serviceaccounts/default", adminToken))
}

func (a *authority) kubeconfig(url string, user ...string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: tests
contexts: [{name: tests, context: {cluster: tests, user: tests}}]
clusters: [{name: tests, cluster: {server: %q, certificate-authority: %q}}]
users:
- name: tests
  user:
    %s
`, url, a.path("ca.crt"), strings.Join(user, "\n    "))
}

func (p *plane) startVault() error {
	listen, second := address(), ""
	arguments := []string{p.options.vault, "-listen", listen, "-data", filepath.Join(p.dir, "vault"),
		"-cert", p.authority.path("server.crt"), "-key", p.authority.path("server.key")}
	p.about.Vault = &vault{URL: "https://" + listen, Audit: p.authority.path("vault-audit.log")}
	if p.options.standby {
		second = address()
		arguments = append(arguments, "-standby", second)
		p.about.Vault.Standby = "https://" + second
	}
	return p.add("vault", arguments...).start()
}

// openVault initialises and unseals it, mounts secrets of version 2 at secret/ and of version 1 at old/, the two logins,
// and its audit log.
func (p *plane) openVault() error {
	v := p.about.Vault
	ready := func() error {
		_, err := p.ask("GET", v.URL+"/v1/sys/seal-status", nil)
		return err
	}
	if err := p.processes["vault"].await(patience, ready); err != nil {
		return err
	}
	answer, err := p.ask("PUT", v.URL+"/v1/sys/init", map[string]any{"secret_shares": 1, "secret_threshold": 1})
	if err != nil {
		return err
	}
	var keys struct {
		Keys []string `json:"keys"`
		Root string   `json:"root_token"`
	}
	if err := json.Unmarshal(answer, &keys); err != nil || len(keys.Keys) != 1 {
		return fmt.Errorf("vault answers %s to init", answer)
	}
	v.Unseal, v.Token = keys.Keys[0], keys.Root
	// The first node is to be the active one, so the second is opened after it has become that.
	if err := p.unsealNode(v.URL); err != nil {
		return err
	}
	active := func() error {
		_, err := p.ask("GET", v.URL+"/v1/sys/health", nil)
		return err
	}
	if err := p.processes["vault"].await(patience, active); err != nil {
		return err
	}
	for path, body := range map[string]any{
		"sys/mounts/secret":   map[string]any{"type": "kv", "options": map[string]string{"version": "2"}},
		"sys/mounts/old":      map[string]any{"type": "kv", "options": map[string]string{"version": "1"}},
		"sys/auth/approle":    map[string]any{"type": "approle"},
		"sys/auth/kubernetes": map[string]any{"type": "kubernetes"},
		"sys/audit/file": map[string]any{"type": "file",
			"options": map[string]string{"file_path": v.Audit, "log_raw": "true"}},
	} {
		if _, err := p.ask("POST", v.URL+"/v1/"+path, body); err != nil {
			return err
		}
	}
	return p.unsealNode(v.Standby)
}

// unseal opens every node of Vault; those that are open already stay so.
func (p *plane) unseal() error {
	if p.about.Vault == nil {
		return errors.New("there is no vault")
	}
	for _, url := range []string{p.about.Vault.URL, p.about.Vault.Standby} {
		if err := p.unsealNode(url); err != nil {
			return err
		}
	}
	return nil
}

func (p *plane) unsealNode(url string) error {
	if url == "" {
		return nil
	}
	return p.processes["vault"].await(patience, func() error {
		_, err := p.ask("PUT", url+"/v1/sys/unseal", map[string]string{"key": p.about.Vault.Unseal})
		return err
	})
}

// ask sends JSON to Vault as root.
func (p *plane) ask(method, url string, body any) ([]byte, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequest(method, url, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if p.about.Vault != nil {
		request.Header.Set("X-Vault-Token", p.about.Vault.Token)
	}
	return send(p.client, request)
}

func send(client *http.Client, request *http.Request) ([]byte, error) {
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %s: %s", request.Method, request.URL, response.Status, answer)
	}
	return answer, nil
}

// answers is whether a GET of this address succeeds.
func (p *plane) answers(client *http.Client, url, token string) func() error {
	return func() error {
		request, err := http.NewRequest("GET", url, nil)
		if err != nil {
			return err
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		_, err = send(client, request)
		return err
	}
}

// stop kills every server.
func (p *plane) stop() {
	for i := len(p.order) - 1; i >= 0; i-- {
		p.processes[p.order[i]].kill()
	}
}

// taken are the addresses that were handed out; their servers may not listen yet.
var taken sync.Map

// address is one on loopback that is free now. It lies below the ports that the system gives to clients, so that it stays
// free while its server is down.
func address() string {
	for {
		address := fmt.Sprintf("127.0.0.1:%d", 15000+rand.IntN(15000))
		if _, found := taken.LoadOrStore(address, true); found {
			continue
		}
		if listener, err := net.Listen("tcp", address); err == nil {
			listener.Close()
			return address
		}
	}
}
