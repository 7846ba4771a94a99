//! The secret store on Vault, by its KV engine of version 2.
//!
//! Every write is a check-and-set, so what a lost answer leaves open is decided by reading what is there.

mod client;
mod name;
mod options;
mod session;
mod trouble;

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::OnceCell;

pub use self::client::VaultError;
use self::client::{Client, Reply, Request};
use self::name::{is_path, path_of, plain};
pub use self::options::{SecretText, VaultAuth, VaultOptions};
use self::session::Sessions;
use self::trouble::{Said, Step, Trouble};
use super::{Secret, SecretStore, generic, other_version, sealing_key};
use crate::clock::{Clock, SystemClock};

/// How often a secret is looked at anew because others wrote it meanwhile.
const MAX_CONFLICTS: u32 = 8;

/// A secret store on Vault's KV engine of version 2.
///
/// A value lies in the field `json` as text, so that it comes back as it went in. Of what others wrote, the fields are
/// the value. Deleting hides the version that was there; numbers go on counting after it.
pub struct VaultSecretStore {
    client: Arc<Client>,
    sessions: Arc<Sessions>,
    mount: String,
    prefix: String,
    /// Set once the mount has been seen to be of version 2.
    is_checked: OnceCell<()>,
}

/// What lies under a name.
enum Found {
    /// A secret.
    Secret(Secret),
    /// None; the last one had this version, or there never was one.
    None { last: u64 },
}

/// The result of a write with check-and-set.
enum Written {
    /// It has this version.
    Version(u64),
    /// Somebody else wrote first.
    Conflict(Fault),
}

#[derive(Deserialize)]
struct Data<T> {
    data: Option<T>,
}

#[derive(Deserialize)]
struct Stored<'a> {
    #[serde(borrow)]
    data: &'a RawValue,
    metadata: Metadata,
}

/// Of a secret that is gone the engine knows the version; of one that never was it says that there is no error.
#[derive(Deserialize)]
struct Absent {
    data: Option<Gone>,
    errors: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Gone {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    version: u64,
}

#[derive(Deserialize)]
struct Keys {
    keys: Vec<String>,
}

#[derive(Deserialize)]
struct Mount {
    path: String,
    #[serde(rename = "type")]
    engine: String,
    options: Option<MountOptions>,
}

#[derive(Deserialize)]
struct MountOptions {
    version: Option<String>,
}

/// The field that holds a value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    json: String,
}

impl VaultSecretStore {
    /// A store with these options. Nobody is spoken to before the first request.
    ///
    /// TLS is done by the provider that the process has installed; where there is none, by `ring`, which is then installed.
    ///
    /// # Errors
    /// When an option has no sense, or the file of the authority cannot be read.
    pub fn new(options: VaultOptions) -> Result<Self, VaultError> {
        Self::with_clock(options, SystemClock)
    }

