//! Which form of an answer the client accepts, and which form its body has.

use http::HeaderMap;
use http::header::ACCEPT;

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

/// The form of the first accepted media type that the API can give.
pub(crate) fn accepted_form(headers: &HeaderMap) -> Result<Form> {
    let mut any = false;
    for range in headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
    {
        any = true;
        let mut parts = range.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        if !matches!(
            media,
            "application/json" | "application/*" | "*/*" | "" | "text/*" | "text/plain"
        ) {
            continue;
        }
        let (mut convert, mut group, mut version) = ("", "", "");
        for parameter in parts {
            match parameter.split_once('=') {
                Some(("as", value)) => convert = value,
                Some(("g", value)) => group = value,
                Some(("v", value)) => version = value,
                _ => {}
            }
        }
        match (convert, group, version) {
            ("", _, _) => return Ok(Form::Object),
            ("Table", "meta.k8s.io", "v1" | "v1beta1") => return Ok(Form::Table),
            ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => {
                return Ok(Form::Metadata);
            }
            _ => {}
        }
    }
    if any {
        Err(not_acceptable())
    } else {
        Ok(Form::Object)
    }
}

/// Whether the client prefers the aggregated form of discovery.
pub(crate) fn accepts_aggregated_discovery(headers: &HeaderMap) -> bool {
    let ranges = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    for range in ranges {
        let range = range.trim();
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

    fn form(accept: &str) -> Option<Form> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        accepted_form(&headers).ok()
    }

    #[test]
    fn the_first_possible_form_wins() {
        assert_eq!(form("application/json"), Some(Form::Object));
        assert_eq!(
            form("application/vnd.kubernetes.protobuf,application/json"),
            Some(Form::Object)
        );
        assert_eq!(
            form(
                "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
            ),
            Some(Form::Table)
        );
        assert_eq!(
            form("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
            Some(Form::Metadata)
        );
        assert_eq!(form("application/json;as=Unknown;g=meta.k8s.io;v=v1"), None);
        assert_eq!(form("application/vnd.kubernetes.protobuf"), None);
        assert_eq!(accepted_form(&HeaderMap::new()), Ok(Form::Object));
    }
}
