//! What requests may do. Nothing is allowed that is not listed.

mod lacking;
mod protected;

use crate::fault::{Fault, FaultKind};
use crate::glob;
use crate::kubernetes_call::KubernetesCall;
use crate::layers;
use crate::partition;
use crate::request::{
    ConfigOperation, ConfigVerb, ExtensionRequest, HttpRequest, KubernetesRequest, KubernetesVerb,
    ObjectKey, ObjectRef, SecretRequest, SecretVerb,
};

/// How names of secrets begin that no rule reaches: those of the host itself, and those of the partitions of namespaces.
pub const RESERVED_SECRETS: [&str; 2] = ["configurator.dev/", partition::NAMESPACES];

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
    /// For extensions of the host.
    pub extension: Vec<ExtensionRule>,
}

/// Allows verbs on Kubernetes resources. In each list, `*` stands for any number of characters, and an empty list matches nothing. The API groups of
/// rights, of the definitions of kinds and of this project are matched only by their names, and subresources such as `pods/exec` and
/// `serviceaccounts/token` only by the names of both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KubernetesRule {
    /// API groups; `""` is the core group.
    pub api_groups: Vec<String>,
    /// Plural names.
    pub resources: Vec<String>,
    /// Subresources. If there are any, the rule does not match the resource itself.
    pub subresources: Vec<String>,
    /// Namespaces. Only `*` matches a cluster-scoped resource, and a list in all namespaces.
    pub namespaces: Vec<String>,
    /// Names of objects. Only `*` matches a request without a name, and an object whose name the host generates.
    pub names: Vec<String>,
    /// The verbs.
    pub verbs: Vec<KubernetesVerb>,
    /// Whether a handler may wait for a change of these.
    pub watch: bool,
}

impl KubernetesRule {
    /// A rule for every object of its resources. It has no groups, resources and verbs yet.
    #[must_use]
    pub fn of_any_object() -> Self {
        Self {
            namespaces: vec!["*".to_owned()],
            names: vec!["*".to_owned()],
            ..Self::default()
        }
    }

    /// Returns whether the rule covers this object or subresource, for any verb. An empty name or namespace is covered by `*` only.
    fn covers(
        &self,
        group: &str,
        plural: &str,
        subresource: Option<&str>,
        namespace: &str,
        name: &str,
    ) -> bool {
        self.names_protected(group, plural, subresource)
            && any(&self.api_groups, group)
            && any(&self.resources, plural)
            && match subresource {
                None => self.subresources.is_empty(),
                Some(subresource) => any(&self.subresources, subresource),
            }
            && any_named(&self.namespaces, namespace)
            && any_named(&self.names, name)
    }
}

/// Allows verbs on keys of the config store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigstoreRule {
    /// Namespaces whose partitions the rule is for; `*` stands for any run of characters. If there are none, it is for the Configurator's own
    /// partition.
    pub namespaces: Vec<String>,
    /// Beginnings of keys, as in the key layout: `resources/pod/`.
    pub prefixes: Vec<String>,
    /// The verbs.
    pub verbs: Vec<ConfigVerb>,
}

/// Allows verbs on secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretstoreRule {
    /// Namespaces whose partitions the rule is for; `*` stands for any run of characters. If there are none, it is for the Configurator's own
    /// partition.
    pub namespaces: Vec<String>,
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

/// Allows verbs on targets of extensions. In each list, `*` stands for any run of characters, and an empty list matches nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtensionRule {
    /// Names of extensions.
    pub extensions: Vec<String>,
    /// Targets.
    pub targets: Vec<String>,
    /// Verbs.
    pub verbs: Vec<String>,
}

impl ExtensionRule {
    fn covers(&self, extension: &str, target: &str, verb: &str) -> bool {
        any(&self.extensions, extension) && any(&self.targets, target) && any(&self.verbs, verb)
    }

    /// Returns the rule that covers this alone, as it is written.
    fn text(extension: &str, target: &str, verb: &str) -> String {
        format!(
            "extension: {{extensions: [{extension:?}], targets: [{target:?}], verbs: [{verb:?}]}}"
        )
    }
}

