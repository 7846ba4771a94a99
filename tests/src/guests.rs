//! Where the modules are that `cargo xtask guests` builds.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use configurator_guest::digest::Digest;

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

/// A module that does the same and has another digest: with a section that nobody reads.
#[must_use]
pub fn variant(module: &[u8], number: u8) -> Vec<u8> {
    // Of the kind "custom", nine bytes long; its name is of seven.
    let section = [b"\x00\x09\x07variant", &[number][..]].concat();
    [module, &section].concat()
}

/// The digest of a module as the host writes it.
#[must_use]
pub fn digest(module: &[u8]) -> String {
    Digest::of(module).to_string()
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
    if file.exists() {
        return Some(file);
    }
    println!("no data: {name} does not lie beside the checkout, so this test checked nothing");
    None
}
