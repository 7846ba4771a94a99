//! Exchanges with the nodes of Vault.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use reqwest::header::{HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Certificate, Method, Url};
use rustls::crypto::CryptoProvider;
use serde::Deserialize;

use super::options::VaultOptions;
use super::trouble::{Cause, Said, Trouble};
use crate::sinks::throttle::Throttle;

/// The most bytes of an answer. The longest value has an eighth of that, and Vault writes some characters as six.
const MAX_ANSWER: usize = 8 << 20;
/// The most characters of what a server says that are shown.
const MAX_SAID: usize = 300;
/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often one request is sent on to the node that another names.
const MAX_REDIRECTS: u32 = 3;

/// Why there is no client of Vault.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// No address is given.
    #[error("vault: no address is given; set `addresses`, as in `https://vault.example.com:8200`")]
    NoAddress,
    /// An address cannot be used.
    #[error(
        "vault: {address:?} is no address of a server; write it as in `https://vault.example.com:8200`"
    )]
    Address {
        /// The address.
        address: String,
    },
    /// A path cannot be one in Vault.
    #[error(
        "vault: the {setting} {path:?} is no path: write segments of printable characters, with single slashes between them"
    )]
    Path {
        /// The setting.
        setting: &'static str,
        /// Its value.
        path: String,
    },
    /// The namespace cannot be sent.
    #[error("vault: the namespace {0:?} cannot be sent in a header")]
    Namespace(String),
    /// The credential is not given, or twice.
    #[error("vault: give either `{setting}` or `{setting}_file`")]
    Credential {
        /// The setting.
        setting: &'static str,
    },
    /// The timeout is none.
    #[error("vault: `timeout_seconds` must be at least 1")]
    Timeout,
    /// The file of the authority cannot be read.
    #[error("vault: the authority {path} cannot be read: {source}", path = path.display())]
    ReadCa {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file of the authority holds no certificate.
    #[error("vault: the authority {path} holds no certificate in PEM", path = path.display())]
    Ca {
        /// The file.
        path: PathBuf,
    },
    /// The client cannot be made.
    #[error("vault: the client cannot be made: {0}")]
    Client(#[source] reqwest::Error),
    /// The operating system gave no random bytes.
    #[error("vault: {0}")]
    Random(#[source] crate::sinks::secretstore::KeyError),
}

/// Sends requests to the nodes.
pub struct Client {
    http: reqwest::Client,
    addresses: Vec<Url>,
    namespace: Option<HeaderValue>,
    timeout: Duration,
    /// The node that answered last.
    preferred: Mutex<Option<Url>>,
    /// Of each node that was ever spoken to.
    throttles: Mutex<HashMap<Url, Arc<Throttle>>>,
    max_retry_after: Duration,
}

/// What is sent.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// GET or POST.
    pub method: &'a Method,
    /// Below `/v1/`, ready for a URL.
    pub path: &'a str,
    /// Who asks.
    pub token: Option<&'a HeaderValue>,
    /// The JSON that goes with it.
    pub body: Option<&'a str>,
}

/// An answer of Vault.
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
    /// Whose it is, as messages show it.
    address: String,
    retry_after: Option<Duration>,
    location: Option<String>,
    /// Of the request: not shown, should the answer repeat it.
    token: Option<HeaderValue>,
}

/// What Vault says of itself in an answer that is no success.
#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    errors: Vec<String>,
    initialized: Option<bool>,
    sealed: Option<bool>,
}

impl Client {
    /// A client with these options. It speaks to nobody yet.
    pub fn new(options: &VaultOptions) -> Result<Self, VaultError> {
        // Without one the client would panic.
        if CryptoProvider::get_default().is_none() {
            // An error says that somebody else has just installed theirs.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        if options.addresses.is_empty() {
            return Err(VaultError::NoAddress);
        }
        if options.timeout_seconds == 0 {
            return Err(VaultError::Timeout);
        }
        let addresses = options
            .addresses
            .iter()
            .map(|address| read_address(address))
            .collect::<Result<Vec<Url>, _>>()?;
        let namespace = options
            .namespace
            .as_deref()
            .filter(|namespace| !namespace.is_empty())
            .map(|namespace| {
                HeaderValue::from_str(namespace)
                    .map_err(|_| VaultError::Namespace(namespace.to_owned()))
            })
            .transpose()?;
        let mut http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .referer(false)
            // On a connection that many requests share, one that hangs would stop all, until TCP gives it up.
            .http1_only()
            .connect_timeout(CONNECT_TIMEOUT.min(options.timeout()))
            .timeout(options.timeout());
        if let Some(path) = &options.ca {
            let pem = std::fs::read(path).map_err(|source| VaultError::ReadCa {
                path: path.clone(),
                source,
            })?;
            let certificates = Certificate::from_pem_bundle(&pem)
                .ok()
                .filter(|certificates| !certificates.is_empty())
                .ok_or_else(|| VaultError::Ca { path: path.clone() })?;
            http = http.tls_certs_only(certificates);
        }
        Ok(Self {
            http: http.build().map_err(VaultError::Client)?,
            addresses,
            namespace,
            timeout: options.timeout(),
            preferred: Mutex::new(None),
            throttles: Mutex::default(),
            max_retry_after: options.max_retry_after,
        })
    }

