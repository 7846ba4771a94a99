//! GET: one object, or a list in pages.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use configurator_schema::FieldError;
use configurator_store::Read;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::history::ChangeKind;
use crate::keys;
use crate::object::Traits;
use crate::output::{ListMeta, Output, traits_of};
use crate::pieces::Pieces;
use crate::query::Query;
use crate::request::ResourcePath;
use crate::resource::Resource;
use crate::selector::Selector;
use crate::server::Inner;
use crate::status::{Result, Status};

/// One object as it is stored.
pub(crate) fn one(
    server: &Inner,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<Bytes> {
    let key = keys::object(&resource.storage, namespace, name);
    server
        .store
        .get(key.as_bytes())?
        .ok_or_else(|| Status::not_found(resource, name))
}

/// All selected objects now, and the revision of that state.
pub(crate) fn all(
    server: &Inner,
    resource: &Resource,
    path: &ResourcePath,
    selector: &Selector,
) -> Result<(u64, Vec<Bytes>)> {
    let scope = Scope {
        resource,
        namespace: path.namespace.as_deref(),
        name: path.name.as_deref(),
        selector,
        left: Cell::new(usize::MAX),
    };
    server.store.read(|state| {
        let mut items = Vec::new();
        scope.scan(state, None, &mut |_, value| {
            items.push(Bytes::copy_from_slice(value));
            true
        })?;
        Ok((state.revision(), items))
    })?
}

/// A page of a list.
///
/// A page that follows another one belongs to the state of the first, as far as what has come and gone since is concerned; an object
/// that was modified in between is shown as it is now, and a watch from the list's revision repeats that change.
///
/// Returns `None` if the scan would read objects of more than `limit` bytes.
pub(crate) fn list(
    server: &Inner,
    resource: &Arc<Resource>,
    path: &ResourcePath,
    query: &Query,
    output: &Output,
    limit: usize,
) -> Result<Option<Pieces>> {
    let selector = Selector::parse(&query.label_selector, &query.field_selector, resource)?;
    let start = Start::of(query)?;
    let scope = Scope {
        resource,
        namespace: path.namespace.as_deref(),
        name: None,
        selector: &selector,
        left: Cell::new(limit),
    };
    let channel = server.history.channel(&resource.storage);
    let (items, meta) = server.store.read(|state| {
        let current = state.revision();
        let revision = start.revision(current)?;
        let past = if revision == current {
            Past::default()
        } else {
            let expired = || {
                Status::expired(if start.after.is_some() {
                    CONTINUE_EXPIRED
                } else {
                    LIST_EXPIRED
                })
            };
            Past::between(
                channel.since(revision, usize::MAX).map_err(|_| expired())?,
                current,
                &scope,
            )?
        };
        collect(&scope, state, &start, query.limit, past).map(|(items, next, remaining)| {
            let continue_token = next.map(|after| {
                Token {
                    v: "meta.k8s.io/v1".to_owned(),
                    rv: revision,
                    start: after,
                }
                .encode()
            });
            let remaining = (selector.is_empty() && continue_token.is_some()).then_some(remaining);
            (
                items,
                ListMeta {
                    revision,
                    continue_token,
                    remaining,
                },
            )
        })
    })??;
    match scope.left.get() {
        0 => Ok(None),
        _ => output.list(resource, &items, &meta).map(Some),
    }
}

const CONTINUE_EXPIRED: &str = "The provided continue parameter is too old to display a consistent list result. You must start a new list without \
                                the continue parameter.";
const LIST_EXPIRED: &str = "The resourceVersion for the provided list is too old.";

/// The part of the store that a list is about.
struct Scope<'a> {
    resource: &'a Resource,
    namespace: Option<&'a str>,
    name: Option<&'a str>,
    selector: &'a Selector,
    /// Bytes of objects that the scan may still read. It ends at 0.
    left: Cell<usize>,
}

