//! Signatures of modules, as cosign makes and stores them: before its version 3 over a text of its own
//! (<https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md>), and since then over a statement in a bundle
//! (<https://github.com/sigstore/cosign/blob/main/specs/BUNDLE_SPEC.md>). Both are made here and there with the same keys.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use crypto_secretbox::aead::{Aead as _, KeyInit as _};
use crypto_secretbox::{Nonce, XSalsa20Poly1305};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use serde::{Deserialize, Serialize};
use webpki::RawPublicKeyEntity;

/// The media type of what is signed.
pub(super) const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation that has the signature.
pub(super) const ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// The most bytes of what is signed.
pub(super) const MAX_PAYLOAD: usize = 64 << 10;
/// What a payload says that it is.
const KIND: &str = "cosign container image signature";
/// How the media types of bundles begin, whatever their version.
pub(super) const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// The most bytes of a bundle. A transcript of a transparency log may be part of it.
pub(super) const MAX_BUNDLE: usize = 256 << 10;
/// The type of statements in envelopes.
const STATEMENT: &str = "application/vnd.in-toto+json";
/// What a statement says that is a signature. Others, such as a list of parts, are signed by the same keys and say nothing of the kind.
const SIGNED: &str = "https://sigstore.dev/cosign/sign/v1";

/// What is signed, and the signature of it in Base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signature {
    /// JSON that names the manifest, byte for byte as it was signed.
    pub payload: String,
    /// In Base64.
    pub signature: String,
    /// Where it was in an envelope: the type of the payload, which is signed with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_type: Option<String>,
}

/// The part of a bundle that counts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    dsse_envelope: Option<Envelope>,
}

/// <https://github.com/secure-systems-lab/dsse/blob/master/envelope.md>.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Deserialize)]
struct EnvelopeSignature {
    sig: String,
}

/// <https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md>.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    subject: Vec<Subject>,
    predicate_type: String,
}

#[derive(Deserialize)]
struct Subject {
    #[serde(default)]
    digest: BTreeMap<String, String>,
}

impl Signature {
    /// Those of a bundle; none where it is no bundle, or has something else in it.
    pub(super) fn of_bundle(bundle: &[u8]) -> Vec<Self> {
        let bundle: Option<Bundle> = serde_json::from_slice(bundle).ok();
        let Some(envelope) = bundle.and_then(|bundle| bundle.dsse_envelope) else {
            return Vec::new();
        };
        let payload = BASE64_STANDARD.decode(&envelope.payload).ok();
        let Some(payload) = payload.and_then(|payload| String::from_utf8(payload).ok()) else {
            return Vec::new();
        };
        let one = |signature: EnvelopeSignature| Self {
            payload: payload.clone(),
            signature: signature.sig,
            payload_type: Some(envelope.payload_type.clone()),
        };
        envelope.signatures.into_iter().map(one).collect()
    }

    /// Whether what is signed is that this manifest may be run.
    fn is_of(&self, manifest: &str) -> bool {
        match self.payload_type.as_deref() {
            None => {
                let payload: Option<Payload> = serde_json::from_str(&self.payload).ok();
                payload.is_some_and(|Payload { critical, .. }| {
                    critical.kind == KIND && critical.image.docker_manifest_digest == manifest
                })
            }
            Some(STATEMENT) => {
                let statement: Option<Statement> = serde_json::from_str(&self.payload).ok();
                let names = |subject: &Subject| {
                    let mut digests = subject.digest.iter();
                    digests.any(|(algorithm, hex)| format!("{algorithm}:{hex}") == manifest)
                };
                statement.is_some_and(
                    |Statement {
                         subject,
                         predicate_type,
                     }| {
                        predicate_type == SIGNED && subject.iter().any(names)
                    },
                )
            }
            Some(_) => false,
        }
    }

    /// The bytes that were signed.
    fn signed(&self) -> Vec<u8> {
        let payload = &self.payload;
        match &self.payload_type {
            None => payload.clone().into_bytes(),
            // <https://github.com/secure-systems-lab/dsse/blob/master/protocol.md>
            Some(kind) => {
                let (kind_length, length) = (kind.len(), payload.len());
                format!("DSSEv1 {kind_length} {kind} {length} {payload}").into_bytes()
            }
        }
    }
}

/// Whether one of these signers has made one of the signatures, of the manifest of this digest.
#[must_use]
pub fn is_signed(manifest: &str, signatures: &[Signature], signers: &[Signer]) -> bool {
    signatures.iter().any(|signature| {
        let mut signers = signers.iter();
        signers.any(|signer| signer.has_signed(manifest, signature))
    })
}

/// Why a text is no key, or a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct KeyError(String);

impl KeyError {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// The public key of one who may sign: ECDSA with P-256 or P-384, Ed25519, or RSA of at least 2,048 bits.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Signer {
    key: SubjectPublicKeyInfoDer<'static>,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({})", BASE64_STANDARD.encode(&self.key))
    }
}

