//! One name in a registry: what stands there is read or written.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{fmt, io};

use configurator_guest::bytes::ModuleBytes;
use configurator_guest::digest::Digest;
use oci_client::client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol};
use oci_client::errors::{OciDistributionError, OciErrorCode};
use oci_client::manifest::{
    IMAGE_CONFIG_MEDIA_TYPE, IMAGE_MANIFEST_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE, OciDescriptor,
    OciImageManifest,
};
use oci_client::{Client, Reference};
use tokio::io::AsyncWrite;

use super::artifact::{About, Artifact, descriptor};
use super::login::Login;
use super::signature::{
    ANNOTATION, BUNDLE, MAX_BUNDLE, MAX_PAYLOAD, PAYLOAD, Signature, Signer, SigningKey, is_signed,
};

/// How long a registry may take to be connected to.
const CONNECT: Duration = Duration::from_secs(10);
/// How long it may say nothing.
const SILENCE: Duration = Duration::from_secs(20);
/// How long a small answer may take in all.
const ANSWER: Duration = Duration::from_secs(30);
/// How long a component may take in all.
const TRANSFER: Duration = Duration::from_secs(600);
/// The types of manifests that are read: the one that is written here, and that of Docker, which says the same.
const MANIFESTS: [&str; 2] = [OCI_IMAGE_MEDIA_TYPE, IMAGE_MANIFEST_MEDIA_TYPE];
/// The most signatures of one module that are looked at.
const MAX_SIGNATURES: usize = 32;

/// How registries are reached.
#[derive(Debug, Clone, Default)]
pub struct RegistryOptions {
    /// Certificates in PEM that are trusted beside those of the system.
    pub ca: Vec<Vec<u8>>,
    /// Registries that are spoken to without TLS, as `127.0.0.1:5000`.
    pub plain_http: Vec<String>,
}

/// Why a registry did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// It cannot be reached, or cannot answer now.
    #[error("the registry cannot be asked now: {0}")]
    Unavailable(String),
    /// It refuses, has no such thing, or has something else.
    #[error("{0}")]
    Refused(String),
}

/// Registry and repository of a reference: `ghcr.io/team/greeter`.
#[must_use]
pub fn repository(reference: &Reference) -> String {
    format!("{}/{}", reference.registry(), reference.repository())
}

/// A reference, and who asks for it.
///
/// Tokens that a registry gives are kept in here, so nobody else's login is used by mistake.
pub struct Registry {
    client: Client,
    reference: Reference,
    login: Login,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registry({}, {:?})", self.reference, self.login)
    }
}

