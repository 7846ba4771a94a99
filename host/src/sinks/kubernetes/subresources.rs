//! Which subresources a server has, so that none is taken for something else.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use configurator_background::owners::Owner;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::kubernetes_call::KubernetesCall;
use http::Request;
use kube::client::Body;
use serde::Deserialize;

use super::{KubernetesSink, generic, text};
use crate::answers::AnswerRoom;
use crate::kubernetes_faults::classify;

/// The names that a group and version serves: `pods`, `pods/status`.
type Names = Arc<BTreeSet<String>>;

/// What discovery says of subresources. Only what the server has is remembered.
#[derive(Default)]
pub(super) struct Subresources(Mutex<HashMap<String, Names>>);

#[derive(Deserialize)]
struct ResourceList {
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    name: String,
}

impl Subresources {
    /// Checks that the resource of a call has this subresource. The server is asked again before one is refused, since it may be new.
    ///
    /// # Errors
    /// [`FaultKind::UnsupportedResourceOperation`] when the server has no such subresource, and how asking failed.
    pub(super) async fn check(
        &self,
        sink: &KubernetesSink,
        call: &KubernetesCall,
        subresource: &str,
        owner: Owner,
    ) -> Result<(), Fault> {
        let path = call.discovery_url();
        let name = format!("{}/{subresource}", call.request().plural);
        let known = self.lock().get(&path).cloned();
        if known.is_some_and(|names| names.contains(&name)) {
            return Ok(());
        }
        let names = ask(sink, call, &path, owner).await?;
        let has = names.contains(&name);
        self.lock().insert(path, names);
        match has {
            true => Ok(()),
            false => Err(Fault::new(
                FaultKind::UnsupportedResourceOperation,
                format!("{call}: the server has no subresource {name:?}"),
            )),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Names>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn ask(
    sink: &KubernetesSink,
    call: &KubernetesCall,
    path: &str,
    owner: Owner,
) -> Result<Names, Fault> {
    let what = format!("{call}: get {path}");
    let outgoing = Request::get(path)
        .body(Body::empty())
        .map_err(|error| generic(format!("{what}: {error}")))?;
    let room = AnswerRoom::default();
    let (parts, body) = sink.exchange(&what, outgoing, &room, 0).await?;
    if !parts.status.is_success() {
        let told = sink.told(body, owner).await;
        return Err(classify(&what, false, parts.status, &parts.headers, &told));
    }
    let unread = what.clone();
    let read = sink.read(&what, body, owner, move |body| {
        let list: ResourceList = serde_json::from_str(&text(body)?)
            .map_err(|error| generic(format!("{unread}: the answer cannot be read: {error}")))?;
        let names = list.resources.into_iter().map(|resource| resource.name);
        Ok(Arc::new(names.collect()))
    });
    read.await
}
