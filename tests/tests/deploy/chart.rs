//! `deploy/helm`.

use std::path::Path;

use expect_test::expect;
use serde_json::Value;

use crate::cluster::{Cluster, file, rbac};
use crate::kustomize::check_settings;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_chart_is_installed_and_upgraded_by_helm() {
    let cluster = Cluster::new().await;
    let chart = file("deploy/helm/configurator");
    let chart = chart.display();
    let pod_config = file("configurators/pod-config");
    let flags = "--output values --name shop-configurator --namespace shop";
    let rights = rbac(&[&pod_config], flags);
    let more = "
etcd: {endpoints: ['https://etcd-0:2379', 'https://etcd-1:2379'], tlsSecret: etcd-client}
settings:
  grace_seconds: 20
  log: info,configurator=debug
  etcd: {timeout_seconds: 4}
  vault: {addresses: ['https://vault:8200'], auth: {method: kubernetes, role: configurator}}
serviceMonitor: {enabled: true}
podAnnotations: {team: shop}
";
    let values = format!("{rights}{more}");
    cluster.helm(&format!("lint --strict --values - {chart}"), &values);
    let render = format!("template shop {chart} --namespace shop --values -");
    let manifests = cluster.helm(&render, &values);
    let objects: Vec<Value> = serde_saphyr::from_multiple(&manifests).unwrap();
    let mut settings = None;
    for object in &objects {
        if object["kind"] == "ConfigMap" {
            settings = object["data"]["config.toml"].as_str();
        }
    }
    expect![[r#"
        answer_memory = "128Mi"
        compile_memory = "640Mi"
        grace_seconds = 20
        guest_memory = "256Mi"
        in_cluster = true
        log = "info,configurator=debug"
        log_format = "json"
        metrics_listen = "0.0.0.0:9090"
        module_cache = "/cache/modules"
        module_copies = "/cache/copies"
        modules = ["/modules"]
        parallel_compilations = 2

        [etcd]
          ca = "/etcd/ca.crt"
          cert = "/etcd/tls.crt"
          endpoints = ["https://etcd-0:2379", "https://etcd-1:2379"]
          key = "/etcd/tls.key"
          prefix = "configurator/"
          timeout_seconds = 4

        [sharding]
          name = "shop-configurator"
          shards = 16

        [vault]
          addresses = ["https://vault:8200"]
          [vault.auth]
            method = "kubernetes"
            role = "configurator"
    "#]]
    .assert_eq(settings.unwrap());
    let folder = tempfile::tempdir().unwrap();
    let settings_file = folder.path().join("config.toml");
    std::fs::write(&settings_file, settings.unwrap()).unwrap();
    check_settings(&settings_file);

    cluster.namespace("shop").await;
    expect![[r#"
        networkpolicy.networking.k8s.io/shop-configurator serverside-applied
        poddisruptionbudget.policy/shop-configurator serverside-applied
        serviceaccount/shop-configurator serverside-applied
        configmap/shop-configurator serverside-applied
        clusterrole.rbac.authorization.k8s.io/shop-configurator serverside-applied
        clusterrolebinding.rbac.authorization.k8s.io/shop-configurator serverside-applied
        role.rbac.authorization.k8s.io/shop-configurator serverside-applied
        rolebinding.rbac.authorization.k8s.io/shop-configurator serverside-applied
        service/shop-configurator serverside-applied
        deployment.apps/shop-configurator serverside-applied
        servicemonitor.monitoring.coreos.com/shop-configurator serverside-applied
        validatingadmissionpolicy.admissionregistration.k8s.io/shop-configurator-commands serverside-applied
        validatingadmissionpolicybinding.admissionregistration.k8s.io/shop-configurator-commands serverside-applied
    "#]]
    .assert_eq(&cluster.accepts(&manifests));
    cluster.kubectl("delete -f -", &manifests);

    let install = format!("upgrade --install shop {chart} --namespace shop --values -");
    let versions = || {
        let what = "get networkpolicies,configmaps,services,roles,rolebindings,servicemonitors --namespace shop";
        let how = "--selector app.kubernetes.io/instance=shop --output custom-columns=:kind,:metadata.resourceVersion";
        cluster.kubectl(&format!("{what} {how} --no-headers"), "")
    };
    cluster.helm(&install, &values);
    let before = versions();
    assert_eq!(before.lines().count(), 6, "{before}");
    cluster.helm(&install, &values);
    assert_eq!(versions(), before);
    cluster.helm("uninstall shop --namespace shop --wait", "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wildcards_and_misspelt_values_are_refused_by_the_chart() {
    let cluster = Cluster::new().await;
    let chart = file("deploy/helm/configurator");
    let refused = |values: &str| refusal(&cluster, &chart, values);
    expect!["- at '': additional properties 'replica' not allowed"]
        .assert_eq(&refused("replica: 3"));
    expect!["- at '/rbac/cluster/0/resources/0': '*' does not match pattern '^[^*]*$'"].assert_eq(
        &refused("rbac: {cluster: [{apiGroups: [''], resources: ['*'], verbs: [get]}]}"),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_without_stores_in_common_are_refused_by_the_chart() {
    let cluster = Cluster::new().await;
    let render = format!(
        "template shop {} --values -",
        file("deploy/helm/configurator").display()
    );
    let refused = |values: &str| {
        let told = cluster.helm_fails(&render, values);
        let why = told.rsplit_once("): ").map(|(_, why)| why);
        why.and_then(|why| why.lines().next())
            .map(str::to_owned)
            .unwrap_or(told)
    };
    expect!["replicas share objects by a config store in common: set etcd.endpoints, or replicas: 1 and shards: 0"]
        .assert_eq(&refused(""));
    let etcd = "etcd: {endpoints: ['https://etcd:2379']}";
    expect!["replicas need one secret store: without it each generates secrets of its own and rejects the states that the others have sealed: set settings.vault, or replicas: 1 and shards: 0"]
        .assert_eq(&refused(etcd));
    expect!["replicas need one secret store: without it each generates secrets of its own and rejects the states that the others have sealed: set settings.vault, or replicas: 1 and shards: 0"]
        .assert_eq(&refused(&format!("replicas: 1\n{etcd}")));
    expect!["more than one replica would do everything more than once: set shards, or replicas: 1"]
        .assert_eq(&refused("shards: 0"));
    cluster.helm(&render, "{replicas: 1, shards: 0}");
}

#[track_caller]
fn refusal(cluster: &Cluster, chart: &Path, values: &str) -> String {
    let told = cluster.helm_fails(
        &format!("template shop {} --values -", chart.display()),
        values,
    );
    told.lines()
        .filter(|line| line.starts_with("- "))
        .collect::<Vec<_>>()
        .join("\n")
}
