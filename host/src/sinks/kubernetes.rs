//! The Kubernetes API as a sink.

mod list_items;
mod page;
mod pieces;
mod subresources;
mod verbs;
mod versions;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use configurator_background::owners::Owner;
use configurator_background::work::Background;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::backoff::DEFAULT_MAX_RETRY_AFTER;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::request::SinkName;
use configurator_core::result::Answer;
use http::response::Parts;
use http::{Request, header};
use http_body_util::BodyExt;
use kube::client::Body;

use self::pieces::Pieces;
use self::subresources::Subresources;
use self::verbs::Sender;
use self::versions::Versions;
use super::throttle::Throttle;
use super::{Scope, Sink, misrouted};
use crate::answers::AnswerRoom;
use crate::cluster::{Cluster, Requests};
use crate::kubernetes_faults::{Told, classify, classify_error};

/// How long one attempt may take when the request does not say.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a probe may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes of one answer; of a list, of all its pages.
pub const MAX_ANSWER: usize = 64 << 20;

/// Executes requests at a Kubernetes API.
pub struct KubernetesSink {
    requests: Requests,
    throttle: Throttle,
    versions: Versions,
    subresources: Subresources,
    /// Reads large answers.
    background: Background,
}

impl KubernetesSink {
    /// A sink for this API.
    #[must_use]
    pub fn new(cluster: &Cluster) -> Self {
        Self {
            requests: cluster.requests.clone(),
            throttle: Throttle::new(DEFAULT_MAX_RETRY_AFTER),
            versions: Versions::default(),
            subresources: Subresources::default(),
            background: Background::default(),
        }
    }

    /// Sets where large answers are read. Default: [`Background::default`].
    #[must_use]
    pub fn background(mut self, background: Background) -> Self {
        self.background = background;
        self
    }

    /// The longest time for which the server is left alone when it asks for it. Default: 1 h.
    #[must_use]
    pub fn max_retry_after(mut self, max_retry_after: Duration) -> Self {
        self.throttle = Throttle::new(max_retry_after);
        self
    }

    /// Sends a request unless the server asked to be left alone, and receives the answer. `what` names the request in messages. The answer takes
    /// room beside the `held` bytes that were read before.
    async fn exchange(
        &self,
        what: &str,
        outgoing: Request<Body>,
        room: &AnswerRoom,
        held: usize,
    ) -> Result<(Parts, Pieces), Fault> {
        if let Some((left, why)) = self.throttle.left() {
            let fault = Fault::new(
                FaultKind::ApiServerUnavailable,
                format!("{what}: not sent, because the server has asked to be left alone: {why}"),
            );
            return Err(fault.with_retry_after(Some(left)));
        }
        let response = self
            .requests
            .send(outgoing)
            .await
            .map_err(|error| classify_error(what, &error))?;
        let (parts, mut body) = response.into_parts();
        let announced = parts.headers.get(header::CONTENT_LENGTH);
        let announced = announced.and_then(|length| length.to_str().ok()?.parse().ok());
        let mut pieces = Pieces::default();
        let mut size = announced.unwrap_or(0);
        loop {
            if size > MAX_ANSWER {
                return Err(generic(format!(
                    "{what}: the answer has more than {MAX_ANSWER} bytes"
                )));
            }
            room.fit(held.saturating_add(size) as u64).await?;
            let Some(frame) = body.frame().await else {
                break;
            };
            let frame = frame.map_err(|error| {
                Fault::new(
                    FaultKind::ApiServerUnavailable,
                    format!("{what}: the answer broke off: {error}"),
                )
            })?;
            if let Ok(data) = frame.into_data() {
                pieces.push(data);
                size = size.max(pieces.size());
            }
        }
        Ok((parts, pieces))
    }

    /// Reads a body: in the background, in a turn of `owner`, if it is large.
    async fn read<T: Send + 'static>(
        &self,
        what: &(impl fmt::Display + Sync + ?Sized),
        body: Pieces,
        owner: Owner,
        read: impl FnOnce(Pieces) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let read = self
            .background
            .run_for(body.size(), owner, move || read(body));
        let read = read.await;
        read.map_err(|error| generic(format!("{what}: {error}")))?
    }

    /// Reads what a server says in an answer that is no success.
    async fn told(&self, body: Pieces, owner: Owner) -> Told {
        let told = self.background.run_for(body.size(), owner, move || {
            let text = body.into_text().ok()?;
            serde_json::from_str(&text).ok()
        });
        told.await.ok().flatten().unwrap_or_default()
    }

    async fn ask_version(&self) -> Result<(), Fault> {
        const WHAT: &str = "get /version";
        let outgoing = Request::get("/version")
            .body(Body::empty())
            .map_err(|error| generic(format!("{WHAT}: {error}")))?;
        let room = AnswerRoom::default();
        let (parts, body) = self.exchange(WHAT, outgoing, &room, 0).await?;
        if parts.status.is_success() {
            return Ok(());
        }
        let told = self.told(body, Owner::default()).await;
        let fault = classify(WHAT, false, parts.status, &parts.headers, &told);
        // What one request is told is about that request; what the probe is told is about the server.
        let status = parts.status;
        self.throttle
            .note(status.as_u16(), fault.retry_after, || told.said(status));
        Err(fault)
    }
}

#[async_trait]
impl Sink for KubernetesSink {
    async fn execute(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        let Some(call) = operation.kubernetes() else {
            return Err(misrouted(operation, SinkName::Kubernetes));
        };
        let timeout = scope.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let sender = Sender {
            sink: self,
            call,
            may_read: operation.may_read(),
            room: &scope.answer,
            owner: scope.owner,
            service_account: scope.service_account.as_ref(),
        };
        tokio::time::timeout(timeout, sender.send_all())
            .await
            .unwrap_or_else(|_| {
                Err(Fault::new(
                    FaultKind::ApiServerUnavailable,
                    format!("{call}: no answer within {timeout:?}"),
                ))
            })
    }

    async fn probe(&self) -> Result<(), Fault> {
        tokio::time::timeout(PROBE_TIMEOUT, self.ask_version())
            .await
            .unwrap_or_else(|_| {
                Err(Fault::new(
                    FaultKind::ApiServerUnavailable,
                    "get /version: no answer",
                ))
            })
    }
}

fn generic(message: String) -> Fault {
    Fault::new(FaultKind::ResourceGeneric, message)
}

fn text(body: Pieces) -> Result<String, Fault> {
    let text = body.into_text();
    text.map_err(|error| generic(format!("the server's answer cannot be read: {error}")))
}

fn document(body: Pieces) -> Result<Document, Fault> {
    parsed(text(body)?)
}

fn parsed(text: impl Into<Arc<str>>) -> Result<Document, Fault> {
    Document::parse(text).map_err(|error| generic(format!("the server's answer is {error}")))
}
