//! The secret store: a trait, its implementations, and the sink above it.

mod embedded;
mod sealing_key;
#[cfg(feature = "vault")]
pub mod vault;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::partition::Partition;
use configurator_core::request::{Operation, SecretRequest, SecretVerb, SinkName};
use configurator_core::result::Answer;
use serde::Serialize;
use serde_json::value::RawValue;

pub use self::embedded::{EmbeddedSecretStore, OpenSecretsError};
pub(crate) use self::sealing_key::random;
pub use self::sealing_key::{KeyError, SealingKey};
use super::partitions::{NoPartitions, Partitions, partition};
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
    /// At least 1, and higher for each further value under this name, also after it was deleted.
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
/// - Of two that create a secret at the same time, both get what the first wrote. Only an update overwrites a secret, and of two updates of the
///   same version one wins.
/// - A write that was acknowledged survives a crash.
#[async_trait]
pub trait SecretStore: Send + Sync + 'static {
    /// The secret of this name.
    async fn get(&self, name: &str) -> Result<Option<Secret>, Fault>;

    /// Writes the secret if there is none. Returns what is stored afterwards, and whether that is new.
    async fn create(&self, name: &str, value: Document) -> Result<(Secret, bool), Fault>;

    /// Writes another value in the place of this version; 0 stands for a secret that is absent. Returns what is stored afterwards, and
    /// whether that is new: a secret that has the value already is success, whatever its version, so an update may be repeated.
    ///
    /// # Errors
    /// [`FaultKind::ResourceConflict`] where another version with another value is stored.
    async fn update(
        &self,
        name: &str,
        version: u64,
        value: Document,
    ) -> Result<(Secret, bool), Fault>;

    /// Removes the secret; an absent one is success. Returns whether there was one.
    async fn delete(&self, name: &str) -> Result<bool, Fault>;

    /// Removes every secret whose name begins with `folder`, which ends with a `/`. When it fails, some may be left.
    async fn delete_all(&self, folder: &str) -> Result<(), Fault>;

    /// The names up to the next `/` of the secrets that begin with `folder`, which ends with a `/`. Names without a further `/` are left
    /// out.
    async fn folders(&self, folder: &str) -> Result<BTreeSet<String>, Fault>;

    /// Whether the store can be reached.
    async fn probe(&self) -> Result<(), Fault>;
}

/// A store that is chosen at run time.
#[async_trait]
impl SecretStore for Arc<dyn SecretStore> {
    async fn get(&self, name: &str) -> Result<Option<Secret>, Fault> {
        (**self).get(name).await
    }

    async fn create(&self, name: &str, value: Document) -> Result<(Secret, bool), Fault> {
        (**self).create(name, value).await
    }

    async fn update(
        &self,
        name: &str,
        version: u64,
        value: Document,
    ) -> Result<(Secret, bool), Fault> {
        (**self).update(name, version, value).await
    }

    async fn delete(&self, name: &str) -> Result<bool, Fault> {
        (**self).delete(name).await
    }

    async fn delete_all(&self, folder: &str) -> Result<(), Fault> {
        (**self).delete_all(folder).await
    }

    async fn folders(&self, folder: &str) -> Result<BTreeSet<String>, Fault> {
        (**self).folders(folder).await
    }

    async fn probe(&self) -> Result<(), Fault> {
        (**self).probe().await
    }
}

/// The sink above a [`SecretStore`].
pub struct SecretstoreSink {
    store: Arc<dyn SecretStore>,
    generator: Arc<dyn SecretGenerator>,
    partitions: Arc<dyn Partitions>,
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
        Document::of(&URL_SAFE_NO_PAD.encode(bytes)).map_err(|error| generic(error.to_string()))
    }
}

impl SecretstoreSink {
    /// A sink over this store.
    #[must_use]
    pub fn new(store: Arc<dyn SecretStore>, generator: Arc<dyn SecretGenerator>) -> Self {
        Self {
            store,
            generator,
            partitions: Arc::new(NoPartitions),
        }
    }

    /// Sets where the partition that a request names is found. Default: nowhere; such requests are refused.
    #[must_use]
    pub fn partitions(self, partitions: Arc<dyn Partitions>) -> Self {
        Self { partitions, ..self }
    }

    async fn run(&self, partition: &Partition, request: &SecretRequest) -> Result<Answer, Fault> {
        let name = request.name.as_str();
        let stored = partition.secret(name);
        if name.len() > MAX_NAME {
            return Err(generic(format!(
                "the name of a secret has {} bytes; {MAX_NAME} are allowed",
                name.len()
            )));
        }
        match request.verb {
            SecretVerb::Get => {
                let secret = self.store.as_ref().get(&stored).await?.ok_or_else(|| {
                    Fault::new(
                        FaultKind::ResourceNotFound,
                        format!("the secret store has no {name:?}"),
                    )
                })?;
                answer(name, &secret, false)
            }
            SecretVerb::Create => {
                // Whether there is one is for the store to see: asked here as well, it would be two requests.
                let value = self.value(request)?;
                let (secret, changed) = self.store.as_ref().create(&stored, value).await?;
                answer(name, &secret, changed)
            }
            SecretVerb::Update => {
                let value = self.value(request)?;
                let version = request.version.unwrap_or_default();
                let updating = self.store.as_ref().update(&stored, version, value);
                let (secret, changed) = updating.await?;
                answer(name, &secret, changed)
            }
            SecretVerb::Delete => {
                let changed = self.store.as_ref().delete(&stored).await?;
                Ok(Answer {
                    changed,
                    ..Answer::default()
                })
            }
        }
    }

    /// The value that a request gives a secret.
    fn value(&self, request: &SecretRequest) -> Result<Document, Fault> {
        let name = request.name.as_str();
        match &request.value {
            Some(value) if value.size() > MAX_VALUE => Err(generic(format!(
                "the value of the secret {name:?} has {} bytes; {MAX_VALUE} are allowed",
                value.size()
            ))),
            Some(value) => Ok(value.clone()),
            None => self.generator.generate(name),
        }
    }
}

#[async_trait]
impl Sink for SecretstoreSink {
    async fn execute(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        let Operation::Secret(request) = operation.operation() else {
            return Err(misrouted(operation, SinkName::Secretstore));
        };
        let timeout = scope.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let running = async {
            let named = request.partition.as_deref();
            let partition = partition(&*self.partitions, named, &scope.partition).await?;
            self.run(&partition, request).await
        };
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
        self.store.as_ref().probe().await
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

/// The fault of an update whose version is not the stored one. `0` stands for a secret that is absent.
fn other_version(name: &str, wanted: u64, stored: u64) -> Fault {
    let stored = match stored {
        0 => "the secret store has no such secret".to_owned(),
        version => format!("the secret store has version {version}"),
    };
    Fault::new(
        FaultKind::ResourceConflict,
        format!("the secret {name:?} was to be updated from version {wanted}, and {stored}"),
    )
}

fn generic(message: String) -> Fault {
    Fault::new(FaultKind::ResourceGeneric, message)
}
