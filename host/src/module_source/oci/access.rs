//! Which servers modules are pulled from, and through which connections.

use std::time::Duration;

use reqwest::{Client, Url};

use super::client::RegistryOptions;
use crate::network::{ClientOptions, Clients, NetworkError, authority};

/// How long a registry may take to be connected to.
const CONNECT: Duration = Duration::from_secs(10);
/// The trust domain of all pulls.
const DOMAIN: &str = "modules";

/// How registries are reached. All pulls share the connections: a login is part of a request, and never of a connection.
pub(super) struct Access {
    clients: Clients,
    /// As [`authority`] writes them.
    plain_http: Vec<String>,
}

impl Access {
    pub fn new(options: &RegistryOptions) -> Self {
        let authorities = options.ca.iter();
        let authorities = authorities.flat_map(|authority| authority.certificates());
        let plain = options.plain_http.iter();
        let plain = plain.filter_map(|server| Url::parse(&format!("http://{server}/")).ok());
        Self {
            clients: Clients::new(ClientOptions {
                reach: options.reach.clone(),
                setting: "registries.inner_hosts",
                authorities: authorities.cloned().collect(),
                customize: |builder| {
                    builder
                        .connect_timeout(CONNECT)
                        .user_agent(concat!("configurator/", env!("CARGO_PKG_VERSION")))
                },
                ..ClientOptions::default()
            }),
            plain_http: plain.map(|url| authority(&url)).collect(),
        }
    }

    /// Whether the operator permits this URL, which has no TLS.
    pub fn is_plain(&self, url: &Url) -> bool {
        url.scheme() == "http" && self.plain_http.contains(&authority(url))
    }

    /// The client for the server of a URL.
    ///
    /// # Errors
    /// As [`Clients::client`].
    pub fn client(&self, url: &Url) -> Result<Client, NetworkError> {
        self.clients.client(DOMAIN, url)
    }
}
