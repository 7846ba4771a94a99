//! The ConfigMaps with the manifests of an Application.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use configurator_sdk::HandlerError;
use serde::Deserialize;

use crate::application::Metadata;
use crate::documents;
use crate::object::Object;

/// The label with the name of the Application.
pub const APPLICATION: &str = "manifests.configurator.dev/application";
/// The label with the revision.
pub const REVISION: &str = "manifests.configurator.dev/revision";

/// A ConfigMap. Each key is a file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMap {
    metadata: Metadata,
    #[serde(default)]
    data: BTreeMap<String, String>,
    #[serde(default)]
    binary_data: BTreeMap<String, String>,
}

impl ConfigMap {
    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Reads the objects in it, in the order of its keys.
    ///
    /// # Errors
    /// Fatal, for the first file that cannot be read. The message says where it is.
    pub fn objects(self) -> Result<Vec<Object>, HandlerError> {
        let Metadata { name, namespace } = &self.metadata;
        let mut files = BTreeMap::new();
        for (key, text) in self.data {
            files.insert(key, text.into_bytes());
        }
        for (key, text) in self.binary_data {
            let bytes = STANDARD.decode(&text).map_err(|error| {
                HandlerError::fatal(format!("ConfigMap {namespace}/{name}, {key}: {error}"))
            })?;
            files.insert(key, bytes);
        }
        let mut objects = Vec::new();
        for (key, bytes) in files {
            let file = format!("ConfigMap {namespace}/{name}, {key}");
            let read = documents::read(bytes, &file)?;
            for (index, document) in read.into_iter().enumerate() {
                let location = format!("{file}, document {}", index + 1);
                objects.extend(Object::read(document, namespace, &location)?);
            }
        }
        Ok(objects)
    }
}
