//! From a Configurator resource to a checked [`Configurator`].

mod capabilities;
mod chain;
mod flows;
mod machine;
mod namespace;
pub mod policy;
mod watch;

use std::time::Duration;

use configurator_core::backoff::RetryPolicy;
use configurator_core::configurator::{Configurator, Deletion, DeletionBy, Ending, SetOptions};
use configurator_core::document::Document;
use configurator_core::handler::CallLimits;
use configurator_core::partition::Partition;
use configurator_core::service_account::ServiceAccount;
use configurator_core::time::Timestamp;
use kube::core::Selector;

pub use self::capabilities::capabilities;
pub use self::flows::{FlowSet, Flows};
use crate::resource::{
    self, DeletionBySpec, InstancePolicySpec, LimitsSpec, ParametersSourceSpec, SetsDeletionSpec,
    SetsSpec,
};

/// The longest name of a Configurator. Kubernetes allows 63 characters in the last part of a finalizer's name.
pub const MAX_NAME: usize = 63;
/// The largest value of `spec.sets.maxEntries`.
const MAX_ENTRIES: usize = 20_000;

/// What is wrong with a Configurator, with the path of the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct DeclarationError {
    /// As in `spec.chain.phases[1].name`.
    pub path: String,
    /// What is wrong, and what to do.
    pub message: String,
}

/// As whom a Configurator acts; `None`: as the host.
///
/// # Errors
/// When it names no ServiceAccount that there can be.
pub fn service_account(
    resource: &resource::Configurator,
) -> Result<Option<ServiceAccount>, DeclarationError> {
    namespace::service_account(&resource.spec, &resource.key().namespace)
}

/// Selects the namespaces of watched objects. `None`: all namespaces.
#[must_use]
pub fn namespace_selector(resource: &resource::Configurator) -> Option<Selector> {
    let selector: Selector = resource
        .spec
        .watch
        .namespace_selector
        .clone()
        .try_into()
        .ok()?;
    (!selector.selects_all()).then_some(selector)
}

