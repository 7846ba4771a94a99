//! The handlers are called like any function.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use configurator_sdk::{DesiredEntry, Input, Output, RequestResult, RequestSink};
use expect_test::{Expect, expect};
use flate2::Compression;
use flate2::write::GzEncoder;
use manifests::HANDLERS;
use manifests::root::MANIFESTS;
use serde_json::{Map, Value, json};

fn application(spec: Value) -> Value {
    json!({
        "apiVersion": "manifests.configurator.dev/v1alpha1",
        "kind": "Application",
        "metadata": {"namespace": "apps", "name": "shop"},
        "spec": spec,
    })
}

/// Calls `apply` with these ConfigMaps.
fn apply(mut spec: Value, config_maps: &[Value]) -> Result<Output, String> {
    spec["revision"] = json!("1");
    if spec.get("configMaps").is_none() {
        spec["configMaps"] = json!(config_maps.len());
    }
    let found = RequestResult::answered(
        MANIFESTS,
        RequestSink::Kubernetes,
        config_maps.iter().cloned(),
    );
    let input = Input::builder().object(application(spec)).result(found);
    HANDLERS.call("apply", &input.build()).map_err(|error| {
        format!(
            "{}{}",
            if error.fatal { "" } else { "retry: " },
            error.message
        )
    })
}

fn text(yaml: &str) -> Value {
    json!({"metadata": {"namespace": "apps", "name": "one"}, "data": {"all.yaml": yaml}})
}

/// Returns the names of the entries with their dependencies.
fn order(output: &Output) -> String {
    let mut lines = String::new();
    for entry in &output.desired.as_ref().unwrap().entries {
        let DesiredEntry {
            name, depends_on, ..
        } = entry;
        match depends_on.is_empty() {
            true => writeln!(lines, "{name}"),
            false => writeln!(lines, "{name} <- {}", depends_on.join(", ")),
        }
        .unwrap();
    }
    lines
}

fn check_order(yaml: &str, spec: Value, expected: Expect) {
    expected.assert_eq(&order(&apply(spec, &[text(yaml)]).unwrap()));
}

fn check_error(spec: Value, config_maps: &[Value], expected: Expect) {
    expected.assert_eq(&apply(spec, config_maps).unwrap_err());
}

#[test]
fn the_config_maps_of_a_revision_are_asked_for() {
    let object = application(json!({"revision": "4d719f1d", "configMaps": 2}));
    let input = Input::builder().object(object).build();
    let output = HANDLERS.call("root", &input).unwrap();
    expect![[r#"
        manifests: kubernetes list configmaps apps/, labels manifests.configurator.dev/application=shop,manifests.configurator.dev/revision=4d719f1d
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn objects_of_all_files_are_one_set() {
    let packed = |text: &str| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        STANDARD.encode(encoder.finish().unwrap())
    };
    let two = json!({
        "metadata": {"namespace": "apps", "name": "two"},
        "data": {"b.json": r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}}"#},
        "binaryData": {"a.yaml.gz": packed("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n")},
    });
    let list = "---\n---\napiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: c}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: d}}\n";
    let output = apply(json!({}), &[two, text(list)]).unwrap();
    expect![[r#"
        desired ConfigMap c: kubernetes {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}
        desired ConfigMap d: kubernetes {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"d"}}
        desired ConfigMap shop/a: kubernetes {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}
        desired ConfigMap b: kubernetes {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}
        desired set: termination-policy at .spec.terminationPolicy
    "#]]
    .assert_eq(&output.to_string());
}

#[test]
fn a_workload_comes_after_what_its_pods_use() {
    check_order(
        r"
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {
  serviceAccountName: web, imagePullSecrets: [{name: pull}],
  volumes: [{configMap: {name: settings}}, {secret: {secretName: password}}, {projected: {sources: [{secret: {name: token}}]}}, {persistentVolumeClaim: {claimName: data}}],
  initContainers: [{envFrom: [{configMapRef: {name: environment}}]}],
  containers: [{env: [{valueFrom: {secretKeyRef: {name: key}}}, {valueFrom: {configMapKeyRef: {name: elsewhere}}}]}]}}}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: web}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: environment}}
