//! HTTP clients whose connections are pooled, and checked when they are made.

use std::collections::HashMap;
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, ClientBuilder, Url};
use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls_platform_verifier::Verifier;
use tokio::time::Instant;

use super::address::AddressClass;
use super::names::{NameResolver, SystemNames};
use super::{DEFAULT_IDLE_CONNECTIONS, DEFAULT_IDLE_TIMEOUT, DEFAULT_SERVERS, Reach};

/// How often an HTTP/2 connection on which something is awaited is pinged, and how long the answer may take.
const PING: Duration = Duration::from_secs(4);

/// Clients by trust domain and server.
///
/// # Guarantees
/// - Each connection goes to an address that was checked for exactly this host and port when the connection was made.
///   A request that reuses a connection goes to the address that was checked.
/// - A trust domain never uses a connection or a resolved name of another one.
/// - A client follows no redirects, so each URL is checked on its own.
pub(crate) struct Clients {
    options: Arc<ClientOptions>,
    /// Reading the system's certificates takes milliseconds, so all clients share them.
    tls: Mutex<Option<ClientConfig>>,
    pools: Mutex<Pools>,
}

/// How clients are made.
pub(crate) struct ClientOptions {
    /// The addresses that may be connected to.
    pub reach: Reach,
    /// The setting that permits inner addresses, for messages.
    pub setting: &'static str,
    /// Resolves names where `reach` is not [`Reach::Anywhere`].
    pub names: Arc<dyn NameResolver>,
    /// Authorities that are trusted beside those of the system.
    pub authorities: Vec<CertificateDer<'static>>,
    /// The most servers of one trust domain that connections are kept to. One more displaces the least recently used.
    pub servers: usize,
    /// The most idle connections to one server.
    pub idle_connections: usize,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
    /// Changes each client.
    pub customize: fn(ClientBuilder) -> ClientBuilder,
}

/// Why a server cannot be connected to. No text names the server or an address.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NetworkError {
    #[error(
        "not permitted by the operator (setting {setting}); the log of the runtime has the reason"
    )]
    NotPermitted { setting: &'static str },
    #[error("the name cannot be resolved: {0}")]
    Unresolved(#[source] std::io::Error),
    #[error("the name has no address")]
    NoAddress,
    #[error("TLS cannot be used: {0}")]
    Tls(#[source] rustls::Error),
    #[error(transparent)]
    Client(reqwest::Error),
}

struct Pools {
    domains: HashMap<String, Domain>,
    swept: Instant,
}

/// The clients of one trust domain, the most recently used last.
struct Domain {
    clients: Vec<(String, Client)>,
    used: Instant,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            reach: Reach::default(),
            setting: "",
            names: Arc::new(SystemNames),
            authorities: Vec::new(),
            servers: DEFAULT_SERVERS,
            idle_connections: DEFAULT_IDLE_CONNECTIONS,
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
            customize: |builder| builder,
        }
    }
}

impl NetworkError {
    /// The reason within an error of a client.
    pub fn within(error: &reqwest::Error) -> Option<&Self> {
        let mut cause = error.source();
        while let Some(current) = cause {
            if let Some(found) = current.downcast_ref() {
                return Some(found);
            }
            cause = current.source();
        }
        None
    }
}

/// The host of a URL, with its port unless it is the default port of the scheme.
pub(crate) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

