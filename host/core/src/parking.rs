//! Which servers are unavailable. Runs that need one of these wait until it is back.
//!
//! One request that is refused says nothing about a server, so it delays its own object only. A server counts as unavailable
//! when its probe fails, or when several objects of several namespaces are refused alike and nothing succeeds. In the second case the
//! server may still serve others, so only the runs that it refused wait.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::time::Duration;

use crate::backoff::jittered;
use crate::capability::host_of;
use crate::request::{KubernetesRequest, Operation, SinkName};
use crate::time::Timestamp;

/// The probe period: how long a server that is unavailable rests between probes, and over which time refusals are compared.
pub const PROBE_INTERVAL: Duration = Duration::from_secs(3);
/// Objects that must be refused alike within a probe period.
pub const REFUSED_OBJECTS: usize = 3;
/// Namespaces that these objects must be in.
pub const REFUSED_NAMESPACES: usize = 2;
/// Refusals of one server that are compared.
const MAX_REFUSALS: usize = 64;
/// Servers that are known at a time. Of further ones every object waits by itself.
const MAX_SERVERS: usize = 1024;

/// A server that a run may wait for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Server {
    /// The sink that reaches it.
    pub sink: SinkName,
    /// Empty for the one server behind the sink. Of HTTP, the host of the URL, with its port where it has one; of Kubernetes,
    /// the API group, where another server may answer for it; of extensions, the name of the extension.
    pub host: String,
}

impl Server {
    /// The one server behind a sink.
    #[must_use]
    pub const fn behind(sink: SinkName) -> Self {
        Self {
            sink,
            host: String::new(),
        }
    }

    /// The server that executes an operation.
    #[must_use]
    pub fn of(operation: &Operation) -> Self {
        let host = match operation {
            Operation::Http(request) => host_of(&request.url).unwrap_or_default(),
            // Only groups with a dot in their names can be served by an aggregated API.
            Operation::Kubernetes(request) if request.group.contains('.') => request.group.clone(),
            Operation::Extension(request) => request.extension.clone(),
            Operation::Kubernetes(_) | Operation::Config(_) | Operation::Secret(_) => String::new(),
        };
        Self {
            sink: operation.sink(),
            host,
        }
    }

    /// Whether all objects of a Configurator depend on it, so that none begins a run while it is unavailable.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.host.is_empty() && self.has_probe()
    }

    /// Whether a probe can tell that it is back.
    fn has_probe(&self) -> bool {
        !matches!(self.sink, SinkName::Http | SinkName::Extension)
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.as_str() {
            "" => write!(f, "{}", self.sink),
            host => write!(f, "{} {host}", self.sink),
        }
    }
}

/// Why a server counts as unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unavailable {
    /// It refuses several objects alike, and may serve others.
    Refusing,
    /// Its probe fails, so it serves nobody.
    Down,
}

/// A request that a server refused for now, or did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The object that the request was made for.
    pub object: String,
    /// Its namespace.
    pub namespace: String,
    /// The status of the answer; `None`: there was none.
    pub status: Option<u16>,
    /// How long the server asked to be left alone.
    pub retry_after: Option<Duration>,
}

/// Whether a refusal concerns nothing but the object that the request names: an eviction is refused for the sake of a
/// disruption budget.
#[must_use]
pub fn is_of_object(request: &KubernetesRequest) -> bool {
    request.subresource.as_deref() == Some("eviction")
}

#[derive(Debug, Default)]
struct Health {
    /// Those of the last probe period, the newest last.
    refusals: VecDeque<(Timestamp, Refusal)>,
    last_success: Option<Timestamp>,
    last_probe: Option<Timestamp>,
    /// When it is probed next.
    probe: Option<Timestamp>,
    is_probing: bool,
    unavailable: Option<Unavailable>,
}

impl Health {
    fn is_idle(&self, now: Timestamp) -> bool {
        let is_old = |at: &Timestamp| at.after(PROBE_INTERVAL) <= now;
        self.unavailable.is_none()
            && !self.is_probing
            && self.probe.is_none()
            && self.refusals.iter().all(|(at, _)| is_old(at))
            && self.last_probe.as_ref().is_none_or(is_old)
    }

    fn probe_at(&mut self, at: Timestamp) {
        if self.unavailable.is_none() && !self.is_probing {
            self.probe = Some(self.probe.map_or(at, |known| known.min(at)));
        }
    }
}

/// What is known of the servers.
#[derive(Debug)]
pub struct Parking {
    servers: BTreeMap<Server, Health>,
    seed: u64,
    max_retry_after: Duration,
}

impl Parking {
    /// Every server is available. `seed` decides the jitter of probes; `max_retry_after` is the longest wait that a server may ask for.
    #[must_use]
    pub const fn new(seed: u64, max_retry_after: Duration) -> Self {
        Self {
            servers: BTreeMap::new(),
            seed,
            max_retry_after,
        }
    }

    /// A request succeeded: the server is available to those that it does not refuse. Returns whether it has become available.
    pub fn observe_success(&mut self, server: &Server, now: Timestamp) -> bool {
        // Of servers that are not shared only those are known that have refused something.
        let health = match server.is_shared() {
            true => Some(self.servers.entry(server.clone()).or_default()),
            false => self.servers.get_mut(server),
        };
        let Some(health) = health else {
            return false;
        };
        health.last_success = Some(now);
        health.refusals.clear();
        let was_refusing = health
            .unavailable
            .take_if(|why| *why == Unavailable::Refusing);
        was_refusing.is_some()
    }

