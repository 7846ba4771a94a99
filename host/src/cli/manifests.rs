//! Manifests: YAML files with objects.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use configurator_schema::Schema;
use kube::Client;
use kube::api::{PatchParams, ValidationDirective};
use serde_json::Value;

use crate::declaration::FlowSet;
use crate::objects::{self, ObjectError};
use crate::resource;
use crate::resource::flow;

/// The field manager of what is applied from files.
const MANAGER: &str = "configurator-run";

/// One object of a file.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The file.
    pub file: PathBuf,
    /// The object.
    pub object: Value,
}

impl Manifest {
    /// The object's kind.
    pub fn kind(&self) -> &str {
        objects::text(&self.object, "/kind")
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        objects::text(&self.object, "/metadata/name")
    }

    /// Whether it is a Configurator or a ClusterConfigurator.
    pub fn is_configurator(&self) -> bool {
        resource::is_configurator(&self.object)
    }

    /// The Configurator that it is.
    ///
    /// # Errors
    /// When it has another form.
    pub fn configurator(&self) -> Result<resource::Configurator, serde_json::Error> {
        resource::read(self.object.clone())
    }
}

/// Reads every object of these files; of a folder, of each YAML or JSON file in it.
///
/// # Errors
/// When a file cannot be read, or holds something that is no object.
pub fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Manifest>> {
    let mut manifests = Vec::new();
    for path in paths {
        if path.is_dir() {
            let mut files: Vec<PathBuf> = std::fs::read_dir(path)
                .with_context(|| format!("cannot read the folder {}", path.display()))?
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|file| {
                    matches!(
                        file.extension().and_then(|e| e.to_str()),
                        Some("yaml" | "yml" | "json")
                    )
                })
                .collect();
            files.sort();
            for file in files {
                read_file(&file, &mut manifests)?;
            }
        } else {
            read_file(path, &mut manifests)?;
        }
    }
    Ok(manifests)
}

fn read_file(file: &Path, manifests: &mut Vec<Manifest>) -> anyhow::Result<()> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text)
        .map_err(|error| anyhow::anyhow!("{} is no YAML: {error}", file.display()))?;
    for document in documents {
        let items = match document.get("items") {
            Some(Value::Array(items)) if document.get("kind") == Some(&"List".into()) => {
                items.clone()
            }
            _ => vec![document],
        };
        for object in items.into_iter().filter(|object| !object.is_null()) {
            let manifest = Manifest {
                file: file.to_owned(),
                object: flow::resource_of(object),
            };
            if manifest.kind().is_empty()
                || objects::text(&manifest.object, "/apiVersion").is_empty()
            {
                bail!(
                    "{} holds something without apiVersion and kind",
                    file.display()
                );
            }
            manifests.push(manifest);
        }
    }
    Ok(())
}

/// The flows among these manifests.
///
/// # Errors
/// When one cannot be read.
pub fn flows(manifests: &[Manifest]) -> anyhow::Result<FlowSet> {
    let is_flow = |manifest: &&Manifest| {
        matches!(manifest.kind(), "Flow" | "ClusterFlow")
            && objects::text(&manifest.object, "/apiVersion").starts_with("configurator.dev/")
    };
    let flows = manifests.iter().filter(is_flow).map(|manifest| {
        flow::read(manifest.object.clone())
            .with_context(|| format!("{} {}", manifest.file.display(), manifest.name()))
    });
    flows.collect()
}

/// Applies the objects: what others need first, Configurators last.
///
/// # Errors
/// When the API refuses an object; the message names it and its file.
pub async fn apply(client: &Client, mut manifests: Vec<Manifest>) -> anyhow::Result<()> {
    manifests.sort_by_key(|manifest| match manifest.kind() {
        "CustomResourceDefinition" => 0,
        "Namespace" => 1,
        "Configurator" | "ClusterConfigurator" => 3,
        _ => 2,
    });
    for manifest in manifests {
        let named = format!(
            "{} {:?} of {}",
            manifest.kind(),
            manifest.name(),
            manifest.file.display()
        );
        apply_one(client, &manifest)
            .await
            .with_context(|| format!("cannot apply {named}"))?;
    }
    Ok(())
}

async fn apply_one(client: &Client, manifest: &Manifest) -> anyhow::Result<()> {
    let params = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply(MANAGER).force()
    };
    objects::apply(client, &manifest.object, &params).await?;
    Ok(())
}

/// Applies the CustomResourceDefinitions of the kinds that a host knows, and returns when they are served. One that says the same
/// is left as it is, and one that may not be changed is used as it is: in a cluster, definitions are not the host's to write.
///
/// # Errors
/// When there is none and the API refuses it.
pub async fn apply_crds(client: &Client) -> anyhow::Result<()> {
    for definition in resource::definitions() {
        apply_crd(client, definition).await?;
    }
    Ok(())
}

