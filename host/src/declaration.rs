//! From a Configurator resource to a checked [`Configurator`].

mod machine;

use std::time::Duration;

use configurator_core::backoff::RetryPolicy;
use configurator_core::capability::{
    Capabilities, ConfigstoreRule, HttpRule, KubernetesRule, SecretstoreRule,
};
use configurator_core::configurator::{
    BatchOptions, Configurator, Deletion, DeletionBy, Phase, Watch,
};
use configurator_core::document::Document;
use configurator_core::handler::{CallLimits, WatchEvent};
use configurator_core::projection::Projection;
use configurator_core::request::{ConfigVerb, KubernetesVerb, SecretVerb};

pub use self::machine::Flows;
use crate::resource::machine::{ModeSpec, PhaseSpec};
use crate::resource::{
    self, CapabilitiesSpec, ConfigVerbSpec, DeletionBySpec, DeletionPhaseSpec, EventSpec,
    InstanceSpec, KubernetesVerbSpec, LimitsSpec, SecretVerbSpec,
};

/// The longest name of a Configurator. Kubernetes allows 63 characters in the last part of a finalizer's name, and 128
/// in a field manager's.
pub const MAX_NAME: usize = 63;

/// What is wrong with a Configurator, with the path of the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct DeclarationError {
    /// As in `spec.phases[1].name`.
    pub path: String,
    /// What is wrong, and what to do.
    pub message: String,
}

