//! What requests may do. Nothing is allowed that is not listed.

mod lacking;

use crate::fault::{Fault, FaultKind};
use crate::glob;
use crate::layers;
use crate::request::{
    ConfigOperation, ConfigVerb, HttpRequest, KubernetesRequest, KubernetesVerb, ObjectKey,
    Operation, SecretRequest, SecretVerb,
};

/// How the names of the host's own secrets begin. No rule reaches them.
pub const RESERVED_SECRETS: &str = "configurator.dev/";

/// The rules of one Configurator, or the ceiling that the operator of the host has set.
///
/// Empty means that nothing is allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// For the Kubernetes API.
    pub kubernetes: Vec<KubernetesRule>,
    /// For the config store.
    pub configstore: Vec<ConfigstoreRule>,
    /// For the secret store.
    pub secretstore: Vec<SecretstoreRule>,
    /// For HTTP endpoints.
    pub http: Vec<HttpRule>,
}

/// Allows verbs on Kubernetes resources. In each list of names, `*` stands for any run of characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KubernetesRule {
    /// API groups; `""` is the core group.
    pub groups: Vec<String>,
    /// Plural names.
    pub resources: Vec<String>,
    /// Empty: the resource itself only.
    pub subresources: Vec<String>,
    /// Empty: all, and cluster-scoped resources.
    pub namespaces: Vec<String>,
    /// Empty: all.
    pub names: Vec<String>,
    /// The verbs.
    pub verbs: Vec<KubernetesVerb>,
    /// Whether a handler may wait for a change of these.
    pub watch: bool,
}

/// Allows verbs on keys of the config store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigstoreRule {
    /// Beginnings of keys, as in the key layout: `resources/pod/`.
    pub prefixes: Vec<String>,
    /// The verbs.
    pub verbs: Vec<ConfigVerb>,
}

/// Allows verbs on secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretstoreRule {
    /// Names; `*` stands for any run of characters.
    pub names: Vec<String>,
    /// The verbs.
    pub verbs: Vec<SecretVerb>,
}

/// Allows methods on HTTP hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpRule {
    /// Host names, with `:port` where it is not the scheme's own; `*` stands for any run of characters.
    pub hosts: Vec<String>,
    /// Methods, upper case.
    pub methods: Vec<String>,
}

impl Capabilities {
    /// Rules that allow everything: a ceiling for a host whose operator trusts the authors of its Configurators.
    #[must_use]
    pub fn everything() -> Self {
        let any = || vec!["*".to_owned()];
        Self {
            kubernetes: vec![
                KubernetesRule {
                    groups: any(),
                    resources: any(),
                    subresources: any(),
                    namespaces: Vec::new(),
                    names: Vec::new(),
                    verbs: KubernetesVerb::ALL.to_vec(),
                    watch: true,
                },
                KubernetesRule {
                    groups: any(),
                    resources: any(),
                    subresources: Vec::new(),
                    namespaces: Vec::new(),
                    names: Vec::new(),
                    verbs: KubernetesVerb::ALL.to_vec(),
                    watch: true,
                },
            ],
            configstore: vec![ConfigstoreRule {
                prefixes: vec![String::new()],
                verbs: ConfigVerb::ALL.to_vec(),
            }],
            secretstore: vec![SecretstoreRule {
                names: any(),
                verbs: SecretVerb::ALL.to_vec(),
            }],
            http: vec![HttpRule {
                hosts: any(),
                methods: any(),
            }],
        }
    }

    /// Checks one operation. `default_namespace` is that of the object being handled.
    ///
    /// # Errors
    /// [`FaultKind::ResourcePermission`]; the message reads `no rule that allows …`, for whoever knows whose rules these are.
    pub fn check(&self, operation: &Operation, default_namespace: &str) -> Result<(), Fault> {
        match operation {
            Operation::Kubernetes(request) => self.check_kubernetes(request),
            Operation::Config(request) => request
                .operations
                .iter()
                .try_for_each(|operation| self.check_config(operation, default_namespace)),
            Operation::Secret(request) => self.check_secret(request),
            Operation::Http(request) => self.check_http(request),
        }
    }

