//! `configurator rollback`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::key_of;
use super::servers;
use super::terminal::{FAINT, NAME};
use crate::cluster;
use crate::controller::canary::ROLLBACK_ANNOTATION;
use crate::objects;
use crate::resource;

/// Which Configurator goes back, and to what.
#[derive(Args)]
pub struct RollbackArgs {
    /// Configurator: NAMESPACE/NAME, or NAME of a ClusterConfigurator.
    configurator: String,
    /// Digest of the module to pin. Default: the module that ran before; during a canary, the module that most objects use.
    #[arg(long, value_name = "DIGEST")]
    to: Option<String>,
    /// Kubeconfig of the cluster. Default: the cluster of the Pod this runs in.
    #[arg(long, value_name = "FILE", env = "KUBECONFIG")]
    kubeconfig: Option<PathBuf>,
}

/// Pins the Configurator to a module that it ran before. It takes over at once, and stays when the source has another.
///
/// # Errors
/// When there is none, or the cluster does not take it.
pub fn rollback(args: &RollbackArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    { runtime }.enable_all().build()?.block_on(go_back(args))
}

async fn go_back(args: &RollbackArgs) -> anyhow::Result<ExitCode> {
    let config = servers::cluster_config(args.kubeconfig.as_deref()).await?;
    let client = cluster::connect(&config)?.client;
    let name = &args.configurator;
    let key = key_of(name)?;
    let kind = resource::kind_of(&key);
    let found = resource::get(&client, &key).await;
    let found = found.map_err(|error| anyhow::anyhow!(objects::explained(&error)))?;
    let found = found.with_context(|| format!("there is no {} {name:?}", kind.kind))?;
    let status = found.status.clone().unwrap_or_default();
    let back = match (&args.to, &status.canary) {
        (Some(digest), _) => Some(digest.clone()),
        (None, Some(_)) => status.module_digest.clone(),
        (None, None) => status.previous_module_digest.clone(),
    };
    let Some(back) = back else {
        bail!(
            "no other module of {name} is known: none has run before; name one by --to, as `configurator inspect` prints its digest"
        );
    };
    // A pinned module may still be a canary, or refused because no module is known for the other objects. A rollback to it makes it the module
    // of all objects.
    let has_asked = found.annotations().get(ROLLBACK_ANNOTATION) == Some(&back);
    if has_asked && found.spec.module.digest.as_ref() == Some(&back) {
        bail!("{name} is pinned to {back} already");
    }
    let pinned = json!({
        "metadata": {
            "resourceVersion": found.resource_version(),
            "annotations": {ROLLBACK_ANNOTATION: back},
        },
        "spec": {"module": {"digest": back}},
    });
    let api = objects::of(client, &kind, &key.namespace);
    let patched = api
        .patch(&key.name, &PatchParams::default(), &Patch::Merge(&pinned))
        .await;
    patched.map_err(|error| anyhow::anyhow!(objects::explained(&error)))?;
    anstream::println!("{NAME}{name}{NAME:#} is pinned to {back}");
    anstream::println!(
        "{FAINT}what its source has is taken again once spec.module.digest is removed, or names another{FAINT:#}"
    );
    Ok(ExitCode::SUCCESS)
}
