//! How each verb is sent.

use configurator_background::owners::Owner;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::field;
use configurator_core::kubernetes_call::KubernetesCall;
use configurator_core::request::{KubernetesRequest, KubernetesVerb, api_version};
use configurator_core::result::Answer;
use configurator_core::service_account::ServiceAccount;
use http::{Request, StatusCode, header};
use kube::client::Body;
use serde_json::{Map, Value};

use super::page::read_page;
use super::pieces::Pieces;
use super::versions::version_of;
use super::{KubernetesSink, MAX_ANSWER, document, generic};
use crate::answers::AnswerRoom;
use crate::impersonation::impersonate;
use crate::kubernetes_faults::{classify, is_mismatch};

/// What a server says of an object that it has already.
const ALREADY_EXISTS: &str = "AlreadyExists";
/// Replaces the server's message about an object that the handler may not read.
const WITHHELD: &str =
    "the server's message is withheld, because no rule grants `get` on the object";

/// Sends one call.
pub(super) struct Sender<'a> {
    pub(super) sink: &'a KubernetesSink,
    pub(super) call: &'a KubernetesCall,
    /// Whether the handler may see what the object holds.
    pub(super) may_read: bool,
    /// The room for the answer.
    pub(super) room: &'a AnswerRoom,
    /// The owner of work in the background.
    pub(super) owner: Owner,
    /// As whom it is sent. `None`: as the host.
    pub(super) service_account: Option<&'a ServiceAccount>,
}

/// An answer that is no success.
struct Refusal {
    fault: Fault,
    /// The server's reason, as in `AlreadyExists`.
    reason: String,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        let reason = String::new();
        Self { fault, reason }
    }
}

