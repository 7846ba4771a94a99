//! Seals values that are stored where others may read or change them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};

use crate::sinks::secretstore::random;

/// Seals values with XChaCha20-Poly1305 under one key. Each is sealed for a purpose, such as the name it is stored under, and opens for
/// no other.
#[derive(Clone)]
pub(crate) struct Cipher(XChaCha20Poly1305);

impl Cipher {
    pub(crate) fn new(key: &Key) -> Self {
        Self(XChaCha20Poly1305::new(key))
    }

    /// Returns the value sealed, with its nonce, in Base64.
    ///
    /// # Errors
    /// When the operating system gives no random bytes, or the value is too large.
    pub(crate) fn seal(&self, purpose: &str, value: &[u8]) -> Result<String, String> {
        let nonce = random::<24>().map_err(|error| error.to_string())?;
        let payload = Payload {
            msg: value,
            aad: purpose.as_bytes(),
        };
        let sealed = self.0.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| "the value could not be sealed".to_owned())?;
        Ok(STANDARD.encode([nonce.as_slice(), &sealed].concat()))
    }

    /// Returns the value; `None` if it was sealed for another purpose or with another key, or was altered.
    pub(crate) fn open(&self, purpose: &str, sealed: &str) -> Option<Vec<u8>> {
        let bytes = STANDARD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<24>()?;
        let payload = Payload {
            msg: sealed,
            aad: purpose.as_bytes(),
        };
        self.0.decrypt(&XNonce::from(*nonce), payload).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_opens_for_its_purpose_with_its_key_unaltered() {
        let cipher = Cipher::new(&[1; 32].into());
        let sealed = cipher.seal("purpose", b"value").unwrap();
        assert_eq!(cipher.open("purpose", &sealed).unwrap(), b"value");
        assert_eq!(cipher.open("another", &sealed), None);
        assert_eq!(Cipher::new(&[2; 32].into()).open("purpose", &sealed), None);
        let last = if sealed.ends_with('A') { 'B' } else { 'A' };
        let altered = format!("{}{last}", &sealed[..sealed.len() - 1]);
        assert_eq!(cipher.open("purpose", &altered), None);
        assert_eq!(cipher.open("purpose", "AAAA"), None);
    }
}
