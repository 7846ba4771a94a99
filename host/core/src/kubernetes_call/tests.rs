use expect_test::{Expect, expect};

use super::*;
use crate::fixtures::{document, kubernetes};

fn prepare(request: &KubernetesRequest) -> Result<KubernetesCall, String> {
    KubernetesCall::prepare(request, "cfgr/c", "effect")
}

/// The call as it is sent, or why it cannot be.
fn shown(request: &KubernetesRequest) -> String {
    match prepare(request) {
        Ok(call) => {
            let body = call.body().map(|body| format!(" {body}"));
            format!(
                "{} {}{}",
                call.method().name(),
                call.url(),
                body.unwrap_or_default()
            )
        }
        Err(why) => format!("refused: {why}"),
    }
}

/// One line for each case: what it is, and the call.
#[track_caller]
fn check_table<What: AsRef<str>>(
    cases: impl IntoIterator<Item = (What, KubernetesRequest)>,
    expected: Expect,
) {
    let lines = cases
        .into_iter()
        .map(|(what, request)| format!("{}: {}\n", what.as_ref(), shown(&request)));
    expected.assert_eq(&lines.collect::<String>());
}

/// A request for the ConfigMap `x` in the namespace `ns`.
fn with(verb: KubernetesVerb, change: impl FnOnce(&mut KubernetesRequest)) -> KubernetesRequest {
    let mut request = kubernetes(verb, "x");
    change(&mut request);
    request
}

/// The same, with this body.
fn body(verb: KubernetesVerb, text: &str) -> KubernetesRequest {
    with(verb, |request| request.body = Some(document(text)))
}

fn patch(patch_type: PatchType, text: &str) -> KubernetesRequest {
    KubernetesRequest {
        patch_type,
        ..body(KubernetesVerb::Patch, text)
    }
}

#[test]
fn each_verb_needs_the_fields_that_it_uses() {
    let mut cases = Vec::new();
    for verb in KubernetesVerb::ALL {
        let mut add = |what: &str, change: fn(&mut KubernetesRequest)| {
            cases.push((format!("{} {what}", verb.name()), with(verb, change)));
        };
        add("complete", |_| {});
        add("without version", |request| request.version.clear());
        add("without plural", |request| request.plural.clear());
        add("without name", |request| request.name.clear());
        add("without body", |request| request.body = None);
        add("of a cluster-scoped object", |request| {
            request.namespace.clear();
        });
        add("with a precondition", |request| {
            request.precondition = Some(Precondition {
                uid: Some("u".into()),
                resource_version: Some("7".into()),
            });
        });
    }
    check_table(
        cases,
        expect![[r#"
        get complete: GET /api/v1/namespaces/ns/configmaps/x
        get without version: refused: `get` needs `version`
        get without plural: refused: `get` needs `plural`
        get without name: refused: `get` needs `name`
        get without body: GET /api/v1/namespaces/ns/configmaps/x
        get of a cluster-scoped object: GET /api/v1/configmaps/x
        get with a precondition: refused: `get` takes no `precondition`
        list complete: GET /api/v1/namespaces/ns/configmaps?limit=500
        list without version: refused: `list` needs `version`
        list without plural: refused: `list` needs `plural`
        list without name: GET /api/v1/namespaces/ns/configmaps?limit=500
        list without body: GET /api/v1/namespaces/ns/configmaps?limit=500
        list of a cluster-scoped object: GET /api/v1/configmaps?limit=500
        list with a precondition: refused: `list` takes no `precondition`
        patch complete: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {}
        patch without version: refused: `patch` needs `version`
        patch without plural: refused: `patch` needs `plural`
        patch without name: refused: `patch` needs `name`
        patch without body: refused: `patch` needs `resource-body`
        patch of a cluster-scoped object: PATCH /api/v1/configmaps/x?fieldManager=cfgr%2Fc {}
        patch with a precondition: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"metadata":{"resourceVersion":"7","uid":"u"}}
        delete complete: DELETE /api/v1/namespaces/ns/configmaps/x {"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"}
        delete without version: refused: `delete` needs `version`
        delete without plural: refused: `delete` needs `plural`
        delete without name: refused: `delete` needs `name`
        delete without body: DELETE /api/v1/namespaces/ns/configmaps/x {"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"}
        delete of a cluster-scoped object: DELETE /api/v1/configmaps/x {"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"}
        delete with a precondition: DELETE /api/v1/namespaces/ns/configmaps/x {"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"resourceVersion":"7","uid":"u"},"propagationPolicy":"Background"}
        create complete: POST /api/v1/namespaces/ns/configmaps?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns"}}
        create without version: refused: `create` needs `version`
        create without plural: refused: `create` needs `plural`
        create without name: refused: `create` needs `name`
        create without body: refused: `create` needs `resource-body`
        create of a cluster-scoped object: POST /api/v1/configmaps?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}
        create with a precondition: refused: `create` takes no `precondition`
        replace complete: PUT /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns"}}
        replace without version: refused: `replace` needs `version`
        replace without plural: refused: `replace` needs `plural`
        replace without name: refused: `replace` needs `name`
        replace without body: refused: `replace` needs `resource-body`
        replace of a cluster-scoped object: PUT /api/v1/configmaps/x?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}
        replace with a precondition: PUT /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns","resourceVersion":"7","uid":"u"}}
        apply complete: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns"}}
        apply without version: refused: `apply` needs `version`
        apply without plural: refused: `apply` needs `plural`
        apply without name: refused: `apply` needs `name`
        apply without body: refused: `apply` needs `resource-body`
        apply of a cluster-scoped object: PATCH /api/v1/configmaps/x?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}
        apply with a precondition: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns","resourceVersion":"7","uid":"u"}}
    "#]],
    );
}

