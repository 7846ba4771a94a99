//! The handlers.

use std::time::Duration;

use configurator_sdk::kubernetes::CONFIG_MAP;
use configurator_sdk::{HandlerError, Input, Output, Request};
use serde::Deserialize;
use serde_json::Value;

use crate::application::{Application, Metadata, Treatment};
use crate::documents;
use crate::object::Object;
use crate::set;
use crate::source::{APPLICATION, ConfigMap, REVISION};

/// The name of the request for the ConfigMaps.
pub const MANIFESTS: &str = "manifests";

/// The wait for ConfigMaps that are missing.
const PATIENCE: Duration = Duration::from_secs(10);

/// Asks for the ConfigMaps of an Application.
///
/// # Errors
/// Fatal, if the object is no Application.
pub fn root(input: &Input) -> Result<Output, HandlerError> {
    let application: Application = input.object()?;
    let Metadata { name, namespace } = &application.metadata;
    let labels = format!(
        "{APPLICATION}={name},{REVISION}={}",
        application.spec.revision
    );
    let list = CONFIG_MAP.list(namespace).labels(labels);
    Ok(Output::new().request(Request::new(MANIFESTS, list)))
}

/// Returns the objects of an Application as one set.
///
/// # Errors
/// While a ConfigMap is missing; the host tries again after ten seconds. Fatal, if the manifests cannot be read or contradict the spec.
pub fn apply(input: &Input) -> Result<Output, HandlerError> {
    let application: Application = input.object()?;
    let mut found: Vec<ConfigMap> = input.result(MANIFESTS)?.objects()?;
    let wanted = application.spec.config_maps;
    if found.len() < wanted {
        let message = format!(
            "revision {:?} has {} of {wanted} ConfigMaps; create the others",
            application.spec.revision,
            found.len()
        );
        return Err(HandlerError::retry(message).after(PATIENCE));
    }
    if found.len() > wanted {
        return Err(HandlerError::fatal(format!(
            "revision {:?} has {} ConfigMaps, but spec.configMaps is {wanted}; correct one of them",
            application.spec.revision,
            found.len()
        )));
    }
    found.sort_by(|one, other| one.name().cmp(other.name()));
    let mut objects = Vec::new();
    for config_map in found {
        objects.extend(config_map.objects()?);
    }
    let set = set::of(objects, &application.spec.treatment)?;
    Ok(Output::new().desired(set.termination_policy_at(".spec.terminationPolicy")))
}

/// The parameters of the handler [`parameters`].
#[derive(Debug, Deserialize)]
struct Parameters {
    manifests: Manifests,
    #[serde(flatten)]
    treatment: Treatment,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Manifests {
    Text(String),
    Objects(Vec<Value>),
}

/// The part of an owner that the handlers read.
#[derive(Debug, Deserialize)]
struct Owner {
    metadata: Metadata,
}

/// Returns the objects in the parameter `manifests`, which is a list of objects or a text in YAML, as one set. The parameters `addresses` and
/// `rules` are as in the spec of an Application.
///
/// # Errors
/// Fatal, if the parameters cannot be read.
pub fn parameters(input: &Input) -> Result<Output, HandlerError> {
    let owner: Owner = input.object()?;
    let Parameters {
        manifests,
        treatment,
    } = input.parameters()?;
    let location = "the parameter `manifests`";
    let documents = match manifests {
        Manifests::Text(text) => documents::parse(&text, location)?,
        Manifests::Objects(objects) => objects,
    };
    let mut objects = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        let location = format!("{location}, document {}", index + 1);
        objects.extend(Object::read(
            document,
            &owner.metadata.namespace,
            &location,
        )?);
    }
    Ok(Output::new().desired(set::of(objects, &treatment)?))
}
