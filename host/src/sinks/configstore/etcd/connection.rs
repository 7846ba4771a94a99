//! The connection to etcd: made when it is first needed, and again after it could not be made.

use std::path::Path;
use std::time::Duration;

use configurator_core::fault::{Fault, FaultKind};
use etcd_client::{Certificate, Client, ConnectOptions, Identity, KvClient, TlsOptions};
use tokio::sync::OnceCell;

use super::errors::explain;
use super::options::EtcdOptions;

/// How often a silent connection is asked whether somebody is there.
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// How long the answer may take.
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(2);
/// The longest answer, in bytes.
const MAX_ANSWER: usize = 64 << 20;

pub struct Connection {
    options: EtcdOptions,
    client: OnceCell<KvClient>,
}

impl Connection {
    pub fn new(options: EtcdOptions) -> Self {
        Self {
            options,
            client: OnceCell::new(),
        }
    }

    /// A client. Without a connection it makes one.
    pub async fn client(&self) -> Result<KvClient, Fault> {
        self.client
            .get_or_try_init(|| self.connect())
            .await
            .cloned()
    }

    async fn connect(&self) -> Result<KvClient, Fault> {
        let options = &self.options;
        let unreachable = |what: &str| {
            Fault::new(
                FaultKind::ConfigstoreUnavailable,
                format!(
                    "the config store at {}: {what}",
                    options.endpoints.join(", ")
                ),
            )
        };
        let connect = self
            .connect_options()
            .await
            .map_err(|error| unreachable(&error))?;
        let connecting = Client::connect(&options.endpoints, Some(connect));
        let client = tokio::time::timeout(options.timeout, connecting)
            .await
            .map_err(|_| unreachable(&format!("no answer within {:?}", options.timeout)))?
            .map_err(|error| unreachable(&explain(&error)))?;
        Ok(client.kv_client().max_decoding_message_size(MAX_ANSWER))
    }

    async fn connect_options(&self) -> Result<ConnectOptions, String> {
        let options = &self.options;
        let mut connect = ConnectOptions::new()
            .with_timeout(options.timeout)
            .with_connect_timeout(options.timeout)
            // A member that is there and does not answer, as when it is stopped, is left.
            .with_keep_alive(KEEP_ALIVE, KEEP_ALIVE_TIMEOUT)
            .with_keep_alive_while_idle(true)
            // A member that has lost the others refuses at once.
            .with_require_leader(true)
            .with_auto_token_refresh(true);
        if let Some((user, password)) = &options.user {
            connect = connect.with_user(user, password);
        }
        if options
            .endpoints
            .iter()
            .any(|endpoint| endpoint.starts_with("https://"))
        {
            let mut tls = TlsOptions::new().timeout(options.timeout);
            tls = match &options.ca {
                Some(ca) => tls.ca_certificate(Certificate::from_pem(read(ca).await?)),
                None => tls.with_enabled_roots(),
            };
            if let Some((certificate, key)) = &options.certificate {
                tls = tls.identity(Identity::from_pem(
                    read(certificate).await?,
                    read(key).await?,
                ));
            }
            connect = connect.with_tls(tls);
        }
        Ok(connect)
    }
}

async fn read(path: &Path) -> Result<Vec<u8>, String> {
    tokio::fs::read(path)
        .await
        .map_err(|error| format!("cannot read {}: {error}", path.display()))
}