    /// A request was refused for now, or not answered. Returns whether the server has become unavailable by it.
    ///
    /// The server behind the sink is probed at once, at most once in a probe period, unless it has answered and asked for patience.
    pub fn observe_failure(&mut self, server: &Server, refusal: Refusal, now: Timestamp) -> bool {
        if server.has_probe() && refusal.status.is_none() {
            // The probe decides.
            self.suspect(server.sink, now);
            return false;
        }
        if server.has_probe() && refusal.retry_after.is_none() {
            self.suspect(server.sink, now);
        }
        let wait = self.interval(now);
        let max_retry_after = self.max_retry_after;
        let Some(health) = self.health(server, now) else {
            return false;
        };
        if health.unavailable.is_some() {
            return false;
        }
        let is_recent = |at: Timestamp| at.after(PROBE_INTERVAL) > now;
        health.refusals.retain(|(at, known)| {
            is_recent(*at) && (&known.object, known.status) != (&refusal.object, refusal.status)
        });
        if health.refusals.len() >= MAX_REFUSALS {
            health.refusals.pop_front();
        }
        let status = refusal.status;
        health.refusals.push_back((now, refusal));
        let alike = health.refusals.iter().map(|(_, refusal)| refusal);
        let alike: Vec<&Refusal> = alike.filter(|one| one.status == status).collect();
        let namespaces: BTreeSet<&str> = alike.iter().map(|one| one.namespace.as_str()).collect();
        if alike.len() < REFUSED_OBJECTS
            || namespaces.len() < REFUSED_NAMESPACES
            || health.last_success.is_some_and(is_recent)
        {
            return false;
        }
        let wishes = alike.iter().filter_map(|one| one.retry_after);
        let wish = wishes.max().unwrap_or_default().min(max_retry_after);
        health.probe = Some(now.after(wait.max(wish)));
        // A probe that is under way began before this was known.
        health.is_probing = false;
        health.unavailable = Some(Unavailable::Refusing);
        true
    }

    /// The server behind a sink may be unavailable: it is probed at once, unless that was done within the probe period.
    pub fn suspect(&mut self, sink: SinkName, now: Timestamp) {
        if let Some(health) = self.health(&Server::behind(sink), now) {
            let next = health.last_probe.map(|last| last.after(PROBE_INTERVAL));
            health.probe_at(next.map_or(now, |next| next.max(now)));
        }
    }

    /// When [`due`](Self::due) has something to say.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.servers
            .values()
            .filter_map(|health| health.probe)
            .min()
    }

    /// The servers to probe now. Each must be told by [`probed`](Self::probed) what came of it.
    #[must_use]
    pub fn due(&mut self, now: Timestamp) -> Vec<Server> {
        let due = self
            .servers
            .iter_mut()
            .filter(|(_, health)| health.probe.is_some_and(|at| at <= now));
        let due = due.map(|(server, health)| {
            health.probe = None;
            health.is_probing = true;
            server.clone()
        });
        due.collect()
    }

    /// What a probe came to: `Err` with how long the server asks to be left alone. Returns whether the server has become
    /// available, or unavailable.
    pub fn probed(
        &mut self,
        server: &Server,
        answer: Result<(), Option<Duration>>,
        now: Timestamp,
    ) -> bool {
        let wait = self.interval(now);
        let max_retry_after = self.max_retry_after;
        let Some(health) = self.servers.get_mut(server) else {
            return false;
        };
        if !std::mem::take(&mut health.is_probing) {
            return false;
        }
        health.last_probe = Some(now);
        match answer {
            Ok(()) => {
                health.probe = None;
                let was_unavailable = health.unavailable.take().is_some();
                if was_unavailable {
                    health.refusals.clear();
                }
                was_unavailable
            }
            Err(retry_after) => {
                let wait = retry_after.map_or(wait, |wish| wish.min(max_retry_after));
                health.probe = Some(now.after(wait));
                health.unavailable.replace(Unavailable::Down) != Some(Unavailable::Down)
            }
        }
    }

    /// The servers that are unavailable.
    #[must_use]
    pub fn unavailable(&self) -> BTreeMap<Server, Unavailable> {
        let servers = self.servers.iter();
        let servers =
            servers.filter_map(|(server, health)| Some((server.clone(), health.unavailable?)));
        servers.collect()
    }

    /// What is known of a server; `None`: too many are known.
    fn health(&mut self, server: &Server, now: Timestamp) -> Option<&mut Health> {
        if !self.servers.contains_key(server) {
            if self.servers.len() >= MAX_SERVERS {
                self.servers
                    .retain(|server, health| server.is_shared() || !health.is_idle(now));
            }
            if self.servers.len() >= MAX_SERVERS {
                return None;
            }
        }
        Some(self.servers.entry(server.clone()).or_default())
    }

    fn interval(&self, now: Timestamp) -> Duration {
        jittered(
            PROBE_INTERVAL,
            self.seed ^ u64::try_from(now.as_millis()).unwrap_or_default(),
        )
    }
}

#[cfg(test)]
mod tests;
