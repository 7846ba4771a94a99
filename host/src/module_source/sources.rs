//! All sources of a host as one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use configurator_guest::bytes::ModuleBytes;

#[cfg(feature = "oci")]
use super::oci::Registries;
use super::{
    ConfigMaps, Copies, Fetched, ModuleDirectory, ModulePolicies, ModulePolicy, ModuleSource,
    SourceError,
};
use crate::resource::ModuleSpec;

/// The sources of a host, each for the Configurators that name it: `spec.module.file`, `configMap` or `oci`.
///
/// With copies, a module that `spec.module.digest` pins is also found where its source has another one by now, or cannot be asked. What came from
/// one kind of source is never found for another: each kind has rules of its own for what may run.
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

    /// The source that a Configurator names, and its kind.
    fn source(
        &self,
        module: &ModuleSpec,
    ) -> Result<(&'static str, &dyn ModuleSource), SourceError> {
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
        let named = named.and_then(|(kind, _, source)| Some((*kind, (*source)?)));
        named.ok_or_else(|| {
            let known = sources.iter().filter(|(_, _, source)| source.is_some());
            let known: Vec<&str> = known.map(|(name, _, _)| *name).collect();
            SourceError::NoSource {
                known: known.join(", "),
            }
        })
    }

    /// Keeps a module that this kind of source has given.
    async fn keep(&self, kind: &'static str, bytes: ModuleBytes) {
        if let Some(copies) = self.copies.clone() {
            let keep = move |copies: &Copies| {
                copies.put(&bytes);
                copies.put_record(&origin(kind, &bytes.digest().to_string()), &kind);
            };
            copies.on_thread(keep).await;
        }
    }

    /// The module of this digest, where this kind of source has given it before.
    async fn copy(&self, kind: &'static str, digest: &str) -> Option<ModuleBytes> {
        let copies = self.copies.clone()?;
        let digest = digest.to_owned();
        let find = move |copies: &Copies| {
            copies.record::<String>(&origin(kind, &digest))?;
            copies.get(&digest)
        };
        copies.on_thread(find).await.flatten()
    }
}

/// Under what name it is recorded that a kind of source has given the module of this digest.
fn origin(kind: &str, digest: &str) -> String {
    format!("{kind} {digest}")
}

#[async_trait]
impl ModuleSource for ModuleSources {
    async fn fetch(
        &self,
        module: &ModuleSpec,
        policies: &ModulePolicies,
    ) -> Result<Fetched, SourceError> {
        let (kind, source) = self.source(module)?;
        // A registry has copies of its own, and vouches for them: only it knows who has signed them.
        if module.oci.is_some() {
            return source.fetch(module, policies).await;
        }
        policies.and(&self.policy).check_unsigned(module)?;
        let fetched = source.fetch(module, policies).await;
        let has =
            |fetched: &Fetched, digest: &String| fetched.bytes.digest().to_string() == *digest;
        let digest = match (&fetched, &module.digest) {
            (Err(SourceError::Policy(_) | SourceError::Outside { .. }), _) | (Err(_), None) => {
                return fetched;
            }
            (Ok(fetched), Some(digest)) if !has(fetched, digest) => digest,
            (Err(_), Some(digest)) => digest,
            (Ok(found), _) => {
                self.keep(kind, found.bytes.clone()).await;
                return fetched;
            }
        };
        match self.copy(kind, digest).await {
            Some(bytes) => Ok(bytes.into()),
            None => fetched,
        }
    }

    async fn version(
        &self,
        module: &ModuleSpec,
        policies: &ModulePolicies,
    ) -> Result<Option<String>, SourceError> {
        self.source(module)?.1.version(module, policies).await
    }

    fn interval(&self, module: &ModuleSpec) -> Duration {
        self.source(module)
            .map_or(Duration::from_secs(1), |(_, source)| {
                source.interval(module)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module_source::DEFAULT_COPIES;

    fn named(file: &str, bytes: &[u8]) -> ModuleSpec {
        ModuleSpec {
            file: Some(file.to_owned()),
            digest: Some(ModuleBytes::from(bytes).digest().to_string()),
            ..ModuleSpec::default()
        }
    }

    #[tokio::test]
    async fn what_a_file_was_is_found_again_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let copies = Copies::open(folder.path().join("copies"), DEFAULT_COPIES).unwrap();
        let copies = Arc::new(copies);
        let policies = ModulePolicies::default();
        let sources = ModuleSources::new()
            .files(ModuleDirectory::new(folder.path()))
            .copies(copies.clone());
        let file = folder.path().join("a.wasm");
        std::fs::write(&file, b"one").unwrap();
        let fetched = sources
            .fetch(&named("a.wasm", b"one"), &policies)
            .await
            .unwrap();
        assert_eq!(*fetched.bytes, *b"one");

        // The file has something else, has gone, or has another name by now.
        std::fs::write(&file, b"two").unwrap();
        for name in ["a.wasm", "b.wasm"] {
            let fetched = sources
                .fetch(&named(name, b"one"), &policies)
                .await
                .unwrap();
            assert_eq!(*fetched.bytes, *b"one");
        }
        // What is there without ever having been a file came from a source with other rules.
        copies.put(&b"three".into());
        let fetched = sources
            .fetch(&named("a.wasm", b"three"), &policies)
            .await
            .unwrap();
        assert_eq!(*fetched.bytes, *b"two");
        let missing = sources.fetch(&named("b.wasm", b"three"), &policies).await;
        assert!(matches!(missing, Err(SourceError::Io { .. })));
    }
}
