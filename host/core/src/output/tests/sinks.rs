//! What a request to each sink needs.

use super::*;

#[test]
fn every_verb_names_what_it_is_about() {
    let mut cases = Vec::new();
    for verb in KubernetesVerb::ALL {
        let mut add = |what: &str, change: fn(&mut KubernetesRequest)| {
            cases.push((
                format!("{} {what}", verb.name()),
                to_kubernetes(verb, change),
            ));
        };
        add("complete", |_| {});
        add("without version", |request| request.version.clear());
        add("without plural", |request| request.plural.clear());
        add("without name", |request| request.name.clear());
        add("without body", |request| request.body = None);
        add("of a cluster-scoped object", |request| {
            request.namespace.clear()
        });
    }
    check_table(
        cases,
        expect![[r#"
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
    "#]],
    );
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
    check_table(
        cases,
        expect![[r#"
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
    "#]],
    );
}

#[test]
fn a_list_has_no_name() {
    let output = to_kubernetes(KubernetesVerb::List, |request| request.name = "x".into());
    check_one(
        &output,
        expect![[
            r#"ResourceGeneric: request "r": the output is invalid: `list` takes no `name`; use a field selector"#
        ]],
    );
}

#[test]
fn a_precondition_is_for_what_changes_an_object() {
    let cases = KubernetesVerb::ALL.map(|verb| {
        let change = |request: &mut KubernetesRequest| {
            request.precondition = Some(Precondition::default());
        };
        (verb.name(), to_kubernetes(verb, change))
    });
    check_table(
        cases,
        expect![[r#"
        get: ResourceGeneric: request "r": the output is invalid: `get` takes no `precondition`
        list: ResourceGeneric: request "r": the output is invalid: `list` takes no `precondition`
        patch: ok
        delete: ok
        create: ResourceGeneric: request "r": the output is invalid: `create` takes no `precondition`
        replace: ok
        apply: ok
    "#]],
    );
}

#[test]
fn no_part_of_a_path_leads_elsewhere() {
    let get = |change: fn(&mut KubernetesRequest)| to_kubernetes(KubernetesVerb::Get, change);
    check_table(
        [
            (
                "a colon in the name",
                get(|request| request.name = "system:node".into()),
            ),
            (
                "dots in the name",
                get(|request| request.name = "a..b".into()),
            ),
            ("/ in the name", get(|request| request.name = "a/b".into())),
            (". as the name", get(|request| request.name = ".".into())),
            (".. as the name", get(|request| request.name = "..".into())),
            (
                "? in the namespace",
                get(|request| request.namespace = "a?b".into()),
            ),
            (
                "# in the plural",
                get(|request| request.plural = "a#b".into()),
            ),
            (
                "% in the version",
                get(|request| request.version = "v1%2f".into()),
            ),
            (
                "/ in the group",
                get(|request| request.group = "apps/v1".into()),
            ),
            (
                "/ in the subresource",
                get(|request| request.subresource = Some("a/b".into())),
            ),
            (
                "a subresource",
                get(|request| request.subresource = Some("status".into())),
            ),
            (
                "a subresource without a name",
                get(|request| request.subresource = Some("".into())),
            ),
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
        to_config([ConfigOperation::Basic(ConfigBasic {
            verb: ConfigVerb::Get,
            key,
            value: None,
        })])
    };
    check_table(
        [
            ("pod", resource(ConfigType::Pod, |_| {})),
            (
                "pod without name",
                resource(ConfigType::Pod, |pod| pod.name.clear()),
            ),
            (
                "pod without namespace",
                resource(ConfigType::Pod, |pod| pod.namespace = None),
            ),
            (
                "node without namespace",
                resource(ConfigType::Node, |node| node.namespace = None),
            ),
            (
                "workload without kind",
                resource(ConfigType::Workload, |workload| {
                    workload.workload_kind = None
                }),
            ),
            ("app-conf in the object's namespace", app_conf(|_| {})),
            (
                "app-conf without pod",
                app_conf(|app_conf| app_conf.pod_name.clear()),
            ),
            (
                "app-conf without key",
                app_conf(|app_conf| app_conf.key.clear()),
            ),
            (
                "app-conf, namespace empty",
                app_conf(|it| it.namespace = Some(String::new())),
            ),
            ("two layers", two_layers("a", "b")),
            ("two layers without the second", two_layers("", "b")),
            ("two layers without the third", two_layers("a", "")),
            ("basic without key", plain(String::new())),
            (
                "basic, 1024 bytes",
                plain("k".repeat(1024 - "basic/".len())),
            ),
            (
                "basic, 1025 bytes",
                plain("k".repeat(1025 - "basic/".len())),
            ),
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
            (
                format!("{} with a value", verb.name()),
                to_config([basic(verb, Some(""))]),
            ),
            (
                format!("{} without", verb.name()),
                to_config([basic(verb, None)]),
            ),
        ]
    });
    check_table(
        cases,
        expect![[r#"
        get with a value: ok
        get without: ok
        create with a value: ok
        create without: ResourceGeneric: request "r": the output is invalid: `create` of basic/k needs `value`
        update with a value: ok
        update without: ResourceGeneric: request "r": the output is invalid: `update` of basic/k needs `value`
        delete with a value: ok
        delete without: ok
    "#]],
    );
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
    let nameless = with(secret(SecretVerb::Create, ""), |request| {
        request.name = "r".into()
    });
    check_one(
        &asks([nameless]),
        expect![[r#"ResourceGeneric: request "r": the output is invalid: `secret-name` is empty"#]],
    );
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
            GET : ResourceGeneric: request "r": the output is invalid: the URL is none of http or https with a host
            GET a.example/x: ResourceGeneric: request "r": the output is invalid: the URL is none of http or https with a host
            GET ftp://a.example: ResourceGeneric: request "r": the output is invalid: the URL is none of http or https with a host
            GET https://: ResourceGeneric: request "r": the output is invalid: the URL is none of http or https with a host
            GET https:///x: ResourceGeneric: request "r": the output is invalid: the URL is none of http or https with a host
            GET https://:443/x: ResourceGeneric: request "r": the output is invalid: the URL is none of http or https with a host
            GET https://:8080/x: ResourceGeneric: request "r": the output is invalid: the URL is none of http or https with a host
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
    let cluster_scoped = ObjectRef {
        namespace: String::new(),
        name: "node".into(),
    };
    let members = [cluster_scoped, key("a")];
    let check = |of: Option<ObjectRef>, expected: Expect| {
        let request = with(Request::new("r", app_conf.clone()), |request| {
            request.of = of
        });
        let rules = OutputRules {
            members: &members,
            is_batch: true,
            max_requests: 10,
            applied: &BTreeMap::new(),
            is_leaf: false,
        };
        let verdict = crate::output::check(&asks([request]), rules);
        expected.assert_eq(&verdict.map_or_else(|fault| fault.to_string(), |()| "ok".into()));
    };
    check(Some(key("a")), expect!["ok"]);
    check(
        None,
        expect![[
            r#"ResourceGeneric: request "r": the output is invalid: a config request for a app-conf needs namespace"#
        ]],
    );
}
