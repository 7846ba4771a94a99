//! One name in a registry: what stands there is read or written.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use configurator_guest::bytes::ModuleBytes;
use configurator_guest::digest::Digest;
use oci_client::Reference;
use oci_client::manifest::{
    IMAGE_CONFIG_MEDIA_TYPE, IMAGE_MANIFEST_LIST_MEDIA_TYPE, IMAGE_MANIFEST_MEDIA_TYPE,
    OCI_IMAGE_INDEX_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageIndex,
    OciImageManifest,
};
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};

use super::access::Access;
use super::artifact::{About, Artifact, descriptor, place_of};
use super::authority::Authority;
use super::login::Login;
use super::signature::{
    ANNOTATION, BUNDLE, MAX_BUNDLE, MAX_PAYLOAD, PAYLOAD, Signature, Signer, SigningKey, is_signed,
};
use super::transport::{Transport, read, receive};
use crate::network::Reach;

/// How long a small answer may take in all.
const ANSWER: Duration = Duration::from_secs(30);
/// How long all signatures may take.
const SIGNATURES: Duration = Duration::from_secs(120);
/// How long a component may take in all.
const TRANSFER: Duration = Duration::from_secs(600);
/// The most bytes of a manifest or a list of manifests; what registries take at least.
const MAX_MANIFEST: usize = 4 << 20;
/// The types of manifests that are read: the one that is written here, and that of Docker, which says the same.
const MANIFESTS: [&str; 2] = [OCI_IMAGE_MEDIA_TYPE, IMAGE_MANIFEST_MEDIA_TYPE];
/// The types of lists of them.
const INDEXES: [&str; 2] = [OCI_IMAGE_INDEX_MEDIA_TYPE, IMAGE_MANIFEST_LIST_MEDIA_TYPE];
/// The header that names the digest of a manifest.
const DIGEST: &str = "docker-content-digest";
/// The most signatures of one module that are looked at.
const MAX_SIGNATURES: usize = 32;

/// How registries are reached.
#[derive(Debug, Clone, Default)]
pub struct RegistryOptions {
    /// Who is trusted beside those whom the system trusts.
    pub ca: Vec<Authority>,
    /// The addresses that registries, their token servers and the servers that they redirect to may have. Default: public
    /// addresses only.
    pub reach: Reach,
    /// Servers that are reached without TLS, such as `127.0.0.1:5000`: registries, and servers that these name. Logins are
    /// sent to them in plain text. Any other server needs TLS.
    pub plain_http: Vec<String>,
}

/// Why a registry did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// It cannot be reached, or asks to be left alone.
    #[error("the registry cannot be asked now: {0}")]
    Unavailable(String),
    /// It can be reached, and cannot answer.
    #[error("the registry cannot be asked now: it answers {code}")]
    Failing {
        /// The status of its answer, from 500.
        code: u16,
    },
    /// A server may not be connected to: the registry, its token server, or one that it redirects to.
    #[error("{0}")]
    NotPermitted(String),
    /// What it answers makes no sense: it is no registry, or something is between.
    #[error("{0}")]
    Garbled(String),
    /// There is no such thing.
    #[error("the registry has nothing of this name")]
    Missing,
    /// Nobody has logged in, or the login is not known.
    #[error(
        "the registry does not know who asks, or does not let them: it wants a login that has the right"
    )]
    Unauthorized,
    /// Whoever asks has not the right.
    #[error("the registry does not let whoever asks do this: it wants a login that has the right")]
    Forbidden,
    /// It refuses, or has something else.
    #[error("{0}")]
    Refused(String),
}

/// Registry and repository of a reference: `ghcr.io/team/greeter`.
#[must_use]
pub fn repository(reference: &Reference) -> String {
    format!("{}/{}", reference.registry(), reference.repository())
}

/// A reference, and who asks for it.
pub struct Registry {
    transport: Transport,
    reference: Reference,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let login = self.transport.login();
        write!(f, "Registry({}, {login:?})", self.reference)
    }
}

impl Registry {
    /// Makes no connection.
    ///
    /// # Errors
    /// When no URL can have the name of the registry.
    pub fn new(
        reference: Reference,
        login: Login,
        options: &RegistryOptions,
    ) -> Result<Self, RegistryError> {
        Self::through(Arc::new(Access::new(options)), reference, login)
    }