    /// The same with a clock of its own, by which logins are renewed.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_clock(options: VaultOptions, clock: impl Clock) -> Result<Self, VaultError> {
        let client = Arc::new(Client::new(&options)?);
        let mount = options.mount.trim_matches('/').to_owned();
        let prefix = options.prefix.trim_matches('/').to_owned();
        check_path("mount", &mount)?;
        if !prefix.is_empty() {
            check_path("prefix", &prefix)?;
        }
        match &options.auth {
            VaultAuth::Token { token, token_file } => {
                check_credential("token", token.is_some(), token_file.is_some())?;
            }
            VaultAuth::AppRole {
                mount,
                secret_id,
                secret_id_file,
                ..
            } => {
                check_path("mount of the login", mount)?;
                check_credential("secret_id", secret_id.is_some(), secret_id_file.is_some())?;
            }
            VaultAuth::Kubernetes { mount, .. } => check_path("mount of the login", mount)?,
        }
        let seed = u64::from_le_bytes(sealing_key::random::<8>().map_err(VaultError::Random)?);
        Ok(Self {
            sessions: Sessions::new(client.clone(), options.auth, Arc::new(clock), seed),
            client,
            mount,
            prefix,
            is_checked: OnceCell::new(),
        })
    }

    /// What lies under a name.
    async fn read(&self, what: &str, name: &str) -> Result<Found, Fault> {
        self.is_checked
            .get_or_try_init(|| self.check_mount(what, name))
            .await?;
        let reply = self
            .ask(what, &Method::GET, &self.path("data", name), None)
            .await?;
        let failed = |trouble: Trouble| trouble.fault(Step::Request, what);
        match reply.status {
            200 => {
                let stored: Data<Stored<'_>> = reply.read().map_err(failed)?;
                let Some(Stored { data, metadata }) = stored.data else {
                    return Err(failed(reply.unreadable()));
                };
                Ok(Found::Secret(Secret {
                    version: metadata.version,
                    value: value_of(data)
                        .map_err(|error| generic(format!("{what}: the value is {error}")))?,
                }))
            }
            404 if reply.said() == Said::NoHandler => Err(self.no_mount(what)),
            404 => {
                let absent: Absent = reply.read().map_err(failed)?;
                match absent {
                    Absent {
                        data: Some(gone), ..
                    } => Ok(Found::None {
                        last: gone.metadata.version,
                    }),
                    Absent {
                        errors: Some(errors),
                        ..
                    } if errors.is_empty() => Ok(Found::None { last: 0 }),
                    // Something else, which does not know what there is.
                    Absent { .. } => Err(failed(reply.unreadable())),
                }
            }
            _ => Err(refusal(what, &reply)),
        }
    }

    /// Sees to it that the mount is of version 2. What is wrong with it concerns the host's whole access, and ends without
    /// a change of any object: the store is away until then. Version 1 answers alike to a name that it does not hold, and overwrites.
    async fn check_mount(&self, what: &str, name: &str) -> Result<(), Fault> {
        let path = format!("sys/internal/ui/mounts/{}", plain(&self.mount));
        let reply = self.ask(what, &Method::GET, &path, None).await?;
        let failed = |trouble: Trouble| trouble.fault(Step::Request, what);
        if reply.status == 403 {
            // Said of a mount that is missing, and of one where the token may do nothing at all.
            let reply = self
                .ask(what, &Method::GET, &self.path("data", name), None)
                .await?;
            return Err(match reply.said() {
                Said::NoHandler => self.no_mount(what),
                _ if reply.is_success() || reply.status == 404 => Fault::new(
                    FaultKind::ResourcePermission,
                    format!(
                        "{what}: Vault does not say what is mounted at {}/: allow reading {path}",
                        self.mount
                    ),
                ),
                _ => refusal(what, &reply),
            });
        }
        if !reply.is_success() {
            return Err(refusal(what, &reply));
        }
        let mount: Data<Mount> = reply.read().map_err(failed)?;
        let Some(mount) = mount.data else {
            return Err(failed(reply.unreadable()));
        };
        if mount.path.trim_end_matches('/') != self.mount {
            return Err(self.no_mount(what));
        }
        let version = mount.options.and_then(|options| options.version);
        match (mount.engine.as_str(), version.as_deref()) {
            ("kv", Some("2")) => Ok(()),
            ("kv" | "generic", _) => Err(self.no_versions(what)),
            (engine, _) => Err(unavailable(format!(
                "{what}: what Vault has mounted at {}/ is {engine:?}; a KV engine of version 2 is needed",
                self.mount
            ))),
        }
    }

    fn no_mount(&self, what: &str) -> Fault {
        unavailable(format!(
            "{what}: Vault has nothing mounted at {mount}/: mount a KV engine of version 2 there with `vault secrets enable -path={mount} kv-v2`, or correct the setting `mount`",
            mount = self.mount
        ))
    }

    fn no_versions(&self, what: &str) -> Fault {
        unavailable(format!(
            "{what}: the KV engine that Vault has mounted at {mount}/ is of version 1, which cannot write without overwriting: upgrade it with `vault kv enable-versioning {mount}`, or correct the setting `mount`",
            mount = self.mount
        ))
    }

    /// The path of a folder, which ends with a `/` here, but not there.
    fn folder(&self, folder: &str) -> String {
        self.path("metadata", folder.trim_end_matches('/'))
    }

    /// The keys in a folder. Those that are folders end with a `/`.
    /// Writes a value after the version `last`.
    async fn write(
        &self,
        what: &str,
        name: &str,
        last: u64,
        value: &Document,
    ) -> Result<Written, Fault> {
        let body = json!({"options": {"cas": last}, "data": {"json": value.as_str()}});
        let path = self.path("data", name);
        let reply = self
            .ask(what, &Method::POST, &path, Some(&body.to_string()))
            .await?;
        if reply.status == 204 {
            // The answer of version 1, which was mounted here since.
            return Err(self.no_versions(what));
        }
        let failed = |trouble: Trouble| trouble.fault(Step::Request, what);
        if reply.is_success() {
            let written: Data<Metadata> = reply.read().map_err(failed)?;
            return match written.data {
                Some(Metadata { version }) => Ok(Written::Version(version)),
                None => Err(failed(reply.unreadable())),
            };
        }
        match reply.said() {
            Said::CheckAndSet => Ok(Written::Conflict(failed(reply.trouble()))),
            Said::NoHandler => Err(self.no_mount(what)),
            Said::Upgrading | Said::NoActiveNode | Said::LifeIsOver | Said::Nothing => {
                Err(refusal(what, &reply))
            }
        }
    }

    async fn list(&self, what: &str, folder: &str) -> Result<Vec<String>, Fault> {
        let list = Method::from_bytes(b"LIST").map_err(|error| generic(error.to_string()))?;
        let reply = self.ask(what, &list, folder, None).await?;
        match reply.status {
            200 => {
                let listed: Data<Keys> = reply
                    .read()
                    .map_err(|trouble: Trouble| trouble.fault(Step::Request, what))?;
                Ok(listed.data.map(|listed| listed.keys).unwrap_or_default())
            }
            404 if reply.said() == Said::NoHandler => Err(self.no_mount(what)),
            404 => Ok(Vec::new()),
            _ => Err(refusal(what, &reply)),
        }
    }

    fn path(&self, kind: &str, name: &str) -> String {
        let below = path_of(&self.prefix, name);
        format!("{}/{kind}/{below}", plain(&self.mount))
    }

    /// Sends a request as whoever is logged in. Where Vault refuses because the login has ended, logs in anew and sends
    /// it again: it was not carried out.
    async fn ask(
        &self,
        what: &str,
        method: &Method,
        path: &str,
        body: Option<&str>,
    ) -> Result<Reply, Fault> {
        let session = self.sessions.current().await?;
        let send = async |session: &session::Session| {
            let request = Request {
                method,
                path,
                token: Some(session.token()),
                body,
            };
            let reply = self.client.send(request).await;
            reply.map_err(|trouble| trouble.fault(Step::Request, what))
        };
        let reply = send(&session).await?;
        if reply.status != 403 || self.sessions.is_known(&session).await? {
            return Ok(reply);
        }
        tracing::info!("Vault does not know the login any more; logging in anew");
        self.sessions.forget(&session);
        let session = self.sessions.current().await?;
        send(&session).await
    }
}

