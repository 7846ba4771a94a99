//! The policy of a host's operator, from a file.

use std::path::Path;

use anyhow::Context as _;
use configurator_core::capability::Capabilities;
use serde_json::{Value, json};

use super::manifests;
use crate::declaration;
use crate::module_source::ModulePolicy;

/// What the operator allows.
#[derive(Debug, Default)]
pub struct Policy {
    /// The ceiling of all capabilities; where it is not given, a Configurator's own decide.
    pub capabilities: Option<Capabilities>,
    /// Which modules may be run.
    pub modules: ModulePolicy,
}

/// Reads a policy: rules in the form of `spec.capabilities`, and `modules`. A file that has nothing but `modules` is no ceiling of capabilities.
///
/// # Errors
/// When the file cannot be read, or has another form.
pub fn read(file: &Path) -> anyhow::Result<Policy> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the policy {}", file.display()))?;
    let wrong = |what: &dyn std::fmt::Display| {
        anyhow::anyhow!(
            "the policy {} does not have the form of spec.capabilities: {what}",
            file.display()
        )
    };
    let mut value: Value = serde_saphyr::from_str(&text).map_err(|error| wrong(&error))?;
    let modules = value
        .as_object_mut()
        .and_then(|value| value.remove("modules"));
    let has_nothing_else = modules.is_some() && value == json!({});
    let modules = modules.map(serde_json::from_value).transpose();
    let modules = modules.map_err(|error| wrong(&format!("modules: {error}")))?;
    let modules = modules.unwrap_or_default();
    if has_nothing_else {
        return Ok(Policy {
            capabilities: None,
            modules,
        });
    }
    // A misspelt field would allow more than was meant.
    let mut manifest = json!({"spec": {"capabilities": value}});
    if let Some(path) = manifests::schema()?.prune(&mut manifest).first() {
        return Err(wrong(&format!("{path}: unknown field")));
    }
    let spec = serde_json::from_value(value).map_err(|error| wrong(&error))?;
    let capabilities = declaration::capabilities(&spec).map_err(|error| wrong(&error))?;
    Ok(Policy {
        capabilities: Some(capabilities),
        modules,
    })
}
