package main

import (
	"fmt"
	"time"

	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/common/testing/freeport"
	schema "go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

const (
	host      = "127.0.0.1"
	namespace = "default"
	// What `temporal server start-dev` calls its cluster and its database.
	clusterName = "active"
	storeName   = "sqlite-default"
)

// startServer starts what `temporal server start-dev --headless --db-filename FILE` does, in this process, and returns
// the address of its frontend.
func startServer(file string) (temporal.Server, string, error) {
	database, err := newDatabase(file)
	if err != nil {
		return nil, "", fmt.Errorf("no database in %s: %w", file, err)
	}
	logger := log.NewZapLogger(log.BuildZapLogger(log.Config{Level: "error"}))
	settings, hosts := configuration(database)
	server, err := temporal.NewServer(
		temporal.WithConfig(settings),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts),
		temporal.WithLogger(logger),
		temporal.WithDynamicConfigClient(tuning),
	)
	if err != nil {
		return nil, "", fmt.Errorf("the server is not made of these settings: %w", err)
	}
	if err := server.Start(); err != nil {
		return nil, "", fmt.Errorf("the server does not start: %w", err)
	}
	return server, settings.PublicClient.HostPort, nil
}

// newDatabase makes the file with everything in it that the server expects to find.
func newDatabase(file string) (*config.SQL, error) {
	database := &config.SQL{
		PluginName:   sqlite.PluginName,
		DatabaseName: file,
		ConnectAttributes: map[string]string{
			"mode": "rwc",
			// What is committed is on the disk, as without these two, but for one sync instead of several. Temporal's own
			// configuration files for SQLite have both; the command leaves it to --sqlite-pragma.
			"journal_mode": "wal",
			"synchronous":  "2",
		},
		// One connection, which is the default: with several, transactions fail because the database is locked.
	}
	if err := schema.SetupSchema(database); err != nil {
		return nil, err
	}
	home, err := schema.NewNamespaceConfig(clusterName, namespace, false, nil)
	if err != nil {
		return nil, err
	}
	return database, schema.CreateNamespaces(database, home)
}

// configuration is that of the command, without what costs processor time and is of no use here: metrics, the HTTP API,
// the user interface, and authorization that allows everything, which is what there is without any as well.
func configuration(database *config.SQL) (*config.Config, map[primitives.ServiceName]static.Hosts) {
	services := map[string]config.Service{}
	addresses := map[primitives.ServiceName]string{}
	hosts := map[primitives.ServiceName]static.Hosts{}
	for _, name := range temporal.DefaultServices {
		// No other program is given this port for a minute, so that there is time to listen on it.
		port := freeport.MustGetFreePort()
		service := primitives.ServiceName(name)
		services[name] = config.Service{RPC: config.RPC{BindOnIP: host, GRPCPort: port}}
		addresses[service] = fmt.Sprintf("%s:%d", host, port)
		hosts[service] = static.SingleLocalHost(addresses[service])
	}
	frontend := addresses[primitives.FrontendService]
	settings := &config.Config{
		Services:     services,
		PublicClient: config.PublicClient{HostPort: frontend},
		Persistence: config.Persistence{
			DefaultStore:    storeName,
			VisibilityStore: storeName,
			// More shards take more processor time here, as there is one database and one host.
			NumHistoryShards: 1,
			DataStores:       map[string]config.DataStore{storeName: {SQL: database}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{clusterName: {
				Enabled:                true,
				InitialFailoverVersion: 1,
				RPCAddress:             frontend,
				ClusterID:              "steps",
			}},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
	}
	settings.Global.Membership = config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: host}
	settings.Archival.History.State = "disabled"
	settings.Archival.Visibility.State = "disabled"
	settings.NamespaceDefaults.Archival.History.State = "disabled"
	settings.NamespaceDefaults.Archival.Visibility.State = "disabled"
	return settings, hosts
}

// tuning is what the command sets, and what serves this benchmark.
var tuning = dynamicconfig.StaticClient{
	dynamicconfig.HistoryCacheHostLevelMaxSize.Key():                 8096,
	dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): 100,
	dynamicconfig.FrontendPersistenceMaxQPS.Key():                    10000,
	dynamicconfig.HistoryPersistenceMaxQPS.Key():                     45000,
	// One partition of a task queue instead of four: with one host, tasks would only be forwarded between them.
	dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
	dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
	// Of what the command sets, immediate search attributes and endpoints are missing. No one here asks for either, and
	// without them they are read from the cache.
}
