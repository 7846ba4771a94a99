//! Requests to one registry: who asks is said where it has to be, and no answer is larger than it may be.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use oci_client::Reference;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Certificate, Client, Method, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::challenge::{Challenge, challenges};
use super::client::{RegistryError, RegistryOptions};
use super::login::{Login, Who};
use super::refusal::refusal;

/// How long a registry may take to be connected to.
const CONNECT: Duration = Duration::from_secs(10);
/// How long it may say nothing, unless it is being sent something large.
const SILENCE: Duration = Duration::from_secs(20);
/// The most bytes of a token, with what is said around it.
const MAX_TOKEN: usize = 256 << 10;

/// What is to be done with a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Right {
    Pull,
    Push,
}

impl Right {
    /// <https://distribution.github.io/distribution/spec/auth/scope/>.
    const fn actions(self) -> &'static str {
        match self {
            Self::Pull => "pull",
            Self::Push => "pull,push",
        }
    }
}

/// The way to one repository of a registry, for one who asks.
///
/// Tokens that a registry gives are kept in here, so nobody else's login is used by mistake.
pub(super) struct Transport {
    client: Client,
    /// `https://registry/v2/`.
    base: Url,
    repository: String,
    login: Login,
    /// As [`SILENCE`].
    silence: Duration,
    /// What was last said of who asks, and what for.
    said: Mutex<Option<(Right, Option<HeaderValue>)>>,
}

