//! Objects in the form that the client asked for.

use bytes::Bytes;
use configurator_background::rest::rest_if_due;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::event;
use crate::media::Form;
use crate::object::{self, Traits};
use crate::pieces::Pieces;
use crate::resource::Resource;
use crate::status::Result;

/// How a request wants its objects.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub(crate) form: Form,
    /// Of a table: what a row carries of its object.
    pub(crate) include: Include,
    pub(crate) now: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Output {
    /// Whether objects go out just as most watchers get them.
    pub(crate) fn is_native(&self, resource: &Resource) -> bool {
        self.form == Form::Object
            && !event::is_converted(resource)
            && resource.api_version() == resource.stored_api_version
    }

    /// One object.
    pub(crate) fn one(&self, resource: &Resource, stored: &Bytes) -> Result<Bytes> {
        match self.form {
            Form::Object => served(resource, stored),
            Form::Metadata => {
                let value = object::parse_stored(stored)?;
                encode(&metadata_only(&value))
            }
            Form::Table => encode(&self.table(resource, std::slice::from_ref(stored), true)?),
        }
    }

    /// A table of some objects, with or without the definitions of its columns.
    pub(crate) fn table(
        &self,
        resource: &Resource,
        stored: &[Bytes],
        columns: bool,
    ) -> Result<Value> {
        let table = resource.table();
        let mut rows = Vec::with_capacity(stored.len());
        let mut revision = String::new();
        for bytes in stored {
            let value: Value = object::parse_stored(&served(resource, bytes)?)?;
            let mut row = json!({"cells": table.cells(&value, self.now)});
            if stored.len() == 1 {
                revision = object::meta(&value, "resourceVersion").to_owned();
            }
            let shown = match self.include {
                Include::Nothing => Some(Value::Null),
                Include::Metadata => Some(metadata_only(&value)),
                Include::Object => Some(value),
            };
            object::set_field(&mut row, "object", shown);
            rows.push(row);
        }
        let definitions = if columns {
            table.columns()
        } else {
            Value::Null
        };
        Ok(json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": revision},
            "columnDefinitions": definitions, "rows": rows,
        }))
    }

    /// A list. Its large items are shared with `items` where they go out as they are stored.
    pub(crate) fn list(
        &self,
        resource: &Resource,
        items: &[Bytes],
        meta: &ListMeta,
    ) -> Result<Pieces> {
        if self.form == Form::Table {
            let mut table = self.table(resource, items, true)?;
            object::set_field(&mut table, "metadata", Some(meta.to_value(false)));
            return encode(&table).map(Pieces::from);
        }
        let (kind, api_version) = match self.form {
            Form::Metadata => (
                "PartialObjectMetadataList".to_owned(),
                "meta.k8s.io/v1".to_owned(),
            ),
            Form::Object | Form::Table => (resource.list_kind.clone(), resource.api_version()),
        };
        let mut pieces = Pieces::default();
        let head = json!({"kind": kind, "apiVersion": api_version, "metadata": meta.to_value(resource.custom.is_some() && self.form == Form::Object)})
            .to_string();
        pieces.push_slice(head.strip_suffix('}').unwrap_or(&head).as_bytes());
        pieces.push_slice(br#","items":["#);
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                pieces.push_slice(b",");
            }
            let item = self.one(resource, item)?;
            if self.form == Form::Object && resource.custom.is_none() {
                push_without_kind(&mut pieces, item)?;
            } else {
                pieces.push(&item);
            }
            rest_if_due();
        }
        pieces.push_slice(b"]}");
        Ok(pieces)
    }
}

/// The metadata of a list.
#[derive(Debug, Default)]
pub(crate) struct ListMeta {
    pub(crate) revision: u64,
    pub(crate) continue_token: Option<String>,
    pub(crate) remaining: Option<usize>,
}

impl ListMeta {
    /// A list of a custom kind says also that there is no further page.
    fn to_value(&self, is_custom: bool) -> Value {
        let mut meta = json!({"resourceVersion": self.revision.to_string()});
        if is_custom {
            object::set_field(&mut meta, "continue", Some(json!("")));
        }
        if self.continue_token.is_none() {
            return meta;
        }
        object::set_field(
            &mut meta,
            "continue",
            self.continue_token.clone().map(Value::from),
        );
        object::set_field(
            &mut meta,
            "remainingItemCount",
            self.remaining.map(Value::from),
        );
        meta
    }
}

/// An object in the version of the resource.
fn served(resource: &Resource, stored: &Bytes) -> Result<Bytes> {
    if event::is_converted(resource) {
        let value = event::to_events_group(object::parse_stored(stored)?);
        return encode(&value);
    }
    Ok(object::with_api_version(stored, &resource.api_version()))
}

/// Adds an item of a list of a built-in kind, which does not repeat what the list says.
fn push_without_kind(pieces: &mut Pieces, item: Bytes) -> Result<()> {
    // The stored form begins with both, and neither is long.
    let metadata = item
        .get(..item.len().min(1024))
        .and_then(|head| head.windows(MARK.len()).position(|window| window == MARK))
        .map(|at| item.slice(at + 1..));
    if item.starts_with(br#"{"apiVersion":""#)
        && let Some(rest) = metadata
    {
        pieces.push_slice(b"{");
        pieces.push(&rest);
        return Ok(());
    }
    let mut value = object::parse_stored(&item)?;
    object::set_field(&mut value, "apiVersion", None);
    object::set_field(&mut value, "kind", None);
    pieces.push(&encode(&value)?);
    Ok(())
}

const MARK: &[u8] = br#","metadata":{"#;

fn metadata_only(value: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
        "metadata": value.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

pub(crate) fn encode(value: &Value) -> Result<Bytes> {
    serde_json::to_vec(value)
        .map(Bytes::from)
        .map_err(crate::status::Status::internal)
}

/// What selectors see of stored bytes.
pub(crate) fn traits_of(stored: &[u8], resource: &Resource) -> Result<Traits> {
    Ok(Traits::of(&object::parse_stored(stored)?, resource))
}