#[test]
fn each_part_of_a_path_is_one_segment() {
    let get = |change: fn(&mut KubernetesRequest)| with(KubernetesVerb::Get, change);
    check_table(
        [
            ("a colon", get(|it| it.name = "system:node".into())),
            ("dots", get(|it| it.name = "a..b".into())),
            ("letters beyond ASCII", get(|it| it.name = "ä".into())),
            ("a slash in the name", get(|it| it.name = "a/b".into())),
            ("a dot as the name", get(|it| it.name = ".".into())),
            ("dots as the name", get(|it| it.name = "..".into())),
            ("an escape in the name", get(|it| it.name = "a%2fb".into())),
            ("a line in the name", get(|it| it.name = "a\nb".into())),
            ("a query", get(|it| it.namespace = "a?b".into())),
            ("dots as a namespace", get(|it| it.namespace = "..".into())),
            ("an upper case", get(|it| it.namespace = "A".into())),
            ("a fragment", get(|it| it.plural = "a#b".into())),
            ("an escape", get(|it| it.version = "v1%2f".into())),
            ("a slash", get(|it| it.group = "apps/v1".into())),
            ("dots as the version", get(|it| it.version = "..".into())),
            (
                "a slash in the subresource",
                get(|it| it.subresource = Some("a/b".into())),
            ),
            (
                "dots as the subresource",
                get(|it| it.subresource = Some("..".into())),
            ),
            (
                "a subresource",
                get(|it| it.subresource = Some("status".into())),
            ),
            (
                "an empty subresource",
                get(|it| it.subresource = Some("".into())),
            ),
            ("a long name", get(|it| it.name = "n".repeat(254))),
        ],
        expect![[r#"
            a colon: GET /api/v1/namespaces/ns/configmaps/system%3Anode
            dots: GET /api/v1/namespaces/ns/configmaps/a..b
            letters beyond ASCII: GET /api/v1/namespaces/ns/configmaps/%C3%A4
            a slash in the name: refused: `name` cannot be part of a path: "a/b"
            a dot as the name: refused: `name` cannot be part of a path: "."
            dots as the name: refused: `name` cannot be part of a path: ".."
            an escape in the name: refused: `name` cannot be part of a path: "a%2fb"
            a line in the name: refused: `name` cannot be part of a path: "a\nb"
            a query: refused: `namespace` cannot be part of a path: "a?b"
            dots as a namespace: refused: `namespace` cannot be part of a path: ".."
            an upper case: refused: `namespace` cannot be part of a path: "A"
            a fragment: refused: `plural` cannot be part of a path: "a#b"
            an escape: refused: `version` cannot be part of a path: "v1%2f"
            a slash: refused: `group` cannot be part of a path: "apps/v1"
            dots as the version: refused: `version` cannot be part of a path: ".."
            a slash in the subresource: refused: `subresource` cannot be part of a path: "a/b"
            dots as the subresource: refused: `subresource` cannot be part of a path: ".."
            a subresource: GET /api/v1/namespaces/ns/configmaps/x/status
            an empty subresource: refused: `subresource` is empty; leave it out for the object itself
            a long name: refused: `name` cannot be part of a path: "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"…
        "#]],
    );
}

#[test]
fn a_path_addresses_what_the_request_names() {
    let at = |verb, plural: &str, namespace: &str, name: &str, subresource: Option<&str>| {
        KubernetesRequest {
            plural: plural.into(),
            kind: String::new(),
            namespace: namespace.into(),
            name: name.into(),
            subresource: subresource.map(Into::into),
            ..with(verb, |_| {})
        }
    };
    let group = |group: &str, request: KubernetesRequest| KubernetesRequest {
        group: group.into(),
        ..request
    };
    use KubernetesVerb::{Create, Delete, Get, List};
    check_table(
        [
            (
                "Secrets of a namespace",
                at(Get, "namespaces", "", "shop", Some("secrets")),
            ),
            (
                "a Pod in a namespace",
                at(Create, "namespaces", "", "shop", Some("pods")),
            ),
            (
                "all Pods of a namespace",
                at(Delete, "namespaces", "", "shop", Some("pods")),
            ),
            (
                "Deployments of a namespace",
                group(
                    "apps",
                    at(Get, "namespaces", "", "shop", Some("deployments")),
                ),
            ),
            (
                "a Namespace's status",
                at(Get, "namespaces", "", "shop", Some("status")),
            ),
            (
                "a Namespace in a namespace",
                at(Get, "namespaces", "shop", "shop", None),
            ),
            ("a watch", at(Get, "watch", "", "secrets", None)),
            ("a proxy", at(Get, "proxy", "", "nodes", None)),
            (
                "a list behind a subresource",
                at(List, "pods", "shop", "", Some("log")),
            ),
            ("a list of one", at(List, "pods", "shop", "x", None)),
        ],
        expect![[r#"
            Secrets of a namespace: refused: a Namespace has no subresource "secrets": that path addresses a resource in the namespace
            a Pod in a namespace: refused: a Namespace has no subresource "pods": that path addresses a resource in the namespace
            all Pods of a namespace: refused: a Namespace has no subresource "pods": that path addresses a resource in the namespace
            Deployments of a namespace: refused: a Namespace has no subresource "deployments": that path addresses a resource in the namespace
            a Namespace's status: GET /api/v1/namespaces/shop/status
            a Namespace in a namespace: refused: a Namespace lies in no namespace: leave `namespace` empty
            a watch: refused: `plural` is "watch", which servers read as a verb in a path
            a proxy: refused: `plural` is "proxy", which servers read as a verb in a path
            a list behind a subresource: refused: `list` takes no `subresource`
            a list of one: refused: `list` takes no `name`; use a field selector
        "#]],
    );
}

#[test]
fn a_body_names_the_object_of_its_request() {
    let mut cases = Vec::new();
    for verb in [
        KubernetesVerb::Create,
        KubernetesVerb::Replace,
        KubernetesVerb::Apply,
    ] {
        for text in [
            r#"{"metadata": {"name": "x", "namespace": "ns"}, "kind": "ConfigMap", "apiVersion": "v1"}"#,
            r#"{"metadata": {"name": "admin"}}"#,
            r#"{"metadata": {"name": "x", "namespace": "kube-system"}}"#,
            r#"{"metadata": {"namespace": ""}}"#,
            r#"{"metadata": {"name": 7}}"#,
            r#"{"metadata": {"generateName": "x"}}"#,
            r#"{"metadata": {"generateName": "y"}}"#,
            r#"{"kind": "Secret"}"#,
            r#"{"apiVersion": "v2"}"#,
            r#"{"apiVersion": null, "kind": null, "metadata": null}"#,
            r#"{"metadata": "x"}"#,
            r#"{"metadata": {"name": "x"}, "metadata": {"name": "admin"}}"#,
            r#"{"metadata": {"name": "x", "name": "admin"}}"#,
            r#"{"metadata": {"name": "x", "n\u0061me": "admin"}}"#,
            r#"{"metadata": {"name": "x"}, "Metadata": {"name": "admin"}}"#,
            r#"{"metadata": {"name": "x", "Name": "admin"}}"#,
            r#"{"\u212aind": "Secret"}"#,
            r#"{"<<": {"kind": "Secret"}}"#,
            "[]",
            "null",
        ] {
            cases.push((format!("{} {text}", verb.name()), body(verb, text)));
        }
    }
    check_table(
        cases,
        expect![[r#"
        create {"metadata": {"name": "x", "namespace": "ns"}, "kind": "ConfigMap", "apiVersion": "v1"}: POST /api/v1/namespaces/ns/configmaps?fieldManager=cfgr%2Fc {"metadata": {"name": "x", "namespace": "ns"}, "kind": "ConfigMap", "apiVersion": "v1"}
        create {"metadata": {"name": "admin"}}: refused: the body has "admin" as `name`, and the request "x"
        create {"metadata": {"name": "x", "namespace": "kube-system"}}: refused: the body has "kube-system" as `namespace`, and the request "ns"
        create {"metadata": {"namespace": ""}}: POST /api/v1/namespaces/ns/configmaps?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns"}}
        create {"metadata": {"name": 7}}: refused: the body has "7" as `name`, and the request "x"
        create {"metadata": {"generateName": "x"}}: POST /api/v1/namespaces/ns/configmaps?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"x","name":"x","namespace":"ns"}}
        create {"metadata": {"generateName": "y"}}: refused: the body has "y" as `generateName`, and the request "x"
        create {"kind": "Secret"}: refused: the body has "Secret" as `kind`, and the request "ConfigMap"
        create {"apiVersion": "v2"}: refused: the body has "v2" as `apiVersion`, and the request "v1"
        create {"apiVersion": null, "kind": null, "metadata": null}: POST /api/v1/namespaces/ns/configmaps?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns"}}
        create {"metadata": "x"}: refused: the `metadata` of the body must be a JSON object
        create {"metadata": {"name": "x"}, "metadata": {"name": "admin"}}: refused: the body has the field `metadata` twice
        create {"metadata": {"name": "x", "name": "admin"}}: refused: the `metadata` of the body has the field `name` twice
        create {"metadata": {"name": "x", "n\u0061me": "admin"}}: refused: the `metadata` of the body has the field `name` twice
        create {"metadata": {"name": "x"}, "Metadata": {"name": "admin"}}: refused: the body has a field "Metadata", which some servers read as `metadata`
        create {"metadata": {"name": "x", "Name": "admin"}}: refused: the `metadata` of the body has a field "Name", which some servers read as `name`
        create {"\u212aind": "Secret"}: refused: the body has a field "Kind", which some servers read as `kind`
        create {"<<": {"kind": "Secret"}}: refused: the body has a field "<<", which YAML reads as a merge
        create []: refused: the body must be a JSON object
        create null: refused: the body must be a JSON object
        replace {"metadata": {"name": "x", "namespace": "ns"}, "kind": "ConfigMap", "apiVersion": "v1"}: PUT /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"metadata": {"name": "x", "namespace": "ns"}, "kind": "ConfigMap", "apiVersion": "v1"}
        replace {"metadata": {"name": "admin"}}: refused: the body has "admin" as `name`, and the request "x"
        replace {"metadata": {"name": "x", "namespace": "kube-system"}}: refused: the body has "kube-system" as `namespace`, and the request "ns"
        replace {"metadata": {"namespace": ""}}: PUT /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns"}}
        replace {"metadata": {"name": 7}}: refused: the body has "7" as `name`, and the request "x"
        replace {"metadata": {"generateName": "x"}}: PUT /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"x","name":"x","namespace":"ns"}}
        replace {"metadata": {"generateName": "y"}}: refused: the body has "y" as `generateName`, and the request "x"
        replace {"kind": "Secret"}: refused: the body has "Secret" as `kind`, and the request "ConfigMap"
        replace {"apiVersion": "v2"}: refused: the body has "v2" as `apiVersion`, and the request "v1"
        replace {"apiVersion": null, "kind": null, "metadata": null}: PUT /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns"}}
        replace {"metadata": "x"}: refused: the `metadata` of the body must be a JSON object
        replace {"metadata": {"name": "x"}, "metadata": {"name": "admin"}}: refused: the body has the field `metadata` twice
        replace {"metadata": {"name": "x", "name": "admin"}}: refused: the `metadata` of the body has the field `name` twice
        replace {"metadata": {"name": "x", "n\u0061me": "admin"}}: refused: the `metadata` of the body has the field `name` twice
        replace {"metadata": {"name": "x"}, "Metadata": {"name": "admin"}}: refused: the body has a field "Metadata", which some servers read as `metadata`
        replace {"metadata": {"name": "x", "Name": "admin"}}: refused: the `metadata` of the body has a field "Name", which some servers read as `name`
        replace {"\u212aind": "Secret"}: refused: the body has a field "Kind", which some servers read as `kind`
        replace {"<<": {"kind": "Secret"}}: refused: the body has a field "<<", which YAML reads as a merge
        replace []: refused: the body must be a JSON object
        replace null: refused: the body must be a JSON object
        apply {"metadata": {"name": "x", "namespace": "ns"}, "kind": "ConfigMap", "apiVersion": "v1"}: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"metadata": {"name": "x", "namespace": "ns"}, "kind": "ConfigMap", "apiVersion": "v1"}
        apply {"metadata": {"name": "admin"}}: refused: the body has "admin" as `name`, and the request "x"
        apply {"metadata": {"name": "x", "namespace": "kube-system"}}: refused: the body has "kube-system" as `namespace`, and the request "ns"
        apply {"metadata": {"namespace": ""}}: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns"}}
        apply {"metadata": {"name": 7}}: refused: the body has "7" as `name`, and the request "x"
        apply {"metadata": {"generateName": "x"}}: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"x","name":"x","namespace":"ns"}}
        apply {"metadata": {"generateName": "y"}}: refused: the body has "y" as `generateName`, and the request "x"
        apply {"kind": "Secret"}: refused: the body has "Secret" as `kind`, and the request "ConfigMap"
        apply {"apiVersion": "v2"}: refused: the body has "v2" as `apiVersion`, and the request "v1"
        apply {"apiVersion": null, "kind": null, "metadata": null}: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"ns"}}
        apply {"metadata": "x"}: refused: the `metadata` of the body must be a JSON object
        apply {"metadata": {"name": "x"}, "metadata": {"name": "admin"}}: refused: the body has the field `metadata` twice
        apply {"metadata": {"name": "x", "name": "admin"}}: refused: the `metadata` of the body has the field `name` twice
        apply {"metadata": {"name": "x", "n\u0061me": "admin"}}: refused: the `metadata` of the body has the field `name` twice
        apply {"metadata": {"name": "x"}, "Metadata": {"name": "admin"}}: refused: the body has a field "Metadata", which some servers read as `metadata`
        apply {"metadata": {"name": "x", "Name": "admin"}}: refused: the `metadata` of the body has a field "Name", which some servers read as `name`
        apply {"\u212aind": "Secret"}: refused: the body has a field "Kind", which some servers read as `kind`
        apply {"<<": {"kind": "Secret"}}: refused: the body has a field "<<", which YAML reads as a merge
        apply []: refused: the body must be a JSON object
        apply null: refused: the body must be a JSON object
    "#]],
    );
}

