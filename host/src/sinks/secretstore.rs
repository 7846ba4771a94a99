//! The secret store: a trait, its embedded implementation, and the sink above it.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::request::{Operation, SecretVerb, SinkName};
use configurator_core::result::Answer;
use configurator_store::{
    OpenError, Read as _, Store, StoreError, StoreOptions, Transaction, WriteError,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Scope, Sink, misrouted};

/// How long one attempt may take when the request does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of chance in a secret that the host generates.
const GENERATED_BYTES: usize = 32;
/// The longest name, in bytes.
const MAX_NAME: usize = 512;
/// The longest value, in bytes.
const MAX_VALUE: usize = 1 << 20;

/// A secret as it is stored.
#[derive(Clone, PartialEq)]
pub struct Secret {
    /// Counts from 1; one more for each value under this name.
    pub version: u64,
    /// The value.
    pub value: Document,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret {{ version: {}, value: … }}", self.version)
    }
}

/// Keeps secrets.
///
/// # Guarantees
/// - A secret is never overwritten: of two that create it at the same time, both get what the first wrote.
/// - A write that was acknowledged survives a crash.
#[async_trait]
pub trait SecretStore: Send + Sync + 'static {
    /// The secret of this name.
    async fn get(&self, name: &str) -> Result<Option<Secret>, Fault>;

    /// Writes the secret if there is none. Returns what is stored afterwards, and whether that is new.
    async fn create(&self, name: &str, value: Document) -> Result<(Secret, bool), Fault>;

    /// Removes the secret; an absent one is success. Returns whether there was one.
    async fn delete(&self, name: &str) -> Result<bool, Fault>;

    /// Whether the store can be reached.
    async fn probe(&self) -> Result<(), Fault>;
}

/// The key that seals an embedded secret store.
#[derive(Clone)]
pub struct SealingKey(Key);

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

fn random<const N: usize>() -> Result<[u8; N], KeyError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(KeyError::Random)?;
    Ok(bytes)
}

/// A secret store in one file, or in memory. Values are sealed with XChaCha20-Poly1305; their names are not secret,
/// but a sealed value opens only under its own name.
#[derive(Clone)]
pub struct EmbeddedSecretStore {
    store: Store,
    cipher: XChaCha20Poly1305,
}

/// Why an embedded secret store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenSecretsError {
    /// The file cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] StoreError),
    /// The file was sealed with another key.
    #[error("{path} was sealed with another key; give the key that it was made with", path = path.display())]
    WrongKey {
        /// The file.
        path: PathBuf,
    },
    /// A seal could not be made.
    #[error("the secret store cannot seal: {0}")]
    Seal(String),
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u64,
    /// Sealed; absent when the secret was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed: Option<String>,
}

/// Under this key lies a sealed text that shows whether the key is the right one.
const CHECK_KEY: &str = "check";

impl EmbeddedSecretStore {
    /// The names of the secrets that it holds, in order.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn names(&self) -> Result<Vec<String>, Fault> {
        let prefix = key_of("");
        let entries = self
            .store
            .range(prefix.as_bytes(), usize::MAX)
            .map_err(|error| unavailable(&error))?;
        let mut names = Vec::new();
        for (key, value) in entries {
            let key = String::from_utf8_lossy(&key).into_owned();
            let name = key.strip_prefix(&prefix).unwrap_or_default();
            if self.open_stored(name, &value)?.1.is_some() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Opens or creates the file.
    ///
    /// # Errors
    /// When the file is damaged, held by another process, cannot be read, or was sealed with another key.
    pub async fn open(path: &Path, key: &SealingKey) -> Result<Self, OpenSecretsError> {
        let this = Self::over(Store::open(path, StoreOptions::default())?, key);
        match this.store.get(CHECK_KEY.as_bytes())? {
            Some(sealed) => {
                let sealed = String::from_utf8_lossy(&sealed);
                this.unseal(CHECK_KEY, &sealed)
                    .map_err(|_| OpenSecretsError::WrongKey {
                        path: path.to_owned(),
                    })?;
            }
            None => {
                let sealed = this
                    .seal(CHECK_KEY, b"configurator")
                    .map_err(OpenSecretsError::Seal)?;
                let write = move |transaction: &mut Transaction<'_>| {
                    transaction.put(CHECK_KEY.to_owned(), sealed);
                    Ok::<(), std::convert::Infallible>(())
                };
                this.store.write(write).await.map_err(|error| match error {
                    WriteError::Store(error) => OpenSecretsError::Read(error),
                    WriteError::Refused(never) => match never {},
                })?;
            }
        }
        Ok(this)
    }

