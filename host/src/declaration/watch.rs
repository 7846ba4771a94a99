//! From `spec.watch` to a checked [`Watch`].

use configurator_core::configurator::Watch;
use configurator_core::handler::WatchEvent;
use configurator_core::projection::Projection;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{GroupVersionKind, Selector};

use super::{DeclarationError, span, wrong};
use crate::resource::{EventSpec, WatchSpec};

/// Checks `spec.watch`.
pub(super) fn watch(spec: &WatchSpec) -> Result<Watch, DeclarationError> {
    let GroupVersionKind {
        group,
        version,
        kind,
    } = spec.group_version_kind().ok_or_else(|| {
        wrong(
            "spec.watch.apiVersion",
            "must be `VERSION` or `GROUP/VERSION`",
        )
    })?;
    if kind.is_empty() {
        return Err(wrong("spec.watch.kind", "must not be empty"));
    }
    let resync = span("spec.watch.resyncPeriod", spec.resync_period)?;
    Ok(Watch {
        group,
        version,
        kind,
        namespaces: spec.namespaces.clone(),
        exclude_namespaces: spec.exclude_namespaces.clone(),
        namespace_selector: selector("spec.watch.namespaceSelector", &spec.namespace_selector)?
            .to_string(),
        label_selector: selector("spec.watch.labelSelector", &spec.label_selector)?.to_string(),
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

/// Checks a selector. In the syntax of `kubectl get --selector` some characters separate expressions, so no key or value may contain them.
pub(super) fn selector(path: &str, spec: &LabelSelector) -> Result<Selector, DeclarationError> {
    let labels = spec.match_labels.iter().flatten();
    let labels = labels.flat_map(|(key, value)| [key, value]);
    let expressions = spec.match_expressions.iter().flatten();
    for expression in expressions.clone() {
        let is_set = matches!(expression.operator.as_str(), "In" | "NotIn");
        if !is_set && !matches!(expression.operator.as_str(), "Exists" | "DoesNotExist") {
            let message = format!(
                "{:?} is no operator: use In, NotIn, Exists or DoesNotExist",
                expression.operator
            );
            return Err(wrong(path, &message));
        }
        let has_values = expression
            .values
            .as_ref()
            .is_some_and(|values| !values.is_empty());
        if is_set && !has_values {
            let message = format!(
                "{} of {:?} needs values",
                expression.operator, expression.key
            );
            return Err(wrong(path, &message));
        }
    }
    let expressions =
        expressions.flat_map(|one| std::iter::once(&one.key).chain(one.values.iter().flatten()));
    let is_label = |text: &str| {
        text.chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "-_./".contains(letter))
    };
    if let Some(text) = labels.chain(expressions).find(|text| !is_label(text)) {
        let message = format!("{text:?} is neither the key nor the value of a label");
        return Err(wrong(path, &message));
    }
    Selector::try_from(spec.clone()).map_err(|error| wrong(path, &error.to_string()))
}
