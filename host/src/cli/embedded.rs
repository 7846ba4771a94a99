//! The embedded default: an API, a config store and a secret store that need no server.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use configurator_apiserver::{ApiServer, ApiServerOptions};
use configurator_background::work::Background;
use configurator_store::{Store, StoreOptions};
use kube::Client;

use super::settings::{Settings, user_folder};
use crate::clock::{Clock as _, SystemClock};
use crate::sinks::configstore::EmbeddedConfigStore;
use crate::sinks::secretstore::{EmbeddedSecretStore, SealingKey};

/// Opens the embedded config store: under the data folder, or in memory without one.
///
/// # Errors
/// When its file is damaged, held by another process, or cannot be made.
pub fn open_config_store(settings: &Settings) -> anyhow::Result<EmbeddedConfigStore> {
    Ok(match &settings.data_dir {
        None => EmbeddedConfigStore::memory(),
        Some(folder) => {
            make_folder(folder)?;
            EmbeddedConfigStore::open(&folder.join("config.redb"))?
        }
    })
}

/// Opens the embedded secret store: under the data folder, or in memory without one.
///
/// # Errors
/// When its file is damaged, held by another process, sealed with another key, or cannot be made.
pub async fn open_secret_store(settings: &Settings) -> anyhow::Result<EmbeddedSecretStore> {
    Ok(match &settings.data_dir {
        None => EmbeddedSecretStore::memory(&SealingKey::random()?),
        Some(folder) => {
            make_folder(folder)?;
            let sealed = folder.join("secrets.redb");
            let key = sealing_key(settings, &sealed)?;
            EmbeddedSecretStore::open(&sealed, &key).await?
        }
    })
}

/// Opens the embedded API: under the data folder, or in memory without one. It encodes large lists in this background.
///
/// # Errors
/// When its file is damaged, held by another process, or cannot be made.
pub async fn open_api(settings: &Settings, background: Background) -> anyhow::Result<ApiServer> {
    let store = match &settings.data_dir {
        None => Store::memory(),
        Some(folder) => {
            make_folder(folder)?;
            Store::open(&folder.join("cluster.redb"), StoreOptions::default())?
        }
    };
    ApiServer::open(store, api_options(background))
        .await
        .context("the embedded API cannot be opened")
}

fn api_options(background: Background) -> ApiServerOptions {
    let mut options = ApiServerOptions::new(|| {
        jiff::Timestamp::from_millisecond(SystemClock.now().as_millis()).unwrap_or_default()
    });
    options.background = background;
    options
}

/// Creates a background as the settings say.
pub fn background(settings: &Settings) -> Background {
    let given = settings.background_work;
    given.map_or_else(Background::default, |work| Background::new(work.get()))
}

/// A client that speaks to the embedded API without a socket.
pub fn client(server: &ApiServer) -> Client {
    Client::new(server.clone(), "default")
}

/// Makes the data folder for its owner alone: the token and the key of the API lie in it.
fn make_folder(folder: &Path) -> anyhow::Result<()> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .with_context(|| format!("cannot make the data folder {}", folder.display()))
}

/// The key of the store `sealed`. Without one, a new one is made, unless the store exists.
fn sealing_key(settings: &Settings, sealed: &Path) -> anyhow::Result<SealingKey> {
    if let Some(text) = &settings.secret_key {
        return Ok(SealingKey::from_text(text, "the setting secret_key")?);
    }
    let file: PathBuf = match &settings.secret_key_file {
        Some(file) => file.clone(),
        None => user_folder("XDG_CONFIG_HOME", ".config")
            .context("there is no home folder to keep the key of the secret store in; give --secret-key-file")?
            .join("secret.key"),
    };
    if sealed.exists() && !file.exists() {
        anyhow::bail!(
            "{} is sealed with a key that was in {}, which is gone: put the key back, or move the store away to start with an empty one",
            sealed.display(),
            file.display()
        );
    }
    Ok(SealingKey::from_file(&file)?)
}

/// Writes a file that only its owner may read, whole or not at all.
///
/// # Errors
/// When the operating system refuses.
pub fn write_private(file: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let aside = file.with_extension("new");
    let write = || {
        let mut open = std::fs::OpenOptions::new();
        let mut new = open
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&aside)?;
        new.write_all(text.as_bytes())?;
        new.sync_all()?;
        std::fs::rename(&aside, file)
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}