/// Checks the resource, everything but its module. `flows` are those that are resources of their own.
///
/// # Errors
/// At the first thing that is wrong.
pub fn check(
    resource: &resource::Configurator,
    flows: &FlowSet,
) -> Result<Configurator, DeclarationError> {
    let spec = &resource.spec;
    let key = resource.key();
    let name = &key.name;
    if name.is_empty() {
        return Err(wrong("metadata.name", "a Configurator needs a name"));
    }
    if name.len() > MAX_NAME {
        return Err(wrong(
            "metadata.name",
            &format!("must have at most {MAX_NAME} characters: finalizers carry it"),
        ));
    }
    check_source(&spec.module)?;
    check_parameters(&spec.parameters_from)?;
    let (phases, batch, machine) = match (&spec.chain, &spec.machine) {
        (Some(chain), None) => {
            let batch = chain.batch.as_ref().map(chain::batch).transpose()?;
            (chain::root_chain(&chain.phases)?, batch, None)
        }
        (None, Some(machine)) => (
            Vec::new(),
            None,
            Some(machine::check(
                machine,
                &flows.of_namespace(&key.namespace),
            )?),
        ),
        (None, None) | (Some(_), Some(_)) => {
            return Err(wrong("spec", "must have either a chain or a machine"));
        }
    };
    let ending = ending(resource);
    if spec.sets.is_none() && spec.deletion.sets != SetsDeletionSpec::Block {
        return Err(wrong("spec.deletion.sets", "needs spec.sets"));
    }
    let sets = spec.sets.as_ref().map(|sets| set_options(sets, ending));
    let sets = sets.transpose()?;
    let deletion = Deletion {
        by: match spec.deletion.by {
            // Without a finalizer, an owner could go before its members.
            _ if sets.is_some() => DeletionBy::Finalizer,
            DeletionBySpec::Ledger => DeletionBy::Ledger,
            DeletionBySpec::Finalizer => DeletionBy::Finalizer,
        },
        phases: match ending {
            // Their owners are not deleted.
            Some(_) => Vec::new(),
            None => chain::phases("spec.deletion.phases", &spec.deletion.phases)?,
        },
        timeout: span("spec.deletion.timeout", spec.deletion.timeout)?,
    };
    let mut watch = watch::watch(&spec.watch)?;
    let mut rules = capabilities(&spec.capabilities)?;
    let mut partition = Partition::default();
    if key.namespace.is_empty() {
        namespace::check_partitions(&mut rules)?;
    } else {
        // The uid of the namespace is yet to be looked up. No namespace has an empty one, so nothing is in this partition.
        partition = Partition::of_namespace(&key.namespace, "");
        namespace::check_module(&spec.module, &key.namespace)?;
        namespace::check_parameters(&spec.parameters_from, &key.namespace)?;
        namespace::confine_watch(&mut watch, &key.namespace)?;
        namespace::confine_rules(&mut rules, &key.namespace)?;
    }
    let is_shared =
        watch.group.is_empty() && matches!(watch.kind.as_str(), "Pod" | "Node" | "Namespace");
    if sets.is_some() && batch.is_some() {
        return Err(wrong(
            "spec.sets",
            "is not valid with batches: a set belongs to one object",
        ));
    }
    let mode = machine.as_ref();
    if sets.is_none() && mode.is_some_and(|mode| mode.machine.has_upkeep()) {
        return Err(wrong(
            "spec.machine.phases",
            "the upkeep of a phase returns the set of the object, which needs spec.sets",
        ));
    }
    if sets.is_some() && is_shared {
        return Err(wrong(
            "spec.sets",
            "Pods, Nodes and Namespaces cannot own a set, because they may carry no finalizer",
        ));
    }
    if deletion.by == DeletionBy::Finalizer && is_shared {
        return Err(wrong(
            "spec.deletion.by",
            "a finalizer is never placed on Pods, Nodes or Namespaces: use Ledger",
        ));
    }
    if spec.concurrency == 0 {
        return Err(wrong("spec.concurrency", "must be at least 1"));
    }
    let uid = resource.metadata.uid.as_deref().unwrap_or_default();
    let limits = limits(&spec.limits, spec.instance_policy)?;
    let limits = limits.owned_by(uid).shared_in(&key.namespace);
    let parameters = serde_json::Value::Object(spec.parameters.clone().into_iter().collect());
    Ok(Configurator {
        key,
        partition,
        service_account: service_account(resource)?,
        uid: resource.metadata.uid.clone().unwrap_or_default(),
        generation: resource.metadata.generation.unwrap_or_default(),
        suspend: spec.suspend,
        record: spec.record,
        watch,
        batch,
        secrets: Vec::new(),
        parameters: Document::of(&parameters)
            .map_err(|error| wrong("spec.parameters", &error.to_string()))?,
        phases,
        machine,
        deletion,
        sets: sets.map(Box::new),
        capabilities: rules,
        limits,
        max_requests: count("spec.limits.requests", spec.limits.requests)?,
        concurrency: count("spec.concurrency", spec.concurrency)?,
        retry: RetryPolicy {
            max_attempts: spec.retry.max_attempts.max(1),
            initial_delay: span("spec.retry.initialDelay", spec.retry.initial_delay)?,
            max_delay: span("spec.retry.maxDelay", spec.retry.max_delay)?,
            ..RetryPolicy::default()
        },
    })
}

fn wrong(path: &str, message: &str) -> DeclarationError {
    DeclarationError {
        path: path.to_owned(),
        message: message.to_owned(),
    }
}

/// A module has one source, and what is pinned elsewhere than in its source is pinned by digest.
fn check_source(spec: &resource::ModuleSpec) -> Result<(), DeclarationError> {
    let file = spec.file.as_ref().map(|file| ("file", file.is_empty()));
    let oci = spec
        .oci
        .as_ref()
        .map(|oci| ("oci", oci.reference.is_empty()));
    let map = spec.config_map.as_ref();
    let map = map.map(|map| ("configMap", map.namespace.is_empty() || map.name.is_empty()));
    let mut named = [file, oci, map].into_iter().flatten();
    match (named.next(), named.next()) {
        (Some((_, false)), None) => {}
        (Some((name, true)), None) => {
            return Err(wrong(&format!("spec.module.{name}"), "must not be empty"));
        }
        _ => {
            return Err(wrong(
                "spec.module",
                "a module needs one source: file, configMap or oci",
            ));
        }
    }
    if map.is_some() && spec.digest.is_none() {
        return Err(wrong(
            "spec.module.digest",
            "a module in a ConfigMap needs a digest",
        ));
    }
    Ok(())
}

