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
        let io = |source| KeyError::Io {
            path: path.to_owned(),
            source,
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(io)?;
        }
        if !path.try_exists().map_err(io)? {
            // Whole or not at all, and never over a key that another process has just made.
            let aside = path.with_extension(format!("{}.new", std::process::id()));
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&aside)
                .map_err(io)?;
            let bytes = random::<32>()?;
            file.write_all(STANDARD.encode(bytes).as_bytes())
                .map_err(io)?;
            file.sync_all().map_err(io)?;
            let linked = fs::hard_link(&aside, path);
            fs::remove_file(&aside).map_err(io)?;
            match linked {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(io(error));
                }
                Ok(()) | Err(_) => {}
            }
            // The key is durable before anything is sealed with it: without its name a power loss would take it away.
            let folder = path.parent().filter(|path| !path.as_os_str().is_empty());
            let folder = fs::File::open(folder.unwrap_or(Path::new("."))).map_err(io)?;
            folder.sync_all().map_err(io)?;
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

pub(super) fn random<const N: usize>() -> Result<[u8; N], KeyError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(KeyError::Random)?;
    Ok(bytes)
}
