//! Requests and rules, half of them ordinary and half of them odd.

use configurator_core::capability::{Capabilities, KubernetesRule};
use configurator_core::document::Document;
use configurator_core::request::{
    KubernetesRequest, KubernetesVerb, PatchType, Precondition, PropagationPolicy,
};
use serde_json::{Map, Value, json};

use super::chance::Chance;

const GROUPS: [&str; 4] = ["", "apps", "example.dev", "rbac.authorization.k8s.io"];
const PLURALS: [&str; 4] = ["configmaps", "secrets", "namespaces", "pods"];
const NAMESPACES: [&str; 3] = ["", "shop", "kube-system"];
const NAMES: [&str; 4] = ["hello", "admin", "app-x", "system:node"];
const SUBRESOURCES: [&str; 3] = ["status", "scale", "finalize"];
/// What no part of a path should be, and what may be one although it looks as if it should not.
const ODD: [&str; 24] = [
    "",
    ".",
    "..",
    "a/b",
    "a%2fb",
    "%2e%2e",
    "..%2f",
    "ä",
    "日本",
    "a b",
    "a?b",
    "a#b",
    "a;b",
    "watch",
    "proxy",
    "secrets",
    "namespaces",
    "*",
    "a\nb",
    "\u{0}",
    "A",
    "-",
    "//",
    "\u{ff0e}\u{ff0e}",
];

/// A request, and what is in its body.
pub struct Case {
    pub request: KubernetesRequest,
    pub body: BodyFacts,
    /// Whether the server has the object.
    pub exists: bool,
}

/// What a generated body says about the object that it is of.
#[derive(Debug, Clone, Default)]
pub struct BodyFacts {
    /// The body without what follows, as JSON; `null` where there is none.
    pub value: Value,
    pub api_version: Option<String>,
    pub kind: Option<String>,
    pub name: Option<String>,
    pub namespace: Option<String>,
    pub generate_name: Option<String>,
    /// Two servers may read it differently, or it has not the form of its verb.
    pub is_ambiguous: bool,
    /// The operations of a JSON Patch: whether one of them may change what the object is.
    pub touches_identity: bool,
}

fn part(chance: &mut Chance, ordinary: &[&str]) -> String {
    match chance.one_in(24) {
        true => chance.pick(&ODD).to_owned(),
        false => chance.pick(ordinary).to_owned(),
    }
}

/// Rules: often one that fits what is asked for, more or less.
pub fn rules(chance: &mut Chance, case: &KubernetesRequest) -> Capabilities {
    if chance.one_in(3) {
        return Capabilities::everything();
    }
    let number = 1 + chance.below(3);
    let kubernetes = (0..number).map(|_| rule(chance, case)).collect();
    Capabilities {
        kubernetes,
        ..Capabilities::default()
    }
}

fn rule(chance: &mut Chance, case: &KubernetesRequest) -> KubernetesRule {
    let mut list = |own: &str, others: &[&str], is_often_all: bool| {
        let patterns = ["*", "app-*", "*-system", "h*o"];
        match chance.below(16) {
            0..2 if is_often_all => vec!["*".to_owned()],
            1 => Vec::new(),
            2 => vec![chance.pick(&patterns).to_owned()],
            3 => chance.some(2, others),
            4 => vec![String::new()],
            _ => vec![own.to_owned(), chance.pick(others).to_owned()],
        }
    };
    let api_groups = list(&case.group, &GROUPS, false);
    let resources = list(&case.plural, &PLURALS, false);
    let namespaces = list(&case.namespace, &NAMESPACES, true);
    let names = list(&case.name, &NAMES, true);
    let subresources = match &case.subresource {
        None if chance.one_in(8) => vec!["*".to_owned()],
        None => Vec::new(),
        Some(_) if chance.one_in(8) => Vec::new(),
        Some(own) => vec![own.clone(), chance.pick(&SUBRESOURCES).to_owned()],
    };
    let mut verbs = vec![case.verb];
    if chance.one_in(2) {
        verbs.push(KubernetesVerb::Get);
    }
    if chance.one_in(12) {
        verbs.remove(0);
    }
    KubernetesRule {
        api_groups,
        resources,
        subresources,
        namespaces,
        names,
        verbs,
        watch: chance.one_in(2),
    }
}