impl Capabilities {
    /// Rules that allow everything: a ceiling for a host whose operator trusts the authors of its Configurators.
    #[must_use]
    pub fn everything() -> Self {
        let any = || vec!["*".to_owned()];
        let every_resource = KubernetesRule {
            api_groups: any(),
            resources: any(),
            verbs: KubernetesVerb::ALL.to_vec(),
            watch: true,
            ..KubernetesRule::of_any_object()
        };
        let texts = |all: &mut dyn Iterator<Item = &'static str>| all.map(str::to_owned).collect();
        let protected = KubernetesRule {
            api_groups: texts(&mut protected::GROUPS.into_iter()),
            ..every_resource.clone()
        };
        let tunnels = KubernetesRule {
            api_groups: vec![String::new()],
            resources: texts(
                &mut protected::SUBRESOURCES
                    .into_iter()
                    .map(|(plural, _)| plural),
            ),
            subresources: texts(&mut protected::SUBRESOURCES.into_iter().map(|(_, sub)| sub)),
            ..every_resource.clone()
        };
        Self {
            kubernetes: vec![
                KubernetesRule {
                    subresources: any(),
                    ..every_resource.clone()
                },
                every_resource,
                KubernetesRule {
                    subresources: any(),
                    ..protected.clone()
                },
                protected,
                tunnels,
            ],
            configstore: [Vec::new(), any()]
                .map(|namespaces| ConfigstoreRule {
                    namespaces,
                    prefixes: vec![String::new()],
                    verbs: ConfigVerb::ALL.to_vec(),
                })
                .to_vec(),
            secretstore: [Vec::new(), any()]
                .map(|namespaces| SecretstoreRule {
                    namespaces,
                    names: any(),
                    verbs: SecretVerb::ALL.to_vec(),
                })
                .to_vec(),
            http: vec![HttpRule {
                hosts: any(),
                methods: any(),
            }],
            extension: vec![ExtensionRule {
                extensions: any(),
                targets: any(),
                verbs: any(),
            }],
        }
    }

    /// Checks whether a handler may wait for a change of this object.
    ///
    /// # Errors
    /// As [`check_watch`](Self::check_watch).
    pub fn check_wait(&self, key: &ObjectKey) -> Result<(), Fault> {
        let allowed = self.kubernetes.iter().any(|rule| {
            rule.watch && rule.covers(&key.group, &key.plural, None, &key.namespace, &key.name)
        });
        if allowed {
            return Ok(());
        }
        Err(missing(&format!(
            "kubernetes: {{apiGroups: [{:?}], resources: [{}], namespaces: [{}], names: [{}], verbs: [watch]}}",
            key.group,
            key.plural,
            or_all(&key.namespace),
            key.name
        )))
    }

    /// Checks that rules allow a watch of this resource in these namespaces. An empty list means all namespaces, or a cluster-scoped
    /// resource. Only a rule whose names include `*` allows a watch.
    ///
    /// # Errors
    /// [`FaultKind::ResourcePermission`], with the first namespace that no rule covers.
    pub fn check_watch(
        &self,
        group: &str,
        plural: &str,
        namespaces: &[String],
    ) -> Result<(), Fault> {
        let covers = |namespace: &str| {
            self.kubernetes
                .iter()
                .any(|rule| rule.watch && rule.covers(group, plural, None, namespace, ""))
        };
        let everywhere = [String::new()];
        let wanted = match namespaces {
            [] => &everywhere[..],
            namespaces => namespaces,
        };
        let Some(missed) = wanted.iter().find(|namespace| !covers(namespace)) else {
            return Ok(());
        };
        let namespace = or_all(missed);
        Err(missing(&format!(
            "kubernetes: {{apiGroups: [{group:?}], resources: [{plural}], namespaces: [{namespace}], verbs: [watch]}}"
        )))
    }

    /// Checks that a rule allows reading an object of the core group that a Configurator refers to, such as a pull secret.
    ///
    /// # Errors
    /// As [`check_watch`](Self::check_watch).
    pub fn check_reference(&self, plural: &str, object: &ObjectRef) -> Result<(), Fault> {
        let allowed = self.kubernetes.iter().any(|rule| {
            rule.verbs.contains(&KubernetesVerb::Get)
                && rule.covers("", plural, None, &object.namespace, &object.name)
        });
        if allowed {
            return Ok(());
        }
        let ObjectRef { namespace, name } = object;
        Err(missing(&format!(
            "kubernetes: {{apiGroups: [\"\"], resources: [{plural}], namespaces: [{namespace}], names: [{name}], verbs: [get]}}"
        )))
    }