    /// Sends a request to the node that answered last, or else to the others, until one takes it. What a node may have
    /// begun is not sent to another.
    pub async fn send(&self, request: Request<'_>) -> Result<Reply, Trouble> {
        let mut nodes: VecDeque<Url> = self.nodes().into();
        let mut troubles = Vec::new();
        let mut redirects = 0;
        while let Some(node) = nodes.pop_front() {
            match self.send_to(&node, request).await {
                Ok(reply) if matches!(reply.status, 307 | 308) && redirects < MAX_REDIRECTS => {
                    match self.redirected(&node, &reply, request.path) {
                        Ok(active) => {
                            redirects += 1;
                            nodes.retain(|other| *other != active);
                            nodes.push_front(active);
                        }
                        Err(trouble) => troubles.push(trouble),
                    }
                }
                Ok(reply) if !reply.is_success() && reply.trouble().is_of_the_node() => {
                    troubles.push(reply.trouble());
                }
                Ok(reply) => {
                    *self.preferred() = Some(node);
                    return Ok(reply);
                }
                Err(trouble) if trouble.is_of_the_node() => troubles.push(trouble),
                Err(trouble) => {
                    self.turn_from(&node);
                    return Err(trouble);
                }
            }
        }
        Err(together(troubles))
    }

    /// Asks each node how it is, until one can be used.
    pub async fn probe(&self) -> Result<(), Trouble> {
        let health = Request {
            method: &Method::GET,
            path: "sys/health",
            token: None,
            body: None,
        };
        let mut troubles = Vec::new();
        for node in self.nodes() {
            match self.send_to(&node, health).await {
                // Active; a standby, which names the active one; a performance standby.
                Ok(reply) if matches!(reply.status, 200 | 429 | 473) => return Ok(()),
                Ok(reply) => troubles.push(reply.trouble()),
                Err(trouble) => troubles.push(trouble),
            }
        }
        Err(together(troubles))
    }

    /// The nodes in the order in which they are tried.
    fn nodes(&self) -> Vec<Url> {
        let preferred = self.preferred().clone();
        let others = self
            .addresses
            .iter()
            .filter(|address| Some(*address) != preferred.as_ref());
        preferred.iter().chain(others).cloned().collect()
    }

    fn preferred(&self) -> MutexGuard<'_, Option<Url>> {
        self.preferred
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn throttle(&self, node: &Url) -> Arc<Throttle> {
        let mut throttles = self
            .throttles
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let throttle = throttles.entry(node.clone());
        throttle
            .or_insert_with(|| Arc::new(Throttle::new(self.max_retry_after)))
            .clone()
    }

    /// The next request goes to another node first.
    fn turn_from(&self, node: &Url) {
        let next = self
            .addresses
            .iter()
            .position(|address| address == node)
            .map_or(0, |at| at + 1);
        *self.preferred() = self.addresses.get(next).cloned();
    }