async fn apply_crd(client: &Client, object: Value) -> anyhow::Result<()> {
    let api_version = objects::text(&object, "/apiVersion");
    let definitions =
        objects::api(client, api_version, objects::text(&object, "/kind"), "").await?;
    // Whoever may not even look is told so by the server when it applies.
    let live = definitions
        .get_opt(objects::text(&object, "/metadata/name"))
        .await;
    let live = live.ok().flatten().map(|live| live.data);
    let is_same = match (&live, object.get("spec")) {
        (Some(live), Some(wanted)) => live.get("spec").is_some_and(|live| holds(live, wanted)),
        _ => false,
    };
    if is_same {
        return Ok(());
    }
    let manifest = Manifest {
        file: "the program".into(),
        object,
    };
    let kind = objects::text(&manifest.object, "/spec/names/kind");
    match apply_one(client, &manifest).await {
        Err(error) if live.is_some() && is_forbidden(&error) => {
            tracing::warn!(
                "the cluster has another CustomResourceDefinition of the {kind} than `configurator crds` prints, and this host may not change it"
            );
            Ok(())
        }
        applied => applied
            .with_context(|| format!("cannot apply the CustomResourceDefinition of the {kind}")),
    }
}

/// Whether a live document says everything that is wanted; it may say more.
fn holds(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => wanted.iter().all(|(name, wanted)| {
            live.get(name)
                .map_or(wanted.is_null(), |live| holds(live, wanted))
        }),
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len()
                && live
                    .iter()
                    .zip(wanted)
                    .all(|(live, wanted)| holds(live, wanted))
        }
        // A server writes a whole number without its fraction.
        (Value::Number(live), Value::Number(wanted)) => live.as_f64() == wanted.as_f64(),
        _ => live == wanted,
    }
}

/// Whether what went wrong with a cluster may end without a change here.
pub fn may_pass(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<ObjectError>() {
        Some(ObjectError::Client(_)) => true,
        Some(ObjectError::Refused(status)) => {
            matches!(status.code, 401 | 403 | 408 | 429 | 500..=599)
        }
        Some(ObjectError::NoKind { .. }) | None => false,
    }
}

fn is_forbidden(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<ObjectError>(),
        Some(ObjectError::Refused(status)) if status.code == 403
    )
}

/// The schema of the Configurator.
///
/// # Errors
/// Never, as long as the schema of the program is sound.
pub fn schema() -> anyhow::Result<Schema> {
    let definition = resource::definitions()
        .into_iter()
        .next()
        .unwrap_or_default();
    let schema = definition
        .pointer("/spec/versions/0/schema/openAPIV3Schema")
        .cloned()
        .unwrap_or(Value::Null);
    Schema::from_crd(&schema).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        anyhow::anyhow!(
            "the schema of the Configurator has mistakes: {}",
            texts.join("; ")
        )
    })
}

/// Prints the CustomResourceDefinitions of the kinds that a host knows.
pub fn print_crds() -> anyhow::Result<ExitCode> {
    let texts = resource::definitions()
        .iter()
        .map(serde_saphyr::to_string)
        .collect::<Result<Vec<String>, _>>()?;
    match std::io::stdout().write_all(texts.join("---\n").as_bytes()) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        written => written?,
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::holds;
    use crate::resource::definitions;

    #[test]
    fn a_live_definition_may_say_more_and_nothing_else() {
        let wanted = json!({"a": 1.0, "b": [{"c": "x"}], "d": null});
        for (live, expected) in [
            (
                json!({"a": 1, "b": [{"c": "x", "more": 2}], "more": 3}),
                true,
            ),
            (json!({"a": 2, "b": [{"c": "x"}]}), false),
            (json!({"a": 1, "b": [{"c": "x"}, {"c": "y"}]}), false),
            (json!({"b": [{"c": "x"}]}), false),
            (json!({"a": 1, "b": [{"c": "x"}], "d": 4}), false),
        ] {
            assert_eq!(holds(&live, &wanted), expected, "{live}");
        }
    }

    #[test]
    fn the_definition_has_only_formats_that_kubernetes_knows() {
        fn formats(schema: &Value, found: &mut Vec<String>) {
            match schema {
                Value::Object(fields) => {
                    found.extend(
                        fields
                            .get("format")
                            .and_then(Value::as_str)
                            .map(str::to_owned),
                    );
                    fields.values().for_each(|field| formats(field, found));
                }
                Value::Array(items) => items.iter().for_each(|item| formats(item, found)),
                _ => {}
            }
        }
        let mut found = Vec::new();
        for definition in &definitions() {
            formats(definition, &mut found);
        }
        found.sort();
        found.dedup();
        assert_eq!(found, ["date-time", "int64"]);
    }
}
