//! The contract with modules, as the tools of other languages want it.

use std::fs;
use std::path::Path;

use wit_bindgen_core::wit_parser::{Resolve, WorldId};

use crate::error::BuildError;

/// The files of the package, by name.
pub(crate) const FILES: [(&str, &str); 5] = [
    ("desired.wit", include_str!("../../../wit/desired.wit")),
    ("handler.wit", include_str!("../../../wit/handler.wit")),
    ("requests.wit", include_str!("../../../wit/requests.wit")),
    ("types.wit", include_str!("../../../wit/types.wit")),
    ("world.wit", include_str!("../../../wit/world.wit")),
];

/// The world that modules implement.
pub(crate) const WORLD: &str = "configurator";

/// Writes the files to a folder, which is made.
pub(crate) fn write(folder: &Path) -> Result<(), BuildError> {
    fs::create_dir_all(folder).map_err(BuildError::file("make", folder))?;
    for (name, text) in FILES {
        let path = folder.join(name);
        fs::write(&path, text).map_err(BuildError::file("write", &path))?;
    }
    Ok(())
}

/// The package and its world, from files that [`write`] wrote.
pub(crate) fn resolve(folder: &Path) -> Result<(Resolve, WorldId), BuildError> {
    let mut resolve = Resolve::default();
    let world = resolve
        .push_dir(folder)
        .and_then(|(package, _)| resolve.select_world(&[package], Some(WORLD)));
    let world = world.map_err(|error| BuildError::manifest(folder, format!("{error:#}")))?;
    Ok((resolve, world))
}
