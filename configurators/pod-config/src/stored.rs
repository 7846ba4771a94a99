//! What is stored of a Pod between its runs.

use std::collections::BTreeMap;

use configurator_sdk::{HandlerError, RequestResult, Text};
use serde::{Deserialize, Serialize};

use crate::layers::{Sources, Values};

/// The value of a Pod's entry in the config store, as it is written.
#[derive(Debug, Serialize)]
pub struct Value<'a> {
    /// The effective configuration; each key is app-conf of the Pod as well.
    pub config: Values<'a>,
    /// The layer that each key comes from.
    pub from: Sources<'a>,
    /// The index under which the Pod is listed.
    pub index: &'a str,
}

/// An entry as the config store answers it.
#[derive(Debug, Deserialize)]
pub struct Entry<'a> {
    /// The Pod whose entry it is.
    #[serde(borrow, default)]
    pub uid: Option<Text<'a>>,
    /// JSON in a string: [`Value`].
    #[serde(borrow, default)]
    pub value: Text<'a>,
}

impl<'a> Entry<'a> {
    /// The entry in a result, or nothing where there is none.
    ///
    /// # Errors
    /// When the request failed for another reason than absence.
    pub fn of(result: &'a RequestResult) -> Result<Option<Entry<'a>>, HandlerError> {
        result.found()?.map(|_| result.object()).transpose()
    }

    /// Whether it is the entry of the Pod with this uid.
    pub fn is_of(&self, uid: &str) -> bool {
        self.uid.as_deref() == Some(uid)
    }

    /// What the entry says to the Pod with this uid. The keys of an older Pod go when its entry is replaced, so that only
    /// its index matters. An entry that someone else has written says nothing, and is replaced.
    pub fn previous(&self, uid: &str) -> Previous<'_> {
        let mut previous: Previous<'_> = serde_json::from_str(&self.value).unwrap_or_default();
        if !self.is_of(uid) {
            previous.config.clear();
        }
        previous
    }
}

/// The value of an entry, as it is read back.
#[derive(Debug, Default, Deserialize)]
pub struct Previous<'a> {
    /// The configuration that was effective.
    #[serde(borrow)]
    pub config: BTreeMap<Text<'a>, Text<'a>>,
    /// The index under which the Pod was listed.
    #[serde(borrow)]
    pub index: Text<'a>,
}
