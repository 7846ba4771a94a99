//! `/openapi/v2` and `/openapi/v3`: the schemas, as kubectl reads them to explain, to patch and to print.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use configurator_schema::openapi;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::body::ApiBody;
use crate::registry::Registry;
use crate::server::{Inner, respond};
use crate::status::{Result, Status};

/// Documents as they were last sent; making one takes long.
#[derive(Default)]
pub(crate) struct Cache(Mutex<BTreeMap<String, Bytes>>);

impl Cache {
    /// The resources have changed.
    pub(crate) fn forget(&self) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    fn get(&self, key: &str, make: impl FnOnce() -> Result<Value>) -> Result<Bytes> {
        if let Some(bytes) = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(key)
        {
            return Ok(bytes.clone());
        }
        let bytes = crate::output::encode(&make()?)?;
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(key.to_owned(), bytes.clone());
        Ok(bytes)
    }
}

pub(crate) fn answer(server: &Inner, path: &str) -> Result<Response<ApiBody>> {
    let registry = server.registry();
    let bytes = match path {
        "/openapi/v2" => server
            .openapi
            .get("v2", || Ok(document(&registry, None, openapi::v2)))?,
        "/openapi/v3" => server.openapi.get("v3", || index(server, &registry))?,
        _ => {
            let version = path
                .strip_prefix("/openapi/v3/")
                .ok_or_else(Status::no_such_path)?;
            of_version(server, &registry, version)?
        }
    };
    Ok(respond(StatusCode::OK, "application/json", bytes))
}

/// Which documents there are. The hash in a link changes with the document, so that clients can keep it.
fn index(server: &Inner, registry: &Registry) -> Result<Value> {
    let mut paths = serde_json::Map::new();
    for (group, versions) in registry.groups() {
        for version in versions {
            let name = if group.is_empty() {
                format!("api/{version}")
            } else {
                format!("apis/{group}/{version}")
            };
            let digest = Sha256::digest(of_version(server, registry, &name)?);
            let hash: String = digest.iter().map(|byte| format!("{byte:02X}")).collect();
            paths.insert(
                name.clone(),
                json!({"serverRelativeURL": format!("/openapi/v3/{name}?hash={hash}")}),
            );
        }
    }
    Ok(json!({"paths": paths}))
}

fn of_version(server: &Inner, registry: &Registry, name: &str) -> Result<Bytes> {
    let (group, version) = match name.strip_prefix("apis/") {
        Some(rest) => rest.split_once('/').ok_or_else(Status::no_such_path)?,
        None => (
            "",
            name.strip_prefix("api/").ok_or_else(Status::no_such_path)?,
        ),
    };
    if !registry.has_version(group, version) {
        return Err(Status::no_such_path());
    }
    server.openapi.get(name, || {
        Ok(document(registry, Some((group, version)), openapi::v3))
    })
}

/// The document of one version, or of all.
fn document(
    registry: &Registry,
    only: Option<(&str, &str)>,
    make: impl FnOnce(&[openapi::Resource<'_>]) -> Value,
) -> Value {
    let chosen: Vec<_> = registry
        .all()
        .filter(|resource| {
            only.is_none_or(|(group, version)| {
                resource.group == group && resource.version == version
            })
        })
        .collect();
    let subresources: Vec<Vec<&'static str>> = chosen
        .iter()
        .map(|resource| resource.subresources())
        .collect();
    let resources: Vec<openapi::Resource<'_>> = chosen
        .iter()
        .zip(&subresources)
        .map(|(resource, subresources)| openapi::Resource {
            group: &resource.group,
            version: &resource.version,
            kind: &resource.kind,
            plural: &resource.plural,
            namespaced: resource.namespaced,
            subresources,
            crd_schema: resource
                .custom
                .as_ref()
                .map(|custom| custom.openapi.as_ref()),
        })
        .collect();
    make(&resources)
}
