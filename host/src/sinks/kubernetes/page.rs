//! Reads pages of lists.

use std::fmt;
use std::marker::PhantomData;

use configurator_background::rest::rest_if_due;
use configurator_core::document::Document;
use configurator_core::fault::Fault;
use configurator_core::request::{KubernetesRequest, api_version};
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{document, generic};

#[derive(Deserialize)]
struct Page<'a> {
    metadata: Option<PageMetadata>,
    #[serde(borrow)]
    items: Items<'a>,
}

/// The items of a page, which is large: each can take a millisecond.
struct Items<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Items<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<'a>(PhantomData<&'a ()>);

        impl<'de: 'a, 'a> Visitor<'de> for Read<'a> {
            type Value = Items<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of objects")
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Items<'a>, S::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                    rest_if_due();
                }
                Ok(Items(items))
            }
        }

        deserializer.deserialize_seq(Read(PhantomData))
    }
}

#[derive(Deserialize)]
struct PageMetadata {
    #[serde(rename = "continue")]
    token: Option<String>,
}

/// Reads the objects of a page, and the token of the next one.
pub(super) fn read_page(
    page: &str,
    request: &KubernetesRequest,
) -> Result<(Vec<Document>, Option<String>), Fault> {
    let page: Page<'_> = serde_json::from_str(page).map_err(|error| {
        let plural = &request.plural;
        generic(format!("the list of {plural} cannot be read: {error}"))
    })?;
    let items = page.items.0.into_iter();
    let objects = items
        .map(|item| {
            rest_if_due();
            document(with_type(item, request))
        })
        .collect::<Result<_, _>>()?;
    let token = page.metadata.and_then(|metadata| metadata.token);
    Ok((objects, token.filter(|token| !token.is_empty())))
}

/// Items of a list come without their type; an object of its own has it.
fn with_type(item: &RawValue, request: &KubernetesRequest) -> String {
    #[derive(Deserialize)]
    struct Typed {
        kind: Option<serde::de::IgnoredAny>,
    }
    let text = item.get();
    let is_typed = serde_json::from_str::<Typed>(text).is_ok_and(|typed| typed.kind.is_some());
    match text.strip_prefix('{') {
        Some(rest) if !is_typed && !request.kind.is_empty() => {
            let separator = if rest.trim_start().starts_with('}') {
                ""
            } else {
                ","
            };
            let api_version = Value::from(api_version(&request.group, &request.version));
            let kind = Value::from(request.kind.as_str());
            format!("{{\"apiVersion\":{api_version},\"kind\":{kind}{separator}{rest}")
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use configurator_core::request::KubernetesVerb;

    use super::*;

    #[test]
    fn items_of_a_list_get_their_type() {
        let mut request = KubernetesRequest::new(KubernetesVerb::List, "", "v1", "pods");
        request.kind = "Pod".into();
        let typed = |text: &str| with_type(&RawValue::from_string(text.into()).unwrap(), &request);
        assert_eq!(typed("{}"), r#"{"apiVersion":"v1","kind":"Pod"}"#);
        assert_eq!(
            typed(r#"{"a":1}"#),
            r#"{"apiVersion":"v1","kind":"Pod","a":1}"#
        );
        assert_eq!(typed(r#"{"kind":"X"}"#), r#"{"kind":"X"}"#);
    }
}
