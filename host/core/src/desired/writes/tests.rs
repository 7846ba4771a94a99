use expect_test::{Expect, expect};

use super::*;
use crate::desired::{ConfigContent, SecretContent};
use crate::fixtures::{apply, document, get, kubernetes, post, put, secret};
use crate::request::{ConfigBasic, ConfigOperation, ConfigVerb, KubernetesVerb, SecretVerb};

const DEFAULTS: Defaults<'_> = Defaults {
    namespace: "ns",
    partition: "team",
};

fn object(text: &str) -> DesiredEntry {
    DesiredEntry::new("entry", Content::Kubernetes(document(text)))
}

fn map(metadata: &str) -> DesiredEntry {
    object(&format!(
        r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {metadata}}}"#
    ))
}

#[track_caller]
fn check(entry: DesiredEntry, requests: &[Request], expected: Expect) {
    let set = DesiredSet {
        entries: vec![entry],
        ..DesiredSet::default()
    };
    let verdict = check_writes(&set, requests, DEFAULTS);
    expected.assert_eq(&verdict.map_or_else(|why| why, |()| "ok".into()));
}

fn changed(verb: KubernetesVerb, change: impl FnOnce(&mut KubernetesRequest)) -> Request {
    let mut request = kubernetes(verb, "a");
    change(&mut request);
    Request::new("r", Operation::Kubernetes(request))
}

#[test]
fn a_request_may_not_write_an_object_of_the_set() {
    let named = || map(r#"{"name": "a", "namespace": "ns"}"#);
    check(
        named(),
        &[get("b"), apply("a")],
        expect![[
            r#"request "a" writes ConfigMap ns/a, the member of the entry "entry" of the set: leave it to the set, or take the entry out"#
        ]],
    );
    for verb in KubernetesVerb::ALL
        .into_iter()
        .filter(|verb| verb.is_mutating())
    {
        let set = DesiredSet {
            entries: vec![named()],
            ..DesiredSet::default()
        };
        let requests = [changed(verb, |_| {})];
        assert!(check_writes(&set, &requests, DEFAULTS).is_err(), "{verb:?}");
    }
    // The entry leaves out its namespace, which is then that of its owner.
    check(
        map(r#"{"name": "a"}"#),
        &[changed(KubernetesVerb::Delete, |_| {})],
        expect![[
            r#"request "r" writes ConfigMap ns/a, the member of the entry "entry" of the set: leave it to the set, or take the entry out"#
        ]],
    );
    check(
        object(r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}"#),
        &[changed(KubernetesVerb::Patch, |request| {
            request.kind = "Node".into();
            request.plural = "nodes".into();
            request.namespace.clear();
        })],
        expect![[
            r#"request "r" writes Node a, the member of the entry "entry" of the set: leave it to the set, or take the entry out"#
        ]],
    );
    // Another version of the same kind is the same object.
    check(
        object(r#"{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}"#),
        &[changed(KubernetesVerb::Apply, |request| {
            request.group = "apps".into();
            request.version = "v1beta1".into();
            request.kind = "Deployment".into();
        })],
        expect![[
            r#"request "r" writes Deployment.apps ns/a, the member of the entry "entry" of the set: leave it to the set, or take the entry out"#
        ]],
    );
}

#[test]
fn requests_may_read_members_and_write_all_else() {
    let named = || map(r#"{"name": "a", "namespace": "ns"}"#);
    let requests = [
        get("a"),
        apply("b"),
        post("a"),
        put("a", "value"),
        secret(SecretVerb::Update, "a"),
        changed(KubernetesVerb::Apply, |request| {
            request.subresource = Some("status".into());
        }),
        changed(KubernetesVerb::Apply, |request| {
            request.namespace = "other".into();
        }),
        changed(KubernetesVerb::Apply, |request| {
            request.kind = "Secret".into()
        }),
        changed(KubernetesVerb::Create, |request| request.name.clear()),
    ];
    check(named(), &requests, expect!["ok"]);
    check(map("{}"), &[apply("a")], expect!["ok"]);
}

#[test]
fn a_request_may_not_write_a_member_in_a_store() {
    let write = ConfigOperation::Basic(ConfigBasic {
        verb: ConfigVerb::Update,
        key: "a".into(),
        value: Some("value".into()),
    });
    let value = |partition: Option<&str>| {
        DesiredEntry::new(
            "entry",
            Content::Config(ConfigContent {
                write: write.clone(),
                partition: partition.map(Into::into),
            }),
        )
    };
    let password = DesiredEntry::new(
        "entry",
        Content::Secret(SecretContent {
            name: "a".into(),
            value: None,
            partition: None,
        }),
    );
    check(
        value(Some("team")),
        &[put("a", "other")],
        expect![[
            r#"request "a" writes config-store key team/basic/a, the member of the entry "entry" of the set: leave it to the set, or take the entry out"#
        ]],
    );
    check(
        value(Some("other")),
        &[put("a", "other"), put("b", "other")],
        expect!["ok"],
    );
    check(
        password.clone(),
        &[secret(SecretVerb::Delete, "a")],
        expect![[
            r#"request "a" writes secret-store secret team/a, the member of the entry "entry" of the set: leave it to the set, or take the entry out"#
        ]],
    );
    check(
        password,
        &[
            secret(SecretVerb::Get, "a"),
            secret(SecretVerb::Update, "b"),
        ],
        expect!["ok"],
    );
}
