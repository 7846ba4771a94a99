//! What a module is in a registry: a manifest, a configuration, and one layer that is the component.

use std::collections::BTreeMap;

use configurator_guest::digest::Digest;
use oci_client::manifest::{OCI_IMAGE_MEDIA_TYPE, OciDescriptor, OciImageManifest};
use serde::Serialize;

use super::super::MAX_MODULE;
use super::client::RegistryError;

/// The configuration of a Wasm artifact.
const CONFIG: &str = "application/vnd.wasm.config.v0+json";
/// Its layer.
const LAYER: &str = "application/wasm";
/// The layer, as it was called before there was a common format.
const OLD_LAYER: &str = "application/vnd.wasm.content.layer.v1+wasm";

/// What a module says of itself, for people who look at the registry. All of it may be empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The revision of its sources.
    pub revision: Option<String>,
    /// When it was made, as RFC 3339 has it.
    pub created: String,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// The interfaces that it exports.
    pub exports: Vec<String>,
}

/// A module's manifest, byte for byte as the registry has it.
#[derive(Debug, Clone)]
pub struct Artifact {
    text: Vec<u8>,
    layer: OciDescriptor,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    created: &'a str,
    architecture: &'static str,
    os: &'static str,
    layer_digests: [&'a str; 1],
    component: Component<'a>,
}

#[derive(Serialize)]
struct Component<'a> {
    exports: &'a [String],
    imports: &'a [String],
    target: Option<String>,
}

impl Artifact {
    /// That of a component, with its configuration.
    pub(super) fn of(component: &[u8], about: &About) -> (Self, Vec<u8>) {
        let layer = descriptor(LAYER, component);
        let config = Config {
            created: &about.created,
            architecture: "wasm",
            os: "wasip2",
            layer_digests: [&layer.digest],
            component: Component {
                exports: &about.exports,
                imports: &about.imports,
                target: None,
            },
        };
        let config = serde_json::to_vec(&config).unwrap_or_default();
        let said = [
            ("created", Some(&about.created)),
            ("title", about.name.as_ref()),
            ("version", about.version.as_ref()),
            ("revision", about.revision.as_ref()),
        ];
        let annotations: BTreeMap<String, String> = said
            .into_iter()
            .filter_map(|(key, value)| {
                Some((format!("org.opencontainers.image.{key}"), value?.clone()))
            })
            .collect();
        let manifest = OciImageManifest {
            media_type: Some(OCI_IMAGE_MEDIA_TYPE.to_owned()),
            config: descriptor(CONFIG, &config),
            layers: vec![layer.clone()],
            annotations: Some(annotations),
            ..OciImageManifest::default()
        };
        let text = serde_json::to_vec(&manifest).unwrap_or_default();
        (Self { text, layer }, config)
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// When it is none, or not that of one component.
    pub(super) fn read(text: Vec<u8>) -> Result<Self, RegistryError> {
        let manifest: OciImageManifest = serde_json::from_slice(&text).map_err(|error| {
            RegistryError::Garbled(format!(
                "the registry answers what is no manifest: {}",
                place_of(&error)
            ))
        })?;
        let is_module = |layer: &&OciDescriptor| matches!(&*layer.media_type, LAYER | OLD_LAYER);
        let mut layers = manifest.layers.iter().filter(is_module);
        let (Some(layer), None) = (layers.next(), layers.next()) else {
            return Err(RegistryError::Refused(format!(
                "it is no module: that has one layer of type {LAYER}"
            )));
        };
        let size = u64::try_from(layer.size).unwrap_or(u64::MAX);
        if size > MAX_MODULE {
            return Err(RegistryError::Refused(format!(
                "the module has {size} bytes; {MAX_MODULE} are allowed"
            )));
        }
        let layer = OciDescriptor {
            // Other places than the registry are not looked at.
            urls: None,
            ..layer.clone()
        };
        Ok(Self { text, layer })
    }

    /// The manifest.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Of the manifest: what a reference pins, and signatures are made over.
    #[must_use]
    pub fn digest(&self) -> String {
        Digest::of(&self.text).to_string()
    }

    /// Of the component: what `spec.module.digest` pins.
    #[must_use]
    pub fn component(&self) -> &str {
        &self.layer.digest
    }

    pub(super) fn layer(&self) -> &OciDescriptor {
        &self.layer
    }
}

/// The place of a parse error. The parser's own message quotes the answer of a server, which authors of Configurators must not see.
pub(super) fn place_of(error: &serde_json::Error) -> String {
    let (line, column) = (error.line(), error.column());
    format!("line {line}, column {column} is not as expected")
}

pub(super) fn descriptor(media_type: &str, bytes: &[u8]) -> OciDescriptor {
    OciDescriptor {
        media_type: media_type.to_owned(),
        digest: Digest::of(bytes).to_string(),
        size: i64::try_from(bytes.len()).unwrap_or(i64::MAX),
        urls: None,
        annotations: None,
        ..OciDescriptor::default()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(manifest: &str, expected: Expect) {
        let read = Artifact::read(manifest.as_bytes().to_vec());
        let told = read.map_or_else(
            |error| error.to_string(),
            |artifact| artifact.component().to_owned(),
        );
        expected.assert_eq(&told);
    }

    fn with_layers(layers: &str) -> String {
        let config = r#"{"mediaType": "application/vnd.wasm.config.v0+json", "digest": "sha256:c", "size": 2}"#;
        format!(r#"{{"schemaVersion": 2, "config": {config}, "layers": [{layers}]}}"#)
    }

    #[test]
    fn a_manifest_that_was_made_is_read() {
        let about = About {
            name: Some("greeter".to_owned()),
            created: "2026-01-01T00:00:00Z".to_owned(),
            ..About::default()
        };
        let (made, config) = Artifact::of(b"component", &about);
        let read = Artifact::read(made.text().to_vec()).unwrap();
        assert_eq!(read.digest(), made.digest());
        assert_eq!(made.component(), Digest::of(b"component").to_string());
        expect![[r#"{"created":"2026-01-01T00:00:00Z","architecture":"wasm","os":"wasip2","layerDigests":["sha256:6985ca1f4daa5a584a28eae043a239cb96689af1337ea13afb63e00c2bf512fa"],"component":{"exports":[],"imports":[],"target":null}}"#]]
            .assert_eq(&String::from_utf8(config).unwrap());
    }

    #[test]
    fn a_module_has_one_layer_that_is_wasm() {
        let layer =
            |kind: &str| format!(r#"{{"mediaType": "{kind}", "digest": "sha256:1", "size": 4}}"#);
        check(&with_layers(&layer(LAYER)), expect!["sha256:1"]);
        check(&with_layers(&layer(OLD_LAYER)), expect!["sha256:1"]);
        check(
            &with_layers(&layer("application/vnd.oci.image.layer.v1.tar+gzip")),
            expect!["it is no module: that has one layer of type application/wasm"],
        );
        check(
            &with_layers(&[layer(LAYER), layer(LAYER)].join(",")),
            expect!["it is no module: that has one layer of type application/wasm"],
        );
        check(
            &with_layers(
                r#"{"mediaType": "application/wasm", "digest": "sha256:1", "size": 1000000000000}"#,
            ),
            expect!["the module has 1000000000000 bytes; 134217728 are allowed"],
        );
    }

    #[test]
    fn garbage_is_no_manifest() {
        check(
            "<html>",
            expect![
                "the registry answers what is no manifest: line 1, column 1 is not as expected"
            ],
        );
        check(
            "{}",
            expect![
                "the registry answers what is no manifest: line 1, column 2 is not as expected"
            ],
        );
    }
}