    /// A store that is gone with its last clone.
    #[must_use]
    pub fn memory(key: &SealingKey) -> Self {
        Self::over(Store::memory(), key)
    }

    fn over(store: Store, key: &SealingKey) -> Self {
        Self {
            store,
            cipher: XChaCha20Poly1305::new(&key.0),
        }
    }

    fn seal(&self, name: &str, value: &[u8]) -> Result<String, String> {
        let nonce = random::<24>().map_err(|error| error.to_string())?;
        let payload = Payload {
            msg: value,
            aad: name.as_bytes(),
        };
        let sealed = self
            .cipher
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|_| "the value could not be sealed".to_owned())?;
        Ok(STANDARD.encode([nonce.as_slice(), &sealed].concat()))
    }

    fn unseal(&self, name: &str, sealed: &str) -> Result<Vec<u8>, String> {
        let broken = || {
            format!(
                "the secret {name:?} cannot be unsealed: it was sealed with another key or altered"
            )
        };
        let bytes = STANDARD.decode(sealed).map_err(|_| broken())?;
        let (nonce, sealed) = bytes.split_at_checked(24).ok_or_else(broken)?;
        let nonce = <[u8; 24]>::try_from(nonce).map_err(|_| broken())?;
        let payload = Payload {
            msg: sealed,
            aad: name.as_bytes(),
        };
        self.cipher
            .decrypt(&XNonce::from(nonce), payload)
            .map_err(|_| broken())
    }

    fn open_stored(&self, name: &str, bytes: &[u8]) -> Result<(u64, Option<Secret>), Fault> {
        let stored: Stored = serde_json::from_slice(bytes)
            .map_err(|error| generic(format!("the secret {name:?} cannot be read: {error}")))?;
        let secret = stored
            .sealed
            .map(|sealed| {
                let value = self.unseal(name, &sealed).map_err(generic)?;
                let text = String::from_utf8(value)
                    .map_err(|_| generic(format!("the secret {name:?} is not UTF-8")))?;
                let value = Document::parse(text)
                    .map_err(|error| generic(format!("the secret {name:?}: {error}")))?;
                Ok(Secret {
                    version: stored.version,
                    value,
                })
            })
            .transpose()?;
        Ok((stored.version, secret))
    }
}

#[async_trait]
impl SecretStore for EmbeddedSecretStore {
    async fn get(&self, name: &str) -> Result<Option<Secret>, Fault> {
        match self
            .store
            .get(key_of(name).as_bytes())
            .map_err(|error| unavailable(&error))?
        {
            None => Ok(None),
            Some(bytes) => Ok(self.open_stored(name, &bytes)?.1),
        }
    }

    async fn create(&self, name: &str, value: Document) -> Result<(Secret, bool), Fault> {
        if let Some(secret) = self.get(name).await? {
            return Ok((secret, false));
        }
        let this = self.clone();
        let name = name.to_owned();
        let write = move |transaction: &mut Transaction<'_>| {
            let stored = transaction
                .get(key_of(&name).as_bytes())
                .map_err(|error| unavailable(&error))?;
            let known = stored
                .map(|bytes| this.open_stored(&name, &bytes))
                .transpose()?;
            let last = match known {
                Some((_, Some(secret))) => return Ok((secret, false)),
                Some((version, None)) => version,
                None => 0,
            };
            let sealed = this
                .seal(&name, value.as_str().as_bytes())
                .map_err(generic)?;
            let version = last + 1;
            let entry = Stored {
                version,
                sealed: Some(sealed),
            };
            let text = serde_json::to_string(&entry).map_err(|error| generic(error.to_string()))?;
            transaction.put(key_of(&name), text);
            Ok((Secret { version, value }, true))
        };
        self.store.write(write).await.map_err(fault_of)
    }

    async fn delete(&self, name: &str) -> Result<bool, Fault> {
        let this = self.clone();
        let name = name.to_owned();
        let write = move |transaction: &mut Transaction<'_>| {
            let stored = transaction
                .get(key_of(&name).as_bytes())
                .map_err(|error| unavailable(&error))?;
            let Some(bytes) = stored else {
                return Ok(false);
            };
            let (version, Some(_)) = this.open_stored(&name, &bytes)? else {
                return Ok(false);
            };
            let text = serde_json::to_string(&Stored {
                version,
                sealed: None,
            })
            .map_err(|error| generic(error.to_string()))?;
            transaction.put(key_of(&name), text);
            Ok(true)
        };
        self.store.write(write).await.map_err(fault_of)
    }

    async fn probe(&self) -> Result<(), Fault> {
        self.store
            .get(CHECK_KEY.as_bytes())
            .map(drop)
            .map_err(|error| unavailable(&error))
    }
}