impl Clients {
    pub fn new(options: ClientOptions) -> Self {
        // Without one, a client cannot be made. An error says that another part has just installed one.
        if CryptoProvider::get_default().is_none() {
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        Self {
            options: Arc::new(options),
            tls: Mutex::default(),
            pools: Mutex::new(Pools {
                domains: HashMap::new(),
                swept: Instant::now(),
            }),
        }
    }

    /// The client for requests of a trust domain to the server of a URL.
    ///
    /// # Errors
    /// When the URL has an address that may not be connected to, or TLS cannot be used. A name is checked when a connection is
    /// made; the request then fails, and [`NetworkError::within`] has the reason.
    pub fn client(&self, domain: &str, url: &Url) -> Result<Client, NetworkError> {
        let guard = Guard {
            options: self.options.clone(),
            domain: domain.to_owned(),
            authority: authority(url),
        };
        // An address in a URL is connected to without being resolved.
        let host = url.host_str().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = host.parse() {
            guard.check(address)?;
        }
        let server = url.origin().ascii_serialization();
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.sweep(self.options.idle_timeout);
        let known = pools.domains.entry(domain.to_owned());
        let known = known.or_insert_with(|| Domain {
            clients: Vec::new(),
            used: Instant::now(),
        });
        known.used = Instant::now();
        let found = known.clients.iter().position(|(name, _)| *name == server);
        let entry = match found {
            Some(position) => known.clients.remove(position),
            None => (server, self.build(guard)?),
        };
        let client = entry.1.clone();
        known.clients.push(entry);
        if known.clients.len() > self.options.servers {
            known.clients.remove(0);
        }
        Ok(client)
    }

    fn build(&self, guard: Guard) -> Result<Client, NetworkError> {
        let builder = Client::builder()
            .tls_backend_preconfigured(self.tls()?)
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .pool_idle_timeout(self.options.idle_timeout)
            .pool_max_idle_per_host(self.options.idle_connections)
            .http2_keep_alive_interval(PING)
            .http2_keep_alive_timeout(PING);
        let builder = match self.options.reach {
            Reach::Public(_) => builder.no_proxy().dns_resolver(guard),
            Reach::Anywhere => builder,
        };
        let client = (self.options.customize)(builder).build();
        client.map_err(NetworkError::Client)
    }

    fn tls(&self) -> Result<ClientConfig, NetworkError> {
        let mut known = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known {
            return Ok(known.clone());
        }
        let provider = CryptoProvider::get_default().cloned();
        let provider =
            provider.unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
        let authorities = self.options.authorities.iter().cloned();
        let verifier = Verifier::new_with_extra_roots(authorities, provider.clone());
        let verifier = Arc::new(verifier.map_err(NetworkError::Tls)?);
        let config = ClientConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions();
        let mut config = config
            .map_err(NetworkError::Tls)?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        *known = Some(config.clone());
        Ok(config)
    }
}

impl Pools {
    /// Drops the clients of domains that have not been used for so long that no idle connection is left.
    fn sweep(&mut self, idle: Duration) {
        if self.swept.elapsed() > idle {
            self.domains
                .retain(|_, domain| domain.used.elapsed() <= idle);
            self.swept = Instant::now();
        }
    }
}

/// Checks the addresses of one server for one trust domain.
#[derive(Clone)]
struct Guard {
    options: Arc<ClientOptions>,
    domain: String,
    authority: String,
}

impl Guard {
    fn check(&self, address: IpAddr) -> Result<(), NetworkError> {
        let class = AddressClass::of(address);
        let is_permitted = match &self.options.reach {
            Reach::Anywhere => true,
            Reach::Public(inner) => {
                class == AddressClass::Public
                    || inner
                        .iter()
                        .any(|host| host.permits(&self.authority, address))
            }
        };
        if is_permitted {
            return Ok(());
        }
        // Only the operator learns the address: it would map the inner network.
        tracing::warn!(
            domain = self.domain,
            host = self.authority,
            %address,
            %class,
            "refused to connect to an address that is not public; the setting {} can permit it",
            self.options.setting
        );
        Err(NetworkError::NotPermitted {
            setting: self.options.setting,
        })
    }

    /// Resolves a name to all its addresses. One address that is not permitted refuses the name, so that no mix of addresses
    /// gets a forbidden one through.
    async fn resolve(&self, name: &str) -> Result<Vec<SocketAddr>, NetworkError> {
        let found = self.options.names.resolve(name).await;
        let found = found.map_err(NetworkError::Unresolved)?;
        if found.is_empty() {
            return Err(NetworkError::NoAddress);
        }
        found.iter().try_for_each(|address| self.check(*address))?;
        // The client fills in the port.
        Ok(found
            .into_iter()
            .map(|address| (address, 0).into())
            .collect())
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let resolved: Result<Addrs, Box<dyn Error + Send + Sync>> =
                match guard.resolve(name.as_str()).await {
                    Ok(found) => Ok(Box::new(found.into_iter())),
                    Err(error) => Err(Box::new(error)),
                };
            resolved
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn clients_are_kept_for_the_last_servers_and_as_long_as_they_have_connections() {
        let clients = Clients::new(ClientOptions::default());
        let kept = || {
            let pools = clients.pools.lock().unwrap();
            let mut kept: Vec<(String, Vec<String>)> = pools
                .domains
                .iter()
                .map(|(name, domain)| {
                    let servers = domain.clients.iter().map(|(server, _)| server.clone());
                    (name.clone(), servers.collect())
                })
                .collect();
            kept.sort();
            kept
        };
        let ask = |domain: &str, url: &str| {
            clients.client(domain, &url.parse().unwrap()).unwrap();
        };
        for number in 0..=DEFAULT_SERVERS {
            ask("a", &format!("https://s{number}.example.com/"));
        }
        ask("a", "https://s1.example.com/other");
        let [(_, servers)] = &*kept() else {
            panic!("{:?}", kept());
        };
        assert_eq!(servers.len(), DEFAULT_SERVERS);
        assert_eq!(servers.last().unwrap(), "https://s1.example.com");
        assert!(!servers.contains(&"https://s0.example.com".to_owned()));

        tokio::time::advance(DEFAULT_IDLE_TIMEOUT * 2).await;
        ask("b", "https://example.com/");
        let only = ("b".to_owned(), vec!["https://example.com".to_owned()]);
        assert_eq!(kept(), [only]);
    }
}
