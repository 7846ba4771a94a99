use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::desired::{ConfigContent, SecretContent};
use crate::document::Document;
use crate::graph::deletion::TerminationPolicy;
use crate::graph::entry::Orders;
use crate::request::{
    ConfigBasic, ConfigOperation, ConfigVerb, Operation, Readiness, Request, SecretRequest,
    SecretVerb,
};

const OWNER: Owner<'_> = Owner {
    group: "apps.example.org",
    kind: "Shop",
    namespace: "team-a",
    name: "web",
};

fn is_namespaced(group: &str, kind: &str) -> Option<bool> {
    match (group, kind) {
        ("", "ConfigMap" | "Pod" | "Secret") | ("apps", "Deployment") => Some(true),
        ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition") => Some(false),
        _ => None,
    }
}

fn object(name: &str, object: Value) -> DesiredEntry {
    DesiredEntry::new(name, Content::Kubernetes(Document::of(&object).unwrap()))
}

fn map(name: &str) -> DesiredEntry {
    object(
        name,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}),
    )
}

fn after(names: &[&str], entry: DesiredEntry) -> DesiredEntry {
    DesiredEntry {
        depends_on: names.iter().map(|name| (*name).to_owned()).collect(),
        ..entry
    }
}

fn set(entries: impl Into<Vec<DesiredEntry>>) -> DesiredSet {
    DesiredSet {
        entries: entries.into(),
        ..DesiredSet::default()
    }
}

fn check_of(owner: Owner<'_>, set: DesiredSet, expected: Expect) {
    let rules = SetRules {
        owner,
        partition: owner.namespace,
        taken: &["request"],
        is_namespaced: &is_namespaced,
    };
    let text = match set.check(rules) {
        Err(fault) => fault.to_string(),
        Ok(checked) => {
            let members = checked.graph.entries().iter();
            let members: Vec<String> = members.map(|entry| entry.key.to_string()).collect();
            members.join(", ")
        }
    };
    expected.assert_eq(&text);
}

#[track_caller]
fn check(set: DesiredSet, expected: Expect) {
    check_of(OWNER, set, expected);
}

#[test]
fn members_of_every_store_are_identified() {
    let config = Content::Config(ConfigContent {
        write: ConfigOperation::Basic(ConfigBasic {
            verb: ConfigVerb::Update,
            key: "a/b".into(),
            value: Some("1".into()),
        }),
        partition: None,
    });
    let secret = |partition: Option<&str>| {
        Content::Secret(SecretContent {
            name: "db".into(),
            value: None,
            partition: partition.map(str::to_owned),
        })
    };
    check(
        set([
            map("a"),
            DesiredEntry::new("config", config),
            DesiredEntry::new("own", secret(None)),
            DesiredEntry::new("other", secret(Some("team-b"))),
        ]),
        expect![
            "ConfigMap team-a/a, config-store key team-a/basic/a%2Fb, secret-store secret team-a/db, secret-store secret team-b/db"
        ],
    );
}

#[test]
fn a_namespace_is_filled_in_where_the_kind_has_one() {
    let in_namespace = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}});
    check(
        set([object("a", in_namespace)]),
        expect!["ConfigMap shop/a"],
    );
    let namespace = |metadata: Value| {
        object(
            "n",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}),
        )
    };
    check(
        set([namespace(json!({"name": "shop"}))]),
        expect!["Namespace shop"],
    );
    check(
        set([namespace(json!({"name": "shop", "namespace": "team-a"}))]),
        expect![[
            r#"ResourceGeneric: entry "n": Namespace is cluster-scoped: leave out `metadata.namespace`"#
        ]],
    );
    let cluster = Owner {
        namespace: "",
        ..OWNER
    };
    check_of(
        cluster,
        set([map("a")]),
        expect![[
            r#"ResourceGeneric: entry "a": ConfigMap is namespaced, and the owner has no namespace: name `metadata.namespace`"#
        ]],
    );
}

