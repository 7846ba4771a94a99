//! Manifests: YAML files with objects.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use configurator_schema::Schema;
use kube::api::{PatchParams, ValidationDirective};
use kube::core::GroupVersionKind;
use kube::{Client, CustomResourceExt as _, discovery};
use serde_json::Value;

use crate::objects;
use crate::resource::Configurator;

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

    /// Whether it is a Configurator.
    pub fn is_configurator(&self) -> bool {
        self.kind() == "Configurator"
            && objects::text(&self.object, "/apiVersion").starts_with("configurator.dev/")
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
                object,
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

/// Applies the objects: what others need first, Configurators last.
///
/// # Errors
/// When the API refuses an object; the message names it and its file.
pub async fn apply(client: &Client, mut manifests: Vec<Manifest>) -> anyhow::Result<()> {
    manifests.sort_by_key(|manifest| match manifest.kind() {
        "CustomResourceDefinition" => 0,
        "Namespace" => 1,
        "Configurator" => 3,
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

/// Applies the CustomResourceDefinition of the Configurator, and returns when it is served.
///
/// # Errors
/// When the API refuses it.
pub async fn apply_crds(client: &Client) -> anyhow::Result<()> {
    let object = serde_json::to_value(Configurator::crd())?;
    let manifest = Manifest {
        file: "the program".into(),
        object,
    };
    apply_one(client, &manifest)
        .await
        .context("cannot apply the CustomResourceDefinition of the Configurator")?;
    let kind = GroupVersionKind::gvk("configurator.dev", "v1alpha1", "Configurator");
    let mut tries = 0;
    while let Err(error) = discovery::pinned_kind(client, &kind).await {
        tries += 1;
        if tries > 50 {
            return Err(error).context("the API does not serve Configurators");
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    Ok(())
}

/// The schema of the Configurator.
///
/// # Errors
/// Never, as long as the schema of the program is sound.
pub fn schema() -> anyhow::Result<Schema> {
    let crd = serde_json::to_value(Configurator::crd())?;
    let schema = crd
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

/// Prints the CustomResourceDefinition of the Configurator.
pub fn print_crds() -> anyhow::Result<ExitCode> {
    print!("{}", serde_saphyr::to_string(&Configurator::crd())?);
    Ok(ExitCode::SUCCESS)
}
