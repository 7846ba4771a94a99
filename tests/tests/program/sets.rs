//! `configurator sets`: desired sets, and what they wait for.

use anyhow::Result;
use configurator_tests::program::{PATIENCE, until};
use expect_test::expect;
use regex::Regex;

use crate::kubectl::Cluster;
use crate::place::Place;

const SHOP: &str = r#"
apiVersion: configurator.dev/v1alpha1
kind: ClusterConfigurator
metadata: {name: shops}
spec:
  watch: {apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {has: set}}}
  module: {file: scripted.wasm}
  chain: {phases: [{name: root}]}
  sets: {}
  parameters: {root: {desiredAt: /data/set}}
  capabilities:
    kubernetes:
    - {apiGroups: ["", apps], resources: [configmaps, deployments], namespaces: ["*"], verbs: [get, apply, delete, watch]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: books, namespace: default, labels: {has: set}}
data:
  set: |
    {"entries": [
      {"name": "page", "dependsOn": ["web"], "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "books-page"}}},
      {"name": "web", "dependsOn": ["settings"], "object": {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "books-web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
          "metadata": {"labels": {"app": "web"}},
          "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}}},
      {"name": "settings", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "books-settings"}}}
    ]}
"#;

const OTHER: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: other}}";

/// A host with a set whose Deployment is not ready.
fn shop() -> Result<Cluster> {
    let place = Place::new()?;
    place.write("shop.yaml", SHOP)?;
    Cluster::at(place, "-f shop.yaml")
}

#[test]
fn kubectl_does_not_prune_a_set() -> Result<()> {
    let cluster = shop()?;
    let name = until("the set is there", PATIENCE, || {
        let names = cluster.kubectl("get objectsets -o name")?;
        let name = names.trim().strip_prefix("objectset.configurator.dev/");
        Ok::<_, anyhow::Error>(name.map(str::to_owned))
    })?;
    cluster.place.write("other.yaml", OTHER)?;
    let parent = format!("objectsets.configurator.dev/{name}");
    let refusal = cluster.refused(&format!(
        "apply --namespace default --prune --applyset={parent} -f other.yaml"
    ))?;
    let refusal = refusal.replace(&name, "NAME");
    expect![[r#"
        error: ApplySet parent object "objectsets.configurator.dev/NAME" already exists and is managed by tooling "configurator" instead of "kubectl"
    "#]].assert_eq(&refusal);
    Ok(())
}

#[test]
fn a_person_sees_what_sets_wait_for() -> Result<()> {
    let cluster = shop()?;
    let sets = |arguments: &str| {
        let program = cluster.place.program("sets", "--kubeconfig kubeconfig");
        program.args(arguments)
    };
    let digest = Regex::new("[0-9a-f]{16}").unwrap();
    let listed = until("the Deployment is not ready", PATIENCE, || {
        // Until the definitions are there, there is nothing to be listed.
        let listed = sets("list --unready").succeeds().unwrap_or_default();
        Ok::<_, anyhow::Error>(listed.contains("Deployment").then_some(listed))
    })?;
    expect![[r#"
        SET                             OWNER                    OBJECTS  READY  STATE        WAITING FOR
        default/books-DIGEST            ConfigMap default/books  3        1      Progressing  Deployment.apps default/books-web: 0 of 2 replicas are created
    "#]].assert_eq(&digest.replace(&listed, "DIGEST          "));
    expect![[r#"
        ConfigMap default/books  Progressing, 3 objects, 1 ready
        ✓ ConfigMap default/books-settings  settings
        ▶ Deployment.apps default/books-web  web  0 of 2 replicas are created
        · ConfigMap default/books-page  page  waits for web: 0 of 2 replicas are created
    "#]]
    .assert_eq(&sets("tree books").succeeds()?);
    expect![[r#"
        ConfigMap default/books  Progressing, 3 objects, 1 ready
        ▶ Deployment.apps default/books-web  web  0 of 2 replicas are created
          · ConfigMap default/books-page  page
    "#]]
    .assert_eq(&sets("why books").succeeds()?);
    expect![[r#"
        ConfigMap default/books  Progressing, 3 objects, 1 ready
        · ConfigMap default/books-page  page
          ▶ Deployment.apps default/books-web  web  0 of 2 replicas are created
    "#]]
    .assert_eq(&sets("why default/books page").succeeds()?);
    expect![[r#"
        error: no Shop "nothing" in the namespace "default" has a set; `configurator sets list` lists the owners
    "#]].assert_eq(&sets("tree nothing --kind Shop").fails()?);
    Ok(())
}

const CHART: &str = "{apiVersion: v2, name: books, version: 1.0.0}";

/// The objects of the release, and one that was applied by hand.
const PAGE: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: books-page, labels: {app: books, app.kubernetes.io/managed-by: Helm}}, data: {text: old, gone: x}}";
const SETTINGS: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: books-settings, labels: {app: books}}, data: {text: old, gone: x}}";

const OWNER: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: books, namespace: default, labels: {has: set}}
data:
  set: |
    {"entries": [
      {"name": "page", "onExisting": "adopt", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "books-page"}, "data": {"text": "new"}}},
      {"name": "settings", "onExisting": "adopt", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "books-settings"}, "data": {"text": "new"}}}
    ]}
"#;

#[test]
fn a_set_takes_over_what_kubectl_and_helm_have_applied() -> Result<()> {
    let place = Place::new()?;
    let configurator = SHOP.split("---").next().unwrap_or_default();
    place.write("shop.yaml", configurator)?;
    let cluster = Cluster::at(place, "-f shop.yaml")?;
    let place = &cluster.place;
    place.write("settings.yaml", SETTINGS)?;
    cluster.kubectl("apply -f settings.yaml")?;
    std::fs::create_dir_all(place.folder().join("chart/templates"))?;
    place.write("chart/Chart.yaml", CHART)?;
    place.write("chart/templates/page.yaml", PAGE)?;
    cluster.helm("install books chart --namespace default")?;
    place.write("owner.yaml", OWNER)?;
    cluster.kubectl("apply -f owner.yaml")?;
    let sets = || place.program("sets", "--kubeconfig kubeconfig");
    let is_ready = until("the set is ready", PATIENCE, || {
        let listed = sets().args("list").succeeds().unwrap_or_default();
        Ok::<_, anyhow::Error>(listed.contains("Ready").then_some(()))
    });
    if let Err(error) = is_ready {
        return Err(error.context(sets().args("tree books").succeeds()?));
    }
    let shown = |name: &str| {
        let annotations = cluster.kubectl(&format!(
            "get configmap {name} -o jsonpath={{.metadata.annotations}}"
        ))?;
        for left in ["last-applied", "meta.helm.sh"] {
            anyhow::ensure!(!annotations.contains(left), "{annotations}");
        }
        let columns = "{.data}|{.metadata.labels.app}|{.metadata.managedFields[*].manager}";
        cluster.kubectl(&format!("get configmap {name} -o jsonpath={columns}"))
    };
    expect![[r#"{"text":"new"}||ccfgr/shops/set"#]].assert_eq(&shown("books-page")?);
    expect![[r#"{"text":"new"}||ccfgr/shops/set"#]].assert_eq(&shown("books-settings")?);
    // Without its records, Helm has no part in it any more.
    cluster.kubectl("delete secret -l owner=helm,name=books")?;
    expect![[""]].assert_eq(&cluster.helm("list --namespace default --short")?);
    Ok(())
}
