//! An object of a manifest.

use configurator_sdk::HandlerError;
use serde_json::Value;

/// An object, with what identifies it.
#[derive(Debug, Clone)]
pub struct Object {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace in its metadata. Default: the owner's.
    pub namespace: String,
    /// Whether its metadata has the namespace.
    pub names_namespace: bool,
    /// The name.
    pub name: String,
    /// The object.
    pub content: Value,
    /// The place that it was read from, for messages.
    pub location: String,
}

impl Object {
    /// Reads the objects of a document: one object, the items of a list, or none if the document is empty. Items of a typed list, such as
    /// `RoleList`, may omit their kind.
    ///
    /// # Errors
    /// Fatal, if the document is not an object, or has no kind or name.
    pub fn read(
        document: Value,
        namespace: &str,
        location: &str,
    ) -> Result<Vec<Object>, HandlerError> {
        let mut objects = Vec::new();
        if !document.is_null() {
            read_into(&mut objects, document, namespace, location.to_owned())?;
        }
        Ok(objects)
    }

    /// Returns the name of its entry, such as `Deployment.apps shop/web`.
    pub fn entry_name(&self) -> String {
        let Object {
            group,
            kind,
            namespace,
            name,
            ..
        } = self;
        let dot = if group.is_empty() { "" } else { "." };
        match self.names_namespace {
            true => format!("{kind}{dot}{group} {namespace}/{name}"),
            false => format!("{kind}{dot}{group} {name}"),
        }
    }
}

fn text(of: &Value, pointer: &str) -> Option<String> {
    let found = of.pointer(pointer).and_then(Value::as_str);
    found.filter(|text| !text.is_empty()).map(str::to_owned)
}

fn read_into(
    objects: &mut Vec<Object>,
    mut document: Value,
    namespace: &str,
    location: String,
) -> Result<(), HandlerError> {
    let missing = |what: &str| HandlerError::fatal(format!("{location}: the object has no {what}"));
    if !document.is_object() {
        return Err(HandlerError::fatal(format!(
            "{location}: the document is not an object"
        )));
    }
    let api_version = text(&document, "/apiVersion").ok_or_else(|| missing("apiVersion"))?;
    let kind = text(&document, "/kind").ok_or_else(|| missing("kind"))?;
    if let (Some(kind_of_items), Some(Value::Array(items))) = (
        kind.strip_suffix("List"),
        document.get_mut("items").map(Value::take),
    ) {
        for (index, mut item) in items.into_iter().enumerate() {
            if let Value::Object(item) = &mut item
                && !kind_of_items.is_empty()
            {
                let fields = [
                    ("apiVersion", api_version.as_str()),
                    ("kind", kind_of_items),
                ];
                for (field, value) in fields {
                    item.entry(field).or_insert_with(|| value.into());
                }
            }
            let location = format!("{location}, item {}", index + 1);
            read_into(objects, item, namespace, location)?;
        }
        return Ok(());
    }
    let name = text(&document, "/metadata/name").ok_or_else(|| missing("metadata.name"))?;
    let named = text(&document, "/metadata/namespace");
    let (group, _) = api_version.split_once('/').unwrap_or_default();
    objects.push(Object {
        group: group.to_owned(),
        kind,
        names_namespace: named.is_some(),
        namespace: named.unwrap_or_else(|| namespace.to_owned()),
        name,
        content: document,
        location,
    });
    Ok(())
}