    /// Checks whether a handler may wait for a change of this object.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn check_wait(&self, key: &ObjectKey) -> Result<(), Fault> {
        let allowed = self.kubernetes.iter().any(|rule| {
            rule.watch
                && any(&rule.groups, &key.group)
                && any(&rule.resources, &key.plural)
                && rule.subresources.is_empty()
                && (rule.namespaces.is_empty() || any(&rule.namespaces, &key.namespace))
                && (rule.names.is_empty() || any(&rule.names, &key.name))
        });
        if allowed {
            return Ok(());
        }
        Err(missing(&format!(
            "kubernetes: {{groups: [{:?}], resources: [{}], namespaces: [{}], names: [{}], verbs: [watch]}}",
            key.group, key.plural, key.namespace, key.name
        )))
    }

    fn check_kubernetes(&self, request: &KubernetesRequest) -> Result<(), Fault> {
        let allowed = self.kubernetes.iter().any(|rule| {
            any(&rule.groups, &request.group)
                && any(&rule.resources, &request.plural)
                && match &request.subresource {
                    None => rule.subresources.is_empty(),
                    Some(subresource) => any(&rule.subresources, subresource),
                }
                && (rule.namespaces.is_empty() || any(&rule.namespaces, &request.namespace))
                && (rule.names.is_empty() || any(&rule.names, &request.name))
                && rule.verbs.contains(&request.verb)
        });
        if allowed {
            return Ok(());
        }
        let subresource = request
            .subresource
            .as_ref()
            .map(|subresource| format!(", subresources: [{subresource}]"))
            .unwrap_or_default();
        let namespaces = if request.namespace.is_empty() {
            String::new()
        } else {
            format!(", namespaces: [{}]", request.namespace)
        };
        let names = if request.name.is_empty() {
            String::new()
        } else {
            format!(", names: [{}]", request.name)
        };
        Err(missing(&format!(
            "kubernetes: {{groups: [{:?}], resources: [{}]{subresource}{namespaces}{names}, verbs: [{}]}}",
            request.group,
            request.plural,
            request.verb.name()
        )))
    }

    fn check_config(&self, operation: &ConfigOperation, namespace: &str) -> Result<(), Fault> {
        let key = layers::key_of(operation, namespace)
            .map_err(|error| Fault::new(FaultKind::ResourceGeneric, error.to_string()))?;
        let verb = operation.verb();
        let allowed = self.configstore.iter().any(|rule| {
            rule.verbs.contains(&verb)
                && rule
                    .prefixes
                    .iter()
                    .any(|prefix| key.starts_with(prefix.as_str()))
        });
        if allowed {
            return Ok(());
        }
        Err(missing(&format!(
            "configstore: {{prefixes: [{key}], verbs: [{}]}}",
            verb.name()
        )))
    }

    fn check_secret(&self, request: &SecretRequest) -> Result<(), Fault> {
        let allowed = self
            .secretstore
            .iter()
            .any(|rule| rule.verbs.contains(&request.verb) && any(&rule.names, &request.name));
        if allowed && !request.name.starts_with(RESERVED_SECRETS) {
            return Ok(());
        }
        Err(missing(&format!(
            "secretstore: {{names: [{}], verbs: [{}]}}",
            request.name,
            request.verb.name()
        )))
    }

    fn check_http(&self, request: &HttpRequest) -> Result<(), Fault> {
        let host = host_of(&request.url).ok_or_else(|| {
            Fault::new(
                FaultKind::ResourceGeneric,
                "the URL is none of http or https with a host",
            )
        })?;
        let allowed = self.http.iter().any(|rule| {
            any(&rule.methods, &request.method)
                && rule
                    .hosts
                    .iter()
                    .any(|pattern| glob::matches(&pattern.to_ascii_lowercase(), &host))
        });
        if allowed {
            return Ok(());
        }
        Err(missing(&format!(
            "http: {{hosts: [{host}], methods: [{}]}}",
            request.method
        )))
    }
}

/// Host of an `http` or `https` URL, lower case, with the port where it is not the scheme's own.
/// `None` for anything else, and for a URL with credentials in it.
#[must_use]
pub fn host_of(url: &str) -> Option<String> {
    let (rest, default_port) = match url.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (rest, ":443"),
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (rest, ":80"),
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    if authority.is_empty() || authority.contains('@') {
        return None;
    }
    let host = authority.to_ascii_lowercase();
    let host = host.strip_suffix(default_port).unwrap_or(&host);
    let is_named = !host.is_empty() && !host.starts_with(':');
    is_named.then(|| host.to_owned())
}

fn any(patterns: &[String], text: &str) -> bool {
    patterns.iter().any(|pattern| glob::matches(pattern, text))
}

