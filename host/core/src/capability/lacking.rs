//! Whether rules allow all that other rules do.

use super::{
    Capabilities, ConfigstoreRule, ExtensionRule, SecretstoreRule, any, is_for, namespaces_of,
};
use crate::request::{ConfigVerb, KubernetesVerb, SecretVerb};

/// How many combinations one rule may have; a module that says more is told to say it in other words.
const MAX_COMBINATIONS: usize = 10_000;

impl Capabilities {
    /// A rule that `wanted` has and these do not allow, as it would be written; `None` where everything is allowed.
    ///
    /// Each combination must be allowed by one rule: for every group, resource and verb there is one that has them all. What is wanted by a pattern
    /// is allowed by a pattern that has it: `pod-*` by `pod-*`, `p*` and `*`.
    #[must_use]
    pub fn lacking(&self, wanted: &Self) -> Option<String> {
        self.lacking_kubernetes(wanted)
            .or_else(|| self.lacking_config(wanted))
            .or_else(|| self.lacking_secret(wanted))
            .or_else(|| self.lacking_http(wanted))
            .or_else(|| self.lacking_extension(wanted))
    }

    fn lacking_kubernetes(&self, wanted: &Self) -> Option<String> {
        for rule in &wanted.kubernetes {
            let subresources: Vec<Option<&str>> = match rule.subresources.is_empty() {
                true => vec![None],
                false => rule.subresources.iter().map(|name| Some(&**name)).collect(),
            };
            let lists = [
                rule.api_groups.len(),
                rule.resources.len(),
                subresources.len(),
                rule.namespaces.len(),
                rule.names.len(),
            ];
            let combinations = lists
                .iter()
                .fold(1_usize, |all, one| all.saturating_mul(*one));
            if combinations > MAX_COMBINATIONS {
                return Some(format!(
                    "kubernetes: a rule with {combinations} combinations, where {MAX_COMBINATIONS} may be"
                ));
            }
            for group in &rule.api_groups {
                for resource in &rule.resources {
                    for subresource in &subresources {
                        for namespace in &rule.namespaces {
                            for name in &rule.names {
                                let place = Place {
                                    group,
                                    resource,
                                    subresource: *subresource,
                                    namespace,
                                    name,
                                };
                                let verb = rule.verbs.iter().map(|verb| Some(*verb));
                                let mut verbs = verb.chain(rule.watch.then_some(None));
                                let lacks =
                                    |verb: &Option<KubernetesVerb>| !self.has(&place, *verb);
                                if let Some(verb) = verbs.find(lacks) {
                                    return Some(place.rule(verb));
                                }
                            }
                        }
                    }
                }
            }
        }
        None
    }

    /// Whether one rule allows the verb there; without a verb, to wait for a change.
    fn has(&self, place: &Place<'_>, verb: Option<KubernetesVerb>) -> bool {
        self.kubernetes.iter().any(|rule| {
            let Place {
                group,
                resource,
                subresource,
                namespace,
                name,
            } = *place;
            rule.covers(group, resource, subresource, namespace, name)
                && verb.map_or(rule.watch, |verb| rule.verbs.contains(&verb))
        })
    }

    fn lacking_config(&self, wanted: &Self) -> Option<String> {
        let lacks = |partition: Option<&str>, prefix: &str, verb: &ConfigVerb| {
            !self.configstore.iter().any(|rule| {
                let begins = |own: &String| prefix.starts_with(own.as_str());
                rule.verbs.contains(verb)
                    && is_for(&rule.namespaces, partition)
                    && rule.prefixes.iter().any(begins)
            })
        };
        wanted.configstore.iter().find_map(|rule| {
            let ConfigstoreRule {
                namespaces,
                prefixes,
                verbs,
            } = rule;
            let (partition, prefix, verb) = first(namespaces, prefixes, verbs, lacks)?;
            let (namespaces, verb) = (namespaces_of(partition), verb.name());
            Some(format!(
                "configstore: {{{namespaces}prefixes: [{prefix:?}], verbs: [{verb}]}}"
            ))
        })
    }

    fn lacking_secret(&self, wanted: &Self) -> Option<String> {
        let lacks = |partition: Option<&str>, name: &str, verb: &SecretVerb| {
            !self.secretstore.iter().any(|rule| {
                rule.verbs.contains(verb)
                    && is_for(&rule.namespaces, partition)
                    && any(&rule.names, name)
            })
        };
        wanted.secretstore.iter().find_map(|rule| {
            let SecretstoreRule {
                namespaces,
                names,
                verbs,
            } = rule;
            let (partition, name, verb) = first(namespaces, names, verbs, lacks)?;
            let (namespaces, verb) = (namespaces_of(partition), verb.name());
            Some(format!(
                "secretstore: {{{namespaces}names: [{name:?}], verbs: [{verb}]}}"
            ))
        })
    }

