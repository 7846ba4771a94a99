//! The secret store in one file, or in memory.

use std::collections::BTreeSet;
use std::path::Path;

use async_trait::async_trait;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_store::{OpenError, Store, StoreError, StoreOptions, Transaction, WriteError};
use serde::{Deserialize, Serialize};

use super::{SealingKey, Secret, SecretStore, generic, other_version};
use crate::cipher::Cipher;

/// A secret store in one file, or in memory. Values are sealed with XChaCha20-Poly1305; their names are not secret,
/// but a sealed value opens only under its own name.
#[derive(Clone)]
pub struct EmbeddedSecretStore {
    store: Store,
    cipher: Cipher,
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
    #[error("{store} was sealed with another key; give the key that it was made with")]
    WrongKey {
        /// The path of the file.
        store: String,
    },
    /// A seal could not be made.
    #[error("the secret store cannot seal: {0}")]
    Seal(String),
}

#[derive(Serialize, Deserialize)]
struct Stored {
    version: u64,
    sealed: String,
}

/// Under this key lies the highest version of a secret that was deleted. A secret that is made begins above it: so no two values under one
/// name have the same version, and nothing has to be kept for the names that are gone.
const DELETED_KEY: &str = "deleted";

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
        let name = |key: &[u8]| {
            let key = String::from_utf8_lossy(key);
            key.strip_prefix(&prefix).unwrap_or_default().to_owned()
        };
        Ok(entries.iter().map(|(key, _)| name(key)).collect())
    }

    /// Opens or creates the file.
    ///
    /// # Errors
    /// When the file is damaged, held by another process, cannot be read, or was sealed with another key.
    pub async fn open(path: &Path, key: &SealingKey) -> Result<Self, OpenSecretsError> {
        Self::on(Store::open(path, StoreOptions::default())?, key).await
    }

    /// A secret store on a store that is open, and has nothing else in it.
    ///
    /// # Errors
    /// When the store cannot be read or written, or was sealed with another key.
    pub async fn on(store: Store, key: &SealingKey) -> Result<Self, OpenSecretsError> {
        let this = Self::over(store, key);
        match this.store.get(CHECK_KEY.as_bytes())? {
            Some(sealed) => {
                let sealed = String::from_utf8_lossy(&sealed);
                this.unseal(CHECK_KEY, &sealed)
                    .map_err(|_| OpenSecretsError::WrongKey {
                        store: this.store.to_string(),
                    })?;
            }
            None => {
                let sealed = this
                    .cipher
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
            cipher: Cipher::new(&key.0),
        }
    }

    fn unseal(&self, name: &str, sealed: &str) -> Result<Vec<u8>, String> {
        self.cipher.open(name, sealed).ok_or_else(|| {
            format!(
                "the secret {name:?} cannot be unsealed: it was sealed with another key or altered"
            )
        })
    }

    fn open_stored(&self, name: &str, bytes: &[u8]) -> Result<Secret, Fault> {
        let Stored { version, sealed } = serde_json::from_slice(bytes)
            .map_err(|error| generic(format!("the secret {name:?} cannot be read: {error}")))?;
        let value = self.unseal(name, &sealed).map_err(generic)?;
        let text = String::from_utf8(value)
            .map_err(|_| generic(format!("the secret {name:?} is not UTF-8")))?;
        let value = Document::parse(text)
            .map_err(|error| generic(format!("the secret {name:?}: {error}")))?;
        Ok(Secret { version, value })
    }

    /// Writes a secret with this version.
    fn put(
        &self,
        transaction: &mut Transaction<'_>,
        name: &str,
        version: u64,
        value: Document,
    ) -> Result<Secret, Fault> {
        let sealed = self
            .cipher
            .seal(name, value.as_str().as_bytes())
            .map_err(generic)?;
        let text = serde_json::to_string(&Stored { version, sealed })
            .map_err(|error| generic(error.to_string()))?;
        transaction.put(key_of(name), text);
        Ok(Secret { version, value })
    }

    /// The secret of this name, in one state of the store.
    fn look_up(
        &self,
        state: &dyn configurator_store::Read,
        name: &str,
    ) -> Result<Option<Secret>, Fault> {
        state
            .get(key_of(name).as_bytes())
            .map_err(|error| unavailable(&error))?
            .map(|bytes| self.open_stored(name, &bytes))
            .transpose()
    }
}