pub fn case(chance: &mut Chance) -> Case {
    let verb = KubernetesVerb::ALL[chance.below(KubernetesVerb::ALL.len())];
    let plural = part(chance, &PLURALS);
    let mut request = KubernetesRequest {
        kind: if chance.one_in(3) { "" } else { "Thing" }.to_owned(),
        namespace: match plural == "namespaces" && !chance.one_in(4) {
            true => String::new(),
            false => part(chance, &NAMESPACES),
        },
        name: part(chance, &NAMES),
        subresource: chance.one_in(4).then(|| part(chance, &SUBRESOURCES)),
        precheck_exist: chance.one_in(2),
        force: chance.one_in(2),
        propagation_policy: match chance.below(3) {
            0 => PropagationPolicy::Background,
            1 => PropagationPolicy::Foreground,
            _ => PropagationPolicy::Orphan,
        },
        patch_type: match chance.below(3) {
            0 => PatchType::Merge,
            1 => PatchType::Json,
            _ => PatchType::Strategic,
        },
        label_selector: chance.one_in(3).then(|| "a in (b, c)&x=y".to_owned()),
        field_selector: chance.one_in(3).then(|| "metadata.name=x".to_owned()),
        ..KubernetesRequest::new(
            verb,
            &part(chance, &GROUPS),
            &part(chance, &["v1"]),
            &plural,
        )
    };
    if verb == KubernetesVerb::List && !chance.one_in(8) {
        request.name.clear();
        request.subresource = None;
    }
    if verb.is_mutating() && verb != KubernetesVerb::Create && chance.one_in(4) {
        request.precondition = Some(Precondition {
            uid: chance.one_in(2).then(|| "u-1".to_owned()),
            resource_version: chance.one_in(2).then(|| "7".to_owned()),
        });
    }
    let body = match verb {
        KubernetesVerb::Get | KubernetesVerb::List | KubernetesVerb::Delete => BodyFacts::default(),
        KubernetesVerb::Patch if request.patch_type == PatchType::Json => {
            json_patch(chance, &mut request)
        }
        KubernetesVerb::Patch
        | KubernetesVerb::Create
        | KubernetesVerb::Replace
        | KubernetesVerb::Apply => object(chance, &mut request),
    };
    Case {
        request,
        body,
        exists: chance.one_in(2),
    }
}