impl Scope<'_> {
    fn prefix(&self) -> String {
        match self.namespace {
            Some(namespace) => keys::namespace_prefix(&self.resource.storage, namespace),
            None => keys::resource_prefix(&self.resource.storage),
        }
    }

    fn selects(&self, namespace: &str, name: &str, value: &[u8]) -> Result<bool> {
        if self.name.is_some_and(|only| only != name) || !self.selector.matches_key(namespace, name)
        {
            return Ok(false);
        }
        if !self.selector.needs_traits() {
            return Ok(true);
        }
        let traits = if self.selector.needs_labels_only() {
            Traits::labels_of(value)?
        } else {
            traits_of(value, self.resource)?
        };
        Ok(self.selector.matches(namespace, name, &traits))
    }

    /// Visits the selected objects after a key, until told to stop by `false`.
    fn scan(
        &self,
        state: &dyn Read,
        after: Option<&str>,
        visit: &mut dyn FnMut(&str, &[u8]) -> bool,
    ) -> Result<()> {
        let prefix = self.prefix();
        // A single object is found without looking at the others.
        let only = self.name.or_else(|| self.selector.only_name());
        if let (Some(name), Some(namespace)) = (
            only,
            if self.resource.namespaced {
                self.namespace
            } else {
                Some("")
            },
        ) {
            let key = keys::object(&self.resource.storage, namespace, name);
            if let Some(value) = state.get(key.as_bytes())?
                && after.is_none_or(|after| key.as_str() > after)
                && self.selects(namespace, name, &value)?
            {
                visit(&key, &value);
            }
            return Ok(());
        }
        let mut fault = None;
        state.scan(
            prefix.as_bytes(),
            after.map(str::as_bytes),
            &mut |key, value| {
                self.left.set(self.left.get().saturating_sub(value.len()));
                if self.left.get() == 0 {
                    return ControlFlow::Break(());
                }
                let Some((namespace, name)) = keys::namespace_and_name(key) else {
                    return ControlFlow::Continue(());
                };
                match self.selects(namespace, name, value) {
                    Ok(false) => ControlFlow::Continue(()),
                    Ok(true) => match std::str::from_utf8(key) {
                        Ok(key) if !visit(key, value) => ControlFlow::Break(()),
                        _ => ControlFlow::Continue(()),
                    },
                    Err(status) => {
                        fault = Some(status);
                        ControlFlow::Break(())
                    }
                }
            },
        )?;
        fault.map_or(Ok(()), Err)
    }
}

/// What has come and gone since the revision of a list.
#[derive(Default)]
struct Past {
    /// Keys of objects that did not exist then.
    added: HashMap<String, ()>,
    /// Objects that existed then and do not now.
    deleted: BTreeMap<String, Bytes>,
}

impl Past {
    fn between(
        changes: Vec<Arc<crate::history::Change>>,
        current: u64,
        scope: &Scope<'_>,
    ) -> Result<Self> {
        let mut past = Self::default();
        let mut existed: HashMap<String, bool> = HashMap::new();
        let prefix = scope.prefix();
        for change in changes {
            let key = keys::object(&change.storage, &change.namespace, &change.name);
            if change.revision > current || !key.starts_with(&prefix) {
                continue;
            }
            let existed = *existed
                .entry(key.clone())
                .or_insert(change.kind != ChangeKind::Added);
            match change.kind {
                ChangeKind::Added if !existed => {
                    past.added.insert(key, ());
                }
                ChangeKind::Deleted if existed => {
                    if scope.selects(&change.namespace, &change.name, &change.object)? {
                        past.deleted.insert(key, change.object.clone());
                    }
                }
                // It is there again, under another identity: the old one is shown, once.
                ChangeKind::Added => {
                    past.added.insert(key, ());
                }
                ChangeKind::Modified | ChangeKind::Deleted => {}
            }
        }
        Ok(past)
    }
}

type Page = (Vec<Bytes>, Option<String>, usize);

/// A page: its objects, the key to go on after, and how many are left.
fn collect(
    scope: &Scope<'_>,
    state: &dyn Read,
    start: &Start,
    limit: usize,
    mut past: Past,
) -> Result<Page> {
    let limit = if limit == 0 { usize::MAX } else { limit };
    let mut items: Vec<Bytes> = Vec::new();
    let mut last = String::new();
    let (mut more, mut left) = (false, 0usize);
    if let Some(after) = &start.after {
        past.deleted.retain(|key, _| key > after);
    }
    let count_rest = scope.selector.is_empty();
    let mut take = |key: &str, value: Bytes| {
        if items.len() < limit {
            items.push(value);
            key.clone_into(&mut last);
            true
        } else {
            more = true;
            left += 1;
            count_rest
        }
    };
    let mut gone = std::mem::take(&mut past.deleted).into_iter().peekable();
    let mut stopped = false;
    scope.scan(state, start.after.as_deref(), &mut |key, value| {
        while let Some((old, bytes)) = gone.next_if(|(old, _)| old.as_str() <= key) {
            if !take(&old, bytes) {
                stopped = true;
                return false;
            }
        }
        if past.added.contains_key(key) {
            return true;
        }
        stopped = !take(key, Bytes::copy_from_slice(value));
        !stopped
    })?;
    if !stopped {
        for (old, bytes) in gone {
            if !take(&old, bytes) {
                break;
            }
        }
    }
    Ok((items, more.then_some(last), left))
}