    async fn send_to(&self, node: &Url, request: Request<'_>) -> Result<Reply, Trouble> {
        let address = shown(node);
        let throttle = self.throttle(node);
        if let Some((left, why)) = throttle.left() {
            return Err(Trouble {
                cause: Cause::Throttled,
                text: format!("{why}; it has asked to be left alone for now"),
                retry_after: Some(left),
            });
        }
        let mut url = node.clone();
        url.set_path(&format!(
            "{}/v1/{}",
            node.path().trim_end_matches('/'),
            request.path
        ));
        let mut outgoing = self
            .http
            .request(request.method.clone(), url)
            // Agents and proxies of Vault can be told to demand this, as a guard against forged requests.
            .header("X-Vault-Request", "true");
        if let Some(token) = request.token {
            outgoing = outgoing.header("X-Vault-Token", token);
        }
        // Health is asked of the node itself, which has it in the root namespace alone.
        if let Some(namespace) = self
            .namespace
            .as_ref()
            .filter(|_| request.path != "sys/health")
        {
            outgoing = outgoing.header("X-Vault-Namespace", namespace);
        }
        if let Some(body) = request.body {
            outgoing = outgoing
                .header("Content-Type", "application/json")
                .body(body.to_owned());
        }
        let mut response = outgoing
            .send()
            .await
            .map_err(|error| self.failed(&address, error))?;
        let header = |name| {
            let value: Option<&HeaderValue> = response.headers().get(name);
            value
                .and_then(|value| value.to_str().ok())
                .map(str::to_owned)
        };
        let retry_after = header(RETRY_AFTER)
            .and_then(|seconds| seconds.trim().parse().ok())
            .map(|seconds| Duration::from_secs(seconds).min(self.max_retry_after));
        let location = header(LOCATION);
        let status = response.status().as_u16();
        let mut reply = Reply {
            status,
            body: Vec::new(),
            address,
            retry_after,
            location,
            token: request.token.cloned(),
        };
        let read = self.receive(&mut response, &mut reply).await;
        throttle.note(status, retry_after, || reply.trouble().text);
        read.map(|()| reply)
    }

    /// Reads the body.
    async fn receive(
        &self,
        response: &mut reqwest::Response,
        reply: &mut Reply,
    ) -> Result<(), Trouble> {
        let address = &reply.address;
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.failed(address, error))?
        {
            if reply.body.len() + chunk.len() > MAX_ANSWER {
                return Err(Trouble {
                    cause: Cause::TooLong,
                    text: format!("Vault at {address} answers with more than {MAX_ANSWER} bytes"),
                    retry_after: None,
                });
            }
            reply.body.extend_from_slice(&chunk);
        }
        Ok(())
    }

    /// The node that a standby names. The token goes with the request, so it must be a node that the operator has named,
    /// or one that a node who has shown a certificate names, and who has to show one as well. Only where it is counts:
    /// what is asked of it is what was asked before.
    fn redirected(&self, node: &Url, reply: &Reply, path: &str) -> Result<Url, Trouble> {
        let refused = |why: String| Trouble {
            cause: Cause::Redirect,
            text: format!("Vault at {} {why}", reply.address),
            retry_after: reply.retry_after,
        };
        let location = reply.location.as_deref().unwrap_or_default();
        let named = node
            .join(location)
            .ok()
            .and_then(|url| base_of(&url, path))
            .filter(|active| active != node)
            .ok_or_else(|| refused("sends requests on, and not to an active node".into()))?;
        let is_safe = node.scheme() == "https" && named.scheme() == "https";
        if is_safe || self.addresses.contains(&named) {
            Ok(named)
        } else {
            Err(refused(format!(
                "is a standby, and the active node at {} may not be sent the token: use https, or list it in `addresses`",
                shown(&named)
            )))
        }
    }

    fn failed(&self, address: &str, error: reqwest::Error) -> Trouble {
        let (cause, text) = if error.is_connect() {
            let why = causes(error);
            (
                Cause::Connect,
                format!("Vault at {address} cannot be reached: {why}"),
            )
        } else if error.is_timeout() {
            let timeout = self.timeout;
            (
                Cause::Timeout,
                format!("Vault at {address} did not answer within {timeout:?}"),
            )
        } else {
            let why = causes(error);
            (
                Cause::Broken,
                format!("Vault at {address} broke off: {why}"),
            )
        };
        Trouble {
            cause,
            text,
            retry_after: None,
        }
    }
}

