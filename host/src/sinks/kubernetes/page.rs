//! Reads pages of lists.

use std::borrow::Cow;
use std::fmt::Display;

use configurator_background::rest::rest_if_due;
use configurator_core::document::Document;
use configurator_core::fault::Fault;
use configurator_core::request::{KubernetesRequest, api_version};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::list_items::ListItems;
use super::pieces::Pieces;
use super::{generic, parsed};

/// A page without its items.
#[derive(Deserialize)]
struct Page {
    metadata: Option<PageMetadata>,
    #[expect(dead_code, reason = "that it is there, and empty, is what counts")]
    items: [IgnoredAny; 0],
}

#[derive(Deserialize)]
struct PageMetadata {
    #[serde(rename = "continue")]
    token: Option<String>,
}

/// Reads the objects of a page, and the token of the next one. Rests between objects.
pub(super) fn read_page(
    page: Pieces,
    request: &KubernetesRequest,
) -> Result<(Vec<Document>, Option<String>), Fault> {
    let unreadable = |error: &dyn Display| {
        let plural = &request.plural;
        generic(format!("the list of {plural} cannot be read: {error}"))
    };
    let mut items = ListItems::new(page.into_parts());
    let mut objects = Vec::new();
    while let Some(item) = items.next().map_err(|error| unreadable(&error))? {
        let object = parsed(with_type(item, request))?;
        objects.push(object);
        rest_if_due();
    }
    let around = items.around().map_err(|error| unreadable(&error))?;
    let Page { metadata, .. } = serde_json::from_str(around).map_err(|error| unreadable(&error))?;
    let token = metadata.and_then(|metadata| metadata.token);
    Ok((objects, token.filter(|token| !token.is_empty())))
}

/// Items of a list come without their type; an object of its own has it.
fn with_type<'a>(item: &'a str, request: &KubernetesRequest) -> Cow<'a, str> {
    #[derive(Deserialize)]
    struct Typed {
        kind: Option<IgnoredAny>,
    }
    let is_typed = serde_json::from_str::<Typed>(item).is_ok_and(|typed| typed.kind.is_some());
    match item.strip_prefix('{') {
        Some(rest) if !is_typed && !request.kind.is_empty() => {
            let separator = if rest.trim_start().starts_with('}') {
                ""
            } else {
                ","
            };
            let api_version = Value::from(api_version(&request.group, &request.version));
            let kind = Value::from(request.kind.as_str());
            format!("{{\"apiVersion\":{api_version},\"kind\":{kind}{separator}{rest}").into()
        }
        _ => item.into(),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use configurator_core::request::KubernetesVerb;
    use expect_test::{Expect, expect};

    use super::*;

    #[test]
    fn items_of_a_list_get_their_type() {
        let mut request = KubernetesRequest::new(KubernetesVerb::List, "", "v1", "pods");
        request.kind = "Pod".into();
        let typed = |item| with_type(item, &request).into_owned();
        assert_eq!(typed("{}"), r#"{"apiVersion":"v1","kind":"Pod"}"#);
        assert_eq!(
            typed(r#"{"a":1}"#),
            r#"{"apiVersion":"v1","kind":"Pod","a":1}"#
        );
        assert_eq!(typed(r#"{"kind":"X"}"#), r#"{"kind":"X"}"#);
    }

    #[track_caller]
    fn check(page: &str, expected: Expect) {
        let mut pieces = Pieces::default();
        pieces.push(Bytes::copy_from_slice(page.as_bytes()));
        let mut request = KubernetesRequest::new(KubernetesVerb::List, "", "v1", "pods");
        request.kind = "Pod".into();
        expected.assert_eq(&match read_page(pieces, &request) {
            Ok(read) => format!("{read:?}"),
            Err(fault) => fault.message,
        });
    }

    #[test]
    fn pages_are_read() {
        check(
            r#"{"kind":"PodList","metadata":{"continue":"next"},"items":[{"a":1},{"b":2}]}"#,
            expect![[
                r#"([{"apiVersion":"v1","kind":"Pod","a":1}, {"apiVersion":"v1","kind":"Pod","b":2}], Some("next"))"#
            ]],
        );
        check(
            r#"{"metadata":{"continue":""},"items":[]}"#,
            expect!["([], None)"],
        );
        check(r#"{"items":[]}"#, expect!["([], None)"]);
    }

    #[test]
    fn what_is_no_page_is_refused() {
        check(
            "",
            expect![
                "the list of pods cannot be read: EOF while parsing a value at line 1 column 0"
            ],
        );
        check(
            "{}",
            expect!["the list of pods cannot be read: missing field `items` at line 1 column 2"],
        );
        check(
            r#"{"items":null}"#,
            expect![
                "the list of pods cannot be read: invalid type: null, expected an empty array at line 1 column 13"
            ],
        );
        check(
            r#"{"items":[],"items":[]}"#,
            expect!["the list of pods cannot be read: duplicate field `items` at line 1 column 19"],
        );
        check(
            r#"{"\u0069tems":[{}]}"#,
            expect!["the list of pods cannot be read: trailing characters at line 1 column 16"],
        );
        check(
            r#"{"items":[{]}"#,
            expect![
                "the server's answer is not well-formed JSON: key must be a string at line 1 column 33"
            ],
        );
        check(
            r#"{"items":[{}}"#,
            expect!["the list of pods cannot be read: trailing characters at line 1 column 11"],
        );
        check(
            r#"{"items":[{},]}"#,
            expect!["the list of pods cannot be read: item 1 is empty"],
        );
        check(
            r#"{"items":[{} {}]}"#,
            expect![
                "the server's answer is not well-formed JSON: trailing characters at line 1 column 34"
            ],
        );
        check(
            r#"{"items":[{}]"#,
            expect![
                "the list of pods cannot be read: EOF while parsing an object at line 1 column 11"
            ],
        );
        check(
            r#"{"items":[{}]} {"items":[{}]}"#,
            expect!["the list of pods cannot be read: trailing characters at line 1 column 14"],
        );
    }
}
