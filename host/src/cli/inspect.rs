//! `configurator inspect`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use configurator_build::metadata::{self, Metadata};
use configurator_core::handler::{Accepts, View};
use configurator_guest::options::GuestOptions;
use configurator_guest::runtime::GuestRuntime;

use super::terminal::{FAINT, NAME};

/// Prints what a module offers.
///
/// # Errors
/// When the file cannot be read or is no module.
pub fn inspect(file: &Path) -> anyhow::Result<ExitCode> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let guest = GuestRuntime::new(GuestOptions {
        parallel_calls: 1,
        ..GuestOptions::default()
    })?;
    let module = guest.load_blocking(&bytes, &file.display().to_string())?;
    let Metadata {
        name,
        version,
        revision,
        made_with,
    } = metadata::of(&bytes);
    let said = [
        ("name   ", name),
        ("version", version),
        ("source ", revision),
    ];
    for (title, said) in said {
        if let Some(said) = said {
            anstream::println!("{FAINT}{title}{FAINT:#} {said}");
        }
    }
    if !made_with.is_empty() {
        anstream::println!("{FAINT}made by{FAINT:#} {}", made_with.join(", "));
    }
    anstream::println!("{FAINT}digest {FAINT:#} {}", module.digest());
    anstream::println!("{FAINT}size   {FAINT:#} {} bytes", bytes.len());
    anstream::println!(
        "{FAINT}world  {FAINT:#} configurator:handler@{}",
        module.world_version()
    );
    let imports = module.imports();
    anstream::println!(
        "{FAINT}imports{FAINT:#} {}",
        if imports.is_empty() {
            "nothing".to_owned()
        } else {
            imports.join(", ")
        }
    );
    anstream::println!("{FAINT}handlers{FAINT:#}");
    for handler in &module.description().handlers {
        let accepts = match handler.accepts {
            Accepts::One => "one object",
            Accepts::Batch => "batches",
            Accepts::Either => "one object or batches",
        };
        let view = match handler.view {
            View::None => "",
            View::CheckList => ", shown as a check list",
            View::ObjectDetail => ", shown as object details",
        };
        anstream::println!(
            "  {NAME}{}{NAME:#} {FAINT}({accepts}{view}){FAINT:#} {}",
            handler.name,
            handler.description
        );
        if let Some(schema) = &handler.parameters_schema {
            anstream::println!("    {FAINT}parameters{FAINT:#} {schema}");
        }
        if let Some(capabilities) = &handler.capabilities {
            anstream::println!("    {FAINT}asks for at most{FAINT:#} {capabilities}");
        }
    }
    Ok(ExitCode::SUCCESS)
}
