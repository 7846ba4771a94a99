//! Laws that hold for all objects, and a real application.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::path::Path;

use configurator_schema::{
    FieldSet, Schema,
    apply::{ApplyRequest, apply},
    builtin, builtin_defaults, builtin_validate,
    managed::{Writer, fields_of, record_update},
    patch,
};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn writer(manager: &str, second: i64) -> Writer<'_> {
    Writer {
        manager,
        api_version: "v1",
        subresource: "",
        now: Timestamp::from_second(1_800_000_000 + second).unwrap(),
    }
}

/// A kind with every way to merge.
fn widgets() -> Schema {
    let text = json!({"type": "string"});
    Schema::from_crd(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "map": {"type": "object", "additionalProperties": text},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": text, "b": text}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "list": {"type": "array", "items": text},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "l"], "items": {
            "type": "object", "required": ["k"], "properties": {"k": text, "l": {"type": "string", "default": "d"}, "v": text, "w": {"type": "integer", "default": 7}}}},
        "n": {"type": "integer", "default": 1}
    }}}}))
    .unwrap()
}

fn word() -> impl Strategy<Value = String> {
    "[a-c]"
}

/// Some fields of a widget's spec.
fn spec() -> impl Strategy<Value = Value> {
    let texts = || prop::collection::btree_map(word(), word(), 0..4);
    let words = || prop::collection::btree_set(word(), 0..4);
    let keyed = prop::collection::btree_map(
        (word(), prop::option::of(word())),
        prop::option::of(word()),
        0..4,
    );
    (
        prop::option::of(texts()),
        prop::option::of(texts()),
        prop::option::of(words()),
        prop::option::of(words()),
        prop::option::of(keyed),
        prop::option::of(0..3_i64),
    )
        .prop_map(|(map, whole, set, list, keyed, n)| {
            let mut spec = Map::new();
            let mut put =
                |name: &str, value: Option<Value>| spec.extend(value.map(|v| (name.to_owned(), v)));
            put("map", map.map(|m| json!(m)));
            put(
                "whole",
                whole
                    .map(|m| {
                        m.into_iter()
                            .filter(|(k, _)| k != "c")
                            .collect::<std::collections::BTreeMap<_, _>>()
                    })
                    .map(|m| json!(m)),
            );
            put("set", set.map(|s| json!(s)));
            put("list", list.map(|s| json!(s)));
            put(
                "keyed",
                keyed.map(|m| {
                    // The default of a key makes ("a", none) and ("a", "d") one: no "d" is drawn.
                    m.into_iter()
                        .map(|((k, l), v)| {
                            let mut item = json!({"k": k});
                            if let Some(l) = l {
                                item["l"] = json!(l)
                            }
                            if let Some(v) = v {
                                item["v"] = json!(v)
                            }
                            item
                        })
                        .collect()
                }),
            );
            put("n", n.map(|n| json!(n)));
            Value::Object(spec)
        })
}

