//! Requests to one registry: a login goes to nobody else, and no answer is larger than it may be.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use oci_client::Reference;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Client, Method, Request, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::access::Access;
use super::challenge::{Challenge, challenges};
use super::client::RegistryError;
use super::login::{Login, Who};
use super::refusal::{refusal, shortened};
use crate::network::{NetworkError, authority};

/// How long it may say nothing, unless it is being sent something large.
const SILENCE: Duration = Duration::from_secs(20);
/// The most bytes of a token, with what is said around it.
const MAX_TOKEN: usize = 256 << 10;
/// The most redirects of one request that are followed.
const MAX_REDIRECTS: usize = 5;
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
    access: Arc<Access>,
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
    /// Makes no connection.
    ///
    /// # Errors
    /// When no URL can have the name of the registry.
    pub fn new(
        reference: &Reference,
        login: Login,
        access: Arc<Access>,
    ) -> Result<Self, RegistryError> {
        let registry = reference.resolve_registry();
        let at = |scheme: &str| {
            let url = Url::parse(&format!("{scheme}://{registry}/v2/"));
            url.map_err(|error| {
                RegistryError::Refused(format!("{registry} is no registry: {error}"))
            })
        };
        let plain = at("http")?;
        let base = match access.is_plain(&plain) {
            true => plain,
            false => at("https")?,
        };
        Ok(Self {
            access,
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
        let silence = Some(self.silence);
        let sent = self.send(Right::Pull, &url, silence, |client, url| {
            let request = client.request(method.clone(), url);
            request.headers(headers.clone())
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
        let sent = self.send(Right::Push, &url, None, |client, url| {
            let request = client.request(method.clone(), url);
            let request = request.header(CONTENT_TYPE, media_type.clone());
            request.body(body.clone())
        });
        sent.await
    }

    /// Sends a request and says who asks; again when that was not enough. What is no success is an error.
    async fn send(
        &self,
        right: Right,
        url: &Url,
        silence: Option<Duration>,
        request: impl Fn(&Client, Url) -> RequestBuilder,
    ) -> Result<Response, RegistryError> {
        let said = self.authorization(right).await?;
        let sent = self.send_once(url, silence, &request, said.as_ref());
        let mut answer = sent.await?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            let better = self.authorized(&answer, right).await?;
            if better.is_some() && better != said {
                *self.said.lock().await = Some((right, better.clone()));
                let sent = self.send_once(url, silence, &request, better.as_ref());
                answer = sent.await?;
            }
        }
        match answer.status().is_success() {
            true => Ok(answer),
            false => Err(refusal(answer).await),
        }
    }

    /// Sends a request and follows redirects, each of which is checked as the first URL is. The login goes to the registry alone.
    async fn send_once(
        &self,
        url: &Url,
        silence: Option<Duration>,
        request: &impl Fn(&Client, Url) -> RequestBuilder,
        said: Option<&HeaderValue>,
    ) -> Result<Response, RegistryError> {
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let client = self.client(&url)?;
            let mut outgoing = request(&client, url.clone());
            if let Some(said) = said.filter(|_| url.origin() == self.base.origin()) {
                outgoing = outgoing.header(AUTHORIZATION, said);
            }
            let outgoing = outgoing.build().map_err(|error| self.failed(&url, error))?;
            let method = outgoing.method().clone();
            let answer = self.execute(&client, outgoing, silence).await?;
            match redirect(&method, &answer)? {
                Some(next) => url = next,
                None => return Ok(answer),
            }
        }
        Err(RegistryError::Garbled(format!(
            "the registry redirects more than {MAX_REDIRECTS} times"
        )))
    }

    async fn execute(
        &self,
        client: &Client,
        request: Request,
        silence: Option<Duration>,
    ) -> Result<Response, RegistryError> {
        let url = request.url().clone();
        let sent = client.execute(request);
        let sent = match silence {
            Some(silence) => tokio::time::timeout(silence, sent)
                .await
                .map_err(|_| silent())?,
            None => sent.await,
        };
        sent.map_err(|error| self.failed(&url, error))
    }

    /// The client for a URL, which the registry may have named.
    ///
    /// # Errors
    /// When the URL has no TLS and the operator does not permit that for its server, or has an address that is not permitted.
    fn client(&self, url: &Url) -> Result<Client, RegistryError> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err(RegistryError::Garbled(
                "the registry names a server with credentials in its URL".to_owned(),
            ));
        }
        if url.scheme() != "https" && !self.access.is_plain(url) {
            tracing::warn!(
                registry = authority(&self.base),
                scheme = url.scheme(),
                host = authority(url),
                "refused to connect to a server that a registry names, since it does not use TLS; the setting registries.plain_http can permit it"
            );
            return Err(RegistryError::NotPermitted(
                "the registry names a server that does not use TLS, which the operator does not permit (setting registries.plain_http); the log of the runtime names it"
                    .to_owned(),
            ));
        }
        let client = self.access.client(url);
        client.map_err(|error| self.unreachable(url, &error))
    }

    fn unreachable(&self, url: &Url, error: &NetworkError) -> RegistryError {
        let text = format!("{}: {error}", self.server(url));
        match error {
            NetworkError::NotPermitted { .. } => RegistryError::NotPermitted(text),
            _ => RegistryError::Unavailable(text),
        }
    }

    /// The server in a message. The name of one that the registry has named is part of its answer, so it is left out.
    fn server(&self, url: &Url) -> &'static str {
        match url.origin() == self.base.origin() {
            true => "the registry",
            false => "a server that the registry names",
        }
    }

    fn failed(&self, url: &Url, error: reqwest::Error) -> RegistryError {
        match NetworkError::within(&error) {
            Some(reason) => self.unreachable(url, reason),
            None => failed(error),
        }
    }

    /// What is said of who asks: what was said before, or what the registry wants to be told first of all.
    async fn authorization(&self, right: Right) -> Result<Option<HeaderValue>, RegistryError> {
        let mut known = self.said.lock().await;
        if let Some((of, said)) = &*known
            && *of >= right
        {
            return Ok(said.clone());
        }
        let asked = |client: &Client, url: Url| client.get(url);
        let sent = self.send_once(&self.base, Some(self.silence), &asked, None);
        let answer = sent.await?;
        let said = self.authorized(&answer, right).await?;
        *known = Some((right, said.clone()));
        Ok(said)
    }

    /// The authorization for the first challenge that can be answered. Challenges of servers that the registry redirects to are ignored:
    /// they could name a token server of their own, which would get the login.
    async fn authorized(
        &self,
        answer: &Response,
        right: Right,
    ) -> Result<Option<HeaderValue>, RegistryError> {
        if answer.url().origin() != self.base.origin() {
            return Ok(None);
        }
        for challenge in challenges(answer.headers()) {
            match (challenge, self.login.who()) {
                (Challenge::Token { realm, service }, _) => {
                    let token = self.token(&realm, service.as_deref(), right);
                    return token.await.map(Some);
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
        let client = self.client(&url)?;
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
                let request = client.post(url).header(CONTENT_TYPE, kind);
                request.body(form)
            }
            who => {
                url.query_pairs_mut().extend_pairs(said);
                let request = client.get(url);
                match who {
                    Who::User { name, password } => request.basic_auth(name, Some(password)),
                    _ => request,
                }
            }
        };
        let request = request.build().map_err(failed)?;
        let answer = self.execute(&client, request, Some(self.silence)).await?;
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
            status if status.is_redirection() => {
                return Err(RegistryError::Garbled(
                    "the registry's token server redirects, which is not followed: a login is sent to no other server"
                        .to_owned(),
                ));
            }
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

/// The target of a redirect that keeps the method and body of the request; `None` for any other answer.
fn redirect(method: &Method, answer: &Response) -> Result<Option<Url>, RegistryError> {
    let is_followed = match answer.status() {
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => {
            matches!(*method, Method::GET | Method::HEAD)
        }
        _ => false,
    };
    if !is_followed {
        return Ok(None);
    }
    let location = answer.headers().get(LOCATION);
    let location = location.and_then(|location| location.to_str().ok());
    let url = location.and_then(|location| answer.url().join(location).ok());
    url.map(Some).ok_or_else(|| {
        RegistryError::Garbled("the registry redirects to an invalid URL".to_owned())
    })
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
    RegistryError::Unavailable(shortened(&text))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::Notify;

    use super::super::client::RegistryOptions;
    use super::*;
    use crate::network::Reach;

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
            reach: Reach::Public(vec![address.parse().unwrap()]),
            plain_http: vec![address],
            ..RegistryOptions::default()
        };
        let access = Arc::new(Access::new(&options));
        let mut transport = Transport::new(&reference, Login::anonymous(), access).unwrap();
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