---
{apiVersion: v1, kind: Secret, metadata: {name: pull}}
---
{apiVersion: v1, kind: Secret, metadata: {name: password}}
---
{apiVersion: v1, kind: Secret, metadata: {name: token}}
---
{apiVersion: v1, kind: Secret, metadata: {name: key, namespace: apps}}
---
{apiVersion: v1, kind: Secret, metadata: {name: settings, namespace: other}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}}
",
        json!({}),
        expect![[r#"
            Deployment.apps web <- ServiceAccount web, ConfigMap settings, ConfigMap environment, Secret pull, Secret password, Secret token, Secret apps/key
            ServiceAccount web
            ConfigMap settings
            ConfigMap environment
            Secret pull
            Secret password
            Secret token
            Secret apps/key
            Secret other/settings
            PersistentVolumeClaim data
        "#]],
    );
}

#[test]
fn what_the_api_server_calls_comes_first() {
    check_order(
        r"
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.m}, spec: {service: {namespace: apps, name: m}}}
---
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: w}, webhooks: [{clientConfig: {service: {namespace: apps, name: m}}}]}
---
{apiVersion: v1, kind: Service, metadata: {name: m}, spec: {selector: {app: m}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: m}, spec: {template: {metadata: {labels: {app: m, tier: x}}, spec: {}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: other}, spec: {template: {metadata: {labels: {tier: x}}, spec: {}}}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: b}, roleRef: {kind: ClusterRole, name: r}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}}
",
        json!({}),
        expect![[r#"
            APIService.apiregistration.k8s.io v1.m <- Service m, StatefulSet.apps m
            ValidatingWebhookConfiguration.admissionregistration.k8s.io w <- Service m, StatefulSet.apps m
            Service m
            StatefulSet.apps m
            StatefulSet.apps other
            RoleBinding.rbac.authorization.k8s.io b <- ClusterRole.rbac.authorization.k8s.io r
            ClusterRole.rbac.authorization.k8s.io r
        "#]],
    );
}

const CALLS: &str = r"
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {metadata: {labels: {app: web}}, spec: {containers: [
  {env: [{name: CART_ADDR, value: 'cart:80'}, {name: SELF_ADDR, value: web}, {name: WORLD_ADDR, value: api.example.com}, {name: OTHER, value: nothing}]}]}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, type: LoadBalancer}}
---
{apiVersion: v1, kind: Service, metadata: {name: cart}, spec: {selector: {app: cart}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: cart}, spec: {template: {metadata: {labels: {app: cart}}, spec: {containers: [
  {env: [{name: STORE_ADDR, value: 'redis:6379'}]}]}}}}
";

