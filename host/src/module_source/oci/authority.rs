//! Who vouches for registries.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// Certificates that registries may be vouched for by.
#[derive(Debug, Clone)]
pub struct Authority(Vec<CertificateDer<'static>>);

/// Why a text has no certificates.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// It has none.
    #[error("there is no certificate in it: one in PEM begins with -----BEGIN CERTIFICATE-----")]
    Nothing,
    /// One of them is none.
    #[error("its certificate {number} cannot be read: {why}")]
    Strange {
        /// Which one, from 1.
        number: usize,
        /// What is wrong with it.
        why: String,
    },
}

impl Authority {
    /// Reads certificates in PEM, of which there is at least one.
    ///
    /// # Errors
    /// When there is none, or one of them cannot be read.
    pub fn from_pem(pem: &[u8]) -> Result<Self, AuthorityError> {
        let mut found = Vec::new();
        for (index, certificate) in CertificateDer::pem_slice_iter(pem).enumerate() {
            let strange = |why: String| AuthorityError::Strange {
                number: index + 1,
                why,
            };
            let certificate = certificate.map_err(|error| strange(error.to_string()))?;
            webpki::anchor_from_trusted_cert(&certificate)
                .map_err(|error| strange(error.to_string()))?;
            found.push(certificate);
        }
        match found.is_empty() {
            true => Err(AuthorityError::Nothing),
            false => Ok(Self(found)),
        }
    }

    pub(super) fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(pem: &str, expected: Expect) {
        let told = match Authority::from_pem(pem.as_bytes()) {
            Ok(Authority(certificates)) => format!("{} certificates", certificates.len()),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&told);
    }

    #[test]
    fn what_has_no_certificate_is_no_authority() {
        check(
            "",
            expect![
                "there is no certificate in it: one in PEM begins with -----BEGIN CERTIFICATE-----"
            ],
        );
        check(
            include_str!("testdata/cosign.pub"),
            expect![
                "there is no certificate in it: one in PEM begins with -----BEGIN CERTIFICATE-----"
            ],
        );
        check(
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            expect!["its certificate 1 cannot be read: TrailingData(SignedData)"],
        );
    }
}