#[async_trait]
impl SecretStore for VaultSecretStore {
    async fn get(&self, name: &str) -> Result<Option<Secret>, Fault> {
        match self.read(&format!("get secret {name:?}"), name).await? {
            Found::Secret(secret) => Ok(Some(secret)),
            Found::None { .. } => Ok(None),
        }
    }

    async fn create(&self, name: &str, value: Document) -> Result<(Secret, bool), Fault> {
        let what = format!("create secret {name:?}");
        let mut conflict = None;
        for _ in 0..MAX_CONFLICTS {
            let last = match self.read(&what, name).await? {
                Found::Secret(secret) => return Ok((secret, false)),
                Found::None { last } => last,
            };
            match self.write(&what, name, last, &value).await? {
                Written::Version(version) => return Ok((Secret { version, value }, true)),
                Written::Conflict(fault) => conflict = Some(fault),
            }
        }
        Err(conflict.unwrap_or_else(|| generic(what)))
    }

    async fn update(
        &self,
        name: &str,
        version: u64,
        value: Document,
    ) -> Result<(Secret, bool), Fault> {
        let what = format!("update secret {name:?}");
        let last = match self.read(&what, name).await? {
            Found::Secret(secret) if secret.version == version => version,
            Found::Secret(secret) if secret.value == value => return Ok((secret, false)),
            Found::Secret(secret) => return Err(other_version(name, version, secret.version)),
            Found::None { last } if version == 0 => last,
            Found::None { .. } => return Err(other_version(name, version, 0)),
        };
        match self.write(&what, name, last, &value).await? {
            Written::Version(version) => Ok((Secret { version, value }, true)),
            Written::Conflict(fault) => Err(fault),
        }
    }