/// The highest version of a secret that was deleted.
fn highest_deleted(state: &dyn configurator_store::Read) -> Result<u64, Fault> {
    state
        .get(DELETED_KEY.as_bytes())
        .map_err(|error| unavailable(&error))?
        .map_or(Ok(0), |bytes| {
            serde_json::from_slice(&bytes).map_err(|error| {
                generic(format!(
                    "the version of the secrets that were deleted cannot be read: {error}"
                ))
            })
        })
}

#[async_trait]
impl SecretStore for EmbeddedSecretStore {
    async fn get(&self, name: &str) -> Result<Option<Secret>, Fault> {
        self.store
            .read(|state| self.look_up(state, name))
            .map_err(|error| unavailable(&error))?
    }

    async fn create(&self, name: &str, value: Document) -> Result<(Secret, bool), Fault> {
        if let Some(secret) = self.get(name).await? {
            return Ok((secret, false));
        }
        let this = self.clone();
        let name = name.to_owned();
        let write = move |transaction: &mut Transaction<'_>| {
            if let Some(secret) = this.look_up(transaction, &name)? {
                return Ok((secret, false));
            }
            let version = highest_deleted(transaction)? + 1;
            Ok((this.put(transaction, &name, version, value)?, true))
        };
        self.store.write(write).await.map_err(fault_of)
    }

    async fn update(
        &self,
        name: &str,
        version: u64,
        value: Document,
    ) -> Result<(Secret, bool), Fault> {
        let this = self.clone();
        let name = name.to_owned();
        let write = move |transaction: &mut Transaction<'_>| {
            let stored = this.look_up(transaction, &name)?;
            let stored_version = stored.as_ref().map_or(0, |secret| secret.version);
            if stored_version != version {
                return match stored {
                    Some(secret) if secret.value == value => Ok((secret, false)),
                    _ => Err(other_version(&name, version, stored_version)),
                };
            }
            let version = highest_deleted(transaction)?.max(stored_version) + 1;
            Ok((this.put(transaction, &name, version, value)?, true))
        };
        self.store.write(write).await.map_err(fault_of)
    }

    async fn delete(&self, name: &str) -> Result<bool, Fault> {
        let this = self.clone();
        let name = name.to_owned();
        let write = move |transaction: &mut Transaction<'_>| {
            let Some(secret) = this.look_up(transaction, &name)? else {
                return Ok(false);
            };
            let highest = highest_deleted(transaction)?.max(secret.version);
            transaction.put(DELETED_KEY, highest.to_string());
            transaction.delete(key_of(&name));
            Ok(true)
        };
        self.store.write(write).await.map_err(fault_of)
    }

    async fn delete_all(&self, folder: &str) -> Result<(), Fault> {
        let names = self.names().await?.into_iter();
        for name in names.filter(|name| name.starts_with(folder)) {
            self.delete(&name).await?;
        }
        Ok(())
    }

    async fn folders(&self, folder: &str) -> Result<BTreeSet<String>, Fault> {
        let names = self.names().await?.into_iter();
        let below = |name: &str| Some(name.strip_prefix(folder)?.split_once('/')?.0.to_owned());
        Ok(names.filter_map(|name| below(&name)).collect())
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

fn fault_of(error: WriteError<Fault>) -> Fault {
    match error {
        WriteError::Refused(fault) => fault,
        WriteError::Store(error) => unavailable(&error),
    }
}
