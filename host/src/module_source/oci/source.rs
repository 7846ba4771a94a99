//! Modules that are pulled from registries.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use configurator_guest::bytes::ModuleBytes;
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use oci_client::Reference;
use serde::{Deserialize, Serialize};

use super::super::{
    Copies, Fetched, ModulePolicies, ModulePolicy, ModuleSource, PolicyError, SourceError,
};
use super::access::Access;
use super::artifact::Artifact;
use super::client::{Registry, RegistryError, RegistryOptions, repository};
use super::login::Login;
use super::signature::{Signature, Signer, is_signed};
use crate::objects;
use crate::resource::{ModuleSpec, OciSpec, SecretReference};

/// The type of Secrets that are logins.
const LOGINS: &str = "kubernetes.io/dockerconfigjson";
/// Their key.
const LOGINS_KEY: &str = ".dockerconfigjson";
/// How often a tag is resolved at most.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// Modules are artifacts in registries, held to a policy.
///
/// A reference or a digest that was pulled is found among the copies afterwards: what is pinned is not pulled again, and while a registry is away,
/// a tag stands for what it stood for last. Signatures are kept with the copies, and verified each time.
pub struct Registries {
    access: Arc<Access>,
    policy: Arc<ModulePolicy>,
    copies: Option<Arc<Copies>>,
    secrets: Option<Client>,
}

/// What was pulled, so that it is found without the registry.
#[derive(Serialize, Deserialize)]
struct Pulled {
    manifest: String,
    signatures: Vec<Signature>,
}

impl Registries {
    /// Reached so, and held to this policy.
    #[must_use]
    pub fn new(options: &RegistryOptions, policy: Arc<ModulePolicy>) -> Self {
        Self {
            access: Arc::new(Access::new(options)),
            policy,
            copies: None,
            secrets: None,
        }
    }

    /// With copies of what was pulled.
    #[must_use]
    pub fn copies(mut self, copies: Arc<Copies>) -> Self {
        self.copies = Some(copies);
        self
    }

    /// With the Secrets of this cluster for `spec.module.oci.pullSecret`.
    #[must_use]
    pub fn pull_secrets(mut self, client: Client) -> Self {
        self.secrets = Some(client);
        self
    }

    fn reference(
        &self,
        oci: &OciSpec,
        policies: &ModulePolicies,
    ) -> Result<Reference, SourceError> {
        let reference: Reference = oci.reference.parse().map_err(|error| {
            let text = &oci.reference;
            SourceError::Refused(format!(
                "module.oci.reference {text:?} is no name in a registry, as ghcr.io/team/greeter:1.2: {error}"
            ))
        })?;
        let repository = repository(&reference);
        for policy in policies.iter() {
            policy.check_repository(&repository)?;
        }
        Ok(reference)
    }

    async fn registry(&self, oci: &OciSpec, reference: Reference) -> Result<Registry, SourceError> {
        let login = match &oci.pull_secret {
            Some(secret) => self.login(secret, &reference).await?,
            None => Login::anonymous(),
        };
        Ok(Registry::through(self.access.clone(), reference, login)?)
    }

    async fn login(
        &self,
        secret: &SecretReference,
        reference: &Reference,
    ) -> Result<Login, SourceError> {
        let SecretReference { namespace, name } = secret;
        let refused =
            |what: &str| SourceError::Refused(format!("the pull secret {namespace}/{name} {what}"));
        let Some(client) = &self.secrets else {
            return Err(refused("cannot be read: this host has no cluster for it"));
        };
        let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
        let found = api.get_opt(name).await.map_err(|error| {
            let error = objects::explained(&error);
            SourceError::Unavailable(format!(
                "the pull secret {namespace}/{name} cannot be read: {error}"
            ))
        })?;
        let found = found.ok_or_else(|| refused("is not there"))?;
        if found.type_.as_deref() != Some(LOGINS) {
            return Err(refused(&format!(
                "is of another type than {LOGINS}: make it with `kubectl create secret docker-registry`"
            )));
        }
        let data = found.data.unwrap_or_default();
        let text = data
            .get(LOGINS_KEY)
            .ok_or_else(|| refused(&format!("has no {LOGINS_KEY}")))?;
        let login = Login::of(&text.0, reference.registry(), reference.repository());
        login
            .map_err(|error| refused(&format!("cannot be used: {error}")))?
            .ok_or_else(|| refused(&format!("has no login at {}", reference.registry())))
    }

