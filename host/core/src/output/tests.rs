use std::collections::BTreeSet;
use std::time::Duration;

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::document::Document;
use crate::fixtures::{apply, asks, document, get, key, kubernetes, post, put, secret};
use crate::handler::{
    DesiredSet, Event, EventType, HandlerError, Progress, StatusUpdate, Wake,
};
use crate::request::{
    ConfigAppConf, ConfigBasic, ConfigRequest, ConfigResource, ConfigTwoLayers, ConfigType,
    HttpRequest, Precondition, Readiness, SecretVerb,
};

/// What the check says about an output of a run of `ns/a` and `ns/b`, of which none was applied to.
fn verdict(output: &HandlerOutput, is_batch: bool) -> String {
    let members = [key("a"), key("b")];
    let members = if is_batch { &members[..] } else { &members[..1] };
    let rules = OutputRules { members, is_batch, max_requests: 10, applied: &BTreeMap::new() };
    match check(output, rules) {
        Ok(()) => "ok".into(),
        Err(fault) => fault.to_string(),
    }
}

#[track_caller]
fn check_one(output: &HandlerOutput, expected: Expect) {
    expected.assert_eq(&verdict(output, false));
}

#[track_caller]
fn check_batch(output: &HandlerOutput, expected: Expect) {
    expected.assert_eq(&verdict(output, true));
}

/// One line for each case: what it is, and what the check says about it.
#[track_caller]
fn check_table<What: AsRef<str>>(
    cases: impl IntoIterator<Item = (What, HandlerOutput)>,
    expected: Expect,
) {
    let lines = cases.into_iter().map(|(what, output)| {
        format!("{}: {}\n", what.as_ref(), verdict(&output, false))
    });
    expected.assert_eq(&lines.collect::<String>());
}

fn with(mut request: Request, change: impl FnOnce(&mut Request)) -> Request {
    change(&mut request);
    request
}

/// A request `r` at the Kubernetes API.
fn to_kubernetes(
    verb: KubernetesVerb,
    change: impl FnOnce(&mut KubernetesRequest),
) -> HandlerOutput {
    let mut request = kubernetes(verb, "x");
    change(&mut request);
    asks([Request::new("r", Operation::Kubernetes(request))])
}

/// A request `r` at the config store.
fn to_config(operations: impl Into<Vec<ConfigOperation>>) -> HandlerOutput {
    let config = ConfigRequest { is_transaction: true, operations: operations.into() };
    asks([Request::new("r", Operation::Config(config))])
}

/// A request `r` to an HTTP endpoint.
fn to_http(method: &str, url: &str) -> HandlerOutput {
    let http = HttpRequest {
        method: method.into(),
        url: url.into(),
        headers: Vec::new(),
        body: None,
    };
    asks([Request::new("r", Operation::Http(http))])
}

fn error() -> HandlerError {
    HandlerError { message: "no".into(), fatal: false, retry_after: None, code: None }
}

fn basic(verb: ConfigVerb, value: Option<&str>) -> ConfigOperation {
    ConfigOperation::Basic(ConfigBasic { verb, key: "k".into(), value: value.map(Into::into) })
}

#[test]
fn an_output_of_every_sink_is_valid() {
    let output = HandlerOutput {
        pass_through_args: vec![("a".into(), Document::null()), ("b".into(), Document::null())],
        statuses: vec![StatusUpdate { of: None, status: document(" {\"phase\": \"x\"}") }],
        events: vec![event(None)],
        data: Some(Document::null()),
        progress: Some(Progress { percent: 100, message: String::new() }),
        output: Some(Document::null()),
        details: Some(Document::null()),
        ..asks([get("get"), apply("apply"), put("put", "1"), secret(SecretVerb::Get, "s"), post("p")])
    };
    check_one(&output, expect!["ok"]);
    check_one(&HandlerOutput::default(), expect!["ok"]);
}