#[test]
fn the_body_of_a_subresource_has_a_type_of_its_own() {
    let scale = |text: &str| KubernetesRequest {
        subresource: Some("scale".into()),
        ..body(KubernetesVerb::Replace, text)
    };
    check_table(
        [
            ("its own type", scale(r#"{"kind": "Scale", "spec": {}}"#)),
            ("another name", scale(r#"{"metadata": {"name": "admin"}}"#)),
        ],
        expect![[r#"
            its own type: PUT /api/v1/namespaces/ns/configmaps/x/scale?fieldManager=cfgr%2Fc {"kind":"Scale","metadata":{"name":"x","namespace":"ns"},"spec":{}}
            another name: refused: the body has "admin" as `name`, and the request "x"
        "#]],
    );
}

#[test]
fn a_cluster_scoped_body_has_no_namespace() {
    let node = |text: &str| KubernetesRequest {
        namespace: String::new(),
        ..body(KubernetesVerb::Create, text)
    };
    check_table(
        [
            ("none", node("{}")),
            ("an empty one", node(r#"{"metadata": {"namespace": ""}}"#)),
            ("one", node(r#"{"metadata": {"namespace": "ns"}}"#)),
        ],
        expect![[r#"
            none: POST /api/v1/configmaps?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}
            an empty one: POST /api/v1/configmaps?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":""}}
            one: refused: the body has "ns" as `namespace`, and the request ""
        "#]],
    );
}

#[test]
fn a_patch_leaves_the_object_what_it_is() {
    let mut cases = Vec::new();
    for (name, patch_type) in [
        ("merge", PatchType::Merge),
        ("strategic", PatchType::Strategic),
    ] {
        for text in [
            r#"{"data": {"n": 1.10, "big": 9007199254740993}}"#,
            r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "ns"}}"#,
            r#"{"metadata": {"name": "admin"}}"#,
            r#"{"metadata": {"name": null}}"#,
            r#"{"metadata": {"namespace": "kube-system"}}"#,
            r#"{"metadata": {"generateName": "x"}}"#,
            r#"{"metadata": null}"#,
            r#"{"kind": "Secret"}"#,
            r#"{"apiVersion": null}"#,
            r#"{"$patch": "replace"}"#,
            r#"{"metadata": {"$patch": "delete"}}"#,
            r#"{"metadata": {"$retainKeys": ["labels"]}}"#,
            r#"{"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}"#,
            r#"{"metadata": {"labels": {}}, "metadata": {"name": "admin"}}"#,
            "[]",
        ] {
            cases.push((format!("{name} {text}"), patch(patch_type, text)));
        }
    }
    for text in [
        r#"[{"op": "add", "path": "/data/x", "value": 1.10}]"#,
        r#"[{"op": "test", "path": "/metadata/name", "value": "x"}]"#,
        r#"[{"op": "replace", "path": "/metadata/name", "value": "admin"}]"#,
        r#"[{"op": "replace", "path": "metadata/name", "value": "admin"}]"#,
        r#"[{"op": "replace", "path": "x/metadata/name", "value": "admin"}]"#,
        r#"[{"op": "replace", "path": "/metadata/Name", "value": "admin"}]"#,
        r#"[{"op": "replace", "path": "/metadata", "value": {"name": "admin"}}]"#,
        r#"[{"op": "replace", "path": "", "value": {}}]"#,
        r#"[{"op": "remove", "path": "/metadata/namespace"}]"#,
        r#"[{"op": "move", "from": "/metadata/name", "path": "/data/x"}]"#,
        r#"[{"op": "copy", "from": "/metadata/name", "path": "/data/x"}]"#,
        r#"[{"op": "copy", "from": "/data/x", "path": "/metadata/name"}]"#,
        r#"[{"op": "add", "path": "/kind", "value": "Secret"}]"#,
        r#"[{"op": "add", "path": "/data/x", "path": "/kind", "value": "Secret"}]"#,
        r#"[{"op": "Add", "path": "/kind", "value": "Secret"}]"#,
        r#"[{"op": "add", "path": "/metadata~1name", "value": "x"}]"#,
        r#"{"op": "add"}"#,
    ] {
        cases.push((format!("json {text}"), patch(PatchType::Json, text)));
    }
    check_table(
        cases,
        expect![[r#"
            merge {"data": {"n": 1.10, "big": 9007199254740993}}: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"data": {"n": 1.10, "big": 9007199254740993}}
            merge {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "ns"}}: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "ns"}}
            merge {"metadata": {"name": "admin"}}: refused: the body has "admin" as `name`, and the request "x"
            merge {"metadata": {"name": null}}: refused: the body has "null" as `name`, and the request "x"
            merge {"metadata": {"namespace": "kube-system"}}: refused: the body has "kube-system" as `namespace`, and the request "ns"
            merge {"metadata": {"generateName": "x"}}: refused: the patch changes `generateName`
            merge {"metadata": null}: refused: the `metadata` of the patch must be a JSON object
            merge {"kind": "Secret"}: refused: the body has "Secret" as `kind`, and the request "ConfigMap"
            merge {"apiVersion": null}: refused: the body has "null" as `apiVersion`, and the request "v1"
            merge {"$patch": "replace"}: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"$patch": "replace"}
            merge {"metadata": {"$patch": "delete"}}: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"metadata": {"$patch": "delete"}}
            merge {"metadata": {"$retainKeys": ["labels"]}}: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"metadata": {"$retainKeys": ["labels"]}}
            merge {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
            merge {"metadata": {"labels": {}}, "metadata": {"name": "admin"}}: refused: the patch has the field `metadata` twice
            merge []: refused: the patch must be a JSON object
            strategic {"data": {"n": 1.10, "big": 9007199254740993}}: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"data": {"n": 1.10, "big": 9007199254740993}}
            strategic {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "ns"}}: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "ns"}}
            strategic {"metadata": {"name": "admin"}}: refused: the body has "admin" as `name`, and the request "x"
            strategic {"metadata": {"name": null}}: refused: the body has "null" as `name`, and the request "x"
            strategic {"metadata": {"namespace": "kube-system"}}: refused: the body has "kube-system" as `namespace`, and the request "ns"
            strategic {"metadata": {"generateName": "x"}}: refused: the patch changes `generateName`
            strategic {"metadata": null}: refused: the `metadata` of the patch must be a JSON object
            strategic {"kind": "Secret"}: refused: the body has "Secret" as `kind`, and the request "ConfigMap"
            strategic {"apiVersion": null}: refused: the body has "null" as `apiVersion`, and the request "v1"
            strategic {"$patch": "replace"}: refused: the patch has `$patch` where it touches what object it is of
            strategic {"metadata": {"$patch": "delete"}}: refused: the patch has `$patch` where it touches what object it is of
            strategic {"metadata": {"$retainKeys": ["labels"]}}: refused: the patch has `$retainKeys` where it touches what object it is of
            strategic {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}}
            strategic {"metadata": {"labels": {}}, "metadata": {"name": "admin"}}: refused: the patch has the field `metadata` twice
            strategic []: refused: the patch must be a JSON object
            json [{"op": "add", "path": "/data/x", "value": 1.10}]: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc [{"op":"add","path":"/data/x","value":1.10}]
            json [{"op": "test", "path": "/metadata/name", "value": "x"}]: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc [{"op":"test","path":"/metadata/name","value":"x"}]
            json [{"op": "replace", "path": "/metadata/name", "value": "admin"}]: refused: the patch changes "/metadata/name", and with it what object it is of
            json [{"op": "replace", "path": "metadata/name", "value": "admin"}]: refused: the patch has a path without a slash at its beginning: "metadata/name"
            json [{"op": "replace", "path": "x/metadata/name", "value": "admin"}]: refused: the patch has a path without a slash at its beginning: "x/metadata/name"
            json [{"op": "replace", "path": "/metadata/Name", "value": "admin"}]: refused: the patch changes "/metadata/Name", and with it what object it is of
            json [{"op": "replace", "path": "/metadata", "value": {"name": "admin"}}]: refused: the patch changes "/metadata", and with it what object it is of
            json [{"op": "replace", "path": "", "value": {}}]: refused: the patch changes "", and with it what object it is of
            json [{"op": "remove", "path": "/metadata/namespace"}]: refused: the patch changes "/metadata/namespace", and with it what object it is of
            json [{"op": "move", "from": "/metadata/name", "path": "/data/x"}]: refused: the patch changes "/metadata/name", and with it what object it is of
            json [{"op": "copy", "from": "/metadata/name", "path": "/data/x"}]: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc [{"op":"copy","path":"/data/x","from":"/metadata/name"}]
            json [{"op": "copy", "from": "/data/x", "path": "/metadata/name"}]: refused: the patch changes "/metadata/name", and with it what object it is of
            json [{"op": "add", "path": "/kind", "value": "Secret"}]: refused: the patch changes "/kind", and with it what object it is of
            json [{"op": "add", "path": "/data/x", "path": "/kind", "value": "Secret"}]: refused: the body is not a JSON Patch (RFC 6902): line 1, column 40
            json [{"op": "Add", "path": "/kind", "value": "Secret"}]: refused: the body is not a JSON Patch (RFC 6902): line 1, column 13
            json [{"op": "add", "path": "/metadata~1name", "value": "x"}]: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc [{"op":"add","path":"/metadata~1name","value":"x"}]
            json {"op": "add"}: refused: the body is not a JSON Patch (RFC 6902): line 1, column 0
        "#]],
    );
}