/// Checks that each source of parameters is one object with a place.
fn check_parameters(specs: &[ParametersSourceSpec]) -> Result<(), DeclarationError> {
    for (index, spec) in specs.iter().enumerate() {
        let path = format!("spec.parametersFrom[{index}]");
        let reference = match (&spec.config_map, &spec.secret) {
            (Some(reference), None) | (None, Some(reference)) => reference,
            (None, None) | (Some(_), Some(_)) => {
                return Err(wrong(&path, "must have either a configMap or a secret"));
            }
        };
        if reference.namespace.is_empty() || reference.name.is_empty() {
            return Err(wrong(&path, "needs a namespace and a name"));
        }
        if reference.parameter.is_some() && reference.key.is_none() {
            return Err(wrong(
                &path,
                "parameter names the value of a key: say which",
            ));
        }
    }
    Ok(())
}

/// Checks that a phase has a name, and one that no earlier phase has.
fn check_name<'a>(
    path: &str,
    name: &str,
    mut earlier: impl Iterator<Item = &'a str>,
) -> Result<(), DeclarationError> {
    if name.is_empty() {
        return Err(wrong(path, "a phase needs a name"));
    }
    if earlier.any(|other| other == name) {
        let message = format!("two phases are named {name:?}; each needs a name of its own");
        return Err(wrong(path, &message));
    }
    Ok(())
}

/// The most entries of `spec.sets.adoptedManagers`.
const MAX_ADOPTED_MANAGERS: usize = 64;
/// The shortest time after which members are read again, or a set is idle.
const MIN_SET_INTERVAL: Duration = Duration::from_secs(1);

/// How the sets end, if the Configurator is being deleted. `None`: they do not.
fn ending(resource: &resource::Configurator) -> Option<Ending> {
    let since = resource.metadata.deletion_timestamp.as_ref()?;
    let keeps_members = match resource.spec.deletion.sets {
        SetsDeletionSpec::Block => return None,
        SetsDeletionSpec::Delete => false,
        SetsDeletionSpec::Orphan => true,
    };
    Some(Ending {
        since: Timestamp::from_millis(since.0.as_millisecond()),
        keeps_members,
    })
}

fn set_options(spec: &SetsSpec, ending: Option<Ending>) -> Result<SetOptions, DeclarationError> {
    let percent = u8::try_from(spec.max_prune_percent).ok();
    let percent = percent.filter(|percent| *percent <= 100);
    let max_entries = usize::try_from(spec.max_entries).ok();
    let max_entries = max_entries.filter(|entries| (1..=MAX_ENTRIES).contains(entries));
    let interval = |path: &str, text| match span(path, text)? {
        span if span < MIN_SET_INTERVAL => Err(wrong(path, "must be at least 1s")),
        span => Ok(span),
    };
    if spec.adopted_managers.len() > MAX_ADOPTED_MANAGERS {
        return Err(wrong(
            "spec.sets.adoptedManagers",
            "must have at most 64 entries",
        ));
    }
    Ok(SetOptions {
        poll_interval: interval("spec.sets.pollInterval", spec.poll_interval)?,
        max_watches: count("spec.sets.maxWatches", spec.max_watches)?,
        idle_after: interval("spec.sets.idleAfter", spec.idle_after)?,
        adopted_managers: spec.adopted_managers.clone().into(),
        ending,
        max_prune_percent: percent
            .ok_or_else(|| wrong("spec.sets.maxPrunePercent", "must be at most 100"))?,
        prune_from: count("spec.sets.pruneFrom", spec.prune_from)?,
        max_entries: max_entries
            .ok_or_else(|| wrong("spec.sets.maxEntries", "must be from 1 to 20000"))?,
    })
}

fn limits(spec: &LimitsSpec, instance: InstancePolicySpec) -> Result<CallLimits, DeclarationError> {
    let deadline = span("spec.limits.deadline", spec.deadline)?;
    if deadline.is_zero() {
        return Err(wrong("spec.limits.deadline", "must be longer than zero"));
    }
    Ok(CallLimits {
        deadline,
        memory: bytes("spec.limits.memory", &spec.memory)?,
        input_size: bytes("spec.limits.inputSize", &spec.input_size)?,
        output_size: bytes("spec.limits.outputSize", &spec.output_size)?,
        instance_calls: match instance {
            InstancePolicySpec::Fresh => 1,
            InstancePolicySpec::Reuse => spec.instance_calls,
        },
        ..CallLimits::default()
    })
}

fn span(path: &str, duration: kube::core::Duration) -> Result<Duration, DeclarationError> {
    if duration.is_negative() {
        return Err(wrong(path, "must not be negative"));
    }
    Ok(duration.into())
}