    /// Whether a rule allows this verb on the object of a call.
    ///
    /// # Errors
    /// [`FaultKind::ResourcePermission`]; the message reads `no rule that allows …`.
    pub(crate) fn check_kubernetes(
        &self,
        call: &KubernetesCall,
        verb: KubernetesVerb,
    ) -> Result<(), Fault> {
        let request = call.request();
        // A generated name is unknown when the rule is written, so it matches like an empty one.
        let name = match call.is_name_generated() {
            true => "",
            false => request.name.as_str(),
        };
        let allowed = self.kubernetes.iter().any(|rule| {
            let subresource = request.subresource.as_deref();
            let KubernetesRequest {
                group,
                plural,
                namespace,
                ..
            } = request;
            rule.covers(group, plural, subresource, namespace, name) && rule.verbs.contains(&verb)
        });
        if allowed {
            return Ok(());
        }
        let subresource = request
            .subresource
            .as_ref()
            .map(|subresource| format!(", subresources: [{subresource}]"))
            .unwrap_or_default();
        let namespace = or_all(&request.namespace);
        let names = if name.is_empty() {
            String::new()
        } else {
            format!(", names: [{name}]")
        };
        Err(missing(&format!(
            "kubernetes: {{apiGroups: [{:?}], resources: [{}]{subresource}, namespaces: [{namespace}]{names}, verbs: [{}]}}",
            request.group,
            request.plural,
            verb.name()
        )))
    }

    /// Whether a rule allows this verb on the entry of an operation, in the partition of a namespace or in the Configurator's own. `namespace` is
    /// that of the object being handled.
    ///
    /// # Errors
    /// As [`check_kubernetes`](Self::check_kubernetes), and when the operation names no key.
    pub(crate) fn check_config(
        &self,
        operation: &ConfigOperation,
        verb: ConfigVerb,
        partition: Option<&str>,
        namespace: &str,
    ) -> Result<(), Fault> {
        let key = layers::key_of(operation, namespace)
            .map_err(|error| Fault::new(FaultKind::ResourceGeneric, error.to_string()))?;
        let allowed = self.configstore.iter().any(|rule| {
            rule.verbs.contains(&verb)
                && is_for(&rule.namespaces, partition)
                && rule
                    .prefixes
                    .iter()
                    .any(|prefix| key.starts_with(prefix.as_str()))
        });
        if allowed {
            return Ok(());
        }
        Err(missing(&format!(
            "configstore: {{{}prefixes: [{key}], verbs: [{}]}}",
            namespaces_of(partition),
            verb.name()
        )))
    }

    /// Whether a rule allows this verb on the secret of a request.
    ///
    /// # Errors
    /// As [`check_kubernetes`](Self::check_kubernetes).
    pub(crate) fn check_secret(
        &self,
        request: &SecretRequest,
        verb: SecretVerb,
    ) -> Result<(), Fault> {
        let SecretRequest {
            name, partition, ..
        } = request;
        let partition = partition.as_deref();
        let allowed = self.secretstore.iter().any(|rule| {
            rule.verbs.contains(&verb)
                && is_for(&rule.namespaces, partition)
                && any(&rule.names, name)
        });
        let is_reserved = RESERVED_SECRETS
            .iter()
            .any(|prefix| name.starts_with(prefix));
        if allowed && !is_reserved {
            return Ok(());
        }
        Err(missing(&format!(
            "secretstore: {{{}names: [{name}], verbs: [{}]}}",
            namespaces_of(partition),
            verb.name()
        )))
    }

    /// Returns whether a rule allows any HTTP request at all.
    #[must_use]
    pub fn allows_http(&self) -> bool {
        !self.http.is_empty()
    }

