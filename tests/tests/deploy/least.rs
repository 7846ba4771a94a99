//! The program in a real cluster, with exactly the rights that `configurator rbac` prints.

use std::path::PathBuf;

use configurator_tests::guests;
use configurator_tests::program::Program;
use expect_test::expect;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use crate::cluster::{Cluster, file, rbac};

/// A ServiceAccount with these rights, and nothing else.
struct Account {
    name: String,
    kubeconfig: PathBuf,
    _folder: tempfile::TempDir,
}

impl Account {
    /// The account is in a namespace of its own name.
    fn new(cluster: &Cluster, name: &str, rights: &str) -> Self {
        cluster.kubectl(&format!("create namespace {name}"), "");
        cluster.kubectl(
            &format!("create serviceaccount {name} --namespace {name}"),
            "",
        );
        cluster.kubectl("apply --server-side --validate=strict -f -", rights);
        let token = cluster.kubectl(&format!("create token {name} --namespace {name}"), "");
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": cluster.about.kubernetes.url,
                "certificate-authority": cluster.about.ca}}],
            "users": [{"name": "it", "user": {"token": token.trim()}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        });
        std::fs::write(&kubeconfig, config.to_string()).unwrap();
        Self {
            name: name.to_owned(),
            kubeconfig,
            _folder: folder,
        }
    }

    async fn client(&self) -> Client {
        let read = Kubeconfig::read_from(&self.kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(read, &options).await;
        Client::try_from(config.unwrap()).unwrap()
    }

    /// What the server has recorded of its requests: answers, verbs, and what they were about.
    fn recorded(&self, cluster: &Cluster) -> Vec<(u64, String)> {
        let user = format!("system:serviceaccount:{0}:{0}", self.name);
        let record = std::fs::read_to_string(&cluster.about.kubernetes.audit).unwrap();
        record
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|event| {
                event["user"]["username"] == user.as_str() && event["stage"] == "ResponseComplete"
            })
            .map(|event| {
                let about = &event["objectRef"];
                let part = |name: &str| about[name].as_str().unwrap_or_default();
                let slash = if part("subresource").is_empty() {
                    ""
                } else {
                    "/"
                };
                let what = match about.is_null() {
                    true => event["requestURI"].as_str().unwrap_or_default().to_owned(),
                    false => format!(
                        "{}{slash}{} {}",
                        part("resource"),
                        part("subresource"),
                        part("apiGroup")
                    ),
                };
                let code = event["responseStatus"]["code"].as_u64().unwrap_or_default();
                (
                    code,
                    format!(
                        "{} {}",
                        event["verb"].as_str().unwrap_or_default(),
                        what.trim()
                    ),
                )
            })
            .collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_needs_no_more_rights_than_are_printed() {
    let cluster = Cluster::new().await;
    let pod_config = file("configurators/pod-config");
    let rights = rbac(
        &[&pod_config],
        "--name least --namespace least --no-statuses",
    );
    let account = Account::new(&cluster, "least", &rights);
    let definition = Program::new("crds").succeeds().unwrap();
    cluster.kubectl("apply --server-side -f -", &definition);
    cluster.kubectl(
        "wait --for=condition=Established crd/clusterconfigurators.configurator.dev",
        "",
    );
    let manifest = pod_config.join("configurator.yaml");
    cluster.kubectl(
        &format!("apply --server-side -f {}", manifest.display()),
        "",
    );
    cluster.namespace("least-shop").await;
    cluster.kubectl("apply --server-side -f -", SHOP);

    let mut host = Program::new("run")
        .arg("--kubeconfig")
        .arg(&account.kubeconfig)
        .arg("--modules")
        .arg(guests::folder().unwrap())
        .args("--log-format json --log info --shards 4")
        .env("CONFIGURATOR_SHARDING__NAMESPACE", "least")
        .arg("--etcd-endpoint")
        .arg(&cluster.about.store.endpoints[0])
        .env("CONFIGURATOR_ETCD__CA", &cluster.about.ca)
        .env("CONFIGURATOR_ETCD__CERT", &cluster.about.store.cert)
        .env("CONFIGURATOR_ETCD__KEY", &cluster.about.store.key)
        .envs(cluster.about.vault_variables())
        .start()
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), "least-shop");
    let configured = async || {
        let all = maps.list(&Default::default()).await.unwrap();
        let names = all.items.into_iter().filter_map(|map| map.metadata.name);
        names.filter(|name| name.ends_with("-config")).count()
    };
    cluster
        .until("every Pod is configured", async || configured().await == 3)
        .await;
    cluster.kubectl(
        "wait --for=condition=Ready clusterconfigurator/pod-config",
        "",
    );
    cluster.kubectl(
        "delete deployment web --namespace least-shop --cascade=foreground",
        "",
    );
    cluster
        .until("what belonged to the Pods goes with them", async || {
            configured().await == 1
        })
        .await;
    host.signal("TERM").unwrap();
    assert!(host.ended().unwrap().success(), "{}", host.stdout());

    // Watches are recorded when they have ended; what they have found is used, and with nothing refused.
    let needed = [
        "create leases coordination.k8s.io",
        "delete leases coordination.k8s.io",
        "get customresourcedefinitions apiextensions.k8s.io",
        "get deployments apps",
        "get namespaces",
        "list clusterconfigurators configurator.dev",
        "list configurators configurator.dev",
        "list leases coordination.k8s.io",
        "patch configmaps",
        "patch clusterconfigurators/status configurator.dev",
        "patch leases coordination.k8s.io",
        "watch clusterconfigurators configurator.dev",
        "watch configurators configurator.dev",
        "watch leases coordination.k8s.io",
        "watch pods",
    ];
    cluster
        .until("the record is complete", async || {
            let recorded = account.recorded(&cluster);
            needed
                .iter()
                .all(|needed| recorded.iter().any(|(_, what)| what == needed))
        })
        .await;
    let recorded = account.recorded(&cluster);
    let refused: Vec<_> = recorded
        .iter()
        .filter(|(code, _)| matches!(code, 401 | 403))
        .collect();
    assert!(refused.is_empty(), "{refused:?}");
    for question in [
        "get secrets",
        "list configmaps",
        "delete pods",
        "patch customresourcedefinitions",
        "create clusterroles",
    ] {
        let asked = cluster.kubectl_as(
            &account.kubeconfig,
            &format!("auth can-i {question} --all-namespaces"),
            "",
        );
        assert!(asked.is_err(), "{question}: {asked:?}");
    }
}