    /// As [`new`](Self::new), with the connections of others.
    pub(super) fn through(
        access: Arc<Access>,
        reference: Reference,
        login: Login,
    ) -> Result<Self, RegistryError> {
        let transport = Transport::new(&reference, login, access)?;
        Ok(Self {
            transport,
            reference,
        })
    }

    /// The reference.
    #[must_use]
    pub const fn reference(&self) -> &Reference {
        &self.reference
    }

    /// Whether it is anybody who asks.
    #[must_use]
    pub const fn has_login(&self) -> bool {
        self.transport.login().is_somebody()
    }

    /// The digest of the manifest that the reference stands for now.
    ///
    /// # Errors
    /// As of [`RegistryError`].
    pub async fn resolve(&self) -> Result<String, RegistryError> {
        let url = self.transport.url(&manifest_path(&self.reference))?;
        let headers = accepting(&[MANIFESTS, INDEXES].concat());
        within(ANSWER, async {
            let asked = self
                .transport
                .ask(Method::HEAD, url.clone(), headers.clone());
            let answer = asked.await?;
            let digest = answer.headers().get(DIGEST);
            if let Some(digest) = digest.and_then(|digest| digest.to_str().ok()) {
                return Ok(digest.to_owned());
            }
            let answer = self.transport.ask(Method::GET, url, headers).await?;
            let text = read(answer, MAX_MANIFEST).await?;
            Ok(Digest::of(&text).to_string())
        })
        .await
    }

    /// The manifest of the module.
    ///
    /// # Errors
    /// As of [`RegistryError`]; also when it is no module.
    pub async fn artifact(&self) -> Result<Artifact, RegistryError> {
        let text = self.manifest(&self.reference, &MANIFESTS).await?;
        let artifact = Artifact::read(text)?;
        match self.reference.digest() {
            Some(pinned) if pinned != artifact.digest() => Err(RegistryError::Garbled(format!(
                "the registry answers with the manifest {}, which was not asked for",
                artifact.digest()
            ))),
            _ => Ok(artifact),
        }
    }

    async fn manifest(
        &self,
        reference: &Reference,
        types: &[&str],
    ) -> Result<Vec<u8>, RegistryError> {
        let url = self.transport.url(&manifest_path(reference))?;
        within(ANSWER, async {
            let asked = self.transport.ask(Method::GET, url, accepting(types));
            read(asked.await?, MAX_MANIFEST).await
        })
        .await
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
        let garbled = |what: String| RegistryError::Garbled(format!("the registry {what}"));
        let named = &blob.digest;
        if named.parse::<Digest>().is_err() {
            return Err(garbled("has a manifest with an invalid digest".to_owned()));
        }
        let limit = usize::try_from(blob.size).unwrap_or_default();
        let url = self.transport.url(&format!("blobs/{named}"))?;
        let bytes = within(time, async {
            let asked = self.transport.ask(Method::GET, url, HeaderMap::new());
            let answer = asked.await.map_err(|error| match error {
                RegistryError::Missing => {
                    garbled(format!("lacks {named}, which the manifest names"))
                }
                error => error,
            })?;
            match receive(answer, limit).await? {
                (bytes, true) => Ok(bytes),
                (_, false) => Err(garbled(format!(
                    "answers more than the {limit} bytes that the manifest says"
                ))),
            }
        })
        .await?;
        // To hash a large one takes a while.
        let hashed = tokio::task::spawn_blocking(move || ModuleBytes::from(bytes)).await;
        let bytes = hashed.map_err(|_| garbled("was not heard to the end".to_owned()))?;
        let found = bytes.digest();
        if found.to_string() != *named {
            return Err(garbled(format!(
                "answers with other bytes than the manifest says: {found} instead of {named}"
            )));
        }
        Ok(bytes)
    }

    /// The signatures that are stored beside the module, as cosign puts them there. Bundles are looked for where none of the others is by one of
    /// these signers. Whose they are is for [`is_signed`] to say. One that cannot be had does not hide the others.
    ///
    /// # Errors
    /// As of [`RegistryError`], where none that could be had is by one of the signers; none where there are no signatures.
    pub async fn signatures(
        &self,
        artifact: &Artifact,
        signers: &[Signer],
    ) -> Result<Vec<Signature>, RegistryError> {
        let mut found = Found {
            manifest: artifact.digest(),
            signers,
            signatures: Vec::new(),
            trouble: None,
        };
        within(SIGNATURES, async {
            self.tagged_signatures(artifact, &mut found).await;
            if !found.is_enough() {
                self.bundled_signatures(artifact, &mut found).await;
            }
            match found.trouble.take() {
                Some(trouble) if !found.is_enough() => Err(trouble),
                _ => Ok(found.signatures),
            }
        })
        .await
    }

