//! Kills a host where it stores a state or sends a request: before the request has arrived, and after it has taken effect and before the
//! answer is there. At each such point once, so that every life gets farther than the one before.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard};

use anyhow::{Result, bail};
use configurator_apiserver::ApiServer;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tower::ServiceExt as _;

/// Where it stands: requests to a host's servers pass it.
#[derive(Clone, Default)]
pub struct Executioner {
    shared: Arc<Mutex<Shared>>,
    lives: watch::Sender<bool>,
}

#[derive(Default)]
struct Shared {
    victim: Option<Child>,
    /// What the host that lives has done, and how often.
    done: BTreeMap<(String, Moment), usize>,
    seen: BTreeSet<(String, Moment, usize)>,
}

/// When a host is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// The request has not arrived.
    Before,
    /// It has taken effect, and the answer is not there.
    After,
}

impl Executioner {
    /// The next host.
    pub fn watch(&self, host: Child) {
        let mut shared = self.shared();
        shared.victim = Some(host);
        shared.done.clear();
        self.lives.send_replace(true);
    }

    /// Lets go of the host that lives.
    pub fn release(&self) -> Option<Child> {
        self.shared().victim.take()
    }

    /// Returns when the host has been killed.
    pub async fn died(&self) {
        // An error: nobody would ever say so.
        let _ = self.lives.subscribe().wait_for(|lives| !lives).await;
    }

    /// How many hosts were killed.
    pub fn kills(&self) -> usize {
        self.shared().seen.len()
    }

    /// A request passes. An error: whoever has sent it is dead.
    pub fn pass(&self, point: &str, moment: Moment) -> Result<()> {
        let mut shared = self.shared();
        let times = shared.done.entry((point.to_owned(), moment)).or_default();
        *times += 1;
        // Whoever only looks may look as often as it likes.
        let times = match point.starts_with("GET") {
            true => 1,
            false => *times,
        };
        let place = (point.to_owned(), moment, times);
        if shared.seen.contains(&place) {
            return Ok(());
        }
        let Some(mut host) = shared.victim.take() else {
            return Ok(());
        };
        shared.seen.insert(place);
        // On Unix this is SIGKILL.
        host.kill()?;
        host.wait()?;
        self.lives.send_replace(false);
        bail!("killed {moment:?} {point}")
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap()
    }

    /// Serves an API over HTTP, and returns its address.
    pub async fn before_api(&self, server: ApiServer) -> Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let executioner = self.clone();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(connection, executioner.clone(), server.clone()));
            }
        });
        Ok(address)
    }
}

async fn serve(connection: TcpStream, executioner: Executioner, server: ApiServer) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (executioner, server) = (executioner.clone(), server.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let point = point(&parts.method, parts.uri.path(), parts.uri.query(), &body);
            if let Some(point) = &point {
                executioner.pass(point, Moment::Before)?;
            }
            let request = Request::from_parts(parts, Full::new(body));
            let response: Response<_> = server.oneshot(request).await?;
            if let Some(point) = &point {
                executioner.pass(point, Moment::After)?;
            }
            anyhow::Ok(response)
        }
    });
    let server = auto::Builder::new(TokioExecutor::new());
    // One that breaks off has its reason in the journal of the test.
    let _ = server
        .serve_connection(TokioIo::new(connection), service)
        .await;
}

/// What a request is about, the same when it is made again; nothing for what is none of the objects' own.
fn point(method: &Method, path: &str, query: Option<&str>, body: &Bytes) -> Option<String> {
    const OWN: [&str; 6] = [
        "/namespaces/default/movetovpcs/",
        "/namespaces/default/sharedstorageclusters/",
        "/namespaces/default/pods",
        "/namespaces/default/persistentvolumeclaims/",
        "/namespaces/default/services/",
        "/namespaces/default/configmaps/",
    ];
    let is_own = OWN.iter().any(|own| path.contains(own));
    let is_watch = query.is_some_and(|query| query.contains("watch="));
    if !is_own || is_watch {
        return None;
    }
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    Some(match body["status"].get("memento") {
        Some(_) => {
            let (phase, nodes) = (&body["status"], outline(&body["status"]["state"]));
            let phase = phase.get("phase").or(phase.get("clusterStatus"));
            format!("{path} {phase:?} {nodes}")
        }
        None => format!("{method} {path} {body}"),
    })
}

/// What nodes have come to, without when and how often.
fn outline(nodes: &Value) -> String {
    let nodes = nodes.as_object().into_iter().flatten();
    let outlined = nodes.map(|(name, node)| {
        let said = ["done", "failed", "fatal"].map(|field| node.get(field));
        let below = node.get("state").map(outline).unwrap_or_default();
        format!("{name} {said:?} ({below})")
    });
    outlined.collect()
}