    /// Checks that each policy that wants a signature finds one among these.
    fn check_signatures(
        &self,
        policies: &ModulePolicies,
        artifact: &Artifact,
        signatures: &[Signature],
    ) -> Result<(), PolicyError> {
        let digest = artifact.digest();
        for policy in policies.iter() {
            let signers = policy.signers();
            if !signers.is_empty() && !is_signed(&digest, signatures, signers) {
                return Err(policy.unsigned(match signatures.len() {
                    0 => format!("the manifest {digest} has no signature"),
                    some => format!(
                        "none of the {some} signatures of the manifest {digest} is by one of them"
                    ),
                }));
            }
        }
        Ok(())
    }

    async fn pull(
        &self,
        registry: &Registry,
        policies: &ModulePolicies,
    ) -> Result<(Artifact, Pulled, ModuleBytes), SourceError> {
        let artifact = registry.artifact().await?;
        let signers = policies.iter().flat_map(|policy| policy.signers());
        let signers: Vec<Signer> = signers.cloned().collect();
        let signatures = match &*signers {
            [] => Vec::new(),
            signers => registry.signatures(&artifact, signers).await?,
        };
        // Nothing is transferred that would not be run.
        self.check_signatures(policies, &artifact, &signatures)?;
        let bytes = match self.copy(artifact.component()).await {
            Some(bytes) => bytes,
            None => registry.component(&artifact).await?,
        };
        let pulled = Pulled {
            manifest: String::from_utf8_lossy(artifact.text()).into_owned(),
            signatures,
        };
        Ok((artifact, pulled, bytes))
    }

    async fn copy(&self, digest: &str) -> Option<ModuleBytes> {
        let copies = self.copies.clone()?;
        let digest = digest.to_owned();
        let found = copies.on_thread(move |copies| copies.get(&digest));
        found.await.flatten()
    }

    async fn keep(&self, names: Vec<String>, pulled: Pulled, bytes: ModuleBytes) {
        let Some(copies) = self.copies.clone() else {
            return;
        };
        let keep = move |copies: &Copies| {
            copies.put(&bytes);
            for name in names {
                copies.put_record(&name, &pulled);
            }
        };
        copies.on_thread(keep).await;
    }

    /// Returns what is among the copies under this name, if it is what is pinned and all policies allow it now.
    async fn kept(
        &self,
        name: String,
        pinned: &Pinned<'_>,
        policies: &ModulePolicies,
    ) -> Option<ModuleBytes> {
        let copies = self.copies.clone()?;
        let record = copies.on_thread(move |copies| copies.record(&name));
        let pulled: Pulled = record.await.flatten()?;
        let artifact = Artifact::read(pulled.manifest.into_bytes()).ok()?;
        if !pinned.is_met(&artifact) {
            return None;
        }
        self.check_signatures(policies, &artifact, &pulled.signatures)
            .ok()?;
        self.copy(artifact.component()).await
    }
}

/// The digests that a Configurator names: of the manifest in its reference, and of the component.
struct Pinned<'m> {
    manifest: Option<&'m str>,
    component: Option<&'m str>,
}

impl<'m> Pinned<'m> {
    fn of(module: &'m ModuleSpec, reference: &'m Reference) -> Self {
        Self {
            manifest: reference.digest(),
            component: module.digest.as_deref(),
        }
    }

    fn is_met(&self, artifact: &Artifact) -> bool {
        self.manifest
            .is_none_or(|digest| digest == artifact.digest())
            && self
                .component
                .is_none_or(|digest| digest == artifact.component())
    }

    /// Whether it stands for one thing for ever.
    fn is_for_ever(&self) -> bool {
        self.manifest.is_some() || self.component.is_some()
    }
}

/// Under what name that which a reference stands for is kept.
fn by_reference(reference: &Reference) -> String {
    format!("oci {}", reference.whole())
}

/// Under what name a component of a repository is kept.
fn by_component(repository: &str, digest: &str) -> String {
    format!("oci {repository} {digest}")
}

impl From<RegistryError> for SourceError {
    fn from(error: RegistryError) -> Self {
        let message = error.to_string();
        match error {
            // Who answers nonsense may be anybody: as with a registry that is away, it is not known what it has.
            RegistryError::Unavailable(_)
            | RegistryError::Failing { .. }
            | RegistryError::NotPermitted(_)
            | RegistryError::Garbled(_) => Self::Unavailable(message),
            RegistryError::Missing
            | RegistryError::Unauthorized
            | RegistryError::Forbidden
            | RegistryError::Refused(_) => Self::Refused(message),
        }
    }
}