/// What a token server answers: <https://distribution.github.io/distribution/spec/auth/token/>.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl Transport {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// When this system lets nobody speak TLS, or the registry has a name that no URL may have.
    pub fn new(
        reference: &Reference,
        login: Login,
        options: &RegistryOptions,
    ) -> Result<Self, RegistryError> {
        // reqwest has none of its own.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let authorities = options.ca.iter();
        let certificates = authorities.flat_map(|authority| authority.certificates());
        let certificates: Vec<Certificate> = certificates
            .map(|certificate| Certificate::from_der(certificate))
            .collect::<Result<_, _>>()
            .map_err(failed)?;
        let client = Client::builder()
            .tls_certs_merge(certificates)
            .connect_timeout(CONNECT)
            .referer(false)
            .user_agent(concat!("configurator/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(failed)?;
        let registry = reference.resolve_registry();
        let is_plain = options.plain_http.iter().any(|plain| plain == registry);
        let scheme = if is_plain { "http" } else { "https" };
        let base = Url::parse(&format!("{scheme}://{registry}/v2/")).map_err(|error| {
            RegistryError::Refused(format!("{registry} is no registry: {error}"))
        })?;
        Ok(Self {
            client,
            base,
            repository: reference.repository().to_owned(),
            login,
            silence: SILENCE,
            said: Mutex::default(),
        })
    }

    pub const fn login(&self) -> &Login {
        &self.login
    }

    /// What is below the repository.
    pub fn url(&self, path: &str) -> Result<Url, RegistryError> {
        let path = format!("{}/{path}", self.repository);
        let url = self.base.join(&path);
        url.map_err(|error| RegistryError::Refused(format!("{path:?} is no path: {error}")))
    }

    /// Where an answer says that something goes on.
    pub fn location(answer: &Response) -> Result<Url, RegistryError> {
        let garbled = |why: &str| {
            RegistryError::Garbled(format!(
                "the registry takes an upload and {why} where it goes on"
            ))
        };
        let location = answer.headers().get(LOCATION);
        let location = location.ok_or_else(|| garbled("does not say"))?;
        let location = location.to_str().ok();
        let url = location.and_then(|location| answer.url().join(location).ok());
        url.ok_or_else(|| garbled("says in no way that can be read"))
    }

    /// Asks for something, with these headers.
    pub async fn ask(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
    ) -> Result<Response, RegistryError> {
        let sent = self.send(Right::Pull, &url, || {
            let request = self.client.request(method.clone(), url.clone());
            (request.headers(headers.clone()), Some(self.silence))
        });
        sent.await
    }

    /// Sends something, which may take long.
    pub async fn put(
        &self,
        method: Method,
        url: Url,
        body: bytes::Bytes,
        media_type: HeaderValue,
    ) -> Result<Response, RegistryError> {
        let sent = self.send(Right::Push, &url, || {
            let request = self.client.request(method.clone(), url.clone());
            let request = request.header(CONTENT_TYPE, media_type.clone());
            (request.body(body.clone()), None)
        });
        sent.await
    }

    /// Sends a request and says who asks; again when that was not enough. What is no success is an error.
    async fn send(
        &self,
        right: Right,
        url: &Url,
        request: impl Fn() -> (RequestBuilder, Option<Duration>),
    ) -> Result<Response, RegistryError> {
        let said = self.authorization(right).await?;
        let mut answer = self.send_once(url, request(), said.as_ref()).await?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            let challenges = challenges(answer.headers());
            let better = self.authorized(&challenges, right).await?;
            if better.is_some() && better != said {
                *self.said.lock().await = Some((right, better.clone()));
                answer = self.send_once(url, request(), better.as_ref()).await?;
            }
        }
        match answer.status().is_success() {
            true => Ok(answer),
            false => Err(refusal(answer).await),
        }
    }

    async fn send_once(
        &self,
        url: &Url,
        (request, silence): (RequestBuilder, Option<Duration>),
        said: Option<&HeaderValue>,
    ) -> Result<Response, RegistryError> {
        // Who asks is nobody's business but the registry's.
        let said = said.filter(|_| url.origin() == self.base.origin());
        let request = match said {
            Some(said) => request.header(AUTHORIZATION, said),
            None => request,
        };
        let Some(silence) = silence else {
            return request.send().await.map_err(failed);
        };
        let sent = tokio::time::timeout(silence, request.send()).await;
        sent.map_err(|_| silent())?.map_err(failed)
    }

    /// What is said of who asks: what was said before, or what the registry wants to be told first of all.
    async fn authorization(&self, right: Right) -> Result<Option<HeaderValue>, RegistryError> {
        let mut known = self.said.lock().await;
        if let Some((of, said)) = &*known
            && *of >= right
        {
            return Ok(said.clone());
        }
        let asked = (self.client.get(self.base.clone()), Some(self.silence));
        let answer = self.send_once(&self.base, asked, None).await?;
        let said = self
            .authorized(&challenges(answer.headers()), right)
            .await?;
        *known = Some((right, said.clone()));
        Ok(said)
    }

    /// What answers the first challenge that can be answered.
    async fn authorized(
        &self,
        challenges: &[Challenge],
        right: Right,
    ) -> Result<Option<HeaderValue>, RegistryError> {
        for challenge in challenges {
            match (challenge, self.login.who()) {
                (Challenge::Token { realm, service }, _) => {
                    return self.token(realm, service.as_deref(), right).await.map(Some);
                }
                (Challenge::Password, Who::User { name, password }) => {
                    let text = BASE64_STANDARD.encode(format!("{name}:{password}"));
                    return secret(&format!("Basic {text}")).map(Some);
                }
                (Challenge::Password, Who::Nobody | Who::Identity(_)) => {}
            }
        }
        Ok(None)
    }

    /// Gets a token: <https://distribution.github.io/distribution/spec/auth/token/>, and for what a login has been exchanged for,
    /// <https://distribution.github.io/distribution/spec/auth/oauth/>.
    async fn token(
        &self,
        realm: &str,
        service: Option<&str>,
        right: Right,
    ) -> Result<HeaderValue, RegistryError> {
        let strange =
            || RegistryError::Garbled("the registry names a token server that is none".to_owned());
        let mut url = Url::parse(realm).map_err(|_| strange())?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(strange());
        }
        let scope = format!("repository:{}:{}", self.repository, right.actions());
        let mut said = vec![("scope", scope.as_str())];
        said.extend(service.map(|service| ("service", service)));
        let request = match self.login.who() {
            Who::Identity(token) => {
                said.push(("grant_type", "refresh_token"));
                said.push(("client_id", "configurator"));
                said.push(("refresh_token", token));
                let mut form = Url::parse("http://form/").map_err(|_| strange())?;
                form.query_pairs_mut().extend_pairs(said);
                let form = form.query().unwrap_or_default().to_owned();
                let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
                let request = self.client.post(url).header(CONTENT_TYPE, kind);
                request.body(form)
            }
            who => {
                url.query_pairs_mut().extend_pairs(said);
                let request = self.client.get(url);
                match who {
                    Who::User { name, password } => request.basic_auth(name, Some(password)),
                    _ => request,
                }
            }
        };
        let answer = tokio::time::timeout(self.silence, request.send()).await;
        let answer = answer.map_err(|_| silent())?.map_err(failed)?;
        let is_exchange = matches!(self.login.who(), Who::Identity(_));
        match answer.status() {
            status if status.is_success() => {}
            // So it says that what was to be exchanged has had its day.
            StatusCode::BAD_REQUEST if is_exchange => return Err(RegistryError::Unauthorized),
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED if is_exchange => {
                return Err(RegistryError::Refused(
                    "the registry does not exchange identity tokens: it wants a login with name and password"
                        .to_owned(),
                ));
            }
            StatusCode::NOT_FOUND => return Err(strange()),
            _ => return Err(refusal(answer).await),
        }
        let text = read(answer, MAX_TOKEN).await?;
        // Nothing of what was answered is shown: it may be a token.
        let garbled =
            || RegistryError::Garbled("the registry's token server answers no token".to_owned());
        let token: Token = serde_json::from_slice(&text).map_err(|_| garbled())?;
        let token = token.token.or(token.access_token);
        let token = token.filter(|token| !token.is_empty());
        secret(&format!("Bearer {}", token.ok_or_else(garbled)?))
    }
}