    async fn bundled_signatures(&self, artifact: &Artifact, found: &mut Found<'_>) {
        let listed = match self.referrers(artifact).await {
            Ok(listed) => listed.manifests,
            Err(error) => return found.lacks(error),
        };
        let bundles = listed.into_iter().filter(|entry| {
            let kind = entry.artifact_type.as_deref().unwrap_or_default();
            kind.starts_with(BUNDLE) && entry.digest.parse::<Digest>().is_ok()
        });
        for entry in bundles.take(MAX_SIGNATURES) {
            match self.bundle(entry.digest).await {
                Ok(signatures) => found.signatures.extend(signatures),
                Err(error) => found.lacks(error),
            }
            if found.is_enough() {
                return;
            }
        }
    }

    /// What refers to the module: <https://github.com/opencontainers/distribution-spec/blob/main/spec.md#listing-referrers>, or, where the
    /// registry knows nothing of that, what is under the tag that stands in for it.
    async fn referrers(&self, artifact: &Artifact) -> Result<OciImageIndex, RegistryError> {
        let digest = artifact.digest();
        let url = self.transport.url(&format!("referrers/{digest}"))?;
        let listed = within(ANSWER, async {
            let asked = self.transport.ask(Method::GET, url, accepting(&INDEXES));
            read(asked.await?, MAX_MANIFEST).await
        })
        .await;
        let text = match listed {
            Err(RegistryError::Missing) => {
                let tag = self.tagged(digest.replace(':', "-"));
                self.manifest(&tag, &INDEXES).await?
            }
            listed => listed?,
        };
        serde_json::from_slice(&text).map_err(|error| {
            RegistryError::Garbled(format!(
                "the registry lists the signatures in no way that can be read: {}",
                place_of(&error)
            ))
        })
    }

    async fn bundle(&self, digest: String) -> Result<Vec<Signature>, RegistryError> {
        let (registry, repository) = (self.reference.registry(), self.reference.repository());
        let reference = Reference::with_digest(registry.to_owned(), repository.to_owned(), digest);
        let text = self.manifest(&reference, &MANIFESTS).await?;
        let manifest: Option<OciImageManifest> = serde_json::from_slice(&text).ok();
        let layer = manifest.and_then(|manifest| manifest.layers.into_iter().next());
        let is_small = |layer: &OciDescriptor| {
            usize::try_from(layer.size).is_ok_and(|size| size <= MAX_BUNDLE)
        };
        match layer.filter(is_small) {
            Some(layer) => Ok(Signature::of_bundle(&self.blob(&layer, ANSWER).await?)),
            None => Ok(Vec::new()),
        }
    }

    async fn tagged_signatures(&self, artifact: &Artifact, found: &mut Found<'_>) {
        let manifest = match self.signature_manifest(artifact).await {
            Ok(Some(manifest)) => manifest,
            Ok(None) => return,
            Err(error) => return found.lacks(error),
        };
        for layer in manifest.layers.iter().take(MAX_SIGNATURES) {
            let annotations = layer.annotations.as_ref();
            let signature = annotations.and_then(|annotations| annotations.get(ANNOTATION));
            let size = usize::try_from(layer.size).unwrap_or(usize::MAX);
            let (PAYLOAD, Some(signature), ..=MAX_PAYLOAD) = (&*layer.media_type, signature, size)
            else {
                continue;
            };
            match self.blob(layer, ANSWER).await {
                Ok(payload) => found.signatures.push(Signature {
                    payload: String::from_utf8_lossy(&payload).into_owned(),
                    signature: signature.clone(),
                    payload_type: None,
                }),
                Err(error) => found.lacks(error),
            }
            if found.is_enough() {
                return;
            }
        }
    }

    fn tagged(&self, tag: String) -> Reference {
        let (registry, repository) = (self.reference.registry(), self.reference.repository());
        Reference::with_tag(registry.to_owned(), repository.to_owned(), tag)
    }

    /// Where cosign puts the signatures of a manifest: <https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md>.
    fn signature_reference(&self, artifact: &Artifact) -> Reference {
        self.tagged(format!("{}.sig", artifact.digest().replace(':', "-")))
    }

