//! All sources of a host as one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use configurator_guest::bytes::ModuleBytes;

#[cfg(feature = "oci")]
use super::oci::Registries;
use super::{
    ConfigMaps, Copies, Fetched, ModuleDirectory, ModulePolicy, ModuleSource, SourceError,
};
use crate::resource::ModuleSpec;

/// The sources of a host, each for the Configurators that name it: `spec.module.file`, `configMap` or `oci`.
///
/// With copies, a module that `spec.module.digest` pins is also found where its source has another one by now, or cannot be asked.
#[derive(Default)]
pub struct ModuleSources {
    files: Option<ModuleDirectory>,
    config_maps: Option<ConfigMaps>,
    #[cfg(feature = "oci")]
    registries: Option<Registries>,
    copies: Option<Arc<Copies>>,
    policy: Arc<ModulePolicy>,
}

impl ModuleSources {
    /// None yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With files.
    #[must_use]
    pub fn files(mut self, files: ModuleDirectory) -> Self {
        self.files = Some(files);
        self
    }

    /// With ConfigMaps.
    #[must_use]
    pub fn config_maps(mut self, config_maps: ConfigMaps) -> Self {
        self.config_maps = Some(config_maps);
        self
    }

    /// With registries of OCI artifacts, which have the policy of these.
    #[cfg(feature = "oci")]
    #[must_use]
    pub fn registries(mut self, registries: Registries) -> Self {
        self.registries = Some(registries);
        self
    }

    /// With copies of what was fetched.
    #[must_use]
    pub fn copies(mut self, copies: Arc<Copies>) -> Self {
        self.copies = Some(copies);
        self
    }

    /// With a policy for all of them.
    #[must_use]
    pub fn policy(mut self, policy: Arc<ModulePolicy>) -> Self {
        self.policy = policy;
        self
    }

    fn source(&self, module: &ModuleSpec) -> Result<&dyn ModuleSource, SourceError> {
        let files = self.files.as_ref().map(|files| files as &dyn ModuleSource);
        let maps = self.config_maps.as_ref();
        let maps = maps.map(|maps| maps as &dyn ModuleSource);
        #[cfg(feature = "oci")]
        let registries = self.registries.as_ref();
        #[cfg(feature = "oci")]
        let registries = registries.map(|registries| registries as &dyn ModuleSource);
        #[cfg(not(feature = "oci"))]
        let registries = None;
        let sources = [
            ("file", module.file.is_some(), files),
            ("configMap", module.config_map.is_some(), maps),
            ("oci", module.oci.is_some(), registries),
        ];
        let named = sources.iter().find(|(_, is_named, _)| *is_named);
        named.and_then(|(_, _, source)| *source).ok_or_else(|| {
            let known = sources.iter().filter(|(_, _, source)| source.is_some());
            let known: Vec<&str> = known.map(|(name, _, _)| *name).collect();
            SourceError::NoSource {
                known: known.join(", "),
            }
        })
    }

    async fn keep(&self, bytes: ModuleBytes) {
        if let Some(copies) = self.copies.clone() {
            let _ = tokio::task::spawn_blocking(move || copies.put(&bytes)).await;
        }
    }

    async fn copy(&self, digest: &str) -> Option<ModuleBytes> {
        let copies = self.copies.clone()?;
        let digest = digest.to_owned();
        let found = tokio::task::spawn_blocking(move || copies.get(&digest)).await;
        found.ok().flatten()
    }
}

#[async_trait]
impl ModuleSource for ModuleSources {
    async fn fetch(&self, module: &ModuleSpec) -> Result<Fetched, SourceError> {
        let source = self.source(module)?;
        if module.oci.is_none() {
            self.policy.check_unsigned(module)?;
        }
        let fetched = source.fetch(module).await;
        let has =
            |fetched: &Fetched, digest: &String| fetched.bytes.digest().to_string() == *digest;
        let digest = match (&fetched, &module.digest) {
            (Err(SourceError::Policy(_) | SourceError::Outside { .. }), _) | (Err(_), None) => {
                return fetched;
            }
            (Ok(fetched), Some(digest)) if !has(fetched, digest) => digest,
            (Err(_), Some(digest)) => digest,
            (Ok(found), _) => {
                self.keep(found.bytes.clone()).await;
                return fetched;
            }
        };
        // A registry vouches for its own copies: only it knows who has signed them.
        match self.copy(digest).await {
            Some(bytes) if module.oci.is_none() => Ok(bytes.into()),
            _ => fetched,
        }
    }

    async fn version(&self, module: &ModuleSpec) -> Result<Option<String>, SourceError> {
        self.source(module)?.version(module).await
    }

    fn interval(&self, module: &ModuleSpec) -> Duration {
        self.source(module)
            .map_or(Duration::from_secs(1), |source| source.interval(module))
    }
}