fn missing(rule: &str) -> Fault {
    Fault::new(
        FaultKind::ResourcePermission,
        format!("no rule that allows {rule}"),
    )
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::request::{ConfigBasic, ConfigRequest, ConfigResource, ConfigType};

    fn rules() -> Capabilities {
        Capabilities {
            kubernetes: vec![
                KubernetesRule {
                    groups: vec![String::new()],
                    resources: vec!["nodes".into(), "namespaces".into()],
                    verbs: vec![KubernetesVerb::Get],
                    ..KubernetesRule::default()
                },
                KubernetesRule {
                    groups: vec!["apps".into()],
                    resources: vec!["deployments".into()],
                    subresources: vec!["scale".into()],
                    namespaces: vec!["team-*".into()],
                    names: vec!["web".into()],
                    verbs: vec![KubernetesVerb::Patch],
                    watch: false,
                },
            ],
            configstore: vec![ConfigstoreRule {
                prefixes: vec!["resources/pod/".into()],
                verbs: vec![ConfigVerb::Get, ConfigVerb::Update],
            }],
            secretstore: vec![SecretstoreRule {
                names: vec!["pod-*".into()],
                verbs: vec![SecretVerb::Create],
            }],
            http: vec![HttpRule {
                hosts: vec!["hooks.example.com".into()],
                methods: vec!["POST".into()],
            }],
        }
    }

    #[track_caller]
    fn check(operation: &Operation, expected: Expect) {
        let got = match rules().check(operation, "default") {
            Ok(()) => "allowed".to_owned(),
            Err(fault) => fault.to_string(),
        };
        expected.assert_eq(&got);
        assert!(
            Capabilities::everything()
                .check(operation, "default")
                .is_ok()
        );
        assert!(Capabilities::default().check(operation, "default").is_err());
    }

    fn kubernetes(verb: KubernetesVerb, group: &str, plural: &str) -> KubernetesRequest {
        KubernetesRequest::new(verb, group, "v1", plural)
    }

    #[test]
    fn a_listed_verb_on_a_listed_resource_is_allowed() {
        let request = KubernetesRequest {
            name: "n1".into(),
            ..kubernetes(KubernetesVerb::Get, "", "nodes")
        };
        check(&Operation::Kubernetes(request), expect!["allowed"]);
    }

    #[test]
    fn what_is_not_listed_names_the_rule_that_is_missing() {
        let request = KubernetesRequest {
            namespace: "shop".into(),
            name: "web".into(),
            ..kubernetes(KubernetesVerb::Delete, "", "pods")
        };
        check(
            &Operation::Kubernetes(request),
            expect![[
                r#"ResourcePermission: no rule that allows kubernetes: {groups: [""], resources: [pods], namespaces: [shop], names: [web], verbs: [delete]}"#
            ]],
        );
    }

    #[test]
    fn a_rule_for_a_subresource_does_not_open_the_resource() {
        let request = KubernetesRequest {
            namespace: "team-a".into(),
            name: "web".into(),
            ..kubernetes(KubernetesVerb::Patch, "apps", "deployments")
        };
        let scale = KubernetesRequest {
            subresource: Some("scale".into()),
            ..request.clone()
        };
        check(&Operation::Kubernetes(scale), expect!["allowed"]);
        check(
            &Operation::Kubernetes(request),
            expect![[
                r#"ResourcePermission: no rule that allows kubernetes: {groups: ["apps"], resources: [deployments], namespaces: [team-a], names: [web], verbs: [patch]}"#
            ]],
        );
    }

    #[test]
    fn every_operation_of_a_transaction_is_checked() {
        let update = ConfigOperation::Resource(ConfigResource {
            config_type: ConfigType::Pod,
            verb: ConfigVerb::Update,
            name: "a".into(),
            uid: None,
            namespace: Some("shop".into()),
            workload_kind: None,
            value: Some("x".into()),
        });
        let basic = ConfigOperation::Basic(ConfigBasic {
            verb: ConfigVerb::Update,
            key: "resources/pod/".into(),
            value: Some("x".into()),
        });
        let of = |operations| {
            Operation::Config(ConfigRequest {
                is_transaction: true,
                operations,
            })
        };
        check(&of(vec![update.clone()]), expect!["allowed"]);
        check(
            &of(vec![update, basic]),
            expect![
                "ResourcePermission: no rule that allows configstore: {prefixes: [basic/resources%2Fpod%2F], verbs: [update]}"
            ],
        );
    }

    #[test]
    fn secrets_and_hosts_are_checked_by_name() {
        let secret = |name: &str, verb| {
            Operation::Secret(SecretRequest {
                name: name.into(),
                verb,
                value: None,
            })
        };
        check(&secret("pod-a", SecretVerb::Create), expect!["allowed"]);
        check(
            &secret("pod-a", SecretVerb::Get),
            expect![
                "ResourcePermission: no rule that allows secretstore: {names: [pod-a], verbs: [get]}"
            ],
        );
        let http = |url: &str| {
            Operation::Http(HttpRequest {
                method: "POST".into(),
                url: url.into(),
                headers: vec![],
                body: None,
            })
        };
        check(&http("https://Hooks.example.com:443/x"), expect!["allowed"]);
        check(
            &http("https://hooks.example.com:8443/x"),
            expect![
                "ResourcePermission: no rule that allows http: {hosts: [hooks.example.com:8443], methods: [POST]}"
            ],
        );
    }

    #[test]
    fn a_url_cannot_smuggle_another_host() {
        for (url, host) in [
            ("https://hooks.example.com@evil.example/", None),
            (
                "https://evil.example\\@hooks.example.com/",
                Some("evil.example"),
            ),
            (
                "https://evil.example#hooks.example.com",
                Some("evil.example"),
            ),
            ("file:///etc/passwd", None),
            ("https:///x", None),
            ("https://:443/x", None),
            ("https://:8080/x", None),
            ("HTTP://A:80", Some("a")),
        ] {
            assert_eq!(host_of(url).as_deref(), host, "{url}");
        }
    }
}
