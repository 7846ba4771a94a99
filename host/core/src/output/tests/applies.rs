//! An object is applied to once: each apply is complete, so two would undo one another.

use super::*;

/// An apply of `ns/x`, changed.
fn apply_x(name: &str, change: impl FnOnce(&mut KubernetesRequest)) -> Request {
    let mut request = kubernetes(KubernetesVerb::Apply, "x");
    change(&mut request);
    Request::new(name, Operation::Kubernetes(request))
}

#[test]
fn an_object_is_applied_to_once_in_an_output() {
    let status = |request: &mut KubernetesRequest| request.subresource = Some("status".into());
    let in_apps = |request: &mut KubernetesRequest| request.group = "apps".into();
    let patch = Request::new(
        "b",
        Operation::Kubernetes(kubernetes(KubernetesVerb::Patch, "x")),
    );
    check_table(
        [
            (
                "twice",
                asks([apply_x("a", |_| {}), get("g"), apply_x("b", |_| {})]),
            ),
            (
                "twice, in a group",
                asks([apply_x("a", in_apps), apply_x("b", in_apps)]),
            ),
            (
                "twice, cluster-scoped",
                asks(["a", "b"].map(|name| apply_x(name, |request| request.namespace.clear()))),
            ),
            (
                "its status twice",
                asks([apply_x("a", status), apply_x("b", status)]),
            ),
            (
                "it and its status",
                asks([apply_x("a", |_| {}), apply_x("b", status)]),
            ),
            (
                "it and one of another group",
                asks([apply_x("a", |_| {}), apply_x("b", in_apps)]),
            ),
            ("an apply and a patch", asks([apply_x("a", |_| {}), patch])),
        ],
        expect![[r#"
            twice: ResourceGeneric: the output is invalid: the requests "a" and "b" both apply to configmaps ns/x
            twice, in a group: ResourceGeneric: the output is invalid: the requests "a" and "b" both apply to configmaps.apps ns/x
            twice, cluster-scoped: ResourceGeneric: the output is invalid: the requests "a" and "b" both apply to configmaps x
            its status twice: ResourceGeneric: the output is invalid: the requests "a" and "b" both apply to configmaps/status ns/x
            it and its status: ok
            it and one of another group: ok
            an apply and a patch: ok
        "#]],
    );
}

#[test]
fn an_object_is_applied_to_once_in_a_run() {
    let status = |request: &mut KubernetesRequest| request.subresource = Some("status".into());
    let object = kubernetes(KubernetesVerb::Apply, "x").object_key();
    let check_after = |applied: &[(&str, Option<&str>)], expected: Expect| {
        let applied = applied.iter().map(|(phase, subresource)| {
            (
                (object.clone(), subresource.map(Into::into)),
                (*phase).to_owned(),
            )
        });
        let rules = OutputRules {
            members: &[key("a")],
            is_batch: false,
            max_requests: 10,
            applied: &applied.collect(),
            is_leaf: false,
            sets: SetRule::Undeclared,
            partition: "ns",
        };
        let lines = [asks([apply_x("r", |_| {})]), asks([apply_x("r", status)])].map(|output| {
            let verdict = check(&output, rules);
            verdict.map_or_else(|fault| format!("{fault}\n"), |()| "ok\n".into())
        });
        expected.assert_eq(&lines.concat());
    };
    check_after(
        &[],
        expect![[r#"
        ok
        ok
    "#]],
    );
    check_after(
        &[("root", None)],
        expect![[r#"
        ResourceGeneric: the output is invalid: the request "r" applies to configmaps ns/x, which phase "root" of this run has applied to
        ok
    "#]],
    );
    check_after(
        &[("root", Some("status"))],
        expect![[r#"
        ok
        ResourceGeneric: the output is invalid: the request "r" applies to configmaps/status ns/x, which phase "root" of this run has applied to
    "#]],
    );
    check_after(
        &[("root", None), ("write", Some("status"))],
        expect![[r#"
        ResourceGeneric: the output is invalid: the request "r" applies to configmaps ns/x, which phase "root" of this run has applied to
        ResourceGeneric: the output is invalid: the request "r" applies to configmaps/status ns/x, which phase "write" of this run has applied to
    "#]],
    );
}