/// A body that agrees with its request in most fields, and now and then in none.
fn object(chance: &mut Chance, request: &mut KubernetesRequest) -> BodyFacts {
    let api_version = match request.group.as_str() {
        "" => request.version.clone(),
        group => format!("{group}/{}", request.version),
    };
    let mut facts = BodyFacts::default();
    let mut says = |own: &str| match chance.below(48) {
        0..16 => None,
        16 => Some("other".to_owned()),
        17 => Some(String::new()),
        _ => Some(own.to_owned()),
    };
    facts.api_version = says(&api_version);
    facts.kind = says(&request.kind);
    facts.name = says(&request.name);
    facts.namespace = says(&request.namespace);
    if request.verb == KubernetesVerb::Create && chance.one_in(8) {
        request.name.clear();
        facts.name = None;
        facts.generate_name = Some("job-".to_owned());
    } else if chance.one_in(24) {
        facts.generate_name = Some(chance.pick(&["app-", "x"]).to_owned());
    }
    let mut metadata = Map::new();
    for (field, value) in [
        ("name", &facts.name),
        ("namespace", &facts.namespace),
        ("generateName", &facts.generate_name),
    ] {
        if let Some(value) = value {
            metadata.insert(field.into(), value.as_str().into());
        }
    }
    if chance.one_in(3) {
        metadata.insert("labels".into(), json!({"a": "b"}));
    }
    let mut object = Map::new();
    for (field, value) in [("apiVersion", &facts.api_version), ("kind", &facts.kind)] {
        if let Some(value) = value {
            object.insert(field.into(), value.as_str().into());
        }
    }
    if !metadata.is_empty() || chance.one_in(2) {
        object.insert("metadata".into(), Value::Object(metadata));
    }
    object.insert("data".into(), json!({"k": "v"}));
    facts.value = Value::Object(object);
    let mut text = facts.value.to_string();
    let is_object_patch = request.verb == KubernetesVerb::Patch;
    if chance.one_in(12) {
        let tricks = [
            r#","metadata":{"name":"admin"},"metadata":{"name":"admin"}"#,
            r#","Metadata":{"name":"admin"}"#,
            r#","KIND":"Secret""#,
            r#","<<":{"metadata":{"name":"admin"}}"#,
            r#","\u212aind":"Secret""#,
        ];
        text.insert_str(text.len() - 1, chance.pick(&tricks));
        facts.is_ambiguous = true;
    } else if is_object_patch && request.patch_type == PatchType::Strategic && chance.one_in(8) {
        text.insert_str(text.len() - 1, r#","$patch":"replace""#);
        facts.is_ambiguous = true;
    } else if chance.one_in(24) {
        text = chance.pick(&["[]", "null", "7", r#""{}""#]).to_owned();
        facts.is_ambiguous = true;
    }
    request.body = Some(Document::parse(text).unwrap());
    facts
}

/// A JSON Patch whose paths are known to be harmless, or not.
fn json_patch(chance: &mut Chance, request: &mut KubernetesRequest) -> BodyFacts {
    const HARMLESS: [&str; 6] = [
        "/data/k",
        "/metadata/labels/a",
        "/metadata~1name",
        "/spec/kind",
        "/metadata/annotations/name",
        "/data/metadata",
    ];
    const IDENTITY: [&str; 12] = [
        "",
        "/metadata",
        "/kind",
        "/apiVersion",
        "/metadata/name",
        "/metadata/namespace",
        "/metadata/generateName",
        "/metadata/Name",
        "/Kind",
        "/\u{212a}ind",
        "/metadata/name/",
        "/m\u{65}tadata/name",
    ];
    /// Read by some servers as if the beginning were not there.
    const LOOSE: [&str; 2] = ["metadata/name", "x/kind"];
    let mut facts = BodyFacts::default();
    let mut operations = Vec::new();
    for _ in 0..=chance.below(2) {
        let odd = chance.one_in(8);
        let (path, is_identity) = match odd {
            true => (chance.pick(&IDENTITY), true),
            false => (chance.pick(&HARMLESS), false),
        };
        let (from, is_identity_from) = match chance.one_in(6) {
            true => (chance.pick(&IDENTITY), true),
            false => (chance.pick(&HARMLESS), false),
        };
        let operation = match chance.below(6) {
            0 => json!({"op": "test", "path": path, "value": 1}),
            1 => json!({"op": "remove", "path": path}),
            2 => json!({"op": "replace", "path": path, "value": "x"}),
            3 => json!({"op": "move", "path": path, "from": from}),
            4 => json!({"op": "copy", "path": path, "from": from}),
            _ => json!({"op": "add", "path": path, "value": "x"}),
        };
        facts.touches_identity |= match operation["op"].as_str().unwrap() {
            "test" => false,
            "move" => is_identity || is_identity_from,
            _ => is_identity,
        };
        operations.push(operation);
    }
    if chance.one_in(12) {
        facts.touches_identity = true;
        operations.push(json!({"op": "add", "path": chance.pick(&LOOSE), "value": "x"}));
    }
    facts.value = Value::Array(operations);
    request.body = Some(Document::of(&facts.value).unwrap());
    facts
}