    /// Whether a rule allows the method at the host of a URL.
    ///
    /// # Errors
    /// As [`check_kubernetes`](Self::check_kubernetes), and when the URL has no host.
    pub(crate) fn check_http(&self, request: &HttpRequest) -> Result<(), Fault> {
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

    /// Checks whether a rule allows the verb on the target of an extension.
    ///
    /// # Errors
    /// As [`check_kubernetes`](Self::check_kubernetes).
    pub(crate) fn check_extension(&self, request: &ExtensionRequest) -> Result<(), Fault> {
        let ExtensionRequest {
            extension,
            verb,
            target,
            ..
        } = request;
        let covers = |rule: &ExtensionRule| rule.covers(extension, target, verb);
        if self.extension.iter().any(covers) {
            return Ok(());
        }
        Err(missing(&ExtensionRule::text(extension, target, verb)))
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

/// As [`any`], but an empty pattern does not match an empty text: only `*` does.
fn any_named(patterns: &[String], text: &str) -> bool {
    let mut patterns = patterns.iter().filter(|pattern| !pattern.is_empty());
    patterns.any(|pattern| glob::matches(pattern, text))
}

/// Returns whether a rule for the partitions of these namespaces is for that of a namespace, or for the Configurator's own.
fn is_for(namespaces: &[String], partition: Option<&str>) -> bool {
    match partition {
        None => namespaces.is_empty(),
        Some(namespace) => any_named(namespaces, namespace),
    }
}

/// A partition as a rule names it.
fn namespaces_of(partition: Option<&str>) -> String {
    partition
        .map(|namespace| format!("namespaces: [{namespace}], "))
        .unwrap_or_default()
}

/// A namespace as a rule names it. Only `*` matches no namespace.
fn or_all(namespace: &str) -> &str {
    match namespace {
        "" => "\"*\"",
        namespace => namespace,
    }
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
    use crate::authorization::{Caller, authorize};
    use crate::ceiling::Ceiling;
    use crate::document::Document;
    use crate::request::{
        ConfigBasic, ConfigRequest, ConfigResource, ConfigType, Operation, SecretRequest,
    };

    fn rules() -> Capabilities {
        Capabilities {
            kubernetes: vec![
                KubernetesRule {
                    api_groups: vec![String::new()],
                    resources: vec!["nodes".into(), "namespaces".into()],
                    verbs: vec![KubernetesVerb::Get],
                    ..KubernetesRule::of_any_object()
                },
                KubernetesRule {
                    api_groups: vec!["apps".into()],
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
                ..ConfigstoreRule::default()
            }],
            secretstore: vec![SecretstoreRule {
                names: vec!["pod-*".into()],
                verbs: vec![SecretVerb::Create],
                ..SecretstoreRule::default()
            }],
            http: vec![HttpRule {
                hosts: vec!["hooks.example.com".into()],
                methods: vec!["POST".into()],
            }],
            extension: vec![ExtensionRule {
                extensions: vec!["dns".into()],
                targets: vec!["example.org/*".into()],
                verbs: vec!["upsert".into()],
            }],
        }
    }

    #[track_caller]
    fn check(operation: &Operation, expected: Expect) {
        let caller = Caller {
            namespace: "default",
            ..Caller::default()
        };
        let everything = Capabilities::everything();
        let unlimited = Ceiling::unlimited();
        let allowed = |rules: &Capabilities| authorize(operation, caller, rules, &unlimited);
        let got = match allowed(&rules()) {
            Ok(_) => "allowed".to_owned(),
            Err(denied) => denied.into_fault().to_string(),
        };
        expected.assert_eq(&got);
        assert!(allowed(&everything).is_ok());
        assert!(allowed(&Capabilities::default()).is_err());
    }

    fn kubernetes(verb: KubernetesVerb, group: &str, plural: &str) -> KubernetesRequest {
        KubernetesRequest::new(verb, group, "v1", plural)
    }

    #[test]
    fn a_watch_needs_a_rule_for_each_namespace_and_for_every_name() {
        let rule = |namespaces: &[&str], names: &[&str]| {
            let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
            Capabilities {
                kubernetes: vec![KubernetesRule {
                    api_groups: vec![String::new()],
                    resources: vec!["pods".into()],
                    namespaces: texts(namespaces),
                    names: texts(names),
                    watch: true,
                    ..KubernetesRule::default()
                }],
                ..Capabilities::default()
            }
        };
        let check = |rules: Capabilities, namespaces: &[&str], expected: Expect| {
            let namespaces: Vec<String> = namespaces.iter().map(|&name| name.into()).collect();
            let got = rules.check_watch("", "pods", &namespaces);
            expected.assert_eq(&got.map_or_else(|fault| fault.message, |()| "allowed".into()));
        };
        check(rule(&["*"], &["*"]), &[], expect!["allowed"]);
        check(rule(&["team-*"], &["*"]), &["team-a"], expect!["allowed"]);
        check(rule(&["*"], &["*"]), &["team-a"], expect!["allowed"]);
        check(
            rule(&[], &["*"]),
            &["team-a"],
            expect![[
                r#"no rule that allows kubernetes: {apiGroups: [""], resources: [pods], namespaces: [team-a], verbs: [watch]}"#
            ]],
        );
        check(
            rule(&["*"], &[]),
            &["team-a"],
            expect![[
                r#"no rule that allows kubernetes: {apiGroups: [""], resources: [pods], namespaces: [team-a], verbs: [watch]}"#
            ]],
        );
        check(
            rule(&["team-*"], &["*"]),
            &["team-a", "shop"],
            expect![[
                r#"no rule that allows kubernetes: {apiGroups: [""], resources: [pods], namespaces: [shop], verbs: [watch]}"#
            ]],
        );
        check(
            rule(&["team-*"], &["*"]),
            &[],
            expect![[
                r#"no rule that allows kubernetes: {apiGroups: [""], resources: [pods], namespaces: ["*"], verbs: [watch]}"#
            ]],
        );
        check(
            rule(&["*"], &["web"]),
            &["shop"],
            expect![[
                r#"no rule that allows kubernetes: {apiGroups: [""], resources: [pods], namespaces: [shop], verbs: [watch]}"#
            ]],
        );
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
    fn extensions_are_allowed_by_name_target_and_verb() {
        let request = |extension: &str, target: &str, verb: &str| {
            Operation::Extension(ExtensionRequest {
                extension: extension.into(),
                verb: verb.into(),
                target: target.into(),
                body: None,
            })
        };
        check(
            &request("dns", "example.org/www", "upsert"),
            expect!["allowed"],
        );
        check(
            &request("dns", "example.org/www", "delete"),
            expect![[
                r#"ResourcePermission: spec.capabilities has no rule that allows extension: {extensions: ["dns"], targets: ["example.org/www"], verbs: ["delete"]}"#
            ]],
        );
        check(
            &request("dns", "example.com/www", "upsert"),
            expect![[
                r#"ResourcePermission: spec.capabilities has no rule that allows extension: {extensions: ["dns"], targets: ["example.com/www"], verbs: ["upsert"]}"#
            ]],
        );
        check(
            &request("mail", "example.org/www", "upsert"),
            expect![[
                r#"ResourcePermission: spec.capabilities has no rule that allows extension: {extensions: ["mail"], targets: ["example.org/www"], verbs: ["upsert"]}"#
            ]],
        );
    }

    #[test]
    fn no_pattern_matches_what_extends_rights() {
        let rule = |group: &str, plural: &str, subresources: &[&str]| KubernetesRule {
            api_groups: vec![group.into()],
            resources: vec![plural.into()],
            subresources: subresources.iter().map(|&name| name.into()).collect(),
            verbs: KubernetesVerb::ALL.to_vec(),
            ..KubernetesRule::of_any_object()
        };
        let unlimited = Ceiling::unlimited();
        let request = |group: &str, plural: &str, subresource: Option<&str>| {
            Operation::Kubernetes(KubernetesRequest {
                namespace: "team-a".into(),
                name: "x".into(),
                subresource: subresource.map(str::to_owned),
                ..kubernetes(KubernetesVerb::Get, group, plural)
            })
        };
        let allows = |rule: KubernetesRule, operation: &Operation| {
            let rules = Capabilities {
                kubernetes: vec![rule],
                ..Capabilities::default()
            };
            authorize(operation, Caller::default(), &rules, &unlimited).is_ok()
        };
        for group in protected::GROUPS {
            let operation = request(group, "things", None);
            for pattern in ["*", "*.k8s.io", "*.dev", &format!("{group}*")] {
                assert!(
                    !allows(rule(pattern, "*", &[]), &operation),
                    "{pattern} {group}"
                );
            }
            assert!(allows(rule(group, "*", &[]), &operation), "{group}");
        }
        for (plural, subresource) in protected::SUBRESOURCES {
            let operation = request("", plural, Some(subresource));
            for (resources, subresources) in [("*", "*"), (plural, "*"), ("*", subresource)] {
                let rule = rule("", resources, &[subresources]);
                assert!(!allows(rule, &operation), "{resources}/{subresources}");
            }
            assert!(allows(rule("", plural, &[subresource]), &operation));
        }
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
                r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [pods], namespaces: [shop], names: [web], verbs: [delete]}"#
            ]],
        );
    }

    #[test]
    fn a_rule_for_a_subresource_does_not_open_the_resource() {
        let request = KubernetesRequest {
            namespace: "team-a".into(),
            name: "web".into(),
            body: Some(Document::empty_object()),
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
                r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: ["apps"], resources: [deployments], namespaces: [team-a], names: [web], verbs: [patch]}"#
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
                partition: None,
            })
        };
        check(&of(vec![update.clone()]), expect!["allowed"]);
        check(
            &of(vec![update, basic]),
            expect![
                "ResourcePermission: spec.capabilities has no rule that allows configstore: {prefixes: [basic/resources%2Fpod%2F], verbs: [update]}"
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
                version: None,
                partition: None,
            })
        };
        check(&secret("pod-a", SecretVerb::Create), expect!["allowed"]);
        check(
            &secret("pod-a", SecretVerb::Get),
            expect![
                "ResourcePermission: spec.capabilities has no rule that allows secretstore: {names: [pod-a], verbs: [get]}"
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
                "ResourcePermission: spec.capabilities has no rule that allows http: {hosts: [hooks.example.com:8443], methods: [POST]}"
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
