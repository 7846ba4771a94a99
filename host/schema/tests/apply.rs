//! Server-side apply, end to end over the built-in kinds.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use configurator_schema::{
    Schema,
    apply::{ApplyError, ApplyRequest, apply},
    builtin,
    managed::{Writer, record_update},
};
use expect_test::{Expect, expect};
use jiff::Timestamp;
use serde_json::{Value, json};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn writer(manager: &str, second: i64) -> Writer<'_> {
    Writer {
        manager,
        api_version: "v1",
        subresource: "",
        now: at(second),
    }
}

fn run(
    schema: &Schema,
    live: Option<&Value>,
    config: Value,
    manager: &str,
    second: i64,
    force: bool,
) -> Result<Value, ApplyError> {
    apply(ApplyRequest {
        schema,
        live,
        config,
        writer: writer(manager, second),
        force,
    })
}

fn schema(group: &str, version: &str, kind: &str) -> std::sync::Arc<Schema> {
    builtin(group, version, kind).unwrap()
}

fn config_map(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "d"}, "data": data})
}

/// The object without managed fields, and who owns what.
fn check(object: &Value, want: &Expect) {
    let mut bare = object.clone();
    let managed = bare["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("managedFields");
    let mut text = format!("{bare:#}\n");
    for entry in managed.iter().flat_map(|m| m.as_array().unwrap()) {
        let set = configurator_schema::FieldSet::from_value(&entry["fieldsV1"]).unwrap();
        text += &format!(
            "{} {} {} {}{}:\n",
            entry["manager"].as_str().unwrap(),
            entry["operation"].as_str().unwrap(),
            entry["apiVersion"].as_str().unwrap(),
            entry.get("time").and_then(Value::as_str).unwrap_or("-"),
            entry
                .get("subresource")
                .map(|s| format!(" {s}"))
                .unwrap_or_default(),
        );
        for path in set.paths() {
            text += &format!("  {path}\n");
        }
    }
    want.assert_eq(&text);
}

#[test]
fn an_apply_creates_owns_and_gives_up() {
    let cm = schema("", "v1", "ConfigMap");
    let live = run(
        &cm,
        None,
        config_map(json!({"a": "1", "b": "2"})),
        "one",
        0,
        false,
    )
    .unwrap();
    check(
        &live,
        &expect![[r#"
            {
              "apiVersion": "v1",
              "data": {
                "a": "1",
                "b": "2"
              },
              "kind": "ConfigMap",
              "metadata": {
                "name": "c",
                "namespace": "d"
              }
            }
            one Apply v1 2027-01-15T08:00:00Z:
              .data.a
              .data.b
        "#]],
    );
    let again = run(
        &cm,
        Some(&live),
        config_map(json!({"a": "1", "b": "2"})),
        "one",
        9,
        false,
    )
    .unwrap();
    assert_eq!(again, live, "nothing changed, so nothing is written");

    let two = run(
        &cm,
        Some(&live),
        config_map(json!({"b": "2", "c": "3"})),
        "two",
        10,
        false,
    )
    .unwrap();
    let one_less = run(&cm, Some(&two), config_map(json!({})), "one", 20, false).unwrap();
    check(
        &one_less,
        &expect![[r#"
            {
              "apiVersion": "v1",
              "data": {
                "b": "2",
                "c": "3"
              },
              "kind": "ConfigMap",
              "metadata": {
                "name": "c",
                "namespace": "d"
              }
            }
            two Apply v1 2027-01-15T08:00:10Z:
              .data.b
              .data.c
            one Apply v1 2027-01-15T08:00:20Z:
              .data
        "#]],
    );
}

#[test]
fn conflicts_name_the_manager_and_the_field() {
    let deploy = schema("apps", "v1", "Deployment");
    let mut created = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "a", "image": "x"}]}}}
    });
    record_update(
        &deploy,
        None,
        &mut created,
        Writer {
            api_version: "apps/v1",
            ..writer("kubectl-client-side-apply", 0)
        },
    );
    let config = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "a", "image": "y"}]}}}
    });
    let error = run(&deploy, Some(&created), config.clone(), "me", 1, false).unwrap_err();
    expect![[r#"
        Apply failed with 2 conflicts: conflicts with "kubectl-client-side-apply" using apps/v1:
        - .spec.replicas
        - .spec.template.spec.containers[name="a"].image"#]]
    .assert_eq(&error.to_string());
    let mut one = config.clone();
    one["spec"].as_object_mut().unwrap().remove("template");
    let error = run(&deploy, Some(&created), one, "me", 1, false).unwrap_err();
    expect![[r#"Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.replicas"#]]
        .assert_eq(&error.to_string());

    let forced = run(&deploy, Some(&created), config, "me", 1, true).unwrap();
    check(
        &forced,
        &expect![[r#"
            {
              "apiVersion": "apps/v1",
              "kind": "Deployment",
              "metadata": {
                "name": "d"
              },
              "spec": {
                "replicas": 2,
                "template": {
                  "spec": {
                    "containers": [
                      {
                        "image": "y",
                        "name": "a"
                      }
                    ]
                  }
                }
              }
            }
            me Apply v1 2027-01-15T08:00:01Z:
              .spec.replicas
              .spec.template.spec.containers[name="a"]
              .spec.template.spec.containers[name="a"].image
              .spec.template.spec.containers[name="a"].name
            kubectl-client-side-apply Update apps/v1 2027-01-15T08:00:00Z:
              .spec.template.spec.containers[name="a"]
              .spec.template.spec.containers[name="a"].name
        "#]],
    );
}

#[test]
fn items_keep_their_place_and_the_fields_of_others() {
    let service = schema("", "v1", "Service");
    let make = |ports: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": ports}});
    let live = run(
        &service,
        None,
        make(json!([{"port": 80}, {"port": 80, "protocol": "UDP"}])),
        "one",
        0,
        false,
    )
    .unwrap();
    let mut live = live;
    live["spec"]["ports"][0]["protocol"] = json!("TCP");
    let live = run(
        &service,
        Some(&live),
        make(json!([{"port": 81}, {"port": 80, "name": "web"}])),
        "two",
        1,
        false,
    )
    .unwrap();
    assert_eq!(
        live["spec"]["ports"],
        json!([{"port": 81}, {"port": 80, "protocol": "TCP", "name": "web"}, {"port": 80, "protocol": "UDP"}]),
        "a new item stands where the configuration puts it"
    );
    let live = run(
        &service,
        Some(&live),
        make(json!([{"port": 80, "name": "web"}])),
        "two",
        2,
        false,
    )
    .unwrap();
    assert_eq!(
        live["spec"]["ports"],
        json!([{"port": 80, "protocol": "TCP", "name": "web"}, {"port": 80, "protocol": "UDP"}])
    );
}

#[test]
fn atomic_lists_and_maps_go_as_a_whole() {
    let deploy = schema("apps", "v1", "Deployment");
    let make = |labels: Value, args: Value| {
        json!({"apiVersion": "v1", "kind": "Deployment", "metadata": {"name": "s"},
            "spec": {"selector": {"matchLabels": labels}, "template": {"spec": {"containers": [{"name": "a", "args": args}]}}}})
    };
    let live = run(
        &deploy,
        None,
        make(json!({"a": "1"}), json!(["x", "y"])),
        "one",
        0,
        false,
    )
    .unwrap();
    let error = run(
        &deploy,
        Some(&live),
        make(json!({"b": "1"}), json!(["y"])),
        "two",
        1,
        false,
    )
    .unwrap_err();
    expect![[r#"
        Apply failed with 2 conflicts: conflicts with "one":
        - .spec.selector
        - .spec.template.spec.containers[name="a"].args"#]]
    .assert_eq(&error.to_string());
    let forced = run(
        &deploy,
        Some(&live),
        make(json!({"b": "1"}), json!(["y"])),
        "two",
        1,
        true,
    )
    .unwrap();
    assert_eq!(
        forced["spec"]["selector"],
        json!({"matchLabels": {"b": "1"}})
    );
    assert_eq!(
        forced["spec"]["template"]["spec"]["containers"],
        json!([{"name": "a", "args": ["y"]}])
    );
}

#[test]
fn updates_take_what_they_change() {
    let cm = schema("", "v1", "ConfigMap");
    let live = run(
        &cm,
        None,
        config_map(json!({"a": "1", "b": "2"})),
        "one",
        0,
        false,
    )
    .unwrap();
    let mut after = live.clone();
    after["data"] = json!({"a": "9", "c": "3"});
    after["metadata"]["labels"] = json!({"x": "y"});
    record_update(&cm, Some(&live), &mut after, writer("editor", 5));
    check(
        &after,
        &expect![[r#"
            {
              "apiVersion": "v1",
              "data": {
                "a": "9",
                "c": "3"
              },
              "kind": "ConfigMap",
              "metadata": {
                "labels": {
                  "x": "y"
                },
                "name": "c",
                "namespace": "d"
              }
            }
            editor Update v1 2027-01-15T08:00:05Z:
              .data.a
              .data.c
              .metadata.labels
              .metadata.labels.x
        "#]],
    );
    let mut same = after.clone();
    record_update(&cm, Some(&after), &mut same, writer("third", 9));
    assert_eq!(same, after);
    let mut reset = after.clone();
    reset["metadata"]["managedFields"] = json!([{}]);
    record_update(&cm, Some(&after), &mut reset, writer("third", 9));
    assert_eq!(reset["metadata"].get("managedFields"), None);
    let first = run(
        &cm,
        Some(&reset),
        config_map(json!({"a": "9"})),
        "one",
        20,
        false,
    )
    .unwrap();
    check(
        &first,
        &expect![[r#"
            {
              "apiVersion": "v1",
              "data": {
                "a": "9",
                "c": "3"
              },
              "kind": "ConfigMap",
              "metadata": {
                "labels": {
                  "x": "y"
                },
                "name": "c",
                "namespace": "d"
              }
            }
            one Apply v1 -:
              .data.a
            before-first-apply Update v1 2027-01-15T08:00:20Z:
              .data
              .data.a
              .data.c
              .metadata.labels
              .metadata.labels.x
        "#]],
    );
}

#[test]
fn subresources_have_entries_of_their_own() {
    let pod = schema("", "v1", "Pod");
    let mut created = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}});
    record_update(&pod, None, &mut created, writer("kubelet", 0));
    let mut status = created.clone();
    status["status"] =
        json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    record_update(
        &pod,
        Some(&created),
        &mut status,
        Writer {
            subresource: "status",
            ..writer("kubelet", 1)
        },
    );
    let entries: Vec<Value> = status["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| json!([e["manager"], e.get("subresource")]))
        .collect();
    assert_eq!(
        json!(entries),
        json!([["kubelet", null], ["kubelet", "status"]])
    );
}

#[test]
fn no_more_than_ten_updaters_are_kept() {
    let cm = schema("", "v1", "ConfigMap");
    let mut live = config_map(json!({}));
    record_update(&cm, None, &mut live, writer("m0", 0));
    for i in 0..15 {
        let mut after = live.clone();
        after["data"][format!("k{i}")] = json!("v");
        record_update(&cm, Some(&live), &mut after, writer(&format!("m{i}"), i));
        live = after;
    }
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 10);
    assert_eq!(entries[0]["manager"], "ancient-changes");
    assert_eq!(
        entries[0]["fieldsV1"]["f:data"].as_object().unwrap().len(),
        7,
        "k0 to k5 and the map"
    );
}

#[test]
fn malformed_configurations_say_where() {
    let pod = schema("", "v1", "Pod");
    let table = [
        (
            json!({"spec": {"foo": 1}}),
            "failed to create typed patch object: .spec.foo: field not declared in schema",
        ),
        (
            json!({"spec": {"containers": [{"name": "a"}, {"name": "a"}]}}),
            "failed to create typed patch object: .spec.containers: duplicate entries for key [name=\"a\"]",
        ),
        (
            json!({"spec": {"nodeName": {}}}),
            "failed to create typed patch object: .spec.nodeName: expected string, got &value.valueUnstructured{Value:map[string]interface {}{}}",
        ),
        (
            json!({"metadata": {"managedFields": []}}),
            "failed to create typed patch object: metadata.managedFields must be nil",
        ),
    ];
    for (config, want) in table {
        assert_eq!(
            run(&pod, None, config, "m", 0, false)
                .unwrap_err()
                .to_string(),
            want
        );
    }
}
