//! The key that seals an embedded secret store.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::Key;

/// The key that seals an embedded secret store.
#[derive(Clone)]
pub struct SealingKey(pub(super) Key);

impl std::fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealingKey(…)")
    }
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The text is not 32 bytes in Base64.
    #[error(
        "the key of the secret store from {origin} is not 32 bytes in Base64; make one with `head -c 32 /dev/urandom | base64`"
    )]
    Malformed {
        /// Where it came from.
        origin: String,
    },
    /// The file may be read by others.
    #[error("{path} may be read by others than its owner; restrict it with `chmod 600 {path}`", path = path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("the key file {path} cannot be read or written: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The operating system gave no random bytes.
    #[error("the operating system gave no random bytes: {0}")]
    Random(getrandom::Error),
}

impl SealingKey {
    /// Reads a key from its Base64 text. `origin` names where the text came from.
    ///
    /// # Errors
    /// When the text is not 32 bytes in Base64.
    pub fn from_text(text: &str, origin: &str) -> Result<Self, KeyError> {
        STANDARD
            .decode(text.trim())
            .ok()
            .and_then(|bytes| <[u8; 32]>::try_from(bytes).ok())
            .map(|bytes| Self(bytes.into()))
            .ok_or_else(|| KeyError::Malformed {
                origin: origin.to_owned(),
            })
    }

    /// Reads the key from a file that only its owner may read; makes the file with a new key where there is none.
    ///
    /// # Errors
    /// When the file is readable by others, malformed, or cannot be read or made.
    pub fn from_file(path: &Path) -> Result<Self, KeyError> {
        Self::from_file_with(path, fs::File::sync_all)
    }

    /// As [`from_file`](Self::from_file). `sync` has the operating system write a file or folder to the disk.
    fn from_file_with(
        path: &Path,
        sync: impl Fn(&fs::File) -> std::io::Result<()>,
    ) -> Result<Self, KeyError> {
        let io = |source| KeyError::Io {
            path: path.to_owned(),
            source,
        };
        if !path.try_exists().map_err(io)? {
            make(path, random::<32>()?, sync).map_err(io)?;
        }
        if fs::metadata(path).map_err(io)?.mode() & 0o077 != 0 {
            return Err(KeyError::Exposed {
                path: path.to_owned(),
            });
        }
        let text = fs::read_to_string(path).map_err(io)?;
        Self::from_text(&text, &path.display().to_string())
    }

    /// A key that nobody will know again, for a store in memory.
    ///
    /// # Errors
    /// When the operating system gives no random bytes.
    pub fn random() -> Result<Self, KeyError> {
        Ok(Self(random::<32>()?.into()))
    }
}

/// Makes the file with this key, whole or not at all, and never over a key that another process has just made. When this
/// returns, the file outlives a loss of power: without it, all that it has sealed would be lost.
fn make(
    path: &Path,
    key: [u8; 32],
    sync: impl Fn(&fs::File) -> std::io::Result<()>,
) -> std::io::Result<()> {
    let path = &std::path::absolute(path)?;
    let folder = path.parent().ok_or(std::io::ErrorKind::IsADirectory)?;
    let new_folders: Vec<&Path> = folder
        .ancestors()
        .take_while(|folder| !folder.exists())
        .collect();
    fs::create_dir_all(folder)?;
    let aside = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&aside)?;
    file.write_all(STANDARD.encode(key).as_bytes())?;
    sync(&file)?;
    let linked = fs::hard_link(&aside, path);
    fs::remove_file(&aside)?;
    if let Err(error) = linked
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        return Err(error);
    }
    // The name of a file is part of its folder, and that of a new folder part of the one above.
    sync(&fs::File::open(folder)?)?;
    for folder in new_folders.iter().filter_map(|folder| folder.parent()) {
        sync(&fs::File::open(folder)?)?;
    }
    Ok(())
}

/// Returns random bytes of the operating system, which no seed decides.
///
/// # Errors
/// When the operating system gives none.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], KeyError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(KeyError::Random)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io;
    use std::os::fd::AsRawFd as _;

    use super::*;

    /// The path of an open file below `folder`.
    fn path_of(file: &fs::File, folder: &Path) -> String {
        let path = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap();
        let path = path.strip_prefix(folder).unwrap().display().to_string();
        path.replace(&std::process::id().to_string(), "PID")
    }

    #[test]
    fn a_new_key_and_every_new_folder_are_synced() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let synced = RefCell::new(Vec::new());
        let sync = |file: &fs::File| {
            synced.borrow_mut().push(path_of(file, &place));
            file.sync_all()
        };
        let path = place.join("a/b/secret.key");
        let made = SealingKey::from_file_with(&path, sync).unwrap();
        assert_eq!(
            synced.take(),
            ["a/b/secret.PID.new", "a/b", "a", ""],
            "the file, its folder, and the folders that have a new one in them"
        );
        let read = SealingKey::from_file_with(&path, sync).unwrap();
        assert_eq!(read.0, made.0);
        assert!(synced.take().is_empty());
    }

    #[test]
    fn a_key_that_may_be_lost_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("secret.key");
        let sync = |file: &fs::File| match file.metadata()?.is_dir() {
            true => Err(io::Error::other("the disk is gone")),
            false => file.sync_all(),
        };
        let error = SealingKey::from_file_with(&path, sync).unwrap_err();
        assert!(error.to_string().contains("the disk is gone"), "{error}");
    }
}