fn widget(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

fn run(schema: &Schema, live: Option<&Value>, spec: &Value, manager: &str, second: i64) -> Value {
    apply(ApplyRequest {
        schema,
        live,
        config: widget(spec.clone()),
        writer: writer(manager, second),
        force: true,
    })
    .unwrap()
}

/// The fields of one manager.
fn owned(object: &Value, manager: &str) -> FieldSet {
    object["metadata"]
        .get("managedFields")
        .map(|m| fields_of(m, |name| name == manager))
        .unwrap_or_default()
}

/// Whether all of `part` is in `whole`, where lists count as sets.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(w), Value::Object(p)) => p
            .iter()
            .all(|(k, v)| w.get(k).is_some_and(|w| contains(w, v))),
        (Value::Array(w), Value::Array(p)) => p.iter().all(|v| w.iter().any(|w| contains(w, v))),
        (w, p) => w == p,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn an_apply_holds_and_is_idempotent(first in spec(), second in spec()) {
        let schema = widgets();
        let live = run(&schema, None, &first, "one", 0);
        prop_assert!(contains(&live["spec"], &first));
        let live = run(&schema, Some(&live), &second, "two", 1);
        prop_assert!(contains(&live["spec"], &second), "{}", live);
        prop_assert_eq!(&run(&schema, Some(&live), &second, "two", 9), &live);
    }

    #[test]
    fn what_only_one_manager_owned_goes_with_it(first in spec(), second in spec()) {
        let schema = widgets();
        let alone = run(&schema, None, &first, "one", 0);
        let both = run(&schema, Some(&alone), &second, "two", 1);
        let after = run(&schema, Some(&both), &json!({}), "two", 2);
        prop_assert!(owned(&after, "two").paths().iter().all(|p| p == ".spec"), "{:?}", owned(&after, "two").paths());
        // What the first still owned is still there.
        let kept = owned(&both, "one");
        prop_assert_eq!(kept.paths(), owned(&after, "one").paths());
    }

    #[test]
    fn an_update_leaves_each_change_with_its_writer(first in spec(), second in spec()) {
        let schema = widgets();
        let mut before = widget(first);
        record_update(&schema, None, &mut before, writer("one", 0));
        let mut after = before.clone();
        after["spec"] = second;
        record_update(&schema, Some(&before), &mut after, writer("two", 1));
        prop_assert!(owned(&after, "one").intersection(&owned(&after, "two")).is_empty());
        let mut same = after.clone();
        record_update(&schema, Some(&after), &mut same, writer("three", 2));
        prop_assert_eq!(same, after);
    }

    #[test]
    fn what_all_managers_own_is_all_there_is(first in spec(), second in spec()) {
        let schema = widgets();
        let live = run(&schema, None, &first, "one", 0);
        let live = run(&schema, Some(&live), &second, "two", 1);
        let all = live["metadata"].get("managedFields").map(|m| fields_of(m, |_| true)).unwrap_or_default();
        let left = all.remove_from(&live);
        prop_assert!(left.get("spec").is_none_or(|s| s.as_object().is_some_and(|m| m.values().all(|v| v.as_array().is_some_and(Vec::is_empty)))), "{}", left);
    }

    #[test]
    fn pruning_and_defaulting_are_done_once(spec in spec(), extra in word()) {
        let schema = widgets();
        let mut object = widget(spec);
        object["spec"][format!("x{extra}")] = json!({"y": 1});
        prop_assert_eq!(schema.prune(&mut object), vec![format!("spec.x{extra}")]);
        prop_assert!(schema.prune(&mut object).is_empty());
        schema.default(&mut object);
        let once = object.clone();
        schema.default(&mut object);
        prop_assert_eq!(&object, &once);
        prop_assert_eq!(schema.validate(&object, None), vec![]);
    }

    #[test]
    fn no_input_panics(text in "\\PC{0,40}", object in json_value()) {
        let pod = builtin("", "v1", "Pod").unwrap();
        let _ = Schema::from_crd(&object);
        let _ = Schema::from_crd(&json!({"type": "object", "x-kubernetes-validations": [{"rule": text}]}));
        let _ = FieldSet::from_value(&object);
        for kind in ["Pod", "Service", "Secret", "ConfigMap", "Namespace"] {
            let mut copy = object.clone();
            builtin_defaults("", "v1", kind, &mut copy);
            builtin_validate("", "v1", kind, &copy, Some(&object));
        }
        let mut copy = object.clone();
        pod.prune(&mut copy);
        pod.validate(&object, None);
        let _ = patch::strategic(&pod, &mut copy, &object);
        let _ = patch::json(&mut copy, &object);
        patch::merge(&mut copy, &object);
        let _ = apply(ApplyRequest { schema: &pod, live: Some(&copy), config: object.clone(), writer: writer("m", 0), force: true });
        record_update(&pod, Some(&object), &mut copy, writer("m", 0));
    }
}

/// Objects with the names that code looks for.
fn json_value() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        Just("metadata"),
        Just("spec"),
        Just("containers"),
        Just("name"),
        Just("ports"),
        Just("managedFields"),
        Just("data"),
        Just("stringData"),
        Just("type"),
        Just("properties"),
        Just("items"),
        Just("$patch"),
        Just("$retainKeys"),
        Just("fieldsV1"),
        Just("f:spec"),
        Just("volumes"),
        Just("env"),
        Just("labels"),
        Just("template"),
        Just("resources"),
        Just("limits"),
        Just("x-kubernetes-list-type"),
        Just("default"),
        Just("status")
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop_oneof![
            Just("object"),
            Just("array"),
            Just("a"),
            Just("Pod"),
            Just("1Gi"),
            Just("replace"),
            Just("map")
        ]
        .prop_map(Value::from)
    ];
    leaf.prop_recursive(6, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(name.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

#[test]
fn a_real_application_is_valid_and_applies_once() {
    // Below the package, where cargo runs tests.
    let path = Path::new("../../../shared/data/online-boutique.yaml");
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("no data at {}: nothing was tried", path.display());
        return;
    };
    let mut count = 0;
    for document in text.split("\n---") {
        let Ok(object) = serde_saphyr::from_str::<Value>(document) else {
            continue;
        };
        if !object.is_object() {
            continue;
        }
        count += 1;
        let api_version = object["apiVersion"].as_str().unwrap().to_owned();
        let kind = object["kind"].as_str().unwrap();
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let schema = builtin(group, version, kind).unwrap();
        let named = format!("{kind} {}", object["metadata"]["name"]);
        assert_eq!(
            schema.prune(&mut object.clone()),
            [] as [&str; 0],
            "{named}"
        );

        let request = |live, config, second| ApplyRequest {
            schema: &schema,
            live,
            config,
            writer: Writer {
                api_version: &api_version,
                ..writer("me", second)
            },
            force: false,
        };
        let mut live = apply(request(None, object.clone(), 0)).unwrap();
        builtin_defaults(group, version, kind, &mut live);
        assert_eq!(schema.validate(&live, None), [], "{named}");
        assert_eq!(
            builtin_validate(group, version, kind, &live, None),
            [],
            "{named}"
        );
        let again = apply(request(Some(&live), object.clone(), 60)).unwrap();
        assert_eq!(again, live, "{named}: applying twice changes nothing");
        let mut patched = live.clone();
        patch::strategic(&schema, &mut patched, &object).unwrap();
        builtin_defaults(group, version, kind, &mut patched);
        assert_eq!(
            patched, live,
            "{named}: a patch with what is there changes nothing"
        );
    }
    assert!(count > 30, "{count} objects");
}