const SHOP: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: least-shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
---
apiVersion: v1
kind: Pod
metadata: {name: alone, namespace: least-shop}
spec: {containers: [{name: alone, image: alone}]}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_applied_under_its_name_may_be_created_under_no_other() {
    let cluster = Cluster::new().await;
    cluster.namespace("named-shop").await;
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    let text = "
apiVersion: configurator.dev/v1alpha1
kind: ClusterConfigurator
metadata: {name: named}
spec:
  watch: {apiVersion: v1, kind: Pod, namespaces: [named-shop]}
  module: {file: a.wasm}
  chain: {phases: [{name: root}]}
  capabilities:
    kubernetes:
      - {apiGroups: [''], resources: [configmaps], namespaces: [named-shop], names: [one], verbs: [apply]}
";
    std::fs::write(file.path(), text).unwrap();
    let account = Account::new(
        &cluster,
        "named",
        &rbac(&[file.path()], "--name named --namespace named"),
    );
    let maps: Api<ConfigMap> = Api::namespaced(account.client().await, "named-shop");
    let apply = async |name: &str| {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        maps.patch(name, &PatchParams::apply("test"), &Patch::Apply(body))
            .await
    };
    apply("one").await.unwrap();
    apply("one").await.unwrap();
    let kube::Error::Api(refused) = apply("two").await.unwrap_err() else {
        panic!("it was not refused by the server");
    };
    expect![[r#"configmaps "two" is forbidden: User "system:serviceaccount:named:named" cannot patch resource "configmaps" in API group "" in the namespace "named-shop""#]].assert_eq(&refused.message);
    let deleted = maps.delete("one", &DeleteParams::default()).await;
    assert!(deleted.is_err());
}
