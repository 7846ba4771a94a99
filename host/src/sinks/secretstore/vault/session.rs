//! Being logged in at Vault: one login that all requests share, renewed before it ends and made anew after.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use configurator_core::backoff::{mix, spread};
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::time::Timestamp;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use reqwest::Method;
use reqwest::header::HeaderValue;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Notify;

use super::client::{Client, Reply, Request};
use super::name;
use super::options::{SecretText, VaultAuth};
use super::trouble::{Said, Step, Trouble};
use crate::clock::{SharedClock, until};
use crate::tasks::{TaskKind, Tasks};

/// Where a token is looked up by itself; the policy `default` allows it.
const LOOK_UP: &str = "auth/token/lookup-self";
/// Where a token is renewed by itself; the policy `default` allows it.
const RENEW: &str = "auth/token/renew-self";
/// The shortest wait before a renewal that failed is tried again.
const MIN_WAIT: Duration = Duration::from_millis(500);
/// The longest lease, in seconds: ten years.
const MAX_LEASE: u64 = 10 * 365 * 86_400;

/// How long a login that was refused is not tried again by a probe: Vault locks out who is refused too often.
const REFUSED_WAIT: Duration = Duration::from_secs(15);

/// The sessions of a store, of which there is one at a time.
pub struct Sessions {
    client: Arc<Client>,
    auth: VaultAuth,
    clock: SharedClock,
    seed: u64,
    state: Mutex<State>,
    /// The session has changed.
    changed: Notify,
    tasks: Tasks,
}

#[derive(Default)]
struct State {
    session: Option<Arc<Session>>,
    /// The login under way. It ends with the last who waits for it.
    login: Option<WeakShared<Login>>,
    logins: u64,
    is_kept: bool,
}

type Login = BoxFuture<'static, Result<Arc<Session>, Fault>>;

/// What a login came to.
#[derive(Clone)]
pub struct Session {
    /// Counts the logins.
    number: u64,
    token: HeaderValue,
    /// Absent where the token never ends.
    lease: Option<Lease>,
}

#[derive(Clone, Copy)]
struct Lease {
    /// What it was at the login.
    whole: Duration,
    ends: Timestamp,
    /// Absent where it cannot be made longer.
    renew_at: Option<Timestamp>,
}

/// A token and for how long it is good, as a login, a renewal and a look-up tell it.
#[derive(Deserialize)]
struct Grant {
    #[serde(default)]
    client_token: Option<SecretText>,
    #[serde(alias = "ttl")]
    lease_duration: u64,
    #[serde(default)]
    renewable: bool,
}

impl Grant {
    fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_duration.min(MAX_LEASE))
    }
}

#[derive(Deserialize)]
struct LoggedIn {
    auth: Grant,
}

#[derive(Deserialize)]
struct LookedUp {
    data: Grant,
}

impl Session {
    /// What goes with a request.
    pub fn token(&self) -> &HeaderValue {
        &self.token
    }

    fn is_alive(&self, now: Timestamp) -> bool {
        self.lease.is_none_or(|lease| now < lease.ends)
    }
}