impl TryFrom<String> for Signer {
    type Error = KeyError;

    fn try_from(pem: String) -> Result<Self, KeyError> {
        Self::from_pem(&pem)
    }
}

/// The part of a payload that counts.
#[derive(Serialize, Deserialize)]
struct Payload {
    critical: Critical,
    optional: Option<serde_json::Value>,
}

#[derive(Serialize, Deserialize)]
struct Critical {
    identity: Identity,
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Identity {
    docker_reference: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Image {
    docker_manifest_digest: String,
}

impl Signer {
    /// Reads a key in PEM: `-----BEGIN PUBLIC KEY-----`, as `cosign public-key` prints it.
    ///
    /// # Errors
    /// When the text is none.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let key = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).map_err(|_| {
            KeyError::new(
                "a signer is a public key in PEM, which begins with -----BEGIN PUBLIC KEY-----",
            )
        })?;
        RawPublicKeyEntity::try_from(&key)
            .map_err(|error| KeyError::new(format!("the public key cannot be read: {error}")))?;
        Ok(Self { key })
    }

    /// Whether this signer has signed the manifest of this digest.
    #[must_use]
    pub fn has_signed(&self, manifest: &str, signature: &Signature) -> bool {
        let (true, Ok(bytes), Ok(key)) = (
            signature.is_of(manifest),
            BASE64_STANDARD.decode(&signature.signature),
            RawPublicKeyEntity::try_from(&self.key),
        ) else {
            return false;
        };
        let signed = signature.signed();
        let algorithms = rustls::crypto::ring::default_provider().signature_verification_algorithms;
        let verifies = |algorithm: &&dyn rustls::pki_types::SignatureVerificationAlgorithm| {
            key.verify_signature(*algorithm, &signed, &bytes).is_ok()
        };
        algorithms.all.iter().any(verifies)
    }
}

/// A private key that signs: ECDSA with P-256, as `cosign generate-key-pair` and `openssl` make it.
pub struct SigningKey(EcdsaKeyPair);

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey")
    }
}

#[derive(Deserialize)]
struct Encrypted {
    kdf: Kdf,
    cipher: Cipher,
    ciphertext: String,
}

#[derive(Deserialize)]
struct Kdf {
    name: String,
    params: Scrypt,
    salt: String,
}

#[derive(Deserialize)]
struct Scrypt {
    #[serde(rename = "N")]
    n: u64,
    r: u32,
    p: u32,
}

#[derive(Deserialize)]
struct Cipher {
    name: String,
    nonce: String,
}

impl SigningKey {
    /// Reads a key in PEM: PKCS #8, or encrypted by a password as cosign does.
    ///
    /// # Errors
    /// When the text is none, or the password is another.
    pub fn from_pem(pem: &str, password: &str) -> Result<Self, KeyError> {
        let pkcs8 = match encrypted(pem)? {
            Some(text) => decrypted(&text, password)?,
            None => PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes())
                .map_err(|_| {
                    KeyError::new("a signing key is PEM that begins with -----BEGIN PRIVATE KEY----- or -----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----")
                })?
                .secret_pkcs8_der()
                .to_vec(),
        };
        let pair = EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_ASN1_SIGNING,
            &pkcs8,
            &SystemRandom::new(),
        );
        pair.map(Self).map_err(|error| {
            KeyError::new(format!(
                "the signing key is none of ECDSA with P-256: {error}"
            ))
        })
    }

    /// Signs that this manifest stands in this repository.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn sign(&self, repository: &str, manifest: &str) -> Result<Signature, KeyError> {
        let payload = Payload {
            critical: Critical {
                identity: Identity {
                    docker_reference: repository.to_owned(),
                },
                image: Image {
                    docker_manifest_digest: manifest.to_owned(),
                },
                kind: KIND.to_owned(),
            },
            optional: None,
        };
        let payload =
            serde_json::to_string(&payload).map_err(|error| KeyError::new(error.to_string()))?;
        let signed = self.0.sign(&SystemRandom::new(), payload.as_bytes());
        let signed = signed.map_err(|_| KeyError::new("the system has no random numbers"))?;
        Ok(Signature {
            payload,
            signature: BASE64_STANDARD.encode(signed),
            payload_type: None,
        })
    }
}

/// What is between the lines that say that a key is encrypted.
fn encrypted(pem: &str) -> Result<Option<Vec<u8>>, KeyError> {
    for name in [
        "ENCRYPTED SIGSTORE PRIVATE KEY",
        "ENCRYPTED COSIGN PRIVATE KEY",
    ] {
        let begin = format!("-----BEGIN {name}-----");
        let end = format!("-----END {name}-----");
        if let Some((_, rest)) = pem.split_once(&begin) {
            let body = rest.split_once(&end).map(|(body, _)| body);
            let body: String = body.unwrap_or_default().split_whitespace().collect();
            let body = BASE64_STANDARD.decode(body);
            return body
                .map(Some)
                .map_err(|_| KeyError::new("the encrypted key is no PEM"));
        }
    }
    Ok(None)
}

