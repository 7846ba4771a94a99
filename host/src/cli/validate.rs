//! `configurator validate`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;
use configurator_schema::Schema;

use super::manifests::{self, Manifest};
use super::servers;
use super::settings::{ByteSize, Settings};
use super::terminal::{BAD, FAINT, GOOD};
use crate::controller::keeper::{check_memory, check_module};
use crate::declaration::{self, FlowSet};
use crate::module_source::{ModuleDirectory, ModulePolicies, ModuleSource as _};
use crate::resource;

/// Check Configurators and settings without running anything.
#[derive(Args)]
pub struct ValidateArgs {
    /// Files or folders with manifests.
    #[arg(required_unless_present = "config")]
    files: Vec<PathBuf>,
    /// Folders with modules. Default: the folder of each manifest.
    #[arg(
        long,
        value_name = "DIR",
        env = "CONFIGURATOR_MODULES",
        value_delimiter = ':'
    )]
    modules: Vec<PathBuf>,
    /// A settings file of `run`, in TOML. The environment counts as it does for `run`.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Checks settings and Configurators as `run`, the API and the host would, and prints what is wrong.
///
/// # Errors
/// When a file cannot be read.
pub fn validate(args: &ValidateArgs) -> anyhow::Result<ExitCode> {
    let mut wrong = 0;
    let mut guest_memory = None;
    if let Some(file) = &args.config {
        let no_flags = serde_json::Map::new();
        let settings = Settings::read(Some(file), &no_flags);
        let checked = settings.and_then(|settings| {
            servers::check(&settings)?;
            Ok(settings)
        });
        let mistakes = match checked {
            Ok(settings) => {
                guest_memory = settings.guest_memory;
                Vec::new()
            }
            Err(error) => vec![format!("{error:#}")],
        };
        wrong += usize::from(!mistakes.is_empty());
        show(&file.display().to_string(), "", &mistakes);
    }
    if !args.files.is_empty() {
        wrong += validate_manifests(&args.files, &args.modules, guest_memory)?;
    }
    Ok(match wrong {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Prints what was checked, and its mistakes.
fn show(named: &str, note: &str, mistakes: &[String]) {
    if mistakes.is_empty() {
        anstream::println!("{GOOD}✓{GOOD:#} {named}{FAINT}{note}{FAINT:#}");
        return;
    }
    anstream::println!("{BAD}✗{BAD:#} {named}");
    for mistake in mistakes {
        anstream::println!("  {mistake}");
    }
}

/// Checks the Configurators in these files, and returns how many have mistakes. They are held to the setting `guest_memory` of a host
/// where it is known.
fn validate_manifests(
    files: &[PathBuf],
    modules: &[PathBuf],
    guest_memory: Option<ByteSize>,
) -> anyhow::Result<usize> {
    let manifests = manifests::read(files)?;
    let flows = manifests::flows(&manifests)?;
    let guest = GuestRuntime::new(GuestOptions {
        parallel_calls: 1,
        memory: guest_memory.map_or(u64::MAX, |memory| memory.0),
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
        wrong += usize::from(!mistakes.is_empty());
        let note = match manifest.object.pointer("/spec/module/file") {
            Some(_) => "",
            None => " without its module, which is no file",
        };
        show(&named, note, &mistakes);
    }
    anyhow::ensure!(checked > 0, "there is no Configurator in these files");
    Ok(wrong)
}

async fn mistakes(
    manifest: &Manifest,
    schema: &Schema,
    flows: &FlowSet,
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
    let resource = match resource::read(object) {
        Ok(resource) => resource,
        Err(error) => return vec![error.to_string()],
    };
    let configurator = match declaration::check(&resource, flows) {
        Ok(configurator) => configurator,
        Err(error) => return vec![error.to_string()],
    };
    if let Err(refused) = check_memory(&configurator, guest.memory().limit()) {
        return vec![refused.message];
    }
    // What a registry or a cluster has is looked at by the host.
    if resource.spec.module.file.is_none() {
        return Vec::new();
    }
    let bytes = match ModuleDirectory::of(folders)
        .fetch(&resource.spec.module, &ModulePolicies::default())
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
        Err(refused) => vec![refused.message],
    }
}