#[test]
fn a_result_key_is_used_once() {
    let in_group = |name: &str, group: &str| {
        with(get(name), |request| request.group_by = Some(group.into()))
    };
    check_table(
        [
            ("one group of many", asks([in_group("a", "g"), in_group("b", "g"), get("c")])),
            ("two of one name", asks([get("a"), get("b"), get("a")])),
            ("two of one name in two groups", asks([in_group("a", "g"), in_group("a", "h")])),
            ("a request named as a later group", asks([get("g"), in_group("a", "g")])),
            ("a request named as an earlier group", asks([in_group("a", "g"), get("g")])),
            ("a request named as its own group", asks([in_group("g", "g")])),
        ],
        expect![[r#"
            one group of many: ok
            two of one name: ResourceGeneric: the output is invalid: two requests are named "a"
            two of one name in two groups: ResourceGeneric: the output is invalid: two requests are named "a"
            a request named as a later group: ResourceGeneric: the output is invalid: the request "g" has the name of the group that the request "a" is in
            a request named as an earlier group: ResourceGeneric: the output is invalid: the request "g" has the name of the group that the request "a" is in
            a request named as its own group: ResourceGeneric: the output is invalid: the request "g" has the name of the group that the request "g" is in
        "#]],
    );
}

#[test]
fn a_name_has_1_to_256_bytes() {
    let grouped = |group: String| asks([with(get("a"), |request| request.group_by = Some(group))]);
    check_table(
        [
            ("256 bytes", asks([get(&"n".repeat(256))])),
            ("257 bytes", asks([get(&"n".repeat(257))])),
            ("258 bytes in 129 letters", asks([get(&"é".repeat(129))])),
            ("none", asks([get("")])),
            ("a group of 256 bytes", grouped("g".repeat(256))),
            ("a group of 257 bytes", grouped("g".repeat(257))),
            ("a group without a name", grouped(String::new())),
        ],
        expect![[r#"
            256 bytes: ok
            257 bytes: ResourceGeneric: the output is invalid: the name "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"… of a request or group must have 1 to 256 bytes
            258 bytes in 129 letters: ResourceGeneric: the output is invalid: the name "éééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééééé"… of a request or group must have 1 to 256 bytes
            none: ResourceGeneric: the output is invalid: the name "" of a request or group must have 1 to 256 bytes
            a group of 256 bytes: ok
            a group of 257 bytes: ResourceGeneric: the output is invalid: the name "gggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggggg"… of a request or group must have 1 to 256 bytes
            a group without a name: ResourceGeneric: the output is invalid: the name "" of a request or group must have 1 to 256 bytes
        "#]],
    );
}

#[test]
fn what_a_module_wrote_cannot_make_a_message_long() {
    let long = "x".repeat(100_000);
    let arg = || (long.clone(), Document::null());
    for output in [
        asks([get(&long)]),
        asks([with(get("a"), |request| request.group_by = Some(long.clone()))]),
        HandlerOutput { pass_through_args: vec![arg(), arg()], ..HandlerOutput::default() },
        to_kubernetes(KubernetesVerb::Get, |request| request.name = format!("{long}/")),
        to_http(&format!("a{long}"), "https://a.example"),
        to_http("GET", &long),
        asks([apply("a"), with(apply("a"), |request| request.name = "b".into())].map(|request| {
            with(request, |request| {
                if let Operation::Kubernetes(kubernetes) = &mut request.operation {
                    kubernetes.name.clone_from(&long);
                }
            })
        })),
        to_config([ConfigOperation::Basic(ConfigBasic {
            verb: ConfigVerb::Get,
            key: long.clone(),
            value: None,
        })]),
    ] {
        let message = verdict(&output, false);
        assert_ne!(message, "ok");
        assert!(message.len() < 1000, "{} bytes: {message:.200}", message.len());
    }
}

#[test]
fn requests_are_counted() {
    let many = |count: usize| asks((0..count).map(|n| get(&n.to_string())).collect::<Vec<_>>());
    check_table(
        [("10", many(10)), ("11", many(11))],
        expect![[r#"
            10: ok
            11: ResourceGeneric: the output is invalid: 11 requests; limits.requests allows 10
        "#]],
    );
}

#[test]
fn the_outcome_is_done_or_failed_without_requests() {
    let ends = |outcome| HandlerOutput { outcome, ..HandlerOutput::default() };
    check_table(
        [
            ("done", ends(Outcome::Done)),
            ("failed", ends(Outcome::Failed(error()))),
            (
                "failed with requests",
                HandlerOutput { outcome: Outcome::Failed(error()), ..asks([get("a")]) },
            ),
            ("again", ends(Outcome::Again(None))),
            ("again later", ends(Outcome::Again(Some(Duration::from_secs(1))))),
            ("wait", ends(Outcome::Wait(Wake::default()))),
            ("stop", ends(Outcome::Stop)),
            ("next", HandlerOutput { next: Some("write".into()), ..HandlerOutput::default() }),
            (
                "desired",
                HandlerOutput { desired: Some(DesiredSet::default()), ..HandlerOutput::default() },
            ),
        ],
        expect![[r#"
            done: ok
            failed: ok
            failed with requests: ResourceGeneric: the output is invalid: an outcome `failed` must come without requests
            again: UnsupportedResourceOperation: the output asks for too much: the outcome `again` is not valid in mode Chain
            again later: UnsupportedResourceOperation: the output asks for too much: the outcome `again` is not valid in mode Chain
            wait: UnsupportedResourceOperation: the output asks for too much: the outcome `wait` is not valid in mode Chain
            stop: UnsupportedResourceOperation: the output asks for too much: the outcome `stop` is not valid outside a pipeline
            next: UnsupportedResourceOperation: the output asks for too much: `next` is not valid in mode Chain: the phases follow one another
            desired: UnsupportedResourceOperation: the output asks for too much: `desired` needs the object graph, which this host does not offer
        "#]],
    );
}

#[test]
fn what_belongs_to_other_modes_is_refused() {
    let graph = |requests: Vec<Request>| {
        let mut output = asks(requests);
        output.requests.execute_strategy = ExecuteStrategy::Graph;
        output
    };
    check_table(
        [
            ("graph", graph(vec![get("a")])),
            ("graph without requests", graph(Vec::new())),
            ("once", asks([with(put("a", "1"), |request| request.once = true)])),
            ("depends-on", asks([with(get("a"), |request| request.depends_on = vec!["b".into()])])),
            (
                "ready-when",
                asks([with(get("a"), |request| request.ready_when = Some(Readiness::Exists))]),
            ),
        ],
        expect![[r#"
            graph: UnsupportedResourceOperation: the output asks for too much: the strategy `graph` is not offered by this host
            graph without requests: UnsupportedResourceOperation: the output asks for too much: the strategy `graph` is not offered by this host
            once: UnsupportedResourceOperation: request "a": the output asks for too much: `once` needs mode Machine, which this host does not offer
            depends-on: ResourceGeneric: request "a": the output is invalid: `depends-on` and `ready-when` are valid with the strategy `graph` only
            ready-when: ResourceGeneric: request "a": the output is invalid: `depends-on` and `ready-when` are valid with the strategy `graph` only
        "#]],
    );
}

#[test]
fn a_declarative_request_changes_something() {
    let declarative = |request| asks([with(request, |request| request.is_declarative = true)]);
    check_table(
        [
            ("apply", declarative(apply("a"))),
            ("put", declarative(put("a", "1"))),
            ("http", declarative(post("a"))),
            ("get", declarative(get("a"))),
            ("secret get", declarative(secret(SecretVerb::Get, "a"))),
        ],
        expect![[r#"
            apply: ok
            put: ok
            http: ok
            get: ResourceGeneric: request "a": the output is invalid: a declarative request must change something: nobody sees its answer
            secret get: ResourceGeneric: request "a": the output is invalid: a declarative request must change something: nobody sees its answer
        "#]],
    );
}

#[test]
fn a_timeout_is_not_zero() {
    let within = |timeout| asks([with(get("a"), |request| request.timeout = Some(timeout))]);
    check_table(
        [("1 ms", within(Duration::from_millis(1))), ("zero", within(Duration::ZERO))],
        expect![[r#"
            1 ms: ok
            zero: ResourceGeneric: request "a": the output is invalid: a timeout of zero leaves no time to answer
        "#]],
    );
}

#[test]
fn every_verb_names_what_it_is_about() {
    let mut cases = Vec::new();
    for verb in KubernetesVerb::ALL {
        let mut add = |what: &str, change: fn(&mut KubernetesRequest)| {
            cases.push((format!("{} {what}", verb.name()), to_kubernetes(verb, change)));
        };
        add("complete", |_| {});
        add("without version", |request| request.version.clear());
        add("without plural", |request| request.plural.clear());
        add("without name", |request| request.name.clear());
        add("without body", |request| request.body = None);
        add("of a cluster-scoped object", |request| request.namespace.clear());
    }
    check_table(cases, expect![[r#"
        get complete: ok
        get without version: ResourceGeneric: request "r": the output is invalid: `get` needs `version`
        get without plural: ResourceGeneric: request "r": the output is invalid: `get` needs `plural`
        get without name: ResourceGeneric: request "r": the output is invalid: `get` needs `name`
        get without body: ok
        get of a cluster-scoped object: ok
        list complete: ok
        list without version: ResourceGeneric: request "r": the output is invalid: `list` needs `version`
        list without plural: ResourceGeneric: request "r": the output is invalid: `list` needs `plural`
        list without name: ok
        list without body: ok
        list of a cluster-scoped object: ok
        patch complete: ok
        patch without version: ResourceGeneric: request "r": the output is invalid: `patch` needs `version`
        patch without plural: ResourceGeneric: request "r": the output is invalid: `patch` needs `plural`
        patch without name: ResourceGeneric: request "r": the output is invalid: `patch` needs `name`
        patch without body: ResourceGeneric: request "r": the output is invalid: `patch` needs `resource-body`
        patch of a cluster-scoped object: ok
        delete complete: ok
        delete without version: ResourceGeneric: request "r": the output is invalid: `delete` needs `version`
        delete without plural: ResourceGeneric: request "r": the output is invalid: `delete` needs `plural`
        delete without name: ResourceGeneric: request "r": the output is invalid: `delete` needs `name`
        delete without body: ok
        delete of a cluster-scoped object: ok
        create complete: ok
        create without version: ResourceGeneric: request "r": the output is invalid: `create` needs `version`
        create without plural: ResourceGeneric: request "r": the output is invalid: `create` needs `plural`
        create without name: ResourceGeneric: request "r": the output is invalid: `create` needs `name`
        create without body: ResourceGeneric: request "r": the output is invalid: `create` needs `resource-body`
        create of a cluster-scoped object: ok
        replace complete: ok
        replace without version: ResourceGeneric: request "r": the output is invalid: `replace` needs `version`
        replace without plural: ResourceGeneric: request "r": the output is invalid: `replace` needs `plural`
        replace without name: ResourceGeneric: request "r": the output is invalid: `replace` needs `name`
        replace without body: ResourceGeneric: request "r": the output is invalid: `replace` needs `resource-body`
        replace of a cluster-scoped object: ok
        apply complete: ok
        apply without version: ResourceGeneric: request "r": the output is invalid: `apply` needs `version`
        apply without plural: ResourceGeneric: request "r": the output is invalid: `apply` needs `plural`
        apply without name: ResourceGeneric: request "r": the output is invalid: `apply` needs `name`
        apply without body: ResourceGeneric: request "r": the output is invalid: `apply` needs `resource-body`
        apply of a cluster-scoped object: ok
    "#]]);
}

#[test]
fn an_object_is_written_as_an_object() {
    let mut cases = Vec::new();
    for verb in [
        KubernetesVerb::Create,
        KubernetesVerb::Replace,
        KubernetesVerb::Apply,
        KubernetesVerb::Patch,
    ] {
        for body in ["[]", "null", "\"{}\"", " {}"] {
            let output = to_kubernetes(verb, |request| request.body = Some(document(body)));
            cases.push((format!("{} {body}", verb.name()), output));
        }
    }
    check_table(cases, expect![[r#"
        create []: ResourceGeneric: request "r": the output is invalid: the `resource-body` of `create` must be a JSON object
        create null: ResourceGeneric: request "r": the output is invalid: the `resource-body` of `create` must be a JSON object
        create "{}": ResourceGeneric: request "r": the output is invalid: the `resource-body` of `create` must be a JSON object
        create  {}: ok
        replace []: ResourceGeneric: request "r": the output is invalid: the `resource-body` of `replace` must be a JSON object
        replace null: ResourceGeneric: request "r": the output is invalid: the `resource-body` of `replace` must be a JSON object
        replace "{}": ResourceGeneric: request "r": the output is invalid: the `resource-body` of `replace` must be a JSON object
        replace  {}: ok
        apply []: ResourceGeneric: request "r": the output is invalid: the `resource-body` of `apply` must be a JSON object
        apply null: ResourceGeneric: request "r": the output is invalid: the `resource-body` of `apply` must be a JSON object
        apply "{}": ResourceGeneric: request "r": the output is invalid: the `resource-body` of `apply` must be a JSON object
        apply  {}: ok
        patch []: ok
        patch null: ok
        patch "{}": ok
        patch  {}: ok
    "#]]);
}

#[test]
fn a_list_has_no_name() {
    let output = to_kubernetes(KubernetesVerb::List, |request| request.name = "x".into());
    check_one(&output, expect![[r#"ResourceGeneric: request "r": the output is invalid: `list` takes no `name`; use a field selector"#]]);
}

#[test]
fn a_precondition_is_for_what_changes_an_object() {
    let cases = KubernetesVerb::ALL.map(|verb| {
        let change = |request: &mut KubernetesRequest| {
            request.precondition = Some(Precondition::default());
        };
        (verb.name(), to_kubernetes(verb, change))
    });
    check_table(cases, expect![[r#"
        get: ResourceGeneric: request "r": the output is invalid: `get` takes no `precondition`
        list: ResourceGeneric: request "r": the output is invalid: `list` takes no `precondition`
        patch: ok
        delete: ok
        create: ResourceGeneric: request "r": the output is invalid: `create` takes no `precondition`
        replace: ok
        apply: ok
    "#]]);
}

#[test]
fn no_part_of_a_path_leads_elsewhere() {
    let get = |change: fn(&mut KubernetesRequest)| to_kubernetes(KubernetesVerb::Get, change);
    check_table(
        [
            ("a colon in the name", get(|request| request.name = "system:node".into())),
            ("dots in the name", get(|request| request.name = "a..b".into())),
            ("/ in the name", get(|request| request.name = "a/b".into())),
            (". as the name", get(|request| request.name = ".".into())),
            (".. as the name", get(|request| request.name = "..".into())),
            ("? in the namespace", get(|request| request.namespace = "a?b".into())),
            ("# in the plural", get(|request| request.plural = "a#b".into())),
            ("% in the version", get(|request| request.version = "v1%2f".into())),
            ("/ in the group", get(|request| request.group = "apps/v1".into())),
            ("/ in the subresource", get(|request| request.subresource = Some("a/b".into()))),
            ("a subresource", get(|request| request.subresource = Some("status".into()))),
            ("a subresource without a name", get(|request| request.subresource = Some("".into()))),
        ],
        expect![[r#"
            a colon in the name: ok
            dots in the name: ok
            / in the name: ResourceGeneric: request "r": the output is invalid: "a/b" cannot be part of a path
            . as the name: ResourceGeneric: request "r": the output is invalid: "." cannot be part of a path
            .. as the name: ResourceGeneric: request "r": the output is invalid: ".." cannot be part of a path
            ? in the namespace: ResourceGeneric: request "r": the output is invalid: "a?b" cannot be part of a path
            # in the plural: ResourceGeneric: request "r": the output is invalid: "a#b" cannot be part of a path
            % in the version: ResourceGeneric: request "r": the output is invalid: "v1%2f" cannot be part of a path
            / in the group: ResourceGeneric: request "r": the output is invalid: "apps/v1" cannot be part of a path
            / in the subresource: ResourceGeneric: request "r": the output is invalid: "a/b" cannot be part of a path
            a subresource: ok
            a subresource without a name: ResourceGeneric: request "r": the output is invalid: `subresource` is empty; leave it out for the object itself
        "#]],
    );
}

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
    let patch = Request::new("b", Operation::Kubernetes(kubernetes(KubernetesVerb::Patch, "x")));
    check_table(
        [
            ("twice", asks([apply_x("a", |_| {}), get("g"), apply_x("b", |_| {})])),
            ("twice, in a group", asks([apply_x("a", in_apps), apply_x("b", in_apps)])),
            (
                "twice, cluster-scoped",
                asks(["a", "b"].map(|name| apply_x(name, |request| request.namespace.clear()))),
            ),
            ("its status twice", asks([apply_x("a", status), apply_x("b", status)])),
            ("it and its status", asks([apply_x("a", |_| {}), apply_x("b", status)])),
            ("it and one of another group", asks([apply_x("a", |_| {}), apply_x("b", in_apps)])),
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
            ((object.clone(), subresource.map(Into::into)), (*phase).to_owned())
        });
        let rules = OutputRules {
            members: &[key("a")],
            is_batch: false,
            max_requests: 10,
            applied: &applied.collect(),
        };
        let lines = [asks([apply_x("r", |_| {})]), asks([apply_x("r", status)])].map(|output| {
            let verdict = check(&output, rules);
            verdict.map_or_else(|fault| format!("{fault}\n"), |()| "ok\n".into())
        });
        expected.assert_eq(&lines.concat());
    };
    check_after(&[], expect![[r#"
        ok
        ok
    "#]]);
    check_after(&[("root", None)], expect![[r#"
        ResourceGeneric: the output is invalid: the request "r" applies to configmaps ns/x, which phase "root" of this run has applied to
        ok
    "#]]);
    check_after(&[("root", Some("status"))], expect![[r#"
        ok
        ResourceGeneric: the output is invalid: the request "r" applies to configmaps/status ns/x, which phase "root" of this run has applied to
    "#]]);
    check_after(&[("root", None), ("write", Some("status"))], expect![[r#"
        ResourceGeneric: the output is invalid: the request "r" applies to configmaps ns/x, which phase "root" of this run has applied to
        ResourceGeneric: the output is invalid: the request "r" applies to configmaps/status ns/x, which phase "write" of this run has applied to
    "#]]);
}

#[test]
fn a_config_operation_names_its_key() {
    let resource = |config_type, change: fn(&mut ConfigResource)| {
        let mut resource = ConfigResource {
            config_type,
            verb: ConfigVerb::Get,
            name: "n".into(),
            uid: None,
            namespace: Some("ns".into()),
            workload_kind: Some("Deployment".into()),
            value: None,
        };
        change(&mut resource);
        to_config([ConfigOperation::Resource(resource)])
    };
    let app_conf = |change: fn(&mut ConfigAppConf)| {
        let mut app_conf = ConfigAppConf {
            verb: ConfigVerb::Delete,
            pod_name: "p".into(),
            namespace: None,
            key: "k".into(),
            value: None,
        };
        change(&mut app_conf);
        to_config([ConfigOperation::AppConf(app_conf)])
    };
    let two_layers = |second: &str, third: &str| {
        to_config([ConfigOperation::TwoLayers(ConfigTwoLayers {
            verb: ConfigVerb::Get,
            second_path: second.into(),
            third_path: third.into(),
            value: None,
        })])
    };
    let plain = |key: String| {
        to_config([ConfigOperation::Basic(ConfigBasic { verb: ConfigVerb::Get, key, value: None })])
    };
    check_table(
        [
            ("pod", resource(ConfigType::Pod, |_| {})),
            ("pod without name", resource(ConfigType::Pod, |pod| pod.name.clear())),
            ("pod without namespace", resource(ConfigType::Pod, |pod| pod.namespace = None)),
            ("node without namespace", resource(ConfigType::Node, |node| node.namespace = None)),
            (
                "workload without kind",
                resource(ConfigType::Workload, |workload| workload.workload_kind = None),
            ),
            ("app-conf in the object's namespace", app_conf(|_| {})),
            ("app-conf without pod", app_conf(|app_conf| app_conf.pod_name.clear())),
            ("app-conf without key", app_conf(|app_conf| app_conf.key.clear())),
            ("app-conf, namespace empty", app_conf(|it| it.namespace = Some(String::new()))),
            ("two layers", two_layers("a", "b")),
            ("two layers without the second", two_layers("", "b")),
            ("two layers without the third", two_layers("a", "")),
            ("basic without key", plain(String::new())),
            ("basic, 1024 bytes", plain("k".repeat(1024 - "basic/".len()))),
            ("basic, 1025 bytes", plain("k".repeat(1025 - "basic/".len()))),
        ],
        expect![[r#"
            pod: ok
            pod without name: ResourceGeneric: request "r": the output is invalid: a config request for a pod needs resource-name
            pod without namespace: ResourceGeneric: request "r": the output is invalid: a config request for a pod needs namespace
            node without namespace: ok
            workload without kind: ResourceGeneric: request "r": the output is invalid: a config request for a workload needs workload-kind
            app-conf in the object's namespace: ok
            app-conf without pod: ResourceGeneric: request "r": the output is invalid: a config request for a app-conf needs pod-name
            app-conf without key: ResourceGeneric: request "r": the output is invalid: a config request for a app-conf needs key
            app-conf, namespace empty: ResourceGeneric: request "r": the output is invalid: a config request for a app-conf needs namespace
            two layers: ok
            two layers without the second: ResourceGeneric: request "r": the output is invalid: a config request for a two-layers leaf needs second-path
            two layers without the third: ResourceGeneric: request "r": the output is invalid: a config request for a two-layers leaf needs third-path
            basic without key: ResourceGeneric: request "r": the output is invalid: a config request for a basic key needs key
            basic, 1024 bytes: ok
            basic, 1025 bytes: ResourceGeneric: request "r": the output is invalid: the key basic/kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk… has 1025 bytes; 1024 are allowed
        "#]],
    );
}

#[test]
fn a_config_operation_that_writes_has_a_value() {
    let cases = ConfigVerb::ALL.into_iter().flat_map(|verb| {
        [
            (format!("{} with a value", verb.name()), to_config([basic(verb, Some(""))])),
            (format!("{} without", verb.name()), to_config([basic(verb, None)])),
        ]
    });
    check_table(cases, expect![[r#"
        get with a value: ok
        get without: ok
        create with a value: ok
        create without: ResourceGeneric: request "r": the output is invalid: `create` of basic/k needs `value`
        update with a value: ok
        update without: ResourceGeneric: request "r": the output is invalid: `update` of basic/k needs `value`
        delete with a value: ok
        delete without: ok
    "#]]);
}

#[test]
fn a_transaction_has_1_to_100_operations() {
    let of = |count| to_config(vec![basic(ConfigVerb::Get, None); count]);
    let mut bad_last = vec![basic(ConfigVerb::Get, None); 3];
    bad_last.push(basic(ConfigVerb::Update, None));
    check_table(
        [
            ("none", of(0)),
            ("100", of(100)),
            ("101", of(101)),
            ("the last without its value", to_config(bad_last)),
        ],
        expect![[r#"
            none: ResourceGeneric: request "r": the output is invalid: a config transaction needs an operation
            100: ok
            101: ResourceGeneric: request "r": the output is invalid: 101 operations in one transaction; 100 are allowed
            the last without its value: ResourceGeneric: request "r": the output is invalid: `update` of basic/k needs `value`
        "#]],
    );
}

#[test]
fn a_secret_has_a_name() {
    let nameless = with(secret(SecretVerb::Create, ""), |request| request.name = "r".into());
    check_one(&asks([nameless]), expect![[r#"ResourceGeneric: request "r": the output is invalid: `secret-name` is empty"#]]);
}

#[test]
fn an_http_request_has_a_method_and_a_url() {
    check_table(
        [
            ("GET", "https://a.example/x?y#z"),
            ("PROPFIND", "http://a.example:8080"),
            ("POST", "http://[::1]:80/"),
            ("", "https://a.example"),
            ("post", "https://a.example"),
            ("GET POST", "https://a.example"),
            ("GET", ""),
            ("GET", "a.example/x"),
            ("GET", "ftp://a.example"),
            ("GET", "https://"),
            ("GET", "https:///x"),
            ("GET", "https://:443/x"),
            ("GET", "https://:8080/x"),
            ("GET", "https://user:password@a.example"),
        ]
        .map(|(method, url)| (format!("{method} {url}"), to_http(method, url))),
        expect![[r#"
            GET https://a.example/x?y#z: ok
            PROPFIND http://a.example:8080: ok
            POST http://[::1]:80/: ok
             https://a.example: ResourceGeneric: request "r": the output is invalid: "" is no HTTP method in upper case
            post https://a.example: ResourceGeneric: request "r": the output is invalid: "post" is no HTTP method in upper case
            GET POST https://a.example: ResourceGeneric: request "r": the output is invalid: "GET POST" is no HTTP method in upper case
            GET : ResourceGeneric: request "r": the output is invalid: "" is no http or https URL with a host
            GET a.example/x: ResourceGeneric: request "r": the output is invalid: "a.example/x" is no http or https URL with a host
            GET ftp://a.example: ResourceGeneric: request "r": the output is invalid: "ftp://a.example" is no http or https URL with a host
            GET https://: ResourceGeneric: request "r": the output is invalid: "https://" is no http or https URL with a host
            GET https:///x: ResourceGeneric: request "r": the output is invalid: "https:///x" is no http or https URL with a host
            GET https://:443/x: ResourceGeneric: request "r": the output is invalid: "https://:443/x" is no http or https URL with a host
            GET https://:8080/x: ResourceGeneric: request "r": the output is invalid: "https://:8080/x" is no http or https URL with a host
            GET https://user:password@a.example: ResourceGeneric: request "r": the output is invalid: the URL has credentials in it, or no host; send credentials in a header
        "#]],
    );
}

#[test]
fn credentials_in_a_url_are_not_shown() {
    let message = verdict(&to_http("GET", "https://user:password@a.example"), false);
    assert!(!message.contains("password"), "{message}");
}

#[test]
fn pass_through_arguments_have_names_of_their_own() {
    let passes = |names: &[&str]| HandlerOutput {
        pass_through_args: names.iter().map(|name| ((*name).into(), Document::null())).collect(),
        ..HandlerOutput::default()
    };
    check_table(
        [("two names", passes(&["a", "b"])), ("a name twice", passes(&["a", "b", "a"]))],
        expect![[r#"
            two names: ok
            a name twice: ResourceGeneric: the output is invalid: two pass-through arguments are named "a"
        "#]],
    );
}

fn event(of: Option<ObjectRef>) -> Event {
    Event { of, event_type: EventType::Normal, reason: "Seen".into(), message: String::new() }
}

fn says(statuses: &[Option<ObjectRef>], events: &[Option<ObjectRef>]) -> HandlerOutput {
    let status = |of: &Option<ObjectRef>| StatusUpdate {
        of: of.clone(),
        status: Document::empty_object(),
    };
    HandlerOutput {
        statuses: statuses.iter().map(status).collect(),
        events: events.iter().cloned().map(event).collect(),
        ..HandlerOutput::default()
    }
}

#[test]
fn of_names_an_object_of_the_run() {
    let of = |name: &str| asks([with(get("r"), |request| request.of = Some(key(name)))]);
    check_table(
        [
            ("a request of it", of("a")),
            ("a request of another", of("b")),
            ("a status of it", says(&[Some(key("a"))], &[])),
            ("a status of another", says(&[Some(key("b"))], &[])),
            ("an event of another", says(&[], &[Some(key("b"))])),
        ],
        expect![[r#"
            a request of it: ok
            a request of another: ResourceGeneric: request "r": the output is invalid: names ns/b in `of`, which is not in this run
            a status of it: ok
            a status of another: ResourceGeneric: the output is invalid: a status names ns/b in `of`, which is not in this run
            an event of another: ResourceGeneric: the output is invalid: an event names ns/b in `of`, which is not in this run
        "#]],
    );
}

#[test]
fn in_a_batch_a_status_and_an_event_name_their_object() {
    let of = |name: &str| asks([with(get("r"), |request| request.of = Some(key(name)))]);
    check_batch(&of("b"), expect!["ok"]);
    check_batch(&of("c"), expect![[r#"ResourceGeneric: request "r": the output is invalid: names ns/c in `of`, which is not in this run"#]]);
    check_batch(&asks([get("r")]), expect!["ok"]);
    check_batch(&says(&[Some(key("a")), Some(key("b"))], &[Some(key("b"))]), expect!["ok"]);
    check_batch(&says(&[Some(key("a")), None], &[]), expect!["ResourceGeneric: the output is invalid: a status of a batch must name its object in `of`"]);
    check_batch(&says(&[], &[None]), expect!["ResourceGeneric: the output is invalid: an event of a batch must name its object in `of`"]);
    check_batch(&says(&[Some(key("c"))], &[]), expect!["ResourceGeneric: the output is invalid: a status names ns/c in `of`, which is not in this run"]);
}

#[test]
fn a_status_is_an_object() {
    let cases = ["{}", "\n{\"a\": 1}", "[]", "null", "\"{\""].map(|text| {
        let status = StatusUpdate { of: None, status: document(text) };
        (format!("{text:?}"), HandlerOutput { statuses: vec![status], ..HandlerOutput::default() })
    });
    check_table(cases, expect![[r#"
        "{}": ok
        "\n{\"a\": 1}": ok
        "[]": ResourceGeneric: the output is invalid: a status must be a JSON object
        "null": ResourceGeneric: the output is invalid: a status must be a JSON object
        "\"{\"": ResourceGeneric: the output is invalid: a status must be a JSON object
    "#]]);
}

#[test]
fn the_namespace_of_app_conf_is_that_of_its_object() {
    let app_conf = Operation::Config(ConfigRequest {
        is_transaction: false,
        operations: vec![ConfigOperation::AppConf(ConfigAppConf {
            verb: ConfigVerb::Delete,
            pod_name: "p".into(),
            namespace: None,
            key: "k".into(),
            value: None,
        })],
    });
    let cluster_scoped = ObjectRef { namespace: String::new(), name: "node".into() };
    let members = [cluster_scoped, key("a")];
    let check = |of: Option<ObjectRef>, expected: Expect| {
        let request = with(Request::new("r", app_conf.clone()), |request| request.of = of);
        let rules = OutputRules {
            members: &members,
            is_batch: true,
            max_requests: 10,
            applied: &BTreeMap::new(),
        };
        let verdict = super::check(&asks([request]), rules);
        expected.assert_eq(&verdict.map_or_else(|fault| fault.to_string(), |()| "ok".into()));
    };
    check(Some(key("a")), expect!["ok"]);
    check(None, expect![[r#"ResourceGeneric: request "r": the output is invalid: a config request for a app-conf needs namespace"#]]);
}

/// A request with a name and perhaps a group of a few letters, so that they often meet.
fn named_request() -> impl Strategy<Value = Request> {
    let word = || prop::sample::select(vec!["a", "b", "c", "d", "e", "f", "g", "h"]);
    (word(), prop::option::weighted(0.3, word())).prop_map(|(name, group)| {
        with(get(name), |request| request.group_by = group.map(Into::into))
    })
}

proptest! {
    #[test]
    fn names_are_valid_when_every_key_has_one_meaning(
        requests in prop::collection::vec(named_request(), 0..6),
    ) {
        let names: BTreeSet<&str> = requests.iter().map(|request| request.name.as_str()).collect();
        let groups: BTreeSet<&str> =
            requests.iter().filter_map(|request| request.group_by.as_deref()).collect();
        let is_valid = names.len() == requests.len() && names.is_disjoint(&groups);
        let verdict = verdict(&asks(requests.clone()), false);
        prop_assert_eq!(verdict == "ok", is_valid, "{}", verdict);
    }
}