impl Registry {
    /// Connects to nothing yet.
    #[must_use]
    pub fn new(reference: Reference, login: Login, options: &RegistryOptions) -> Self {
        // reqwest has none of its own.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let certificate = |pem: &Vec<u8>| Certificate {
            encoding: CertificateEncoding::Pem,
            data: pem.clone(),
        };
        let client = Client::new(ClientConfig {
            protocol: ClientProtocol::HttpsExcept(options.plain_http.clone()),
            extra_root_certificates: options.ca.iter().map(certificate).collect(),
            connect_timeout: Some(CONNECT),
            read_timeout: Some(SILENCE),
            user_agent: concat!("configurator/", env!("CARGO_PKG_VERSION")),
            use_monolithic_push: true,
            platform_resolver: None,
            ..ClientConfig::default()
        });
        Self {
            client,
            reference,
            login,
        }
    }

    /// The digest of the manifest that the reference stands for now.
    ///
    /// # Errors
    /// As of [`RegistryError`].
    pub async fn resolve(&self) -> Result<String, RegistryError> {
        let asked = self
            .client
            .fetch_manifest_digest(&self.reference, self.login.auth());
        within(ANSWER, asked).await
    }

    /// The manifest of the module.
    ///
    /// # Errors
    /// As of [`RegistryError`]; also when it is no module.
    pub async fn artifact(&self) -> Result<Artifact, RegistryError> {
        let text = self.manifest(&self.reference).await?;
        let artifact = Artifact::read(text)?;
        match self.reference.digest() {
            Some(pinned) if pinned != artifact.digest() => Err(RegistryError::Refused(format!(
                "the registry answers with the manifest {}, which was not asked for",
                artifact.digest()
            ))),
            _ => Ok(artifact),
        }
    }

    async fn manifest(&self, reference: &Reference) -> Result<Vec<u8>, RegistryError> {
        let asked = self
            .client
            .pull_manifest_raw(reference, self.login.auth(), &MANIFESTS);
        let (text, _) = within(ANSWER, asked).await?;
        Ok(text.to_vec())
    }

    /// The component of the module, which has the digest that the manifest says.
    ///
    /// # Errors
    /// As of [`RegistryError`].
    pub async fn component(&self, artifact: &Artifact) -> Result<ModuleBytes, RegistryError> {
        self.blob(artifact.layer(), TRANSFER).await
    }

    async fn blob(
        &self,
        blob: &OciDescriptor,
        time: Duration,
    ) -> Result<ModuleBytes, RegistryError> {
        let mut bytes = Limited::of(blob);
        within(
            time,
            self.client.pull_blob(&self.reference, blob, &mut bytes),
        )
        .await?;
        let bytes = ModuleBytes::from(bytes.bytes);
        let found = bytes.digest();
        if found.to_string() != blob.digest {
            return Err(RegistryError::Refused(format!(
                "the registry answers with other bytes than the manifest says: {found} instead of {}",
                blob.digest
            )));
        }
        Ok(bytes)
    }

    /// The signatures that are stored beside the module, as cosign puts them there. Bundles are looked for where none of the others is by one of
    /// these signers. Whose they are is for [`is_signed`] to say.
    ///
    /// # Errors
    /// As of [`RegistryError`]; none where there are no signatures.
    pub async fn signatures(
        &self,
        artifact: &Artifact,
        signers: &[Signer],
    ) -> Result<Vec<Signature>, RegistryError> {
        let mut signatures = self.tagged_signatures(artifact).await?;
        if !is_signed(&artifact.digest(), &signatures, signers) {
            signatures.extend(self.bundled_signatures(artifact).await?);
        }
        Ok(signatures)
    }

    async fn bundled_signatures(
        &self,
        artifact: &Artifact,
    ) -> Result<Vec<Signature>, RegistryError> {
        let (registry, repository) = (self.reference.registry(), self.reference.repository());
        let named = |digest: String| {
            Reference::with_digest(registry.to_owned(), repository.to_owned(), digest)
        };
        let subject = named(artifact.digest());
        let listed = within(ANSWER, self.client.pull_referrers(&subject, None)).await;
        let listed = match listed {
            Ok(index) => index.manifests,
            // A registry may know nothing of referrers, and say so in a way of its own.
            Err(RegistryError::Refused(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let bundles = listed.into_iter().filter(|entry| {
            let kind = entry.artifact_type.as_deref().unwrap_or_default();
            kind.starts_with(BUNDLE) && entry.digest.parse::<Digest>().is_ok()
        });
        let mut signatures = Vec::new();
        for entry in bundles.take(MAX_SIGNATURES) {
            let text = self.manifest(&named(entry.digest)).await?;
            let manifest: Option<OciImageManifest> = serde_json::from_slice(&text).ok();
            let layer = manifest.and_then(|manifest| manifest.layers.into_iter().next());
            let is_small = |layer: &OciDescriptor| {
                usize::try_from(layer.size).is_ok_and(|size| size <= MAX_BUNDLE)
            };
            if let Some(layer) = layer.filter(is_small) {
                let layer = OciDescriptor {
                    urls: None,
                    ..layer
                };
                let bundle = self.blob(&layer, ANSWER).await?;
                signatures.extend(Signature::of_bundle(&bundle));
            }
        }
        signatures.truncate(MAX_SIGNATURES);
        Ok(signatures)
    }

    async fn tagged_signatures(
        &self,
        artifact: &Artifact,
    ) -> Result<Vec<Signature>, RegistryError> {
        let Some(manifest) = self.signature_manifest(artifact).await? else {
            return Ok(Vec::new());
        };
        let mut signatures = Vec::new();
        for layer in manifest.layers.iter().take(MAX_SIGNATURES) {
            let annotations = layer.annotations.as_ref();
            let signature = annotations.and_then(|annotations| annotations.get(ANNOTATION));
            let size = usize::try_from(layer.size).unwrap_or(usize::MAX);
            let (PAYLOAD, Some(signature), ..=MAX_PAYLOAD) = (&*layer.media_type, signature, size)
            else {
                continue;
            };
            let layer = OciDescriptor {
                urls: None,
                ..layer.clone()
            };
            signatures.push(Signature {
                payload: String::from_utf8_lossy(&self.blob(&layer, ANSWER).await?).into_owned(),
                signature: signature.clone(),
                payload_type: None,
            });
        }
        Ok(signatures)
    }

    /// Where cosign puts the signatures of a manifest: <https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md>.
    fn signature_reference(&self, artifact: &Artifact) -> Reference {
        let tag = format!("{}.sig", artifact.digest().replace(':', "-"));
        let (registry, repository) = (self.reference.registry(), self.reference.repository());
        Reference::with_tag(registry.to_owned(), repository.to_owned(), tag)
    }

    async fn signature_manifest(
        &self,
        artifact: &Artifact,
    ) -> Result<Option<OciImageManifest>, RegistryError> {
        let reference = self.signature_reference(artifact);
        let asked = self
            .client
            .pull_manifest_raw(&reference, self.login.auth(), &MANIFESTS);
        let answered = tokio::time::timeout(ANSWER, asked).await;
        let answered = answered.map_err(|_| late(ANSWER))?;
        let text = match answered {
            Ok((text, _)) => text,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let manifest = serde_json::from_slice(&text).map_err(|error| {
            RegistryError::Refused(format!("the signatures have no manifest: {error}"))
        })?;
        Ok(Some(manifest))
    }

    /// Puts a component there.
    ///
    /// # Errors
    /// As of [`RegistryError`].
    pub async fn push(&self, component: Vec<u8>, about: &About) -> Result<Artifact, RegistryError> {
        let (artifact, config) = Artifact::of(&component, about);
        let (client, reference) = (&self.client, &self.reference);
        client
            .store_auth_if_needed(reference.resolve_registry(), self.login.auth())
            .await;
        let config_digest = Digest::of(&config).to_string();
        within(ANSWER, client.push_blob(reference, config, &config_digest)).await?;
        let pushed = client.push_blob(reference, component, artifact.component());
        within(TRANSFER, pushed).await?;
        let text = artifact.text().to_vec();
        self.push_manifest(reference, text).await?;
        Ok(artifact)
    }

    async fn push_manifest(
        &self,
        reference: &Reference,
        text: Vec<u8>,
    ) -> Result<(), RegistryError> {
        let media_type = http::HeaderValue::from_static(OCI_IMAGE_MEDIA_TYPE);
        let pushed = self.client.push_manifest_raw(reference, text, media_type);
        within(ANSWER, pushed).await.map(drop)
    }

    /// Signs a manifest that is there, and puts the signature beside those that it has.
    ///
    /// # Errors
    /// As of [`RegistryError`].
    pub async fn sign(&self, artifact: &Artifact, key: &SigningKey) -> Result<(), RegistryError> {
        let Signature {
            payload, signature, ..
        } = key
            .sign(&repository(&self.reference), &artifact.digest())
            .map_err(|error| RegistryError::Refused(error.to_string()))?;
        let there = self.signature_manifest(artifact).await?;
        let mut layers = there.map(|manifest| manifest.layers).unwrap_or_default();
        let annotations = BTreeMap::from([(ANNOTATION.to_owned(), signature)]);
        let layer = OciDescriptor {
            annotations: Some(annotations),
            ..descriptor(PAYLOAD, payload.as_bytes())
        };
        let reference = &self.reference;
        let pushed = self
            .client
            .push_blob(reference, payload.into_bytes(), &layer.digest);
        within(ANSWER, pushed).await?;
        layers.push(layer);
        let layers_digests: Vec<&str> = layers.iter().map(|layer| &*layer.digest).collect();
        let config = serde_json::json!({
            "architecture": "", "os": "", "config": {},
            "rootfs": {"type": "layers", "diff_ids": layers_digests},
        });
        let config = config.to_string().into_bytes();
        let manifest = OciImageManifest {
            media_type: Some(OCI_IMAGE_MEDIA_TYPE.to_owned()),
            config: descriptor(IMAGE_CONFIG_MEDIA_TYPE, &config),
            layers,
            ..OciImageManifest::default()
        };
        let digest = manifest.config.digest.clone();
        within(ANSWER, self.client.push_blob(reference, config, &digest)).await?;
        let text = serde_json::to_vec(&manifest)
            .map_err(|error| RegistryError::Refused(error.to_string()))?;
        self.push_manifest(&self.signature_reference(artifact), text)
            .await
    }
}

async fn within<T>(
    time: Duration,
    asked: impl Future<Output = Result<T, OciDistributionError>>,
) -> Result<T, RegistryError> {
    let answered = tokio::time::timeout(time, asked).await;
    answered
        .map_err(|_| late(time))?
        .map_err(RegistryError::from)
}

fn late(time: Duration) -> RegistryError {
    RegistryError::Unavailable(format!("it has not answered within {} s", time.as_secs()))
}

fn is_missing(error: &OciDistributionError) -> bool {
    match error {
        OciDistributionError::ImageManifestNotFoundError(_) => true,
        OciDistributionError::ServerError { code, .. } => *code == 404,
        OciDistributionError::RegistryError { envelope, .. } => {
            envelope.errors.iter().any(|error| {
                matches!(
                    error.code,
                    OciErrorCode::ManifestUnknown
                        | OciErrorCode::NotFound
                        | OciErrorCode::NameUnknown
                )
            })
        }
        _ => false,
    }
}

impl From<OciDistributionError> for RegistryError {
    fn from(error: OciDistributionError) -> Self {
        use OciDistributionError as Oci;
        match error {
            error if is_missing(&error) => {
                Self::Refused("the registry has nothing of this name".to_owned())
            }
            Oci::RequestError(error) => {
                let mut text = error.to_string();
                let mut cause = error.source();
                while let Some(next) = cause {
                    text = format!("{text}: {next}");
                    cause = next.source();
                }
                Self::Unavailable(text)
            }
            Oci::ServerError { code, message, .. } if code == 429 || code >= 500 => {
                Self::Unavailable(format!("it answers {code}: {}", shortened(&message)))
            }
            Oci::UnauthorizedError { .. }
            | Oci::AuthenticationFailure(_)
            | Oci::ServerError {
                code: 401 | 403, ..
            } => Self::Refused(
                "the registry does not know who asks, or does not let them: it wants a login that has the right"
                    .to_owned(),
            ),
            Oci::ServerError { code, message, .. } => {
                Self::Refused(format!("the registry answers {code}: {}", shortened(&message)))
            }
            Oci::RegistryError { envelope, .. } => {
                let is = |code: OciErrorCode| envelope.errors.iter().any(|error| error.code == code);
                if is(OciErrorCode::Toomanyrequests) {
                    return Self::Unavailable("it has been asked too often".to_owned());
                }
                if is(OciErrorCode::Unauthorized) || is(OciErrorCode::Denied) {
                    return Self::Refused(
                        "the registry does not let whoever asks do this: it wants a login that has the right"
                            .to_owned(),
                    );
                }
                Self::Refused(format!("the registry refuses: {}", shortened(&envelope.to_string())))
            }
            error => Self::Refused(format!(
                "the registry answers what cannot be used: {}",
                shortened(&error.to_string())
            )),
        }
    }
}

/// What a stranger writes has a limit.
fn shortened(text: &str) -> String {
    let mut short: String = text.trim().chars().take(300).collect();
    if short.len() < text.trim().len() {
        short.push('…');
    }
    short
}

/// Takes as many bytes as were announced.
struct Limited {
    bytes: Vec<u8>,
    limit: usize,
}

impl Limited {
    fn of(blob: &OciDescriptor) -> Self {
        let limit = usize::try_from(blob.size).unwrap_or_default();
        Self {
            // What is announced is not believed before it comes.
            bytes: Vec::with_capacity(limit.min(1 << 20)),
            limit,
        }
    }
}

impl AsyncWrite for Limited {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.len() > self.limit - self.bytes.len() {
            let limit = self.limit;
            let message = format!("more than the {limit} bytes that the manifest says");
            return Poll::Ready(Err(io::Error::other(message)));
        }
        self.bytes.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
