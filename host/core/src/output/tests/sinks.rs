//! What a request to each sink needs.

use super::*;

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
        partition: None,
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
            sets: SetRule::Undeclared,
            partition: "ns",
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