#[test]
fn addresses_are_dependencies() {
    check_order(
        CALLS,
        json!({"addresses": {"variables": ["*_ADDR"], "external": ["redis"]}}),
        expect![[r#"
            Deployment.apps web <- Service cart, Deployment.apps cart
            Service web
            Service cart
            Deployment.apps cart
        "#]],
    );
}

#[test]
fn an_address_of_nothing_is_an_error() {
    check_error(
        json!({"addresses": {"variables": ["*_ADDR"]}}),
        &[text(CALLS)],
        expect![[
            r#"Deployment.apps cart: STORE_ADDR has the address of the Service apps/redis, which the manifests lack; add it, or list "redis" in `addresses.external`"#
        ]],
    );
}

#[test]
fn rules_say_how_objects_are_treated() {
    let yaml = "{apiVersion: v1, kind: Secret, metadata: {name: a}}\n---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}\n---\n{apiVersion: v1, kind: Secret, metadata: {name: c}}\n";
    let rules = json!([
        {"match": {"kind": "Secret"}, "onDelete": "Retain", "onExisting": "Adopt"},
        {"match": {"kind": "Secret", "name": "c"}, "onDelete": "WithOwner", "onImmutable": "Recreate", "dependsOn": [{"kind": "Secret", "name": "a"}]},
        {"match": {"group": "apps", "kind": "Deployment"}, "readyWhen": "object.status.replicas == 1", "failedWhen": "false",
            "timeoutSeconds": 60, "onConflict": "Force", "ignoredPaths": [".spec.replicas"]},
    ]);
    let output = apply(json!({"rules": rules}), &[text(yaml)]).unwrap();
    expect![[r#"
        desired Secret a: kubernetes {"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}, on-existing adopt, on-delete retain
        desired Deployment.apps b: kubernetes {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"b"}}, ready-when object.status.replicas == 1, failed-when false, timeout 60000 ms, on-conflict force, ignores .spec.replicas
        desired Secret c: kubernetes {"apiVersion":"v1","kind":"Secret","metadata":{"name":"c"}}, depends-on Secret a, on-existing adopt, on-immutable recreate, on-delete with-owner
        desired set: termination-policy at .spec.terminationPolicy
    "#]].assert_eq(&output.to_string());
}

#[test]
fn mistakes_are_named_with_their_place() {
    let one = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}";
    let check = |yaml: &str, expected| check_error(json!({}), &[text(yaml)], expected);
    check("", expect!["the manifests have no objects"]);
    check(
        "a: [",
        expect![[r#"
        ConfigMap apps/one, all.yaml: invalid YAML: error: line 1 column 4: unclosed bracket '['
         --> <input>:1:4
          |
        1 | a: [
          |    ^ unclosed bracket '['"#]],
    );
    check(
        "just a text",
        expect!["ConfigMap apps/one, all.yaml, document 1: the document is not an object"],
    );
    check(
        "kind: A",
        expect!["ConfigMap apps/one, all.yaml, document 1: the object has no apiVersion"],
    );
    check(
        "{apiVersion: v1, kind: ConfigMap}",
        expect!["ConfigMap apps/one, all.yaml, document 1: the object has no metadata.name"],
    );
    check(
        &format!("{one}\n---\n{one}"),
        expect![
            "ConfigMap a is defined twice: ConfigMap apps/one, all.yaml, document 1; and ConfigMap apps/one, all.yaml, document 2"
        ],
    );
    let rule = json!({"rules": [{"match": {"kind": "ConfigMap", "name": "b"}}]});
    check_error(
        rule,
        &[text(one)],
        expect!["rules[0].match matches none of the objects"],
    );
    let rule = json!({"rules": [{"match": {"kind": "ConfigMap"}, "dependsOn": [{"kind": "Secret", "name": "b"}]}]});
    check_error(
        rule,
        &[text(one)],
        expect!["rules[0].dependsOn[0] matches none of the objects"],
    );
    check_error(
        json!({"configMaps": 2}),
        &[text(one)],
        expect![[r#"retry: revision "1" has 1 of 2 ConfigMaps; create the others"#]],
    );
    check_error(
        json!({"configMaps": 1}),
        &[text(one), text(one)],
        expect![[
            r#"revision "1" has 2 ConfigMaps, but spec.configMaps is 1; correct one of them"#
        ]],
    );
    let broken = json!({"metadata": {"namespace": "apps", "name": "one"}, "binaryData": {"a.gz": STANDARD.encode([0x1f, 0x8b, 0])}});
    check_error(
        json!({}),
        &[broken],
        expect!["ConfigMap apps/one, a.gz: invalid gzip: unexpected end of file"],
    );
}

#[test]
fn parameters_have_objects_for_any_owner() {
    let check = |manifests: Value, expected: Expect| {
        let input = Input::builder()
            .object(json!({"metadata": {"namespace": "apps", "name": "any"}}))
            .parameters(json!({"manifests": manifests}));
        let output = HANDLERS.call("parameters", &input.build()).unwrap();
        expected.assert_eq(&output.to_string());
    };
    check(
        json!([{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}]),
        expect![[r#"
            desired Secret a: kubernetes {"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}
        "#]],
    );
    check(
        json!("{apiVersion: v1, kind: Secret, metadata: {name: a}}"),
        expect![[r#"
            desired Secret a: kubernetes {"apiVersion":"v1","kind":"Secret","metadata":{"name":"a"}}
        "#]],
    );
}

/// Real manifests, which lie beside the checkout. `None`: they do not.
fn shared(name: &str) -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?.parent()?;
    let found = workspace.parent()?.join("shared/data").join(name);
    let exists = found.exists();
    if !exists {
        println!("not checked: {} is not there", found.display());
    }
    exists.then_some(found)
}

#[test]
fn a_real_application_tells_its_order() {
    let Some(file) = shared("online-boutique.yaml") else {
        return;
    };
    let config_map = text(&fs::read_to_string(file).unwrap());
    let variables = json!(["*_ADDR"]);
    check_error(
        json!({"addresses": {"variables": variables}}),
        std::slice::from_ref(&config_map),
        expect![[
            r#"Deployment.apps frontend: SHOPPING_ASSISTANT_SERVICE_ADDR has the address of the Service apps/shoppingassistantservice, which the manifests lack; add it, or list "shoppingassistantservice" in `addresses.external`"#
        ]],
    );
    let spec =
        json!({"addresses": {"variables": variables, "external": ["shoppingassistantservice"]}});
    let output = apply(spec, &[config_map]).unwrap();
    let calls = |line: &&str| line.starts_with("Deployment");
    let order: String = order(&output)
        .lines()
        .filter(calls)
        .map(|line| format!("{line}\n"))
        .collect();
    expect![[r#"
        Deployment.apps frontend <- ServiceAccount frontend, Deployment.apps adservice, Service adservice, Deployment.apps currencyservice, Service currencyservice, Deployment.apps cartservice, Service cartservice, Deployment.apps recommendationservice, Service recommendationservice, Deployment.apps checkoutservice, Service checkoutservice, Deployment.apps shippingservice, Service shippingservice, Deployment.apps productcatalogservice, Service productcatalogservice
        Deployment.apps adservice <- ServiceAccount adservice
        Deployment.apps currencyservice <- ServiceAccount currencyservice
        Deployment.apps cartservice <- ServiceAccount cartservice, Deployment.apps redis-cart, Service redis-cart
        Deployment.apps redis-cart
        Deployment.apps loadgenerator <- Deployment.apps frontend, Service frontend, ServiceAccount loadgenerator
        Deployment.apps recommendationservice <- ServiceAccount recommendationservice, Deployment.apps productcatalogservice, Service productcatalogservice
        Deployment.apps checkoutservice <- Deployment.apps currencyservice, Service currencyservice, Deployment.apps cartservice, Service cartservice, ServiceAccount checkoutservice, Deployment.apps emailservice, Service emailservice, Deployment.apps paymentservice, Service paymentservice, Deployment.apps shippingservice, Service shippingservice, Deployment.apps productcatalogservice, Service productcatalogservice
        Deployment.apps emailservice <- ServiceAccount emailservice
        Deployment.apps paymentservice <- ServiceAccount paymentservice
        Deployment.apps shippingservice <- ServiceAccount shippingservice
        Deployment.apps productcatalogservice <- ServiceAccount productcatalogservice
    "#]].assert_eq(&order);
}

#[test]
fn real_manifests_of_many_kinds_are_read() {
    let Some(folder) = shared("kube-prometheus/manifests") else {
        return;
    };
    let mut files = Map::new();
    for folder in [folder.join("setup"), folder] {
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_file() {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                files.insert(name, json!(fs::read_to_string(path).unwrap()));
            }
        }
    }
    let config_map = json!({"metadata": {"namespace": "apps", "name": "all"}, "data": files});
    let output = apply(json!({}), &[config_map]).unwrap();
    let entries = &output.desired.as_ref().unwrap().entries;
    let edges: usize = entries.iter().map(|entry| entry.depends_on.len()).sum();
    expect!["131 objects, 56 dependencies"]
        .assert_eq(&format!("{} objects, {edges} dependencies", entries.len()));
}