/// Checks the resource, everything but its module. `flows` are those that are resources of their own.
///
/// # Errors
/// At the first thing that is wrong.
pub fn check(
    resource: &resource::Configurator,
    flows: &Flows,
) -> Result<Configurator, DeclarationError> {
    let spec = &resource.spec;
    let name = resource.metadata.name.clone().unwrap_or_default();
    if name.is_empty() {
        return Err(wrong("metadata.name", "a Configurator needs a name"));
    }
    if name.len() > MAX_NAME {
        return Err(wrong(
            "metadata.name",
            &format!(
                "must have at most {MAX_NAME} characters: finalizers and field managers carry it"
            ),
        ));
    }
    check_source(&spec.module)?;
    if spec.phases.is_empty() {
        return Err(wrong(
            "spec.phases",
            "a Configurator needs at least one phase, the root phase",
        ));
    }
    let named = |phase: &PhaseSpec| (phase.name.clone(), phase.handler.clone());
    let phases = phases("spec.phases", spec.phases.iter().map(named))?;
    let (phases, machine) = match spec.mode {
        ModeSpec::Chain => {
            machine::refuse(spec)?;
            (phases, None)
        }
        ModeSpec::Machine => (Vec::new(), Some(machine::check(spec, flows)?)),
    };
    let named = |phase: &DeletionPhaseSpec| (phase.name.clone(), phase.handler.clone());
    let deletion_phases = spec.deletion.phases.iter().map(named);
    let deletion = Deletion {
        by: match spec.deletion.by {
            DeletionBySpec::Ledger => DeletionBy::Ledger,
            DeletionBySpec::Finalizer => DeletionBy::Finalizer,
        },
        phases: self::phases("spec.deletion.phases", deletion_phases)?,
        timeout: span("spec.deletion.timeout", spec.deletion.timeout)?,
    };
    let is_shared = spec.watch.group.is_empty()
        && matches!(spec.watch.kind.as_str(), "Pod" | "Node" | "Namespace");
    if deletion.by == DeletionBy::Finalizer && is_shared {
        return Err(wrong(
            "spec.deletion.by",
            "a finalizer is never placed on Pods, Nodes or Namespaces: use Ledger",
        ));
    }
    if spec.concurrency == 0 {
        return Err(wrong("spec.concurrency", "must be at least 1"));
    }
    let batch = BatchOptions {
        max_size: count("spec.batch.maxSize", spec.batch.max_size)?,
        max_delay: span("spec.batch.maxDelay", spec.batch.max_delay)?,
    };
    let parameters = serde_json::Value::Object(spec.parameters.clone().into_iter().collect());
    Ok(Configurator {
        name,
        uid: resource.metadata.uid.clone().unwrap_or_default(),
        generation: resource.metadata.generation.unwrap_or_default(),
        suspend: spec.suspend,
        record: spec.record,
        watch: watch(&spec.watch)?,
        batch: spec.is_batch.then_some(batch),
        parameters: Document::of(&parameters)
            .map_err(|error| wrong("spec.parameters", &error.to_string()))?,
        phases,
        machine,
        deletion,
        capabilities: capabilities(&spec.capabilities)?,
        limits: limits(&spec.limits, spec.instance)?
            .owned_by(resource.metadata.uid.as_deref().unwrap_or_default()),
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

fn watch(spec: &resource::WatchSpec) -> Result<Watch, DeclarationError> {
    if spec.version.is_empty() || spec.kind.is_empty() {
        return Err(wrong("spec.watch", "needs a version and a kind"));
    }
    let resync = span("spec.watch.resyncPeriod", spec.resync_period)?;
    Ok(Watch {
        group: spec.group.clone(),
        version: spec.version.clone(),
        kind: spec.kind.clone(),
        namespaces: spec.namespaces.clone(),
        label_selector: spec.label_selector.clone(),
        field_selector: spec.field_selector.clone(),
        events: spec
            .events
            .iter()
            .map(|event| match event {
                EventSpec::Added => WatchEvent::Added,
                EventSpec::Modified => WatchEvent::Modified,
                EventSpec::Deleted => WatchEvent::Deleted,
            })
            .collect(),
        resync_period: (!resync.is_zero()).then_some(resync),
        fields: Projection::parse(&spec.fields)
            .map_err(|error| wrong("spec.watch.fields", &error.to_string()))?,
    })
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

/// Phases by name, each with the handler that is named, or that of its own name.
fn phases(
    path: &str,
    named: impl Iterator<Item = (String, Option<String>)>,
) -> Result<Vec<Phase>, DeclarationError> {
    let mut phases: Vec<Phase> = Vec::new();
    for (index, (name, handler)) in named.enumerate() {
        let at = format!("{path}[{index}].name");
        if name.is_empty() {
            return Err(wrong(&at, "a phase needs a name"));
        }
        if phases.iter().any(|phase| phase.name == name) {
            let message = format!("two phases are named {name:?}; each needs a name of its own");
            return Err(wrong(&at, &message));
        }
        let handler = handler.unwrap_or_else(|| name.clone());
        phases.push(Phase { name, handler });
    }
    Ok(phases)
}

/// Checks capabilities: of a Configurator, or of a host's policy.
///
/// # Errors
/// When a method is not in upper case.
pub fn capabilities(spec: &CapabilitiesSpec) -> Result<Capabilities, DeclarationError> {
    for (index, rule) in spec.http.iter().enumerate() {
        if let Some(method) = rule
            .methods
            .iter()
            .find(|method| **method != method.to_ascii_uppercase())
        {
            let path = format!("spec.capabilities.http[{index}].methods");
            return Err(wrong(&path, &format!("{method:?} must be upper case")));
        }
    }
    Ok(Capabilities {
        kubernetes: spec
            .kubernetes
            .iter()
            .map(|rule| KubernetesRule {
                groups: rule.groups.clone(),
                resources: rule.resources.clone(),
                subresources: rule.subresources.clone(),
                namespaces: rule.namespaces.clone(),
                names: rule.names.clone(),
                verbs: rule
                    .verbs
                    .iter()
                    .filter_map(|verb| kubernetes_verb(*verb))
                    .collect(),
                watch: rule.verbs.contains(&KubernetesVerbSpec::Watch),
            })
            .collect(),
        configstore: spec
            .configstore
            .iter()
            .map(|rule| ConfigstoreRule {
                prefixes: rule.prefixes.clone(),
                verbs: rule.verbs.iter().map(|verb| config_verb(*verb)).collect(),
            })
            .collect(),
        secretstore: spec
            .secretstore
            .iter()
            .map(|rule| SecretstoreRule {
                names: rule.names.clone(),
                verbs: rule.verbs.iter().map(|verb| secret_verb(*verb)).collect(),
            })
            .collect(),
        http: spec
            .http
            .iter()
            .map(|rule| HttpRule {
                hosts: rule.hosts.clone(),
                methods: rule.methods.clone(),
            })
            .collect(),
    })
}

/// The verb of the sink; `watch` is none.
fn kubernetes_verb(verb: KubernetesVerbSpec) -> Option<KubernetesVerb> {
    Some(match verb {
        KubernetesVerbSpec::Get => KubernetesVerb::Get,
        KubernetesVerbSpec::List => KubernetesVerb::List,
        KubernetesVerbSpec::Patch => KubernetesVerb::Patch,
        KubernetesVerbSpec::Delete => KubernetesVerb::Delete,
        KubernetesVerbSpec::Create => KubernetesVerb::Create,
        KubernetesVerbSpec::Replace => KubernetesVerb::Replace,
        KubernetesVerbSpec::Apply => KubernetesVerb::Apply,
        KubernetesVerbSpec::Watch => return None,
    })
}

fn config_verb(verb: ConfigVerbSpec) -> ConfigVerb {
    match verb {
        ConfigVerbSpec::Get => ConfigVerb::Get,
        ConfigVerbSpec::Create => ConfigVerb::Create,
        ConfigVerbSpec::Update => ConfigVerb::Update,
        ConfigVerbSpec::Delete => ConfigVerb::Delete,
    }
}

fn secret_verb(verb: SecretVerbSpec) -> SecretVerb {
    match verb {
        SecretVerbSpec::Get => SecretVerb::Get,
        SecretVerbSpec::Create => SecretVerb::Create,
        SecretVerbSpec::Delete => SecretVerb::Delete,
    }
}

fn limits(spec: &LimitsSpec, instance: InstanceSpec) -> Result<CallLimits, DeclarationError> {
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
            InstanceSpec::Fresh => 1,
            InstanceSpec::Reuse => spec.instance_calls,
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

    use super::{Flows, check as declare};
    use crate::resource::Configurator;

    /// What is said of a Configurator with a change that the schema of the resource would not always stop.
    #[track_caller]
    fn check(change: impl FnOnce(&mut Value), expected: Expect) {
        let mut object = json!({
            "apiVersion": "configurator.dev/v1alpha1",
            "kind": "Configurator",
            "metadata": {"name": "pods"},
            "spec": {
                "watch": {"version": "v1", "kind": "Pod"},
                "module": {"file": "pods.wasm"},
                "phases": [{"name": "root"}],
            },
        });
        change(&mut object);
        let resource: Configurator = serde_json::from_value(object).unwrap();
        let told = match declare(&resource, &Flows::new()) {
            Ok(configurator) => {
                format!("{} watches {}", configurator.name, configurator.watch.kind)
            }
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&told);
    }

    #[test]
    fn what_is_wrong_is_named_by_its_path() {
        check(|_| {}, expect!["pods watches Pod"]);
        check(
            |object| object["metadata"]["name"] = "a".repeat(64).into(),
            expect![
                "metadata.name: must have at most 63 characters: finalizers and field managers carry it"
            ],
        );
        check(
            |object| object["spec"]["module"] = json!({}),
            expect!["spec.module: a module needs one source: file, configMap or oci"],
        );
        check(
            |object| object["spec"]["phases"] = json!([]),
            expect!["spec.phases: a Configurator needs at least one phase, the root phase"],
        );
        check(
            |object| object["spec"]["phases"] = json!([{"name": "root"}, {"name": "root"}]),
            expect![[
                r#"spec.phases[1].name: two phases are named "root"; each needs a name of its own"#
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
}
