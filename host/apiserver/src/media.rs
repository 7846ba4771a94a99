//! Which form of an answer the client accepts, and which form its body has.

use http::HeaderMap;
use http::header::ACCEPT;

use crate::protobuf::PROTOBUF;
use crate::status::{Result, Status};

/// The form of an object or a list in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// The object itself.
    Object,
    /// Rows and columns, as `kubectl get` prints them.
    Table,
    /// Only its metadata.
    Metadata,
}

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Protobuf,
}

/// What a client accepts, and the API can give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) form: Form,
    pub(crate) encoding: Encoding,
}

/// The first accepted media type that the API can give. Of custom kinds, only metadata are given in protobuf.
pub(crate) fn accepted(headers: &HeaderMap, is_custom: bool) -> Result<Accepted> {
    let mut any = false;
    for range in ranges(headers) {
        any = true;
        let mut parts = range.split(';').map(str::trim);
        let encoding = match parts.next().unwrap_or_default() {
            "application/json" | "application/*" | "*/*" | "" | "text/*" | "text/plain" => {
                Encoding::Json
            }
            PROTOBUF => Encoding::Protobuf,
            _ => continue,
        };
        let (mut convert, mut group, mut version) = ("", "", "");
        for parameter in parts {
            match parameter.split_once('=') {
                Some(("as", value)) => convert = value,
                Some(("g", value)) => group = value,
                Some(("v", value)) => version = value,
                _ => {}
            }
        }
        let form = match (convert, group, version, encoding) {
            ("", _, _, Encoding::Json) => Form::Object,
            ("", _, _, Encoding::Protobuf) if !is_custom => Form::Object,
            ("Table", "meta.k8s.io", "v1" | "v1beta1", Encoding::Json) => Form::Table,
            ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1", _) => {
                Form::Metadata
            }
            _ => continue,
        };
        return Ok(Accepted { form, encoding });
    }
    if any {
        Err(not_acceptable())
    } else {
        Ok(Accepted {
            form: Form::Object,
            encoding: Encoding::Json,
        })
    }
}

/// Whether the client prefers protobuf for what can be given in it.
pub(crate) fn prefers_protobuf(headers: &HeaderMap) -> bool {
    accepted(headers, false).is_ok_and(|accepted| accepted.encoding == Encoding::Protobuf)
}

/// The media types that the client accepts, in its order.
fn ranges(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
}

/// Whether the client prefers the aggregated form of discovery.
pub(crate) fn accepts_aggregated_discovery(headers: &HeaderMap) -> bool {
    for range in ranges(headers) {
        if range.starts_with("application/json") && range.contains("as=APIGroupDiscoveryList") {
            if range.contains("v=v2")
                && !range.contains("v=v2beta1")
                && range.contains("g=apidiscovery.k8s.io")
            {
                return true;
            }
        } else if matches!(range.split(';').next(), Some("application/json" | "*/*")) {
            return false;
        }
    }
    false
}

fn not_acceptable() -> Status {
    let mut status = Status::new(
        http::StatusCode::NOT_ACCEPTABLE,
        "NotAcceptable",
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf",
    );
    status.details = Some(serde_json::json!({}));
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(accept: &str, is_custom: bool, expected: Option<(Form, Encoding)>) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        let accepted = accepted(&headers, is_custom).ok();
        let accepted = accepted.map(|accepted| (accepted.form, accepted.encoding));
        assert_eq!(accepted, expected, "{accept}");
    }

    #[test]
    fn the_first_possible_form_wins() {
        use Encoding::{Json, Protobuf};
        let both = "application/vnd.kubernetes.protobuf,application/json";
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1, application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        check("application/json", false, Some((Form::Object, Json)));
        check(both, false, Some((Form::Object, Protobuf)));
        check(both, true, Some((Form::Object, Json)));
        check(metadata, false, Some((Form::Metadata, Protobuf)));
        check(metadata, true, Some((Form::Metadata, Protobuf)));
        check(table, false, Some((Form::Table, Json)));
        check(
            "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json",
            false,
            Some((Form::Object, Json)),
        );
        check(
            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            false,
            Some((Form::Metadata, Json)),
        );
        check(
            "application/json;as=Unknown;g=meta.k8s.io;v=v1",
            false,
            None,
        );
        check(PROTOBUF, false, Some((Form::Object, Protobuf)));
        check(PROTOBUF, true, None);
        check("image/png", false, None);
        let none = accepted(&HeaderMap::new(), true).unwrap();
        assert_eq!((none.form, none.encoding), (Form::Object, Json));
    }
}
