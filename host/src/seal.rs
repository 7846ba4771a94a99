//! Seals states, so that what somebody else wrote is not taken for the host's own.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio::sync::OnceCell;

use crate::sinks::secretstore::{self, SecretStore};

/// The name of the key in the secret store. No capability lets a handler reach it: see
/// [`Capabilities`](configurator_core::capability::Capabilities).
const KEY_NAME: &str = "configurator.dev/state-key";

/// The key that seals the states of objects in a machine. All hosts that share objects must have the same.
#[derive(Clone)]
pub struct StateKey(
    /// As HMAC takes it: filled up with zeros to a block of SHA-256.
    [u8; 64],
);

impl std::fmt::Debug for StateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateKey(…)")
    }
}

impl StateKey {
    /// A key of these bytes, which nobody may know who can write the states.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        let mut block = [0; 64];
        for (to, from) in block.iter_mut().zip(bytes) {
            *to = from;
        }
        Self(block)
    }

    /// The seal of these parts, each after its length: 43 characters of URL-safe Base64.
    pub(crate) fn seal(&self, parts: &[&[u8]]) -> String {
        URL_SAFE_NO_PAD.encode(self.mac(parts).finalize().into_bytes())
    }

    /// Derives a key for another purpose. It reveals nothing about this one.
    pub(crate) fn derive(&self, purpose: &[u8]) -> [u8; 32] {
        self.mac(&[b"derived key", purpose])
            .finalize()
            .into_bytes()
            .into()
    }

    /// Whether this is the seal of these parts. Takes as long for every wrong one.
    pub(crate) fn is_seal(&self, parts: &[&[u8]], seal: &str) -> bool {
        URL_SAFE_NO_PAD
            .decode(seal)
            .is_ok_and(|seal| self.mac(parts).verify_slice(&seal).is_ok())
    }

    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new((&self.0).into());
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac
    }
}

/// Returns random bytes of the operating system.
///
/// # Errors
/// When it gives none.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Fault> {
    secretstore::random().map_err(|error| Fault::new(FaultKind::ResourceGeneric, error.to_string()))
}

/// The key of a host: one that its embedder gave, or one that the secret store has.
pub(crate) struct HostKey {
    store: Arc<dyn SecretStore>,
    key: OnceCell<StateKey>,
}

impl HostKey {
    pub(crate) fn new(store: Arc<dyn SecretStore>, given: Option<StateKey>) -> Self {
        Self {
            store,
            key: OnceCell::new_with(given),
        }
    }

    /// The key. Where the secret store has none, it gets one.
    ///
    /// # Errors
    /// When the secret store cannot be reached, or what it has is no key.
    pub(crate) async fn get(&self) -> Result<&StateKey, Fault> {
        self.key.get_or_try_init(|| self.read()).await
    }

    async fn read(&self) -> Result<StateKey, Fault> {
        let wrong = |message: String| Fault::new(FaultKind::ResourceGeneric, message);
        let secret = match self.store.get(KEY_NAME).await? {
            Some(secret) => secret,
            None => {
                let text = URL_SAFE_NO_PAD.encode(random::<32>()?);
                let text = Document::of(&text).map_err(|error| wrong(error.to_string()))?;
                // Another host may have been first; then its key counts.
                self.store.create(KEY_NAME, text).await?.0
            }
        };
        let text: String = secret.value.read().unwrap_or_default();
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        let bytes = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        bytes.map(StateKey::new).ok_or_else(|| {
            wrong(format!("the secret {KEY_NAME:?} is not the key that seals states: 32 bytes in URL-safe Base64"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_fits_what_it_was_made_of_and_nothing_else() {
        let key = StateKey::new([7; 32]);
        let seal = key.seal(&[b"uid", b"1"]);
        assert_eq!(seal.len(), 43);
        assert!(key.is_seal(&[b"uid", b"1"], &seal));
        for other in [&[b"uid".as_slice(), b"2"], &[b"uid1".as_slice(), b""]] {
            assert!(!key.is_seal(other, &seal));
        }
        assert!(!StateKey::new([8; 32]).is_seal(&[b"uid", b"1"], &seal));
        assert!(!key.is_seal(&[b"uid", b"1"], "no seal"));
        assert_eq!(format!("{key:?}"), "StateKey(…)");
    }
}
