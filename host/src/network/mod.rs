//! The guard of outgoing HTTP: which addresses a host's name may lead to, and the clients that hold to it.
//!
//! Handlers and authors of Configurators choose URLs, and whoever runs a DNS zone chooses addresses. Every connection that
//! they can cause goes through `Clients`, which checks the address that is connected to.

mod address;
mod clients;
mod inner_host;
mod names;

use std::time::Duration;

pub use self::address::AddressClass;
pub(crate) use self::clients::{ClientOptions, Clients, NetworkError, authority};
pub use self::inner_host::{InnerHost, InnerHostError};
pub use self::names::{NameResolver, SystemNames};

/// Default number of servers of one trust domain that connections are kept to.
pub const DEFAULT_SERVERS: usize = 16;
/// The default of how many idle connections are kept to one server.
pub const DEFAULT_IDLE_CONNECTIONS: usize = 8;
/// The default of how long an idle connection is kept. Servers close idle connections too, common ones after 5 s, and a
/// request that meets such a close may have been received or not. So this side closes first.
pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// The addresses that may be connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// [Public](AddressClass::Public) addresses, and these hosts at the inner addresses that they may have. Connections
    /// are made directly: proxies that the environment names are not used, since a proxy would resolve names itself.
    Public(Vec<InnerHost>),
    /// Any address, also through the proxies that the environment names: for a person at their own machine.
    Anywhere,
}

impl Default for Reach {
    /// Public addresses only.
    fn default() -> Self {
        Self::Public(Vec::new())
    }
}