fn decrypted(text: &[u8], password: &str) -> Result<Vec<u8>, KeyError> {
    let strange = || KeyError::new("the key is encrypted in a way that is not known here");
    let Encrypted {
        kdf,
        cipher,
        ciphertext,
    } = serde_json::from_slice(text).map_err(|_| strange())?;
    if kdf.name != "scrypt" || cipher.name != "nacl/secretbox" || !kdf.params.n.is_power_of_two() {
        return Err(strange());
    }
    let bytes = |text: &str| BASE64_STANDARD.decode(text).map_err(|_| strange());
    let Scrypt { n, r, p } = kdf.params;
    let rounds = u8::try_from(n.ilog2()).map_err(|_| strange())?;
    // What a file asks for has a limit: this is some times what cosign takes.
    if rounds > 18 || r > 8 || p > 4 {
        return Err(strange());
    }
    let params = scrypt::Params::new(rounds, r, p).map_err(|_| strange())?;
    let mut key = [0; 32];
    scrypt::scrypt(password.as_bytes(), &bytes(&kdf.salt)?, &params, &mut key)
        .map_err(|_| strange())?;
    let nonce: [u8; 24] = bytes(&cipher.nonce)?.try_into().map_err(|_| strange())?;
    XSalsa20Poly1305::new(&key.into())
        .decrypt(&Nonce::from(nonce), &*bytes(&ciphertext)?)
        .map_err(|_| {
            KeyError::new(
                "the password of the signing key is another; it is read from COSIGN_PASSWORD",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Made by cosign 3.1.3: `cosign generate-key-pair` without a password, `cosign sign` and `cosign attest` of this manifest.
    const KEY: &str = include_str!("testdata/cosign.key");
    const PUBLIC: &str = include_str!("testdata/cosign.pub");
    const BUNDLE: &str = include_str!("testdata/signature.json");
    const ATTESTATION: &str = include_str!("testdata/attestation.json");
    const MANIFEST: &str =
        "sha256:1567e7170202d6f963405e3a54bad9160a390664c59b982ccbd59bbac7de762a";
    const OTHER: &str = "sha256:0567e7170202d6f963405e3a54bad9160a390664c59b982ccbd59bbac7de762a";

    fn signers() -> [Signer; 1] {
        [Signer::from_pem(PUBLIC).unwrap()]
    }

    #[test]
    fn a_bundle_of_cosign_signs_its_manifest() {
        let signatures = Signature::of_bundle(BUNDLE.as_bytes());
        assert!(is_signed(MANIFEST, &signatures, &signers()));
        assert!(!is_signed(OTHER, &signatures, &signers()));
        assert!(!is_signed(MANIFEST, &signatures, &[]));
    }

    #[test]
    fn what_is_attested_is_not_signed() {
        let signatures = Signature::of_bundle(ATTESTATION.as_bytes());
        assert_eq!(signatures.len(), 1);
        assert!(!is_signed(MANIFEST, &signatures, &signers()));
    }

    #[test]
    fn a_bundle_that_was_changed_signs_nothing() {
        for (from, to) in [
            (
                "application/vnd.in-toto+json",
                "application/vnd.in-toto+jsom",
            ),
            ("\"sig\":\"M", "\"sig\":\"N"),
            ("\"payload\":\"ey", "\"payload\":\"ez"),
            ("\"dsseEnvelope\"", "\"messageSignature\""),
        ] {
            let changed = BUNDLE.replace(from, to);
            assert_ne!(changed, BUNDLE, "{from}");
            let signatures = Signature::of_bundle(changed.as_bytes());
            assert!(!is_signed(MANIFEST, &signatures, &signers()), "{from}");
        }
        // The statement names another manifest, and is signed no more.
        let mut signatures = Signature::of_bundle(BUNDLE.as_bytes());
        signatures[0].payload = signatures[0].payload.replace("1567e7", "0567e7");
        assert!(!is_signed(OTHER, &signatures, &signers()));
    }

    #[test]
    fn a_key_of_cosign_signs_for_its_owner() {
        let key = SigningKey::from_pem(KEY, "").unwrap();
        let signature = key.sign("ghcr.io/team/greeter", MANIFEST).unwrap();
        assert!(is_signed(
            MANIFEST,
            std::slice::from_ref(&signature),
            &signers()
        ));
        assert!(!is_signed(OTHER, &[signature], &signers()));
        let refused = SigningKey::from_pem(KEY, "wrong").unwrap_err().to_string();
        assert!(refused.contains("password"), "{refused}");
    }
}