#[test]
fn a_kind_may_be_defined_by_the_set() {
    let definition = |scope: &str| {
        object(
            "definition",
            json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": "disks.example.org"},
                "spec": {"group": "example.org", "names": {"kind": "Disk"}, "scope": scope},
            }),
        )
    };
    let disk = || {
        object(
            "disk",
            json!({"apiVersion": "example.org/v1", "kind": "Disk", "metadata": {"name": "d"}}),
        )
    };
    check(
        set([disk(), definition("Namespaced")]),
        expect![
            "Disk.example.org team-a/d, CustomResourceDefinition.apiextensions.k8s.io disks.example.org"
        ],
    );
    check(
        set([disk(), definition("Cluster")]),
        expect![
            "Disk.example.org d, CustomResourceDefinition.apiextensions.k8s.io disks.example.org"
        ],
    );
    check(
        set([disk()]),
        expect![[
            r#"ResourceNotFound: entry "disk": neither the server nor the set has the kind Disk.example.org"#
        ]],
    );
}

#[test]
fn names_are_used_once() {
    check(
        set([map("a"), map("a")]),
        expect![[r#"ResourceGeneric: two entries or requests are named "a""#]],
    );
    check(
        set([map("request")]),
        expect![[r#"ResourceGeneric: two entries or requests are named "request""#]],
    );
    check(
        set([map("")]),
        expect![[r#"ResourceGeneric: the name "" of an entry must have 1 to 256 bytes"#]],
    );
    let other = DesiredEntry {
        name: "b".into(),
        ..map("a")
    };
    check(
        set([map("a"), other]),
        expect![[r#"ResourceGeneric: the entries "a" and "b" both describe ConfigMap team-a/a"#]],
    );
}

#[test]
fn dependencies_and_orders_are_checked() {
    check(
        set([after(&["b"], map("a"))]),
        expect![[r#"ResourceGeneric: "a" depends on "b", and no entry has that name"#]],
    );
    check(
        set([after(&["a"], map("a"))]),
        expect![[r#"ResourceGeneric: entries depend on one another in a circle: "a" → "a""#]],
    );
    check(
        set([
            after(&["b"], map("a")),
            after(&["c"], map("b")),
            after(&["a"], map("c")),
        ]),
        expect![[
            r#"ResourceGeneric: entries depend on one another in a circle: "a" → "b" → "c" → "a""#
        ]],
    );
    let ordered = DesiredSet {
        orders: Some(Orders {
            provision: vec![vec!["a".into()], vec!["x".into()]],
            ..Orders::default()
        }),
        ..set([map("a")])
    };
    check(
        ordered,
        expect![[
            r#"ResourceGeneric: the order `provision` names "x", and no entry has that name"#
        ]],
    );
}

#[test]
fn an_empty_set_must_be_meant() {
    check(
        set([]),
        expect![
            "ResourceGeneric: the set has no entries, which would delete all members; set `allow-empty` if that is meant"
        ],
    );
    let empty = DesiredSet {
        allow_empty: true,
        ..DesiredSet::default()
    };
    check(empty, expect![""]);
}

#[test]
fn what_the_owner_needs_is_no_member() {
    let own =
        json!({"apiVersion": "apps.example.org/v2", "kind": "Shop", "metadata": {"name": "web"}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "shops.apps.example.org"},
        "spec": {"group": "apps.example.org", "names": {"kind": "Shop"}, "scope": "Namespaced"},
    });
    check(
        set([object("own", own), object("definition", definition)]),
        expect![[r#"ResourceGeneric: entry "own": the set contains its own owner"#]],
    );
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "shops.apps.example.org"},
        "spec": {"group": "apps.example.org", "names": {"kind": "Shop"}, "scope": "Namespaced"},
    });
    check(
        set([object("definition", definition)]),
        expect![[
            r#"ResourceGeneric: entry "definition": the set contains the CustomResourceDefinition of its owner's kind"#
        ]],
    );
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}});
    check(
        set([object("namespace", namespace)]),
        expect![[
            r#"ResourceGeneric: entry "namespace": the set contains the Namespace of its owner"#
        ]],
    );
    for kind in NO_OWNERS {
        let owner = Owner {
            group: "",
            kind,
            ..OWNER
        };
        let rules = SetRules {
            owner,
            partition: "",
            taken: &[],
            is_namespaced: &is_namespaced,
        };
        assert!(set([map("a")]).check(rules).is_err(), "{kind}");
    }
}

#[test]
fn what_no_server_could_accept_is_found_before_anything_is_written() {
    let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "items": []});
    check(
        set([map("a"), object("list", list)]),
        expect![[
            r#"ResourceGeneric: entry "list": ConfigMapList is a list of objects; make an entry of each item"#
        ]],
    );
    check(
        set([object("text", json!("an object"))]),
        expect![[
            r#"ResourceGeneric: entry "text": the object needs `apiVersion`, a text that is not empty"#
        ]],
    );
    let hasty = DesiredEntry {
        timeout: Some(Duration::ZERO),
        ..map("a")
    };
    check(
        set([hasty]),
        expect![[r#"ResourceGeneric: entry "a": a timeout of zero leaves no time to be ready"#]],
    );
    let ignoring = DesiredEntry {
        ignored_paths: vec!["spec replicas".into()],
        ..map("a")
    };
    check(
        set([ignoring]),
        expect![[
            r#"ResourceGeneric: entry "a": `ignored-paths`: "spec replicas" is no path of the form .a.b, ['a.b'], [0] or [*] (at character 0)"#
        ]],
    );
    let elsewhere = Content::Secret(SecretContent {
        name: "db".into(),
        value: None,
        partition: Some("Team/A".into()),
    });
    check(
        set([DesiredEntry::new("s", elsewhere)]),
        expect![[r#"ResourceGeneric: entry "s": `partition` is no name of a namespace: "Team/A""#]],
    );
}

#[test]
fn termination_is_checked() {
    let policy = |policy: Termination| DesiredSet {
        termination_policy: Some(policy),
        ..set([map("a")])
    };
    check(
        policy(Termination::Policy(TerminationPolicy::WipeOut)),
        expect!["ConfigMap team-a/a"],
    );
    check(
        policy(Termination::Path(".spec.policy".into())),
        expect!["ConfigMap team-a/a"],
    );
    check(
        policy(Termination::Path("policy".into())),
        expect![[
            r#"ResourceGeneric: `termination-policy`: "policy" is no path of the form .a.b, ['a.b'], [0] or [*] (at character 0)"#
        ]],
    );
    let delete = |secret: &str| {
        Operation::Secret(SecretRequest {
            name: secret.into(),
            verb: SecretVerb::Delete,
            value: None,
            version: None,
            partition: None,
        })
    };
    let request = |name: &str, depends_on: &[&str]| Request {
        depends_on: depends_on.iter().map(|name| (*name).to_owned()).collect(),
        ..Request::new(name, delete("db"))
    };
    let before = |requests: Vec<Request>| DesiredSet {
        pre_terminate: requests,
        ..set([map("a")])
    };
    check(
        before(vec![request("x", &["y"]), request("y", &[])]),
        expect!["ConfigMap team-a/a"],
    );
    check(
        before(vec![request("x", &["a"])]),
        expect![[
            r#"ResourceGeneric: `pre-terminate`: "x" depends on "a", and no entry has that name"#
        ]],
    );
    check(
        before(vec![request("a", &[])]),
        expect![[r#"ResourceGeneric: two entries or requests are named "a""#]],
    );
    check(
        before(vec![Request::new("x", delete(""))]),
        expect![[r#"ResourceGeneric: request "x": the output is invalid: `secret-name` is empty"#]],
    );
    let declarative = Request {
        is_declarative: true,
        ..request("x", &[])
    };
    check(
        before(vec![declarative]),
        expect![[
            r#"ResourceGeneric: the request "x" of `pre-terminate` must not be declarative, and has no `group-by`, `of`, `once` or `bootstrap-dep`"#
        ]],
    );
    let once = Request {
        once: true,
        ..request("x", &[])
    };
    check(
        before(vec![once]),
        expect![[
            r#"ResourceGeneric: the request "x" of `pre-terminate` must not be declarative, and has no `group-by`, `of`, `once` or `bootstrap-dep`"#
        ]],
    );
    let awaited = Request {
        ready_when: Some(Readiness::Exists),
        ..request("x", &[])
    };
    check(
        before(vec![awaited]),
        expect![[
            r#"ResourceGeneric: the request "x" of `pre-terminate` has `ready-when`, and no object to be ready: it must read or write one Kubernetes object, and not delete it"#
        ]],
    );
}