fn key_of(name: &str) -> String {
    format!("secrets/{name}")
}

fn unavailable(error: &StoreError) -> Fault {
    Fault::new(
        FaultKind::SecretstoreUnavailable,
        format!("the secret store: {error}"),
    )
}

fn generic(message: String) -> Fault {
    Fault::new(FaultKind::ResourceGeneric, message)
}

fn fault_of(error: WriteError<Fault>) -> Fault {
    match error {
        WriteError::Refused(fault) => fault,
        WriteError::Store(error) => unavailable(&error),
    }
}

/// The sink above a [`SecretStore`].
pub struct SecretstoreSink {
    store: Arc<dyn SecretStore>,
    generator: Arc<dyn SecretGenerator>,
}

/// Makes the values of secrets that a request leaves to the host.
pub trait SecretGenerator: Send + Sync + 'static {
    /// A value for a new secret.
    ///
    /// # Errors
    /// When there is no source of chance.
    fn generate(&self, name: &str) -> Result<Document, Fault>;
}

/// 32 random bytes of the operating system, as a JSON string in URL-safe Base64.
#[derive(Debug, Default, Clone, Copy)]
pub struct RandomSecrets;

impl SecretGenerator for RandomSecrets {
    fn generate(&self, _: &str) -> Result<Document, Fault> {
        let bytes = random::<GENERATED_BYTES>().map_err(|error| generic(error.to_string()))?;
        Document::of(&URL_SAFE_NO_PAD.encode(bytes).into())
            .map_err(|error| generic(error.to_string()))
    }
}

impl SecretstoreSink {
    /// A sink over this store.
    #[must_use]
    pub fn new(store: Arc<dyn SecretStore>, generator: Arc<dyn SecretGenerator>) -> Self {
        Self { store, generator }
    }

    async fn run(
        &self,
        name: &str,
        verb: SecretVerb,
        value: Option<&Document>,
    ) -> Result<Answer, Fault> {
        if name.len() > MAX_NAME {
            return Err(generic(format!(
                "the name of a secret has {} bytes; {MAX_NAME} are allowed",
                name.len()
            )));
        }
        match verb {
            SecretVerb::Get => {
                let secret = self.store.get(name).await?.ok_or_else(|| {
                    Fault::new(
                        FaultKind::ResourceNotFound,
                        format!("the secret store has no {name:?}"),
                    )
                })?;
                answer(name, &secret, false)
            }
            SecretVerb::Create => {
                if let Some(secret) = self.store.get(name).await? {
                    return answer(name, &secret, false);
                }
                let value = match value {
                    Some(value) if value.size() > MAX_VALUE => {
                        return Err(generic(format!(
                            "the value of the secret {name:?} has {} bytes; {MAX_VALUE} are allowed",
                            value.size()
                        )));
                    }
                    Some(value) => value.clone(),
                    None => self.generator.generate(name)?,
                };
                let (secret, changed) = self.store.create(name, value).await?;
                answer(name, &secret, changed)
            }
            SecretVerb::Delete => {
                let changed = self.store.delete(name).await?;
                Ok(Answer {
                    changed,
                    ..Answer::default()
                })
            }
        }
    }
}

#[async_trait]
impl Sink for SecretstoreSink {
    async fn execute(&self, operation: &Operation, scope: &Scope) -> Result<Answer, Fault> {
        let Operation::Secret(request) = operation else {
            return Err(misrouted(operation, SinkName::Secretstore));
        };
        let timeout = scope.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let running = self.run(&request.name, request.verb, request.value.as_ref());
        tokio::time::timeout(timeout, running)
            .await
            .unwrap_or_else(|_| {
                Err(Fault::new(
                    FaultKind::SecretstoreUnavailable,
                    format!("the secret store: no answer within {timeout:?}"),
                ))
            })
    }

    async fn probe(&self) -> Result<(), Fault> {
        self.store.probe().await
    }
}

fn answer(name: &str, secret: &Secret, changed: bool) -> Result<Answer, Fault> {
    #[derive(Serialize)]
    struct View<'a> {
        name: &'a str,
        version: u64,
        value: &'a RawValue,
    }
    let value: &RawValue =
        serde_json::from_str(secret.value.as_str()).map_err(|error| generic(error.to_string()))?;
    let text = serde_json::to_string(&View {
        name,
        version: secret.version,
        value,
    })
    .map_err(|error| generic(error.to_string()))?;
    let document = Document::parse(text).map_err(|error| generic(error.to_string()))?;
    Ok(Answer {
        query_objects: vec![document],
        changed,
        http_response: None,
    })
}