impl Sessions {
    /// Nobody is logged in.
    pub fn new(client: Arc<Client>, auth: VaultAuth, clock: SharedClock, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            client,
            auth,
            clock,
            seed,
            state: Mutex::default(),
            changed: Notify::new(),
            tasks: Tasks::default(),
        })
    }

    /// Nothing is renewed any more.
    pub fn end(&self) {
        self.tasks.abort();
    }

    /// The session; logs in where there is none. All who ask meanwhile share the login and what it comes to.
    pub async fn current(self: &Arc<Self>) -> Result<Arc<Session>, Fault> {
        let login = {
            let mut state = self.state();
            let now = self.clock.now();
            if let Some(session) = state.session.as_ref().filter(|one| one.is_alive(now)) {
                return Ok(session.clone());
            }
            let under_way = state.login.as_ref().and_then(WeakShared::upgrade);
            // One that has ended belongs to those who waited for it.
            match under_way.filter(|login| login.peek().is_none()) {
                Some(login) => login,
                None => {
                    let this = self.clone();
                    let login: Shared<Login> = async move { this.log_in().await }.boxed().shared();
                    state.login = login.downgrade();
                    login
                }
            }
        };
        login.await
    }

    /// Whether Vault still knows the token of a session. It answers alike to a token that has ended and to one whose
    /// policies forbid something.
    pub async fn is_known(&self, session: &Session) -> Result<bool, Fault> {
        match self.look_up(&session.token).await {
            Ok(reply) if reply.is_success() => Ok(true),
            Ok(reply) if reply.status == 403 => Ok(false),
            Ok(reply) => Err(reply.trouble().fault(Step::Login, "look up the token")),
            Err(trouble) => Err(trouble.fault(Step::Login, "look up the token")),
        }
    }

    /// The session is of no use: the next request logs in anew.
    pub fn forget(&self, session: &Session) {
        let mut state = self.state();
        if state
            .session
            .as_ref()
            .is_some_and(|one| one.number == session.number)
        {
            state.session = None;
        }
        drop(state);
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn log_in(self: Arc<Self>) -> Result<Arc<Session>, Fault> {
        // The lease counts from when Vault answers, which is later.
        let asked = self.clock.now();
        let (token, grant) = match &self.auth {
            VaultAuth::Token { token, token_file } => {
                let token = credential(token.as_ref(), token_file.as_deref())?;
                self.take(token).await?
            }
            VaultAuth::AppRole {
                mount,
                role_id,
                secret_id,
                secret_id_file,
            } => {
                let secret = credential(secret_id.as_ref(), secret_id_file.as_deref())?;
                let body = json!({"role_id": role_id, "secret_id": secret.reveal()});
                self.exchange(mount, &secret, &body.to_string()).await?
            }
            VaultAuth::Kubernetes {
                mount,
                role,
                jwt_file,
            } => {
                let jwt = credential(None, Some(jwt_file))?;
                let body = json!({"role": role, "jwt": jwt.reveal()});
                self.exchange(mount, &jwt, &body.to_string()).await?
            }
        };
        let mut state = self.state();
        state.logins += 1;
        let number = state.logins;
        let whole = grant.lease();
        let session = Arc::new(Session {
            number,
            token,
            lease: self.lease(&grant, whole, asked, number),
        });
        state.session = Some(session.clone());
        let is_renewed = session.lease.is_some_and(|lease| lease.renew_at.is_some());
        if is_renewed && !state.is_kept {
            state.is_kept = true;
            self.tasks.spawn(TaskKind::Session, self.clone().keep());
        }
        drop(state);
        self.changed.notify_one();
        tracing::info!(lease = ?session.lease.map(|lease| lease.whole), renewed = is_renewed, "logged in at Vault");
        Ok(session)
    }

    /// A token that somebody else has made, once Vault has said that it is good.
    async fn take(&self, secret: SecretText) -> Result<(HeaderValue, Grant), Fault> {
        const WHAT: &str = "the token for Vault";
        let token = header(&secret, WHAT)?;
        let failed = |trouble: &Trouble| trouble.fault(Step::Login, WHAT);
        let reply = self
            .look_up(&token)
            .await
            .map_err(|trouble| failed(&trouble))?;
        if !reply.is_success() {
            let mut fault = failed(&reply.trouble());
            if reply.status == 403 {
                fault.retry_after.get_or_insert(REFUSED_WAIT);
                // The refusal concerns the host's own login, not the request.
                fault.status = None;
                fault.message +=
                    "; it has ended, was revoked, or may not look itself up. Give another";
            }
            return Err(fault);
        }
        let looked_up: LookedUp = reply.read().map_err(|trouble| failed(&trouble))?;
        Ok((token, looked_up.data))
    }

    /// A token for a credential.
    async fn exchange(
        &self,
        mount: &str,
        secret: &SecretText,
        body: &str,
    ) -> Result<(HeaderValue, Grant), Fault> {
        let what = format!("the login at Vault's auth/{mount}");
        let failed = |trouble: &Trouble| {
            let mut fault = trouble.fault(Step::Login, &what);
            fault.message = fault.message.replace(secret.reveal(), "…");
            fault
        };
        let request = Request {
            method: &Method::POST,
            path: &format!("auth/{}/login", name::plain(mount)),
            token: None,
            body: Some(body),
        };
        let reply = self
            .client
            .send(request)
            .await
            .map_err(|trouble| failed(&trouble))?;
        if !reply.is_success() {
            let mut fault = failed(&reply.trouble());
            // Vault says 500 to some credentials that are wrong.
            if matches!(reply.status, 400..=404 | 500) {
                fault.retry_after.get_or_insert(REFUSED_WAIT);
                // The refusal concerns the host's own login, not the request.
                fault.status = None;
                fault.message += "; check the role, its credential, and where the login is mounted";
            }
            return Err(fault);
        }
        let grant = reply
            .read::<LoggedIn>()
            .map_err(|trouble| failed(&trouble))?
            .auth;
        let token = grant
            .client_token
            .as_ref()
            .ok_or_else(|| failed(&reply.unreadable()))?;
        Ok((header(token, &what)?, grant))
    }

    async fn look_up(&self, token: &HeaderValue) -> Result<Reply, Trouble> {
        self.client
            .send(Request {
                method: &Method::GET,
                path: LOOK_UP,
                token: Some(token),
                body: None,
            })
            .await
    }

    /// Renews the session again and again, while there is one.
    async fn keep(self: Arc<Self>) {
        loop {
            let session = self.state().session.clone();
            let renew_at = session.as_ref().and_then(|one| one.lease?.renew_at);
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = until(self.clock.clone(), renew_at) => {
                    if let Some(session) = session {
                        self.renew(&session).await;
                    }
                }
            }
        }
    }

    async fn renew(&self, session: &Session) {
        let asked = self.clock.now();
        let request = Request {
            method: &Method::POST,
            path: RENEW,
            token: Some(&session.token),
            body: Some("{}"),
        };
        let answer = match self.client.send(request).await {
            Ok(reply) if reply.is_success() => reply.read::<LoggedIn>(),
            Ok(reply) if matches!(reply.status, 400..=404) || reply.said() == Said::LifeIsOver => {
                return self.give_up(session, &reply).await;
            }
            Ok(reply) => Err(reply.trouble()),
            Err(trouble) => Err(trouble),
        };
        let Some(known) = session.lease else { return };
        let lease = match answer {
            Ok(LoggedIn { auth }) => {
                tracing::debug!(
                    seconds = auth.lease_duration,
                    "the login at Vault was renewed"
                );
                self.lease(&auth, known.whole, asked, session.number)
            }
            Err(trouble) => {
                let fault = trouble.fault(Step::Login, "renew the token");
                let now = self.clock.now();
                let wait = (known.ends.since(now) / 4)
                    .max(trouble.retry_after.unwrap_or(MIN_WAIT))
                    .max(MIN_WAIT);
                tracing::warn!(%fault, ?wait, "the login at Vault was not renewed; it is tried again");
                Some(Lease {
                    renew_at: Some(now.after(wait)).filter(|at| *at < known.ends),
                    ..known
                })
            }
        };
        self.replace(session, lease);
    }

    /// A session that Vault does not renew: either its token has ended, or it may be used until it does.
    async fn give_up(&self, session: &Session, refusal: &Reply) {
        let fault = refusal.trouble().fault(Step::Login, "renew the token");
        if self.is_known(session).await.unwrap_or(true) {
            tracing::warn!(%fault, "the login at Vault cannot be renewed; it is made anew when it has ended");
            let lease = session.lease.map(|lease| Lease {
                renew_at: None,
                ..lease
            });
            self.replace(session, lease);
        } else {
            tracing::warn!(%fault, "the login at Vault has ended; the next request logs in anew");
            self.forget(session);
        }
    }

    fn replace(&self, session: &Session, lease: Option<Lease>) {
        let mut state = self.state();
        if let Some(current) = state
            .session
            .as_mut()
            .filter(|one| one.number == session.number)
        {
            *current = Arc::new(Session {
                lease,
                ..session.clone()
            });
        }
    }

    /// The lease that was granted at this time, to be renewed when about two thirds are over. One that is much shorter
    /// than the first has met the longest life of its token, and ends.
    fn lease(&self, grant: &Grant, whole: Duration, at: Timestamp, number: u64) -> Option<Lease> {
        let granted = grant.lease();
        if granted.is_zero() {
            return None;
        }
        let can_grow = grant.renewable && granted * 2 > whole;
        let seed = self.seed ^ mix(number) ^ at.as_millis().unsigned_abs();
        let wait = granted * 3 / 5 + spread(granted / 10, seed);
        Some(Lease {
            whole,
            ends: at.after(granted),
            renew_at: can_grow.then(|| at.after(wait)),
        })
    }
}

/// The credential, as it is now.
fn credential(text: Option<&SecretText>, file: Option<&Path>) -> Result<SecretText, Fault> {
    let credential = match (text, file) {
        (Some(text), _) => text.clone(),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file).map_err(|error| {
                let file = file.display();
                unavailable(format!(
                    "the credential for Vault in {file} cannot be read: {error}"
                ))
            })?;
            text.trim().to_owned().into()
        }
        (None, None) => String::new().into(),
    };
    if credential.reveal().is_empty() {
        let place = file.map_or_else(String::new, |file| format!(" in {}", file.display()));
        return Err(unavailable(format!(
            "the credential for Vault{place} is empty"
        )));
    }
    Ok(credential)
}

fn header(token: &SecretText, what: &str) -> Result<HeaderValue, Fault> {
    let mut value = HeaderValue::from_str(token.reveal())
        .ok()
        .filter(|value| !value.is_empty())
        .ok_or_else(|| unavailable(format!("{what}: what was given is no token")))?;
    value.set_sensitive(true);
    Ok(value)
}

fn unavailable(message: String) -> Fault {
    Fault::new(FaultKind::SecretstoreUnavailable, message)
}