    async fn signature_manifest(
        &self,
        artifact: &Artifact,
    ) -> Result<Option<OciImageManifest>, RegistryError> {
        let reference = self.signature_reference(artifact);
        let text = match self.manifest(&reference, &MANIFESTS).await {
            Err(RegistryError::Missing) => return Ok(None),
            text => text?,
        };
        let manifest = serde_json::from_slice(&text).map_err(|error| {
            let place = place_of(&error);
            RegistryError::Garbled(format!("the signatures have no manifest: {place}"))
        })?;
        Ok(Some(manifest))
    }

    /// Puts a component there.
    ///
    /// # Errors
    /// As of [`RegistryError`].
    pub async fn push(&self, component: Vec<u8>, about: &About) -> Result<Artifact, RegistryError> {
        let (artifact, config) = Artifact::of(&component, about);
        self.push_blob(config, ANSWER).await?;
        self.push_blob(component, TRANSFER).await?;
        let text = artifact.text().to_vec();
        self.push_manifest(&self.reference, text).await?;
        Ok(artifact)
    }

    /// <https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pushing-blobs>.
    async fn push_blob(&self, bytes: Vec<u8>, time: Duration) -> Result<(), RegistryError> {
        let digest = Digest::of(&bytes).to_string();
        let url = self.transport.url("blobs/uploads/")?;
        let kind = HeaderValue::from_static("application/octet-stream");
        within(time, async {
            let (post, nothing) = (Method::POST, bytes::Bytes::new());
            let begun = self.transport.put(post, url, nothing, kind.clone()).await?;
            let mut place = Transport::location(&begun)?;
            place.query_pairs_mut().append_pair("digest", &digest);
            let put = self.transport.put(Method::PUT, place, bytes.into(), kind);
            put.await.map(drop)
        })
        .await
    }

    async fn push_manifest(
        &self,
        reference: &Reference,
        text: Vec<u8>,
    ) -> Result<(), RegistryError> {
        let url = self.transport.url(&manifest_path(reference))?;
        let kind = HeaderValue::from_static(OCI_IMAGE_MEDIA_TYPE);
        let put = self.transport.put(Method::PUT, url, text.into(), kind);
        within(ANSWER, put).await.map(drop)
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
        self.push_blob(payload.into_bytes(), ANSWER).await?;
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
        self.push_blob(config, ANSWER).await?;
        let text = serde_json::to_vec(&manifest)
            .map_err(|error| RegistryError::Refused(error.to_string()))?;
        self.push_manifest(&self.signature_reference(artifact), text)
            .await
    }
}

/// The signatures of a manifest, as far as they could be had.
struct Found<'s> {
    manifest: String,
    signers: &'s [Signer],
    signatures: Vec<Signature>,
    /// Why one could not be had that may be there.
    trouble: Option<RegistryError>,
}

impl Found<'_> {
    fn is_enough(&self) -> bool {
        is_signed(&self.manifest, &self.signatures, self.signers)
    }

    /// One is not to be had. What is damaged or refused stays so; what is away may be the one that counts.
    fn lacks(&mut self, error: RegistryError) {
        match error {
            RegistryError::Unavailable(_)
            | RegistryError::Failing { .. }
            | RegistryError::NotPermitted(_) => {
                self.trouble.get_or_insert(error);
            }
            _ => tracing::debug!(
                manifest = self.manifest,
                "a signature is passed over: {error}"
            ),
        }
    }
}

/// Where the manifest is, below its repository.
fn manifest_path(reference: &Reference) -> String {
    let tag = reference.tag().unwrap_or("latest");
    format!("manifests/{}", reference.digest().unwrap_or(tag))
}

/// The header that says which types of answers are wanted.
fn accepting(types: &[&str]) -> HeaderMap {
    let types = HeaderValue::from_str(&types.join(", ")).ok();
    types.into_iter().map(|types| (ACCEPT, types)).collect()
}

async fn within<T>(
    time: Duration,
    asked: impl Future<Output = Result<T, RegistryError>>,
) -> Result<T, RegistryError> {
    let answered = tokio::time::timeout(time, asked).await;
    answered.unwrap_or_else(|_| {
        let seconds = time.as_secs();
        let late = format!("it has not answered within {seconds} s");
        Err(RegistryError::Unavailable(late))
    })
}