    async fn delete(&self, name: &str) -> Result<bool, Fault> {
        let what = format!("delete secret {name:?}");
        let Found::Secret(Secret { version, .. }) = self.read(&what, name).await? else {
            return Ok(false);
        };
        // This version and no other: what somebody has written since stays.
        let body = json!({"versions": [version]}).to_string();
        let reply = self
            .ask(
                &what,
                &Method::POST,
                &self.path("delete", name),
                Some(&body),
            )
            .await?;
        if reply.is_success() {
            Ok(true)
        } else {
            Err(refusal(&what, &reply))
        }
    }

    async fn delete_all(&self, folder: &str) -> Result<(), Fault> {
        let what = format!("delete the secrets below {folder:?}");
        let mut folders = vec![self.folder(folder)];
        while let Some(folder) = folders.pop() {
            for key in self.list(&what, &folder).await? {
                let path = format!("{folder}/{}", plain(key.trim_end_matches('/')));
                if key.ends_with('/') {
                    folders.push(path);
                    continue;
                }
                // With all of its versions.
                let reply = self.ask(&what, &Method::DELETE, &path, None).await?;
                if !reply.is_success() && reply.status != 404 {
                    return Err(refusal(&what, &reply));
                }
            }
        }
        Ok(())
    }

    async fn folders(&self, folder: &str) -> Result<BTreeSet<String>, Fault> {
        let what = format!("list the secrets below {folder:?}");
        let keys = self.list(&what, &self.folder(folder)).await?;
        let folders = keys.iter().filter_map(|key| key.strip_suffix('/'));
        Ok(folders.map(str::to_owned).collect())
    }

    async fn probe(&self) -> Result<(), Fault> {
        const WHAT: &str = "the secret store";
        let failed = |trouble: Trouble| trouble.fault(Step::Login, WHAT);
        self.client.probe().await.map_err(failed)?;
        // Health says nothing of whether there is a login, an active node, and a storage that answers.
        let session = self.sessions.current().await?;
        if !self.sessions.is_known(&session).await? {
            self.sessions.forget(&session);
            self.sessions.current().await?;
        }
        match self.check_mount(WHAT, "probe").await {
            Err(fault) if fault.kind == FaultKind::SecretstoreUnavailable => Err(fault),
            // What the login may do is a matter of each request.
            _ => Ok(()),
        }
    }
}

impl Drop for VaultSecretStore {
    fn drop(&mut self) {
        self.sessions.end();
    }
}

fn unavailable(message: String) -> Fault {
    Fault::new(FaultKind::SecretstoreUnavailable, message)
}

/// The fault of an answer that is no success.
fn refusal(what: &str, reply: &Reply) -> Fault {
    let mut fault = reply.trouble().fault(Step::Request, what);
    if reply.status == 403 {
        fault.message += "; a policy of the host's token has to allow it";
    }
    fault
}

/// The value in the fields of a secret.
fn value_of(data: &RawValue) -> Result<Document, configurator_core::document::DocumentError> {
    let ours = serde_json::from_str::<Field>(data.get())
        .ok()
        .and_then(|field| Document::parse(field.json).ok());
    match ours {
        Some(value) => Ok(value),
        None => Document::parse(data.get()),
    }
}

fn check_path(setting: &'static str, path: &str) -> Result<(), VaultError> {
    if is_path(path) {
        Ok(())
    } else {
        Err(VaultError::Path {
            setting,
            path: path.to_owned(),
        })
    }
}

fn check_credential(setting: &'static str, text: bool, file: bool) -> Result<(), VaultError> {
    if text == file {
        Err(VaultError::Credential { setting })
    } else {
        Ok(())
    }
}