/// A header that is not shown.
fn secret(text: &str) -> Result<HeaderValue, RegistryError> {
    let value = HeaderValue::from_str(text);
    let mut value = value.map_err(|_| {
        RegistryError::Garbled(
            "the registry's token server answers a token that no request can have".to_owned(),
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// The body of an answer, which has at most so many bytes.
pub(super) async fn read(answer: Response, limit: usize) -> Result<Vec<u8>, RegistryError> {
    match receive(answer, limit).await? {
        (body, true) => Ok(body),
        (_, false) => Err(RegistryError::Garbled(format!(
            "the registry answers more than the {limit} bytes that this may have"
        ))),
    }
}

/// The body of an answer up to this limit, and whether that is all of it.
pub(super) async fn receive(
    mut answer: Response,
    limit: usize,
) -> Result<(Vec<u8>, bool), RegistryError> {
    let mut body = Vec::new();
    loop {
        let chunk = tokio::time::timeout(SILENCE, answer.chunk()).await;
        let Some(chunk) = chunk.map_err(|_| silent())?.map_err(failed)? else {
            return Ok((body, true));
        };
        let room = limit.saturating_sub(body.len());
        if let Some(beyond) = chunk.get(..room)
            && chunk.len() > room
        {
            body.extend_from_slice(beyond);
            return Ok((body, false));
        }
        body.extend_from_slice(&chunk);
    }
}

fn silent() -> RegistryError {
    RegistryError::Unavailable(format!("it has said nothing for {} s", SILENCE.as_secs()))
}

/// Of a URL no more is shown than its host, which the name of the module has as well.
fn failed(error: reqwest::Error) -> RegistryError {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    RegistryError::Unavailable(text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::Notify;

    use super::*;

    #[test]
    fn a_token_that_no_header_can_have_is_no_token() {
        assert!(secret("Bearer a\nb").is_err());
        assert!(format!("{:?}", secret("Bearer a")).contains("Sensitive"));
    }

    /// Who answers no question, and takes an upload once this is said.
    async fn slow(go_on: Arc<Notify>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let go_on = go_on.clone();
                tokio::spawn(async move {
                    let mut asked = [0; 4096];
                    let Ok(read @ 1..) = stream.read(&mut asked).await else {
                        return;
                    };
                    if !asked[..read].starts_with(b"PUT") {
                        return std::future::pending().await;
                    }
                    go_on.notified().await;
                    let answer = b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n";
                    let _ = stream.write_all(answer).await;
                });
            }
        });
        address
    }

    #[tokio::test]
    async fn an_upload_may_take_longer_than_a_question() {
        let go_on = Arc::new(Notify::new());
        let address = slow(go_on.clone()).await;
        let reference: Reference = format!("{address}/a:1").parse().unwrap();
        let options = RegistryOptions {
            plain_http: vec![address],
            ..RegistryOptions::default()
        };
        let mut transport = Transport::new(&reference, Login::anonymous(), &options).unwrap();
        transport.silence = Duration::from_millis(10);
        transport.said = Mutex::new(Some((Right::Push, None)));
        let url = transport.url("blobs/uploads/").unwrap();
        let kind = HeaderValue::from_static("application/octet-stream");
        let put = transport.put(Method::PUT, url.clone(), "bytes".into(), kind);
        // It begins after the upload, and the upload is taken after it was given up.
        let ask = async {
            let asked = transport.ask(Method::GET, url, HeaderMap::new()).await;
            go_on.notify_one();
            asked
        };
        let (put, asked) = futures::join!(put, ask);
        assert!(matches!(asked, Err(RegistryError::Unavailable(_))));
        assert_eq!(put.unwrap().status(), StatusCode::CREATED);
    }
}
