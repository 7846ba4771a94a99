//! HTTP endpoints as a sink.
//!
//! Which hosts a request may go to is a matter of the Configurator's capabilities and the host's ceiling. This sink
//! holds what neither can express: a name is resolved once and the connection goes to what was found; an address of
//! this machine, of its own network's management or of no network at all is refused unless the operator lists it;
//! no redirect is followed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use async_trait::async_trait;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::capability::host_of;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::glob;
use configurator_core::request::{HttpRequest, Operation, SinkName};
use configurator_core::result::{Answer, HttpResponse};
use reqwest::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue};
use rustls::crypto::CryptoProvider;

use super::{Scope, Sink, is_safe, misrouted};

/// How long one attempt may take when the request does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes of an answer's body.
const MAX_BODY: usize = 4 << 20;

/// Sends requests to HTTP endpoints.
#[derive(Debug, Clone)]
pub struct HttpSink {
    options: HttpOptions,
}

/// What the operator of a host allows.
#[derive(Debug, Clone, Default)]
pub struct HttpOptions {
    /// Hosts, with `:port` where it is not the scheme's own, that may have a private, loopback or link-local
    /// address; `*` stands for any run of characters.
    pub inner_hosts: Vec<String>,
}

impl HttpSink {
    /// A sink with these options.
    ///
    /// TLS is done by the provider that the process has installed; where there is none, by `ring`, which is then installed.
    #[must_use]
    pub fn new(options: HttpOptions) -> Self {
        // Without one the client would panic.
        if CryptoProvider::get_default().is_none() {
            // An error says that somebody else has just installed theirs.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        Self { options }
    }

    async fn run(&self, request: &HttpRequest, scope: &Scope) -> Result<Answer, Fault> {
        // No message shows more of a URL than its host: the rest may hold credentials.
        let url: reqwest::Url = request
            .url
            .parse()
            .map_err(|error| generic(format!("the URL cannot be read: {error}")))?;
        // What the capabilities were checked against must be what the connection goes to.
        let checked = host_of(&request.url).ok_or_else(|| {
            generic("the URL must be http or https, with a host and without credentials".into())
        })?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let seen = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.clone(),
        };
        if checked != seen {
            return Err(generic(format!(
                "the URL does not name its host plainly: {checked:?} is {seen:?}"
            )));
        }
        let port = url.port_or_known_default().unwrap_or(443);
        let addresses = self.resolve(&seen, &host, port).await?;
        let method = reqwest::Method::from_bytes(request.method.as_bytes())
            .map_err(|_| generic(format!("{:?} is no HTTP method", request.method)))?;
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .resolve_to_addrs(&host, &addresses)
            .build()
            .map_err(|error| unavailable(&seen, error))?;
        let mut outgoing = client.request(method, url);
        for (name, value) in &request.headers {
            let (name, value) = header(request, name, value)?;
            outgoing = outgoing.header(name, value);
        }
        if !request
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("idempotency-key"))
        {
            outgoing = outgoing.header("idempotency-key", &scope.idempotency_key);
        }
        if let Some(body) = &request.body {
            outgoing = outgoing.body(body.clone());
        }
        let mut response = outgoing.send().await.map_err(|error| {
            if error.is_builder() {
                Fault {
                    kind: FaultKind::ResourceGeneric,
                    ..unavailable(&seen, error)
                }
            } else {
                unavailable(&seen, error)
            }
        })?;
        let status = response.status().as_u16();
        let headers = response
            .headers()
            .iter()
            .map(|(name, value)| {
                (
                    name.as_str().to_owned(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
            .collect();
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| unavailable(&seen, error))?
        {
            if body.len() + chunk.len() > MAX_BODY {
                return Err(generic(format!(
                    "the answer of {seen} has more than {MAX_BODY} bytes"
                )));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer {
            query_objects: Vec::new(),
            http_response: Some(HttpResponse {
                status,
                headers,
                body,
            }),
            changed: !is_safe(&request.method),
        })
    }

    /// Every address of a host, each of which may be connected to.
    async fn resolve(&self, seen: &str, host: &str, port: u16) -> Result<Vec<SocketAddr>, Fault> {
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let found: Vec<SocketAddr> = tokio::net::lookup_host((name, port))
            .await
            .map_err(|error| {
                Fault::new(
                    FaultKind::HttpUnavailable,
                    format!("{host} cannot be resolved: {error}"),
                )
            })?
            .collect();
        let may_be_inner = self
            .options
            .inner_hosts
            .iter()
            .any(|pattern| glob::matches(&pattern.to_ascii_lowercase(), seen));
        let refused = found
            .iter()
            .find(|address| !may_be_inner && is_inner(address.ip()));
        if let Some(address) = refused {
            return Err(Fault::new(
                FaultKind::ResourcePermission,
                format!(
                    "{seen} has the address {}, which is not public; the operator of the host must list {seen} in the setting http_inner_hosts",
                    address.ip()
                ),
            ));
        }
        if found.is_empty() {
            return Err(Fault::new(
                FaultKind::HttpUnavailable,
                format!("{host} has no address"),
            ));
        }
        Ok(found)
    }
}

/// A header as it is sent. Messages name it and never show its value.
fn header(
    request: &HttpRequest,
    name: &str,
    value: &str,
) -> Result<(HeaderName, HeaderValue), Fault> {
    let found = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| generic(format!("{name:?} is no name of a header")))?;
    let value = HeaderValue::from_str(value).map_err(|_| {
        generic(format!(
            "the header `{found}` has a value with a control character"
        ))
    })?;
    if found == HOST {
        return Err(generic(
            "a request cannot set the header `host`: it follows from the URL".into(),
        ));
    }
    // The client would cut the body to this length, or wait for the rest of it.
    let length = request.body.as_ref().map_or(0, Vec::len);
    if found == CONTENT_LENGTH && value != length.to_string() {
        return Err(generic(format!(
            "the header `content-length` is not the length of the body, {length}"
        )));
    }
    Ok((found, value))
}

/// Whether an address belongs to this machine, to a private network, or to nobody.
fn is_inner(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_inner_v4(v4),
        IpAddr::V6(v6) => match (v6.to_ipv4_mapped(), v6.segments()) {
            (Some(v4), _) => is_inner_v4(v4),
            // Translated, tunnelled, or written as IPv6; `::` and `::1` are among the last.
            (
                None,
                [0x64, 0xff9b, 0, 0, 0, 0, high, low]
                | [0x2002, high, low, ..]
                | [0, 0, 0, 0, 0, 0, high, low],
            ) => {
                let [a, b] = high.to_be_bytes();
                let [c, d] = low.to_be_bytes();
                is_inner_v4(Ipv4Addr::new(a, b, c, d))
            }
            // The prefix for translation within a network.
            (None, [0x64, 0xff9b, 1, ..]) => true,
            (None, [first, ..]) => {
                v6.is_multicast()
                    || first & 0xfe00 == 0xfc00
                    || first & 0xffc0 == 0xfe80
                    || first & 0xffc0 == 0xfec0
            }
        },
    }
}

fn is_inner_v4(v4: Ipv4Addr) -> bool {
    let [a, b, c, _] = v4.octets();
    v4.is_private()
        || v4.is_loopback()
        || v4.is_link_local()
        || v4.is_multicast()
        || a == 0
        || a >= 240
        || (a == 100 && b & 0xc0 == 64)
        || (a == 198 && b & 0xfe == 18)
        || [a, b, c] == [192, 0, 0]
}

fn unavailable(host: &str, error: reqwest::Error) -> Fault {
    let error = error.without_url();
    let mut message = format!("{host}: ");
    let mut cause: Option<&dyn std::error::Error> = Some(&error);
    let mut parts = Vec::new();
    while let Some(current) = cause {
        parts.push(current.to_string());
        cause = current.source();
    }
    message.push_str(&parts.join(": "));
    Fault::new(FaultKind::HttpUnavailable, message)
}

fn generic(message: String) -> Fault {
    Fault::new(FaultKind::ResourceGeneric, message)
}

#[async_trait]
impl Sink for HttpSink {
    async fn execute(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        let Operation::Http(request) = operation.operation() else {
            return Err(misrouted(operation, SinkName::Http));
        };
        let timeout = scope.timeout.unwrap_or(DEFAULT_TIMEOUT);
        tokio::time::timeout(timeout, self.run(request, scope))
            .await
            .unwrap_or_else(|_| {
                Err(Fault::new(
                    FaultKind::HttpUnavailable,
                    format!("{operation}: no answer within {timeout:?}"),
                ))
            })
    }

    async fn probe(&self) -> Result<(), Fault> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_public_are_known() {
        for inner in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "192.0.0.8",
            "198.19.0.1",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::101:101",
            "2002:7f00:1::1",
            "::7f00:1",
            "fec0::1",
        ] {
            assert!(is_inner(inner.parse().unwrap()), "{inner}");
        }
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "172.32.0.1",
            "2606:4700::1111",
            "64:ff9b::101:101",
            "192.0.1.1",
            "198.20.0.1",
            "2002:101:101::1",
        ] {
            assert!(!is_inner(public.parse().unwrap()), "{public}");
        }
    }
}
