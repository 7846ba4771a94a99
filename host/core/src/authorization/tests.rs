use expect_test::{Expect, expect};

use super::*;
use crate::capability::{ConfigstoreRule, KubernetesRule, SecretstoreRule};
use crate::document::Document;
use crate::fixtures::{document, kubernetes, put, secret};
use crate::request::KubernetesRequest;
use crate::result::Answer;

fn rule(names: &[&str], verbs: &[KubernetesVerb]) -> Capabilities {
    Capabilities {
        kubernetes: vec![KubernetesRule {
            api_groups: vec![String::new()],
            resources: vec!["configmaps".into()],
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            verbs: verbs.to_vec(),
            ..KubernetesRule::of_any_object()
        }],
        ..Capabilities::default()
    }
}

/// What of this answer is seen under these rules, or why the operation is not sent.
fn seen(operation: &Operation, rules: &Capabilities, answer: &[&str]) -> String {
    let unlimited = Ceiling::unlimited();
    match authorize(operation, Caller::default(), rules, &unlimited) {
        Ok(authorized) => {
            let answer = Answer {
                query_objects: answer.iter().map(|text| document(text)).collect(),
                ..Answer::default()
            };
            let objects = authorized.visible(answer).query_objects;
            objects
                .iter()
                .map(Document::to_string)
                .collect::<Vec<_>>()
                .join("; ")
        }
        Err(denied) => denied.into_fault().to_string(),
    }
}

#[track_caller]
fn check(operation: &Operation, rules: &Capabilities, answer: &[&str], expected: Expect) {
    expected.assert_eq(&seen(operation, rules, answer));
}

const OBJECT: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns","uid":"u","resourceVersion":"7","labels":{"a":"b"}},"data":{"password":"hunter2"}}"#;

#[test]
fn an_answer_is_seen_whole_where_a_rule_grants_get() {
    let created = Operation::Kubernetes(kubernetes(KubernetesVerb::Create, "x"));
    check(
        &created,
        &rule(&["*"], &[KubernetesVerb::Create]),
        &[OBJECT],
        expect![[
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns","uid":"u","resourceVersion":"7"}}"#
        ]],
    );
    let both = rule(&["*"], &[KubernetesVerb::Create, KubernetesVerb::Get]);
    check(
        &created,
        &both,
        &[OBJECT],
        expect![[
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns","uid":"u","resourceVersion":"7","labels":{"a":"b"}},"data":{"password":"hunter2"}}"#
        ]],
    );
}

#[test]
fn an_apply_at_a_version_needs_get() {
    let mut request = kubernetes(KubernetesVerb::Apply, "x");
    request.precondition = Some(crate::request::Precondition {
        uid: None,
        resource_version: Some("7".into()),
    });
    let apply = Operation::Kubernetes(request);
    check(
        &apply,
        &rule(&["*"], &[KubernetesVerb::Apply]),
        &[],
        expect![[
            r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [configmaps], namespaces: [ns], names: [x], verbs: [get]}"#
        ]],
    );
    check(
        &apply,
        &rule(&["*"], &[KubernetesVerb::Apply, KubernetesVerb::Get]),
        &[],
        expect![[r#""#]],
    );
}

#[test]
fn a_rule_with_names_reaches_no_generated_name() {
    let create = Operation::Kubernetes(KubernetesRequest {
        name: String::new(),
        body: Some(document(r#"{"metadata":{"generateName":"job-"}}"#)),
        ..kubernetes(KubernetesVerb::Create, "")
    });
    let verbs = [KubernetesVerb::Create];
    check(
        &create,
        &rule(&["job-*"], &verbs),
        &[],
        expect![[
            r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [configmaps], namespaces: [ns], verbs: [create]}"#
        ]],
    );
    check(
        &create,
        &rule(&[], &verbs),
        &[],
        expect![[
            r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [configmaps], namespaces: [ns], verbs: [create]}"#
        ]],
    );
    check(&create, &rule(&["*"], &verbs), &[], expect![[r#""#]]);
}

#[test]
fn stores_keep_what_get_does_not_grant() {
    let rules = |secret_verbs: &[SecretVerb], config_verbs: &[ConfigVerb]| Capabilities {
        configstore: vec![ConfigstoreRule {
            prefixes: vec!["basic/".into()],
            verbs: config_verbs.to_vec(),
            ..ConfigstoreRule::default()
        }],
        secretstore: vec![SecretstoreRule {
            names: vec!["*".into()],
            verbs: secret_verbs.to_vec(),
            ..SecretstoreRule::default()
        }],
        ..Capabilities::default()
    };
    let create = secret(SecretVerb::Create, "s").operation;
    let answer = [r#"{"name":"s","version":3,"value":"hunter2"}"#];
    check(
        &create,
        &rules(&[SecretVerb::Create], &[]),
        &answer,
        expect![[r#"{"name":"s","version":3}"#]],
    );
    check(
        &create,
        &rules(&[SecretVerb::Create, SecretVerb::Get], &[]),
        &answer,
        expect![[r#"{"name":"s","version":3,"value":"hunter2"}"#]],
    );
    let update = put("k", "new").operation;
    let answer = [r#"{"key":"basic/k","uid":"u","value":"new"}"#];
    check(
        &update,
        &rules(&[], &[ConfigVerb::Update]),
        &answer,
        expect![[r#"{"key":"basic/k","uid":"u"}"#]],
    );
    check(
        &update,
        &rules(&[], &[ConfigVerb::Update, ConfigVerb::Get]),
        &answer,
        expect![[r#"{"key":"basic/k","uid":"u","value":"new"}"#]],
    );
}

#[test]
fn naming_the_own_partition_is_like_naming_none() {
    let rules = Capabilities {
        configstore: vec![ConfigstoreRule {
            prefixes: vec!["basic/".into()],
            verbs: vec![ConfigVerb::Update],
            namespaces: Vec::new(),
        }],
        ..Capabilities::default()
    };
    let asked = |own: &str, named: Option<&str>| {
        let mut operation = put("key", "1").operation;
        if let Operation::Config(request) = &mut operation {
            request.partition = named.map(str::to_owned);
        }
        let caller = Caller {
            partition: own,
            ..Caller::default()
        };
        match authorize(&operation, caller, &rules, &Ceiling::unlimited()) {
            Ok(authorized) => format!("{:?}", authorized.operation().partition()),
            Err(denied) => denied.into_fault().to_string(),
        }
    };
    expect![["None"]].assert_eq(&asked("team-a", None));
    expect![["None"]].assert_eq(&asked("team-a", Some("team-a")));
    expect![["ResourcePermission: spec.capabilities has no rule that allows configstore: {namespaces: [team-b], prefixes: [basic/key], verbs: [update]}"]].assert_eq(&asked("team-a", Some("team-b")));
    expect![["ResourcePermission: spec.capabilities has no rule that allows configstore: {namespaces: [], prefixes: [basic/key], verbs: [update]}"]].assert_eq(&asked("", Some("")));
}