    fn lacking_http(&self, wanted: &Self) -> Option<String> {
        let lacks = |host: &str, method: &str| {
            !self
                .http
                .iter()
                .any(|rule| any(&rule.hosts, host) && any(&rule.methods, method))
        };
        wanted.http.iter().find_map(|rule| {
            rule.hosts.iter().find_map(|host| {
                let method = rule.methods.iter().find(|method| lacks(host, method))?;
                Some(format!("http: {{hosts: [{host:?}], methods: [{method}]}}"))
            })
        })
    }

    fn lacking_extension(&self, wanted: &Self) -> Option<String> {
        let lacks = |extension: &str, target: &str, verb: &str| {
            let mut rules = self.extension.iter();
            !rules.any(|rule| rule.covers(extension, target, verb))
        };
        wanted.extension.iter().find_map(|rule| {
            rule.extensions.iter().find_map(|extension| {
                rule.targets.iter().find_map(|target| {
                    let mut verbs = rule.verbs.iter();
                    let verb = verbs.find(|verb| lacks(extension, target, verb))?;
                    Some(ExtensionRule::text(extension, target, verb))
                })
            })
        })
    }
}

/// Returns the first partition, text and verb of a rule for a store that `is` holds for. The texts are prefixes of keys, or names.
fn first<'r, V>(
    namespaces: &'r [String],
    texts: &'r [String],
    verbs: &'r [V],
    is: impl Fn(Option<&str>, &str, &V) -> bool,
) -> Option<(Option<&'r str>, &'r str, &'r V)> {
    partitions(namespaces).find_map(|partition| {
        texts.iter().find_map(|text| {
            let verb = verbs.iter().find(|verb| is(partition, text, verb))?;
            Some((partition, text.as_str(), verb))
        })
    })
}

/// Returns the partitions that a rule for these namespaces is for.
fn partitions(namespaces: &[String]) -> impl Iterator<Item = Option<&str>> {
    let own = namespaces.is_empty().then_some(None);
    own.into_iter()
        .chain(namespaces.iter().map(|namespace| Some(namespace.as_str())))
}

/// Some objects of the Kubernetes API, by patterns.
struct Place<'p> {
    group: &'p str,
    resource: &'p str,
    subresource: Option<&'p str>,
    namespace: &'p str,
    name: &'p str,
}