/// Where a list begins.
struct Start {
    after: Option<String>,
    wanted: Wanted,
}

enum Wanted {
    Newest,
    NotOlderThan(u64),
    Exactly(u64),
}

impl Start {
    fn of(query: &Query) -> Result<Self> {
        let invalid = |errors: &[FieldError]| {
            Err(Status::invalid_kind(
                "meta.k8s.io",
                "ListOptions",
                "",
                errors,
            ))
        };
        let revision = parse_revision(&query.resource_version)?;
        let mut errors = Vec::new();
        if !query.resource_version_match.is_empty() && revision.is_none() {
            errors.push(FieldError::forbidden(
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if query.send_initial_events.is_some() {
            errors.push(FieldError::forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        if !errors.is_empty() {
            return invalid(&errors);
        }
        if !query.continue_token.is_empty() {
            if revision.is_some_and(|revision| revision != 0) {
                return Err(Status::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let token = Token::decode(&query.continue_token)?;
            return Ok(Self {
                after: Some(token.start),
                wanted: Wanted::Exactly(token.rv),
            });
        }
        let wanted = match (query.resource_version_match.as_str(), revision) {
            (_, None) => Wanted::Newest,
            ("Exact", Some(0)) => {
                return invalid(&[FieldError::forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                )]);
            }
            ("Exact", Some(revision)) => Wanted::Exactly(revision),
            ("" | "NotOlderThan", Some(revision)) => Wanted::NotOlderThan(revision),
            (other, Some(_)) => {
                return invalid(&[FieldError::not_supported(
                    "resourceVersionMatch",
                    &json!(other),
                    ["Exact", "NotOlderThan", ""],
                )]);
            }
        };
        Ok(Self {
            after: None,
            wanted,
        })
    }

    fn revision(&self, current: u64) -> Result<u64> {
        match self.wanted {
            Wanted::Newest => Ok(current),
            Wanted::NotOlderThan(wanted) | Wanted::Exactly(wanted) if wanted > current => {
                let mut status = Status::new(
                    StatusCode::GATEWAY_TIMEOUT,
                    "Timeout",
                    format!("Too large resource version: {wanted}, current: {current}"),
                );
                status.details = Some(
                    json!({"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}], "retryAfterSeconds": 1}),
                );
                Err(status)
            }
            Wanted::NotOlderThan(_) => Ok(current),
            Wanted::Exactly(wanted) => Ok(wanted),
        }
    }
}

/// A `resourceVersion` parameter: none if it is empty.
pub(crate) fn parse_revision(text: &str) -> Result<Option<u64>> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        Status::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
        ))
    })
}

/// Where the next page begins, opaque to the client.
#[derive(Debug, Serialize, Deserialize)]
struct Token {
    #[serde(default)]
    v: String,
    #[serde(default)]
    rv: u64,
    #[serde(default)]
    start: String,
}

impl Token {
    fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    fn decode(text: &str) -> Result<Self> {
        let invalid = |why: &str| {
            Status::bad_request(format!(
                "invalid continue token: continue key is not valid: {why}"
            ))
        };
        let bytes = URL_SAFE_NO_PAD
            .decode(text.trim_end_matches('='))
            .map_err(|error| invalid(&error.to_string()))?;
        let token: Self =
            serde_json::from_slice(&bytes).map_err(|error| invalid(&error.to_string()))?;
        if token.v == "meta.k8s.io/v1" {
            Ok(token)
        } else {
            Err(invalid(&format!(
                "server does not recognize this encoded version {}",
                token.v
            )))
        }
    }
}
