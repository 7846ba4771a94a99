//! The layers of configuration, and what they make together.

use std::collections::BTreeMap;
use std::fmt;

use configurator_sdk::{HandlerError, RequestResult, Text};
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// What the key of an annotation or label begins with, to be configuration.
pub const PREFIX: &str = "config.configurator.dev/";

/// The most keys that a Pod may have: they are written in one transaction.
pub const MAX_KEYS: usize = 96;

/// The configuration in one map of annotations or labels, with the prefix taken off; everything else is skipped.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Layer<'a>(Vec<(Text<'a>, Text<'a>)>);

impl<'de: 'a, 'a> Deserialize<'de> for Layer<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Layer<'a>, D::Error> {
        struct LayerVisitor;

        impl<'de> Visitor<'de> for LayerVisitor {
            type Value = Layer<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Layer<'de>, A::Error> {
                let mut layer = Vec::new();
                while let Some(key) = map.next_key::<Text<'de>>()? {
                    match key.strip_prefix(PREFIX) {
                        Some(key) if !key.is_empty() => layer.push((key, map.next_value()?)),
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(Layer(layer))
            }
        }

        deserializer.deserialize_map(LayerVisitor)
    }
}

/// Where the value of a key comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The annotations of the Namespace.
    Namespace,
    /// The labels or annotations of the Node.
    Node,
    /// The annotations of the workload.
    Workload,
    /// The annotations of the Pod.
    Pod,
}

/// An object that may carry a layer: a Node, a Namespace, a workload.
#[derive(Debug, Default, Deserialize)]
pub struct Layered<'a> {
    #[serde(borrow, default)]
    metadata: LayeredMetadata<'a>,
}

#[derive(Debug, Default, Deserialize)]
struct LayeredMetadata<'a> {
    #[serde(borrow, default)]
    labels: Option<Layer<'a>>,
    #[serde(borrow, default)]
    annotations: Option<Layer<'a>>,
}

impl<'a> Layered<'a> {
    /// The object in a result; without layers where the object is absent or was not asked for.
    ///
    /// # Errors
    /// When the request failed for another reason than absence, or the answer is no object of the API.
    pub fn of(result: Option<&'a RequestResult>) -> Result<Layered<'a>, HandlerError> {
        let Some(result) = result else {
            return Ok(Layered::default());
        };
        match result.found()? {
            Some(_) => result.object(),
            None => Ok(Layered::default()),
        }
    }
}

/// The effective configuration: for each key its value, and the layer that it comes from.
#[derive(Debug, Default)]
pub struct Effective<'a> {
    keys: BTreeMap<&'a str, (&'a str, Source)>,
}

impl<'a> Effective<'a> {
    /// Composes the layers.
    ///
    /// # Errors
    /// Fatal, when there are more than [`MAX_KEYS`] keys.
    pub fn compose(
        namespace: &'a Layered<'_>,
        node: &'a Layered<'_>,
        workload: &'a Layered<'_>,
        pod: Option<&'a Layer<'_>>,
    ) -> Result<Effective<'a>, HandlerError> {
        let mut effective = Effective::default();
        effective.add(namespace.metadata.annotations.as_ref(), Source::Namespace);
        effective.add(node.metadata.labels.as_ref(), Source::Node);
        effective.add(node.metadata.annotations.as_ref(), Source::Node);
        effective.add(workload.metadata.annotations.as_ref(), Source::Workload);
        effective.add(pod, Source::Pod);
        let found = effective.keys.len();
        if found > MAX_KEYS {
            return Err(HandlerError::fatal(format!(
                "the Pod and its layers have {found} annotations `{PREFIX}…`; at most {MAX_KEYS} are supported: remove some"
            )));
        }
        Ok(effective)
    }

    fn add(&mut self, layer: Option<&'a Layer<'_>>, source: Source) {
        for (key, value) in layer.map(|layer| layer.0.as_slice()).unwrap_or_default() {
            self.keys.insert(key, (value, source));
        }
    }

    /// The keys with their values and layers, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, &'a str, Source)> + Clone {
        self.keys
            .iter()
            .map(|(key, (value, source))| (*key, *value, *source))
    }

    /// Whether there is such a key.
    pub fn has(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    /// A map of keys and values, for serialisation.
    pub fn values(&self) -> Values<'_> {
        Values(self)
    }

    /// A map of keys and the layers that they come from, for serialisation.
    pub fn sources(&self) -> Sources<'_> {
        Sources(self)
    }
}

/// What [`Effective::values`] makes.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a>(&'a Effective<'a>);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value, _)| (key, value)))
    }
}

/// What [`Effective::sources`] makes.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a>(&'a Effective<'a>);

impl Serialize for Sources<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, _, source)| (key, source)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn layered(text: &str) -> Layered<'_> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_later_layer_wins() {
        let namespace = layered(
            r#"{"metadata":{"annotations":{"config.configurator.dev/a":"1","config.configurator.dev/b":"1"},
                "labels":{"config.configurator.dev/ignored":"1"}}}"#,
        );
        let node = layered(
            r#"{"metadata":{"labels":{"config.configurator.dev/b":"2","config.configurator.dev/c":"2"},
                "annotations":{"config.configurator.dev/c":"3"}}}"#,
        );
        let workload = layered(
            r#"{"metadata":{"annotations":{"config.configurator.dev/d":"4","other/d":"x"}}}"#,
        );
        let pod: Layer<'_> = serde_json::from_str(r#"{"config.configurator.dev/d":"5"}"#).unwrap();
        let effective = Effective::compose(&namespace, &node, &workload, Some(&pod)).unwrap();
        assert_eq!(
            json!({"values": effective.values(), "sources": effective.sources()}),
            json!({
                "values": {"a": "1", "b": "2", "c": "3", "d": "5"},
                "sources": {"a": "namespace", "b": "node", "c": "node", "d": "pod"},
            })
        );
    }

    #[test]
    fn an_object_without_metadata_has_no_layers() {
        for text in [
            "{}",
            r#"{"metadata":{}}"#,
            r#"{"metadata":{"annotations":null,"labels":null}}"#,
        ] {
            let none = Layered::default();
            let object = layered(text);
            assert_eq!(
                Effective::compose(&object, &none, &none, None)
                    .unwrap()
                    .iter()
                    .count(),
                0
            );
        }
    }

    #[test]
    fn escapes_in_keys_and_values_are_read() {
        let pod: Layer<'_> =
            serde_json::from_str(r#"{"config.configurator.dev\/a":"x\ny"}"#).unwrap();
        let none = Layered::default();
        let effective = Effective::compose(&none, &none, &none, Some(&pod)).unwrap();
        assert_eq!(json!(effective.values()), json!({"a": "x\ny"}));
    }

    #[test]
    fn too_many_keys_are_refused() {
        let annotations: BTreeMap<String, &str> =
            (0..97).map(|i| (format!("{PREFIX}k{i}"), "v")).collect();
        let text = json!(annotations).to_string();
        let pod: Layer<'_> = serde_json::from_str(&text).unwrap();
        let none = Layered::default();
        let error = Effective::compose(&none, &none, &none, Some(&pod)).unwrap_err();
        assert!(error.fatal);
        expect_test::expect![[r#"the Pod and its layers have 97 annotations `config.configurator.dev/…`; at most 96 are supported: remove some"#]].assert_eq(&error.message);
    }
}
