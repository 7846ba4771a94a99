//! The write phase.

use std::collections::BTreeMap;

use configurator_sdk::{HandlerError, Input, Json, Output, Request, RequestResult, Text};
use serde::Deserialize;

use crate::deployment::Deployment;
use crate::root::{groups, namespace_request};
use crate::summary::Summary;

/// Writes the entry of each Deployment of the batch whose summary is not what is stored.
///
/// # Errors
/// When a Namespace could not be read, which a retry may cure: without it a Deployment would lose a layer.
/// Fatal, when an object of the batch is no Deployment of the API.
pub fn write(input: &Input) -> Result<Output, HandlerError> {
    let namespaces = by_name(input.group_opt(groups::NAMESPACES));
    let entries = by_name(input.group_opt(groups::ENTRIES));
    let mut annotations = BTreeMap::new();
    for (name, result) in &namespaces {
        annotations.insert(*name, namespace_annotations(result)?);
    }

    let mut output = Output::new();
    for object in input.objects() {
        let deployment: Deployment<'_> = object.parse()?;
        let metadata = &deployment.metadata;
        let namespace = annotations
            .get(namespace_request(&metadata.namespace).as_str())
            .and_then(Option::as_ref);
        let summary = Json::of(&Summary::of(&deployment, namespace))?.into_string();
        let entry = entries.get(metadata.request_name("entry").as_str());
        if entry
            .and_then(|result| stored(result))
            .is_some_and(|stored| *stored == summary)
        {
            continue;
        }
        let write = metadata.entry().update(summary);
        output.push(Request::new(metadata.request_name("config"), write).of(metadata.object_ref()));
    }
    Ok(output)
}

fn by_name(results: &[RequestResult]) -> BTreeMap<&str, &RequestResult> {
    results
        .iter()
        .map(|result| (result.request_name.as_str(), result))
        .collect()
}

/// A Namespace, as far as it matters.
#[derive(Deserialize)]
struct Namespace<'a> {
    #[serde(borrow)]
    metadata: NamespaceMetadata<'a>,
}

#[derive(Deserialize)]
struct NamespaceMetadata<'a> {
    #[serde(borrow, default)]
    annotations: Option<BTreeMap<Text<'a>, Text<'a>>>,
}

fn namespace_annotations(
    result: &RequestResult,
) -> Result<Option<BTreeMap<Text<'_>, Text<'_>>>, HandlerError> {
    if result.found()?.is_none() {
        return Ok(None);
    }
    Ok(result.object::<Namespace<'_>>()?.metadata.annotations)
}

/// The stored summary. Where it cannot be read it is written anew.
fn stored(result: &RequestResult) -> Option<Text<'_>> {
    #[derive(Deserialize)]
    struct Entry<'a> {
        #[serde(borrow)]
        value: Text<'a>,
    }
    result.object::<Entry<'_>>().ok().map(|entry| entry.value)
}
