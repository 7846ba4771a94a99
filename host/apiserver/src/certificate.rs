//! The certificate authority of the served API. It lives in the store, so that a kubeconfig stays good after a restart.

use configurator_store::{Read, Store, WriteError};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde::{Deserialize, Serialize};

use crate::keys;
use crate::options::ApiServerOptions;
use crate::serve::ServeError;

/// What stays the same over restarts.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) ca_pem: String,
    ca_key_pem: String,
    pub(crate) token: String,
}

impl Identity {
    /// The stored identity, or a new one.
    pub(crate) async fn of(store: &Store, options: &ApiServerOptions) -> Result<Self, ServeError> {
        if let Some(stored) = store.get(keys::CERTIFICATES.as_bytes())? {
            return serde_json::from_slice(&stored)
                .map_err(|error| ServeError::Certificate(error.to_string()));
        }
        let made = Self::make(options)?;
        let bytes = serde_json::to_vec(&made)
            .map_err(|error| ServeError::Certificate(error.to_string()))?;
        let stored = store
            .write(move |tx| match tx.get(keys::CERTIFICATES.as_bytes())? {
                Some(stored) => Ok(stored),
                None => {
                    tx.put(keys::CERTIFICATES, bytes.clone());
                    Ok::<_, configurator_store::StoreError>(bytes.into())
                }
            })
            .await
            .map_err(|error| match error {
                WriteError::Refused(error) | WriteError::Store(error) => error,
            })?;
        serde_json::from_slice(&stored).map_err(|error| ServeError::Certificate(error.to_string()))
    }

    fn make(options: &ApiServerOptions) -> Result<Self, ServeError> {
        let key = KeyPair::generate()?;
        let certificate = authority()?.self_signed(&key)?;
        let mut secret = [0u8; 32];
        (options.random)(&mut secret);
        let token = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self {
            ca_pem: certificate.pem(),
            ca_key_pem: key.serialize_pem(),
            token,
        })
    }

    /// The TLS side of a server on the loopback address, with a certificate made for this start.
    pub(crate) fn server_config(&self) -> Result<ServerConfig, ServeError> {
        let issuer = Issuer::new(authority()?, KeyPair::from_pem(&self.ca_key_pem)?);
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(
            [
                "localhost",
                "127.0.0.1",
                "::1",
                "kubernetes",
                "kubernetes.default",
            ]
            .map(str::to_owned),
        )?;
        params
            .distinguished_name
            .push(DnType::CommonName, "configurator");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &issuer)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(vec![certificate.der().clone()], key)
            })
            .map_err(|error| ServeError::Certificate(error.to_string()))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// The same authority each time; only its key is a secret.
fn authority() -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params
        .distinguished_name
        .push(DnType::CommonName, "configurator-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::CrlSign,
    ];
    Ok(params)
}