#[test]
fn preconditions_have_the_form_of_the_request() {
    let held = |request: KubernetesRequest| KubernetesRequest {
        precondition: Some(Precondition {
            uid: Some("u".into()),
            resource_version: Some("7".into()),
        }),
        ..request
    };
    check_table(
        [
            (
                "apply",
                held(body(KubernetesVerb::Apply, r#"{"data": {"a": "b"}}"#)),
            ),
            (
                "json",
                held(patch(
                    PatchType::Json,
                    r#"[{"op": "remove", "path": "/data/x"}]"#,
                )),
            ),
            (
                "merge",
                held(patch(
                    PatchType::Merge,
                    r#"{"metadata": {"labels": {"a": "b"}}}"#,
                )),
            ),
        ],
        expect![[r#"
            apply: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"name":"x","namespace":"ns","resourceVersion":"7","uid":"u"}}
            json: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc [{"op":"test","path":"/metadata/uid","value":"u"},{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"remove","path":"/data/x"}]
            merge: PATCH /api/v1/namespaces/ns/configmaps/x?fieldManager=cfgr%2Fc {"metadata":{"labels":{"a":"b"},"resourceVersion":"7","uid":"u"}}
        "#]],
    );
}

#[test]
fn a_generated_name_is_the_same_for_each_attempt_of_one_effect() {
    let open = |text: &str| KubernetesRequest {
        name: String::new(),
        ..body(KubernetesVerb::Create, text)
    };
    let request = open(r#"{"metadata": {"generateName": "job-"}}"#);
    let name = |effect| {
        let call = KubernetesCall::prepare(&request, "cfgr/c", effect).expect("it can be sent");
        assert!(call.is_name_generated());
        call.request().name.clone()
    };
    assert_eq!(name("one"), name("one"));
    assert_ne!(name("one"), name("two"));
    check_table(
        [
            ("a prefix", request.clone()),
            (
                "a long prefix",
                open(&format!(
                    r#"{{"metadata": {{"generateName": "{}"}}}}"#,
                    "n".repeat(100)
                )),
            ),
            (
                "a name too",
                open(r#"{"metadata": {"generateName": "job-", "name": "admin"}}"#),
            ),
            ("a path", open(r#"{"metadata": {"generateName": "a/"}}"#)),
            ("nothing", open(r#"{"metadata": {"generateName": ""}}"#)),
        ],
        expect![[r#"
            a prefix: POST /api/v1/namespaces/ns/configmaps?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"job-","name":"job-gznq864kzm","namespace":"ns"}}
            a long prefix: POST /api/v1/namespaces/ns/configmaps?fieldManager=cfgr%2Fc {"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn","name":"nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnngznq864kzm","namespace":"ns"}}
            a name too: refused: the body has a `name`, and the request none: name it in both
            a path: refused: `name` cannot be part of a path: "a/gznq864kzm"
            nothing: refused: `create` needs `name`
        "#]],
    );
}

#[test]
fn requests_that_read_have_no_body_and_pages_follow_the_first() {
    let list = with(KubernetesVerb::List, |request| {
        request.label_selector = Some("a in (b, c)".into());
        request.field_selector = Some("metadata.name=x".into());
    });
    let call = prepare(&list).expect("it can be sent");
    expect!["/api/v1/namespaces/ns/configmaps?limit=500&labelSelector=a%20in%20%28b%2C%20c%29&fieldSelector=metadata.name%3Dx&continue=t%26x"]
        .assert_eq(&call.page_url("t&x"));
    assert_eq!(call.body(), None);
}

#[test]
fn a_message_stays_short_whatever_a_handler_writes() {
    let long = "x".repeat(100_000);
    let named = format!(r#"{{"metadata": {{"name": "{long}"}}}}"#);
    let pointed = format!(r#"[{{"op": "remove", "path": "{long}"}}]"#);
    for request in [
        with(KubernetesVerb::Get, |it| it.name = format!("{long}/")),
        with(KubernetesVerb::Get, |it| it.plural = long.clone()),
        with(KubernetesVerb::Get, |it| {
            it.subresource = Some(long.clone())
        }),
        body(KubernetesVerb::Apply, &named),
        patch(PatchType::Merge, &named),
        patch(PatchType::Json, &pointed),
    ] {
        let why = prepare(&request).expect_err("it is refused");
        assert!(why.len() < 1000, "{} bytes: {why:.200}", why.len());
    }
}