impl Sender<'_> {
    /// Sends the call, with what its verb needs before and after it.
    pub(super) async fn send_all(&self) -> Result<Answer, Fault> {
        if let Some(subresource) = &self.request().subresource {
            let subresources = &self.sink.subresources;
            subresources
                .check(self.sink, self.call, subresource, self.owner)
                .await?;
        }
        match self.request().verb {
            KubernetesVerb::Get => self.get().await,
            KubernetesVerb::List => self.list().await,
            KubernetesVerb::Create => self.create().await,
            KubernetesVerb::Delete => self.delete().await,
            KubernetesVerb::Patch | KubernetesVerb::Replace => self.change().await,
            KubernetesVerb::Apply => self.apply().await,
        }
    }

    fn request(&self) -> &KubernetesRequest {
        self.call.request()
    }

    async fn get(&self) -> Result<Answer, Fault> {
        let body = self.receive(&self.call.object_url(), 0).await?;
        Ok(Answer {
            query_objects: vec![self.read(body, document).await?],
            ..Answer::default()
        })
    }

    /// Reads a body, in the background if it is large.
    async fn read<T: Send + 'static>(
        &self,
        body: Pieces,
        read: impl FnOnce(Pieces) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        self.sink.read(self.call, body, self.owner, read).await
    }

    async fn list(&self) -> Result<Answer, Fault> {
        let plural = &self.request().plural;
        let mut objects = Vec::new();
        let mut token: Option<String> = None;
        let mut size = 0;
        let mut restarted = false;
        loop {
            let url = match &token {
                None => self.call.url().to_owned(),
                Some(token) => self.call.page_url(token),
            };
            let page = match self.receive(&url, size).await {
                // The list grew too old while it was read: once more from the start.
                Err(fault) if fault.status == Some(410) && token.is_some() && !restarted => {
                    restarted = true;
                    token = None;
                    objects.clear();
                    size = 0;
                    continue;
                }
                page => page?,
            };
            size += page.size();
            if size > MAX_ANSWER {
                return Err(generic(format!(
                    "the list of {plural} has more than {MAX_ANSWER} bytes; use a selector"
                )));
            }
            let request = self.request().clone();
            let read = self.read(page, move |page| read_page(page, &request));
            let (items, next) = read.await?;
            objects.extend(items);
            token = next;
            if token.is_none() {
                return Ok(Answer {
                    query_objects: objects,
                    ..Answer::default()
                });
            }
        }
    }

    /// Without the right to read, the object is not read first: the server says whether it exists.
    async fn create(&self) -> Result<Answer, Fault> {
        let keeps_existing = self.request().precheck_exist && self.request().subresource.is_none();
        if keeps_existing && self.may_read {
            match self.get().await {
                Err(fault) if fault.kind == FaultKind::ResourceNotFound => {}
                existing => return existing,
            }
        }
        match self.send().await {
            Ok(body) => self.written(body).await,
            Err(refusal) if keeps_existing && refusal.reason == ALREADY_EXISTS => {
                match self.may_read {
                    true => self.get().await,
                    false => self.existing(),
                }
            }
            Err(refusal) => Err(refusal.fault),
        }
    }

    /// The answer about an object that exists, and of which nothing more is known than what was sent.
    fn existing(&self) -> Result<Answer, Fault> {
        let request = self.request();
        let given = |text: &str| (!text.is_empty()).then(|| Value::from(text));
        let fields = |pairs: [(&str, Option<Value>); 2]| -> Map<String, Value> {
            let given = pairs.into_iter();
            given
                .filter_map(|(name, value)| Some((name.to_owned(), value?)))
                .collect()
        };
        let mut object = fields([
            (
                "apiVersion",
                given(&api_version(&request.group, &request.version)),
            ),
            ("kind", given(&request.kind)),
        ]);
        let metadata = fields([
            ("name", given(&request.name)),
            ("namespace", given(&request.namespace)),
        ]);
        object.insert("metadata".to_owned(), metadata.into());
        let object = Document::of(&object).map_err(|error| generic(error.to_string()))?;
        Ok(Answer {
            query_objects: vec![object],
            ..Answer::default()
        })
    }

    async fn change(&self) -> Result<Answer, Fault> {
        let body = self.send().await.map_err(|refusal| refusal.fault)?;
        self.written(body).await
    }

    /// An apply at a version is held to the uid of the object as well, which nothing that is created has.
    async fn apply(&self) -> Result<Answer, Fault> {
        if !self.call.reads_uid() {
            return self.change().await;
        }
        let found = self.get().await.map_err(|fault| match fault.kind {
            FaultKind::ResourceNotFound => Fault::new(
                FaultKind::ResourceConflict,
                format!("{}: the object does not exist any more", self.call),
            ),
            _ => fault,
        })?;
        let object = found.query_objects.first().map(Document::to_value);
        let uid = object.as_ref().and_then(|object| {
            let uid = field::at(object, "/metadata/uid")?;
            uid.as_str()
        });
        let pinned = self.call.pinned(uid.unwrap_or_default()).map_err(generic)?;
        let held = Sender {
            call: &pinned,
            ..*self
        };
        held.change().await
    }

    async fn delete(&self) -> Result<Answer, Fault> {
        match self.send().await {
            Ok(body) => Ok(Answer {
                query_objects: vec![self.read(body, document).await?],
                changed: true,
                ..Answer::default()
            }),
            Err(refusal) if refusal.fault.kind == FaultKind::ResourceNotFound => {
                Ok(Answer::default())
            }
            Err(refusal) => Err(refusal.fault),
        }
    }

    async fn written(&self, body: Pieces) -> Result<Answer, Fault> {
        let read = self.read(body, |body| {
            let object = document(body)?;
            let version = version_of(object.as_str());
            Ok((object, version))
        });
        let (object, version) = read.await?;
        Ok(Answer {
            query_objects: vec![object],
            changed: self.sink.versions.is_new(self.request(), version),
            ..Answer::default()
        })
    }

    /// Receives what is at this path, after so many bytes of pages before.
    async fn receive(&self, url: &str, held: usize) -> Result<Pieces, Fault> {
        let outgoing = Request::get(url).body(Body::empty());
        let received = self.exchange(outgoing, false, held).await;
        received.map_err(|refusal| refusal.fault)
    }

    /// Sends the call itself.
    async fn send(&self) -> Result<Pieces, Refusal> {
        let body = self.call.body().unwrap_or_default().to_owned();
        let outgoing = Request::builder()
            .method(self.call.method().name())
            .uri(self.call.url())
            .header(header::CONTENT_TYPE, self.call.media_type())
            .body(Body::from(body.into_bytes()));
        self.exchange(outgoing, self.request().verb.is_mutating(), 0)
            .await
    }

    async fn exchange(
        &self,
        outgoing: http::Result<Request<Body>>,
        is_mutating: bool,
        held: usize,
    ) -> Result<Pieces, Refusal> {
        let what = self.call.to_string();
        let mut outgoing = outgoing.map_err(|error| generic(format!("{what}: {error}")))?;
        outgoing.headers_mut().insert(
            header::ACCEPT,
            header::HeaderValue::from_static("application/json"),
        );
        if let Some(account) = self.service_account {
            impersonate(outgoing.headers_mut(), account)
                .map_err(|error| generic(format!("{what}: {error}")))?;
        }
        let exchange = self.sink.exchange(&what, outgoing, self.room, held);
        let (parts, body) = exchange.await?;
        if parts.status.is_success() {
            return Ok(body);
        }
        let told = self.sink.told(body, self.owner).await;
        let mut fault = classify(&what, is_mutating, parts.status, &parts.headers, &told);
        if is_mismatch(self.request(), parts.status, &told) {
            fault.kind = FaultKind::ResourceConflict;
        }
        if is_mutating
            && !self.may_read
            && is_about_object(self.request().verb, parts.status)
            && !told.is_before_reading()
        {
            fault.message = match told.reason.as_str() {
                "" => format!("{what}: {}; {WITHHELD}", parts.status),
                reason => format!("{what}: {} ({reason}); {WITHHELD}", parts.status),
            };
        }
        Err(Refusal {
            fault,
            reason: told.reason,
        })
    }
}

/// Whether the answer to a change may speak of what is stored. To a `create`, only one that found something stored.
fn is_about_object(verb: KubernetesVerb, status: StatusCode) -> bool {
    match verb {
        KubernetesVerb::Create => status == StatusCode::CONFLICT,
        _ => !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::NOT_FOUND),
    }
}