#[async_trait]
impl ModuleSource for Registries {
    async fn fetch(
        &self,
        module: &ModuleSpec,
        policies: &ModulePolicies,
    ) -> Result<Fetched, SourceError> {
        let Some(oci) = &module.oci else {
            return Err(SourceError::NoSource {
                known: "oci".to_owned(),
            });
        };
        let named = |error: SourceError| match error {
            SourceError::Refused(what) => {
                SourceError::Refused(format!("{}: {what}", oci.reference))
            }
            SourceError::Unavailable(what) => {
                SourceError::Unavailable(format!("{}: {what}", oci.reference))
            }
            error => error,
        };
        let policies = &policies.and(&self.policy);
        let reference = self.reference(oci, policies)?;
        let pinned = Pinned::of(module, &reference);
        let repository = repository(&reference);
        let whole = by_reference(&reference);
        if pinned.is_for_ever() {
            let name = match pinned.component {
                Some(digest) => by_component(&repository, digest),
                None => whole.clone(),
            };
            if let Some(bytes) = self.kept(name, &pinned, policies).await {
                return Ok(bytes.into());
            }
        }
        let pulled = match self.registry(oci, reference.clone()).await {
            Ok(registry) => self.pull(&registry, policies).await,
            Err(error) => Err(error),
        };
        match pulled {
            Ok((artifact, pulled, bytes)) => {
                let names = vec![whole, by_component(&repository, artifact.component())];
                self.keep(names, pulled, bytes.clone()).await;
                Ok(bytes.into())
            }
            Err(error @ SourceError::Unavailable(_)) => {
                let error = named(error);
                match self.kept(whole, &pinned, policies).await {
                    Some(bytes) => Ok(Fetched {
                        bytes,
                        copied: Some(error.to_string()),
                    }),
                    None => Err(error),
                }
            }
            Err(error) => Err(named(error)),
        }
    }

    async fn version(
        &self,
        module: &ModuleSpec,
        policies: &ModulePolicies,
    ) -> Result<Option<String>, SourceError> {
        let Some(oci) = &module.oci else {
            return Ok(None);
        };
        let reference = self.reference(oci, &policies.and(&self.policy))?;
        if Pinned::of(module, &reference).is_for_ever() {
            return Ok(None);
        }
        let registry = self.registry(oci, reference).await?;
        let resolved = registry.resolve().await;
        let named =
            |error: RegistryError| SourceError::Unavailable(format!("{}: {error}", oci.reference));
        resolved.map(Some).map_err(named)
    }

    fn interval(&self, module: &ModuleSpec) -> Duration {
        let interval = module.oci.as_ref().map(|oci| oci.interval());
        interval.unwrap_or(MIN_INTERVAL).max(MIN_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;

    use super::super::artifact::About;
    use super::*;
    use crate::module_source::DEFAULT_COPIES;

    /// A cluster that answers nothing that helps.
    fn failing_cluster() -> Client {
        let answer = async |_: Request<Body>| {
            let answer = Response::builder().status(500).body(Body::empty());
            Ok::<_, std::convert::Infallible>(answer.unwrap())
        };
        Client::new(tower::service_fn(answer), "default")
    }

    fn module(reference: &str) -> ModuleSpec {
        let module = serde_json::json!({"oci": {
            "reference": reference,
            "pullSecret": {"namespace": "shop", "name": "logins"},
        }});
        serde_json::from_value(module).unwrap()
    }

    #[tokio::test]
    async fn while_the_pull_secret_cannot_be_read_a_tag_stands_for_what_it_stood_for() {
        let folder = tempfile::tempdir().unwrap();
        let copies = Copies::open(folder.path(), DEFAULT_COPIES).unwrap();
        let policies = ModulePolicies::default();
        let registries = |policy: &str| {
            let policy = serde_json::from_str(policy).unwrap();
            Registries::new(&RegistryOptions::default(), Arc::new(policy))
                .pull_secrets(failing_cluster())
        };
        let (artifact, _) = Artifact::of(b"component", &About::default());
        let pulled = Pulled {
            manifest: String::from_utf8(artifact.text().to_vec()).unwrap(),
            signatures: Vec::new(),
        };
        let copies = Arc::new(copies);
        let open = registries("{}").copies(copies.clone());
        let tag = "example.com/team/a:1".to_owned();
        let other = format!("example.com/team/a@sha256:{}", "0".repeat(64));
        // What is kept under the name of another manifest does not pass for it.
        let names = [&tag, &other].map(|name| by_reference(&name.parse().unwrap()));
        open.keep(names.to_vec(), pulled, b"component".into()).await;

        let fetched = open.fetch(&module(&tag), &policies).await.unwrap();
        assert_eq!(*fetched.bytes, *b"component");
        let why = fetched.copied.unwrap();
        assert!(
            why.contains("the pull secret shop/logins cannot be read"),
            "{why}"
        );
        assert!(open.fetch(&module(&other), &policies).await.is_err());
        let closed = registries(r#"{"registries": []}"#).copies(copies);
        let refused = closed.fetch(&module(&tag), &policies).await;
        assert!(matches!(refused, Err(SourceError::Policy(_))));
    }
}
