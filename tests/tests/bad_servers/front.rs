//! What stands before the API: a port that opens late, and a server whose certificate is wrong.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use configurator_tests::controlplane::About;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Where the API is.
fn backend(about: &About) -> Result<String> {
    let url = about.kubernetes.url.strip_prefix("https://");
    Ok(url.context("the API has no TLS")?.to_owned())
}

/// Passes on what comes to this port, from now on.
pub async fn open(port: SocketAddr, about: &About) -> Result<()> {
    let backend = backend(about)?;
    let listener = TcpListener::bind(port).await?;
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let backend = backend.clone();
            tokio::spawn(async move {
                let server = TcpStream::connect(backend).await?;
                pass_on(client, server).await
            });
        }
    });
    Ok(())
}

/// A port of loopback that nobody listens at.
pub async fn closed_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0").await?.local_addr()?)
}

/// An authority that a test has made.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// Its certificate in PEM.
    pub file: PathBuf,
}

impl Authority {
    pub fn new(folder: &Path, name: &str) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let file = folder.join(format!("{name}.crt"));
        std::fs::write(&file, issuer.pem())?;
        Ok(Self { issuer, file })
    }

    /// A server's configuration, with a certificate for loopback that is good until the end of this year.
    pub fn server(&self, until_year: i32) -> Result<Arc<ServerConfig>> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()])?;
        params.not_before = rcgen::date_time_ymd(2000, 1, 1);
        params.not_after = rcgen::date_time_ymd(until_year, 12, 31);
        let certificate = params.signed_by(&key, &self.issuer)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).map_err(anyhow::Error::msg)?,
            )?;
        Ok(Arc::new(config))
    }
}

/// A server before the API that ends TLS.
pub struct Front {
    pub url: String,
    config: Arc<Mutex<Arc<ServerConfig>>>,
}

impl Front {
    pub async fn start(about: &About, config: Arc<ServerConfig>) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("https://{}", listener.local_addr()?);
        let backend = backend(about)?;
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&about.ca)?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = TlsConnector::from(Arc::new(client));
        let config = Arc::new(Mutex::new(config));
        let served = config.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let acceptor = TlsAcceptor::from(served.lock().unwrap().clone());
                let (connector, backend) = (connector.clone(), backend.clone());
                tokio::spawn(async move {
                    // A client that does not trust the certificate goes away.
                    let client = acceptor.accept(client).await?;
                    let server = TcpStream::connect(backend).await?;
                    let name = ServerName::try_from("127.0.0.1").map_err(std::io::Error::other)?;
                    pass_on(client, connector.connect(name, server).await?).await
                });
            }
        });
        Ok(Self { url, config })
    }

    /// Has another certificate from now on.
    pub fn certificate(&self, config: Arc<ServerConfig>) {
        *self.config.lock().unwrap() = config;
    }
}

async fn pass_on(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    mut server: impl AsyncRead + AsyncWrite + Unpin,
) -> std::io::Result<()> {
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}
