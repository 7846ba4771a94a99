//! How etcd is reached.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How etcd is reached.
#[derive(Clone)]
pub struct EtcdOptions {
    /// The members, as in `https://10.0.0.1:2379`. Requests go to those that answer.
    pub endpoints: Vec<String>,
    /// What every key begins with. One cluster's hosts share a prefix; another cluster's hosts need another.
    pub prefix: String,
    /// The authority of the servers' certificates, in PEM. Default: the system's.
    pub ca: Option<PathBuf>,
    /// The certificate of this client and its key, in PEM.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// A user of etcd and their password.
    pub user: Option<(String, String)>,
    /// How long one request may take, and how long one that meets a fault is repeated.
    pub timeout: Duration,
}

impl Default for EtcdOptions {
    fn default() -> Self {
        Self {
            endpoints: Vec::new(),
            prefix: "configurator/".into(),
            ca: None,
            certificate: None,
            user: None,
            timeout: Duration::from_secs(5),
        }
    }
}

impl fmt::Debug for EtcdOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdOptions")
            .field("endpoints", &self.endpoints)
            .field("prefix", &self.prefix)
            .field("ca", &self.ca)
            .field("certificate", &self.certificate)
            .field("user", &self.user.as_ref().map(|(name, _)| name))
            .field("timeout", &self.timeout)
            .finish()
    }
}
