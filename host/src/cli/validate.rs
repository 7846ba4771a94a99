//! `configurator validate`.

use std::path::PathBuf;
use std::process::ExitCode;

use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use configurator_schema::Schema;

use super::manifests::{self, Manifest};
use super::terminal::{BAD, FAINT, GOOD};
use crate::controller::keeper::check_module;
use crate::declaration::{self, Flows};
use crate::module_source::{ModuleDirectory, ModuleSource as _};
use crate::resource::Configurator;

/// Checks the Configurators in these files as the API and the host would, and prints what is wrong.
///
/// # Errors
/// When a file cannot be read.
pub fn validate(files: &[PathBuf], modules: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let manifests = manifests::read(files)?;
    let flows = manifests::flows(&manifests)?;
    let guest = GuestRuntime::new(GuestOptions {
        parallel_calls: 1,
        ..GuestOptions::default()
    })?;
    let schema = manifests::schema()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut checked = 0;
    let mut wrong = 0;
    for manifest in manifests
        .iter()
        .filter(|manifest| manifest.is_configurator())
    {
        checked += 1;
        let mut folders = modules.to_vec();
        folders.extend(manifest.file.parent().map(PathBuf::from));
        let mistakes = runtime.block_on(mistakes(manifest, &schema, &flows, &guest, folders));
        let named = format!("{} {}", manifest.file.display(), manifest.name());
        if mistakes.is_empty() {
            let note = match manifest.object.pointer("/spec/module/file") {
                Some(_) => "",
                None => " without its module, which is no file",
            };
            anstream::println!("{GOOD}✓{GOOD:#} {named}{FAINT}{note}{FAINT:#}");
        } else {
            wrong += 1;
            anstream::println!("{BAD}✗{BAD:#} {named}");
            for mistake in mistakes {
                anstream::println!("  {mistake}");
            }
        }
    }
    anyhow::ensure!(checked > 0, "there is no Configurator in these files");
    Ok(if wrong == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

async fn mistakes(
    manifest: &Manifest,
    schema: &Schema,
    flows: &Flows,
    guest: &GuestRuntime,
    folders: Vec<PathBuf>,
) -> Vec<String> {
    let mut object = manifest.object.clone();
    let mut mistakes: Vec<String> = schema
        .prune(&mut object)
        .into_iter()
        .map(|path| format!("{path}: unknown field"))
        .collect();
    schema.default(&mut object);
    mistakes.extend(
        schema
            .validate(&object, None)
            .iter()
            .map(ToString::to_string),
    );
    if !mistakes.is_empty() {
        return mistakes;
    }
    let resource: Configurator = match serde_json::from_value(object) {
        Ok(resource) => resource,
        Err(error) => return vec![error.to_string()],
    };
    let configurator = match declaration::check(&resource, flows) {
        Ok(configurator) => configurator,
        Err(error) => return vec![error.to_string()],
    };
    // What a registry or a cluster has is looked at by the host.
    if resource.spec.module.file.is_none() {
        return Vec::new();
    }
    let bytes = match ModuleDirectory::of(folders)
        .fetch(&resource.spec.module)
        .await
    {
        Ok(fetched) => fetched.bytes,
        Err(error) => return vec![format!("spec.module: {error}")],
    };
    let name = resource.spec.module.place();
    let module = match guest.load(bytes, &name).await {
        Ok(module) => module,
        Err(error) => return vec![format!("spec.module: {error}")],
    };
    match check_module(&resource, &configurator, &module) {
        Ok(()) => Vec::new(),
        Err(refused) => vec![refused.refusal.message],
    }
}