impl Reply {
    /// Whether this is an answer of success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Reads the body.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Trouble> {
        // The error could show a part of the body.
        serde_json::from_slice(&self.body).map_err(|_| self.unreadable())
    }

    /// The trouble of an answer that Vault does not give.
    pub fn unreadable(&self) -> Trouble {
        Trouble {
            cause: Cause::Unreadable,
            text: format!(
                "Vault at {} answers {} with something that is not Vault's",
                self.address, self.status
            ),
            retry_after: self.retry_after,
        }
    }

    /// What the text of the answer adds to its status.
    pub fn said(&self) -> Said {
        Said::of(&self.errors(self.told().as_ref()))
    }

    fn told(&self) -> Option<Told> {
        serde_json::from_slice(&self.body).ok()
    }

    /// Its errors in one line.
    fn errors(&self, told: Option<&Told>) -> String {
        let Some(told) = told else {
            return String::new();
        };
        let errors = told.errors.join("; ");
        let words: Vec<&str> = errors.split_whitespace().collect();
        let errors = words.join(" ").replace("1 error occurred: * ", "");
        match self.token.as_ref().and_then(|token| token.to_str().ok()) {
            Some(token) => errors.replace(token, "…"),
            None => errors,
        }
    }

    /// The trouble of an answer that is no success.
    pub fn trouble(&self) -> Trouble {
        let told = self.told();
        let errors = self.errors(told.as_ref());
        let said = Said::of(&errors);
        let is_sealed = told.as_ref().and_then(|told| told.sealed);
        let is_initialised = told.as_ref().and_then(|told| told.initialized);
        let address = &self.address;
        let how = match self.status {
            472 => "is a disaster-recovery replica, which serves no requests".into(),
            _ if is_initialised == Some(false) => {
                "is not initialised: initialise it with `vault operator init`".into()
            }
            503 if is_sealed == Some(true) || errors.contains("is sealed") => {
                "is sealed: unseal it with `vault operator unseal`".into()
            }
            _ if said == Said::NoActiveNode => "is a standby, and there is no active node".into(),
            status if told.is_none() => format!("answers {status}, and not as Vault does"),
            status if errors.is_empty() => format!("answers {status}"),
            status => {
                let errors: String = errors.chars().take(MAX_SAID).collect();
                format!("answers {status}: {errors}")
            }
        };
        Trouble {
            cause: Cause::Status(self.status, said),
            text: format!("Vault at {address} {how}"),
            retry_after: self.retry_after,
        }
    }
}

/// One trouble for that of several nodes. What a node has said counts before what none could say.
fn together(troubles: Vec<Trouble>) -> Trouble {
    let texts: Vec<&str> = troubles
        .iter()
        .map(|trouble| trouble.text.as_str())
        .collect();
    let text = texts.join("; ");
    let retry_after = troubles
        .iter()
        .filter_map(|trouble| trouble.retry_after)
        .min();
    let cause = troubles
        .iter()
        .map(|trouble| trouble.cause)
        .find(|cause| matches!(cause, Cause::Status(_, _)))
        .or_else(|| troubles.first().map(|trouble| trouble.cause))
        .unwrap_or(Cause::Connect);
    Trouble {
        cause,
        text,
        retry_after,
    }
}

fn read_address(address: &str) -> Result<Url, VaultError> {
    let refused = || VaultError::Address {
        // What a URL holds besides its host may be secret.
        address: address
            .split_once('@')
            .map_or(address, |_| "…@…")
            .to_owned(),
    };
    let url: Url = address.trim().parse().map_err(|_| refused())?;
    let is_plain = matches!(url.scheme(), "http" | "https")
        && url.has_host()
        && url.username().is_empty()
        && url.password().is_none()
        && url.query().is_none()
        && url.fragment().is_none();
    if !is_plain {
        return Err(refused());
    }
    let is_loopback = match url.host_str() {
        Some("localhost" | "[::1]") => true,
        Some(host) => host.starts_with("127."),
        None => false,
    };
    if url.scheme() == "http" && !is_loopback {
        tracing::warn!(
            address = shown(&url),
            "the connection to Vault is not encrypted: whoever listens sees tokens and secrets"
        );
    }
    let mut url = url;
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}

/// The node of a URL that asks for this path. A node writes the path in its own way.
fn base_of(url: &Url, path: &str) -> Option<Url> {
    let decoded = |text| percent_decode_str(text).decode_utf8().ok();
    let asked = decoded(url.path())?;
    let base = asked.strip_suffix(&*decoded(path)?)?.strip_suffix("/v1/")?;
    let mut node = url.clone();
    node.set_path(base);
    node.set_query(None);
    node.set_fragment(None);
    let is_plain = node.username().is_empty() && node.password().is_none();
    (is_plain && matches!(node.scheme(), "http" | "https")).then_some(node)
}

/// A node as messages show it.
fn shown(node: &Url) -> String {
    let host = node.host_str().unwrap_or_default();
    match node.port() {
        Some(port) => format!("{}://{host}:{port}", node.scheme()),
        None => format!("{}://{host}", node.scheme()),
    }
}

fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut parts: Vec<String> = Vec::new();
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    while let Some(current) = cause {
        let part = current.to_string();
        if parts.last() != Some(&part) {
            parts.push(part);
        }
        cause = current.source();
    }
    parts.join(": ")
}
