//! Where the modules are that `cargo xtask guests` builds.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// The folder with the modules.
///
/// # Errors
/// When they have not been built.
pub fn folder() -> Result<PathBuf> {
    let folder = cache()?.join("guests");
    anyhow::ensure!(
        folder.join("pod_config.wasm").is_file(),
        "the modules are not built: run `cargo xtask guests`, or the tests by `cargo xtask test`"
    );
    Ok(folder)
}

/// Where tasks keep what they build.
///
/// # Errors
/// When there is no home folder.
pub fn cache() -> Result<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(|| Some(env::home_dir()?.join(".cache")))
        .context("there is no home folder")?;
    Ok(cache.join("configurator"))
}

/// The root of the workspace: of the checkout that cargo was called in, because several may share one build folder.
#[must_use]
pub fn workspace() -> PathBuf {
    let package =
        env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&package)
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

/// Real input that lies beside the checkout, where it does. Says on standard output when it does not.
#[must_use]
pub fn shared_data(name: &str) -> Option<PathBuf> {
    let file = workspace().join("../shared/data").join(name);
    if file.is_file() {
        return Some(file);
    }
    println!("no data: {name} does not lie beside the checkout, so this test checked nothing");
    None
}