impl Place<'_> {
    fn rule(&self, verb: Option<KubernetesVerb>) -> String {
        let verb = verb.map_or("watch", KubernetesVerb::name);
        let Self {
            group, resource, ..
        } = self;
        let subresource = self
            .subresource
            .map(|name| format!(", subresources: [{name}]"));
        let subresource = subresource.unwrap_or_default();
        let namespace = self.namespace;
        let name = match self.name {
            // What `names` is if a rule leaves it out.
            "*" => String::new(),
            name => format!(", names: [{name:?}]"),
        };
        format!(
            "kubernetes: {{apiGroups: [{group:?}], resources: [{resource}]{subresource}, namespaces: [{namespace:?}]{name}, verbs: [{verb}]}}"
        )
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::super::{HttpRule, KubernetesRule};
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn kubernetes(resources: &[&str], names: &[&str], verbs: &[KubernetesVerb]) -> KubernetesRule {
        KubernetesRule {
            api_groups: texts(&[""]),
            resources: texts(resources),
            names: texts(names),
            verbs: verbs.to_vec(),
            ..KubernetesRule::of_any_object()
        }
    }

    fn granted() -> Capabilities {
        Capabilities {
            kubernetes: vec![
                kubernetes(&["configmaps"], &["app-*"], &[KubernetesVerb::Apply]),
                kubernetes(&["*"], &["*"], &[KubernetesVerb::Get]),
            ],
            configstore: vec![
                ConfigstoreRule {
                    prefixes: texts(&["resources/pod/"]),
                    verbs: vec![ConfigVerb::Get],
                    ..ConfigstoreRule::default()
                },
                ConfigstoreRule {
                    namespaces: texts(&["team-a"]),
                    prefixes: texts(&["basic/"]),
                    verbs: vec![ConfigVerb::Get],
                },
            ],
            secretstore: vec![SecretstoreRule {
                names: texts(&["pod-*"]),
                verbs: vec![SecretVerb::Get],
                ..SecretstoreRule::default()
            }],
            http: vec![HttpRule {
                hosts: texts(&["*.example.com"]),
                methods: texts(&["POST"]),
            }],
            extension: vec![ExtensionRule {
                extensions: texts(&["dns"]),
                targets: texts(&["example.org/*"]),
                verbs: texts(&["upsert"]),
            }],
        }
    }

    fn check(wanted: Capabilities, expected: Expect) {
        let lacking = granted().lacking(&wanted);
        expected.assert_eq(&lacking.unwrap_or_else(|| "nothing".to_owned()));
    }

    fn check_kubernetes(wanted: KubernetesRule, expected: Expect) {
        let wanted = Capabilities {
            kubernetes: vec![wanted],
            ..Capabilities::default()
        };
        check(wanted, expected);
    }

    #[test]
    fn what_is_wanted_may_be_less() {
        check(granted(), expect!["nothing"]);
        check(Capabilities::default(), expect!["nothing"]);
        assert_eq!(Capabilities::everything().lacking(&granted()), None);
        let both = [KubernetesVerb::Get, KubernetesVerb::Apply];
        check_kubernetes(
            kubernetes(&["configmaps"], &["app-web", "app-w*"], &both),
            expect!["nothing"],
        );
    }

    #[test]
    fn what_is_wanted_and_not_allowed_is_said_as_a_rule() {
        let apply = [KubernetesVerb::Get, KubernetesVerb::Apply];
        check_kubernetes(
            kubernetes(&["configmaps"], &["app-web", "web"], &apply),
            expect![[
                r#"kubernetes: {apiGroups: [""], resources: [configmaps], namespaces: ["*"], names: ["web"], verbs: [apply]}"#
            ]],
        );
        check_kubernetes(
            kubernetes(&["configmaps"], &["*"], &apply),
            expect![[
                r#"kubernetes: {apiGroups: [""], resources: [configmaps], namespaces: ["*"], verbs: [apply]}"#
            ]],
        );
        check_kubernetes(
            KubernetesRule {
                subresources: texts(&["status"]),
                namespaces: texts(&["shop"]),
                ..kubernetes(&["pods"], &["*"], &[KubernetesVerb::Get])
            },
            expect![[
                r#"kubernetes: {apiGroups: [""], resources: [pods], subresources: [status], namespaces: ["shop"], verbs: [get]}"#
            ]],
        );
        check_kubernetes(
            KubernetesRule {
                watch: true,
                ..kubernetes(&["pods"], &["*"], &[KubernetesVerb::Get])
            },
            expect![[
                r#"kubernetes: {apiGroups: [""], resources: [pods], namespaces: ["*"], verbs: [watch]}"#
            ]],
        );
        check(
            Capabilities {
                configstore: vec![ConfigstoreRule {
                    prefixes: texts(&["resources/pod/shop/", "resources/"]),
                    verbs: vec![ConfigVerb::Get],
                    ..ConfigstoreRule::default()
                }],
                ..Capabilities::default()
            },
            expect![[r#"configstore: {prefixes: ["resources/"], verbs: [get]}"#]],
        );
        check(
            Capabilities {
                secretstore: vec![SecretstoreRule {
                    names: texts(&["pod-a"]),
                    verbs: vec![SecretVerb::Get, SecretVerb::Create],
                    ..SecretstoreRule::default()
                }],
                ..Capabilities::default()
            },
            expect![[r#"secretstore: {names: ["pod-a"], verbs: [create]}"#]],
        );
        check(
            Capabilities {
                configstore: vec![ConfigstoreRule {
                    namespaces: texts(&["team-a", "team-b"]),
                    prefixes: texts(&["basic/a"]),
                    verbs: vec![ConfigVerb::Get],
                }],
                ..Capabilities::default()
            },
            expect![[
                r#"configstore: {namespaces: [team-b], prefixes: ["basic/a"], verbs: [get]}"#
            ]],
        );
        check(
            Capabilities {
                secretstore: vec![SecretstoreRule {
                    namespaces: texts(&["team-a"]),
                    names: texts(&["pod-a"]),
                    verbs: vec![SecretVerb::Get],
                }],
                ..Capabilities::default()
            },
            expect![[r#"secretstore: {namespaces: [team-a], names: ["pod-a"], verbs: [get]}"#]],
        );
        check(
            Capabilities {
                http: vec![HttpRule {
                    hosts: texts(&["hooks.example.com", "*"]),
                    methods: texts(&["POST"]),
                }],
                ..Capabilities::default()
            },
            expect![[r#"http: {hosts: ["*"], methods: [POST]}"#]],
        );
        check(
            Capabilities {
                extension: vec![ExtensionRule {
                    extensions: texts(&["dns"]),
                    targets: texts(&["example.org/www", "example.com/www"]),
                    verbs: texts(&["upsert"]),
                }],
                ..Capabilities::default()
            },
            expect![[
                r#"extension: {extensions: ["dns"], targets: ["example.com/www"], verbs: ["upsert"]}"#
            ]],
        );
    }

    #[test]
    fn a_rule_without_end_is_none() {
        let many: Vec<String> = (0..101).map(|number| number.to_string()).collect();
        let rule = KubernetesRule {
            resources: many.clone(),
            names: many,
            ..kubernetes(&[], &[], &[KubernetesVerb::Get])
        };
        check_kubernetes(
            rule,
            expect!["kubernetes: a rule with 10201 combinations, where 10000 may be"],
        );
    }
}
