//! Where tasks keep what they can make again.

use std::env;
use std::path::PathBuf;

use anyhow::{Result, bail};

/// `$XDG_CACHE_HOME/configurator`, or `~/.cache/configurator`. It may not exist yet.
pub fn dir() -> Result<PathBuf> {
    if let Some(cache) = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
    {
        return Ok(cache.join("configurator"));
    }
    match env::home_dir().filter(|home| !home.as_os_str().is_empty()) {
        Some(home) => Ok(home.join(".cache/configurator")),
        None => bail!(
            "there is no home directory to keep builds in: set XDG_CACHE_HOME to an absolute path"
        ),
    }
}

/// Where cargo builds: as the environment says, or below [`dir`].
pub fn target() -> Result<PathBuf> {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(target) => Ok(PathBuf::from(target)),
        None => Ok(dir()?.join("target")),
    }
}