fn count(path: &str, number: u32) -> Result<usize, DeclarationError> {
    usize::try_from(number)
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| wrong(path, "must be at least 1"))
}

fn bytes(path: &str, text: &str) -> Result<u64, DeclarationError> {
    parse_bytes(text).map_err(|message| wrong(path, &message))
}

/// Units of numbers of bytes, the largest first.
const UNITS: [(&str, u64); 3] = [("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];

/// Reads a number of bytes: digits, with `Ki`, `Mi` or `Gi`.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let (digits, factor) = UNITS
        .into_iter()
        .find_map(|(suffix, factor)| text.strip_suffix(suffix).map(|digits| (digits, factor)))
        .unwrap_or((text, 1));
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("{text:?} is no number of bytes such as 64Mi"))
}

/// Writes a number of bytes as [`parse_bytes`] reads it, with the largest unit that keeps it exact.
pub(crate) fn format_bytes(bytes: u64) -> String {
    let unit = UNITS
        .into_iter()
        .find(|(_, factor)| bytes > 0 && bytes.is_multiple_of(*factor));
    match unit {
        Some((suffix, factor)) => format!("{}{suffix}", bytes / factor),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::{FlowSet, check as declare};
    use crate::resource;

    /// What is said of a Configurator with a change that the schema of the resource would not always stop.
    #[track_caller]
    fn check(change: impl FnOnce(&mut Value), expected: Expect) {
        let mut object = json!({
            "apiVersion": "configurator.dev/v1alpha1",
            "kind": "ClusterConfigurator",
            "metadata": {"name": "pods"},
            "spec": {
                "watch": {"apiVersion": "v1", "kind": "Pod"},
                "module": {"file": "pods.wasm"},
                "chain": {"phases": [{"name": "root"}]},
            },
        });
        change(&mut object);
        let resource = resource::read(object).unwrap();
        let told = match declare(&resource, &FlowSet::default()) {
            Ok(configurator) => {
                let watch = &configurator.watch;
                format!(
                    "{} watches {} in {:?}",
                    configurator.key, watch.kind, watch.namespaces
                )
            }
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&told);
    }

    #[test]
    fn what_is_wrong_is_named_by_its_path() {
        check(|_| {}, expect!["pods watches Pod in []"]);
        check(
            |object| object["metadata"]["name"] = "a".repeat(64).into(),
            expect!["metadata.name: must have at most 63 characters: finalizers carry it"],
        );
        check(
            |object| object["spec"]["module"] = json!({}),
            expect!["spec.module: a module needs one source: file, configMap or oci"],
        );
        check(
            |object| object["spec"]["chain"]["phases"] = json!([]),
            expect!["spec.chain.phases: a chain needs at least one phase, the root phase"],
        );
        check(
            |object| {
                object["spec"]["chain"]["phases"] = json!([{"name": "root"}, {"name": "root"}])
            },
            expect![[
                r#"spec.chain.phases[1].name: two phases are named "root"; each needs a name of its own"#
            ]],
        );
        for change in [
            |spec: &mut Value| spec["chain"] = Value::Null,
            |spec: &mut Value| {
                spec["machine"] = json!({"phases": [{"name": "root", "terminal": true}]})
            },
        ] {
            check(
                |object| change(&mut object["spec"]),
                expect!["spec: must have either a chain or a machine"],
            );
        }
        for version in ["", "/v1", "apps/", "a/b/v1"] {
            check(
                |object| object["spec"]["watch"]["apiVersion"] = version.into(),
                expect!["spec.watch.apiVersion: must be `VERSION` or `GROUP/VERSION`"],
            );
        }
        check(
            |object| {
                let expression = json!({"key": "tier", "operator": "Over", "values": ["web"]});
                object["spec"]["watch"]["labelSelector"] =
                    json!({"matchExpressions": [expression]});
            },
            expect![[
                r#"spec.watch.labelSelector: "Over" is no operator: use In, NotIn, Exists or DoesNotExist"#
            ]],
        );
        check(
            |object| object["spec"]["deletion"] = json!({"by": "Finalizer"}),
            expect![
                "spec.deletion.by: a finalizer is never placed on Pods, Nodes or Namespaces: use Ledger"
            ],
        );
        check(
            |object| object["spec"]["concurrency"] = json!(0),
            expect!["spec.concurrency: must be at least 1"],
        );
        check(
            |object| object["spec"]["watch"]["fields"] = json!([".metadata.labels", "metadata["]),
            expect![[
                r#"spec.watch.fields: "metadata[" is no path of the form .a.b, ['a.b'], [0] or [*] (at character 0)"#
            ]],
        );
        check(
            |object| object["spec"]["limits"] = json!({"memory": "lots"}),
            expect![[r#"spec.limits.memory: "lots" is no number of bytes such as 64Mi"#]],
        );
    }

    #[test]
    fn a_configurator_stays_in_its_namespace() {
        let team = |change: fn(&mut Value)| {
            move |object: &mut Value| {
                object["kind"] = "Configurator".into();
                object["metadata"]["namespace"] = "team-a".into();
                change(&mut object["spec"]);
            }
        };
        check(
            team(|spec| {
                spec["watch"]["namespaces"] = json!(["team-a"]);
                let rule = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
                spec["capabilities"]["kubernetes"] = json!([rule]);
            }),
            expect![[r#"team-a/pods watches Pod in ["team-a"]"#]],
        );
        check(
            team(|spec| spec["watch"]["namespaces"] = json!(["*"])),
            expect![[
                r#"spec.watch.namespaces: a Configurator reaches only its namespace, team-a, not "*": leave it out, or use a ClusterConfigurator"#
            ]],
        );
        check(
            team(|spec| spec["watch"]["excludeNamespaces"] = json!(["team-b"])),
            expect![
                "spec.watch.excludeNamespaces: a Configurator watches only its namespace, team-a: leave it out, or use a ClusterConfigurator"
            ],
        );
        check(
            team(|spec| {
                let rule = json!({"apiGroups": [""], "resources": ["pods"], "namespaces": ["team-b"], "verbs": ["get"]});
                spec["capabilities"]["kubernetes"] = json!([rule]);
            }),
            expect![[
                r#"spec.capabilities.kubernetes[0].namespaces: a Configurator reaches only its namespace, team-a, not "team-b": leave it out, or use a ClusterConfigurator"#
            ]],
        );
        check(
            team(|spec| {
                let rule = json!({"prefixes": ["resources/"], "verbs": ["get"]});
                spec["capabilities"]["configstore"] = json!([rule]);
            }),
            expect![[r#"team-a/pods watches Pod in ["team-a"]"#]],
        );
        check(
            team(|spec| {
                let rule =
                    json!({"namespaces": ["team-a"], "prefixes": ["resources/"], "verbs": ["get"]});
                spec["capabilities"]["configstore"] = json!([rule]);
            }),
            expect![[r#"team-a/pods watches Pod in ["team-a"]"#]],
        );
        check(
            team(|spec| {
                let rule = json!({"namespaces": ["team-b"], "names": ["*"], "verbs": ["get"]});
                spec["capabilities"]["secretstore"] = json!([rule]);
            }),
            expect![[
                r#"spec.capabilities.secretstore[0].namespaces: a Configurator reaches only its namespace, team-a, not "team-b": leave it out, or use a ClusterConfigurator"#
            ]],
        );
        check(
            team(|spec| {
                let map = json!({"namespace": "team-b", "name": "module"});
                spec["module"] = json!({"configMap": map, "digest": "sha256:0"});
            }),
            expect![[
                r#"spec.module.configMap.namespace: a Configurator reaches only its namespace, team-a, not "team-b": leave it out, or use a ClusterConfigurator"#
            ]],
        );
        check(
            team(|spec| {
                let secret = json!({"namespace": "team-b", "name": "registry"});
                spec["module"] = json!({"oci": {"reference": "a/b", "pullSecret": secret}});
            }),
            expect![[
                r#"spec.module.oci.pullSecret.namespace: a Configurator reaches only its namespace, team-a, not "team-b": leave it out, or use a ClusterConfigurator"#
            ]],
        );
        check(
            team(|spec| {
                spec["module"] = json!({"configMap": {"name": "module"}, "digest": "sha256:0"});
            }),
            expect![[r#"team-a/pods watches Pod in ["team-a"]"#]],
        );
        check(
            team(|spec| spec["serviceAccountName"] = json!("kube:admin")),
            expect![[
                r#"spec.serviceAccountName: "kube:admin" is no name of a ServiceAccount: use up to 253 lower-case letters, digits, - and ."#
            ]],
        );
        check(
            |object| object["spec"]["serviceAccountName"] = json!("robot"),
            expect![
                "spec.serviceAccountName: a ClusterConfigurator acts as the host: leave it out, or use a Configurator"
            ],
        );
    }
}
