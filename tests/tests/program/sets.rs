//! `configurator sets`: desired sets, and what they wait for.

use anyhow::Result;
use configurator_tests::program::{PATIENCE, until};
use expect_test::expect;

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

#[test]
fn a_person_sees_what_sets_wait_for() -> Result<()> {
    let place = Place::new()?;
    place.write("shop.yaml", SHOP)?;
    let running = place.host("--listen 127.0.0.1:0 -f shop.yaml").start()?;
    running.until_printed("the API is served")?;
    let kubeconfig = place.program("kubeconfig", "--data-dir data").succeeds()?;
    place.write("kubeconfig", &kubeconfig)?;
    let sets = |arguments: &str| {
        let program = place.program("sets", "--kubeconfig kubeconfig");
        program.args(arguments)
    };
    let listed = until("the Deployment is not ready", PATIENCE, || {
        // Until the definitions are there, there is nothing to be listed.
        let listed = sets("list --unready").succeeds().unwrap_or_default();
        Ok::<_, anyhow::Error>(listed.contains("Deployment").then_some(listed))
    })?;
    expect![[r#"
        SET                             OWNER                    OBJECTS  READY  STATE        WAITING FOR
        default/books-e355e9372df18960  ConfigMap default/books  3        1      Progressing  Deployment.apps default/books-web: 0 of 2 replicas are created
    "#]].assert_eq(&listed);
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
        · ConfigMap default/books-page  page  waits for web: 0 of 2 replicas are created
          ▶ Deployment.apps default/books-web  web  0 of 2 replicas are created
    "#]]
    .assert_eq(&sets("why default/books page").succeeds()?);
    expect![[r#"
        error: no Shop "nothing" in the namespace "default" has a set; `configurator sets list` lists the owners
    "#]].assert_eq(&sets("tree nothing --kind Shop").fails()?);
    Ok(())
}
