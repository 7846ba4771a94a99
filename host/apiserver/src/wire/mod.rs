//! The API in protobuf, `application/vnd.kubernetes.protobuf`, as typed Go clients read and write it.
//!
//! A table of messages says how the fields of JSON and those of protobuf correspond.

mod decode;
mod encode;
mod message;

pub(crate) use self::decode::decode;
pub(crate) use self::encode::{encode, encode_event};

/// The first bytes of each document.
const MAGIC: &[u8] = b"k8s\0";

/// The name in the table of a kind.
fn message_name(api_version: &str, kind: &str) -> String {
    // These belong to the machinery. The options may come under the name of any group.
    match (api_version, kind) {
        (_, "DeleteOptions")
        | ("v1" | "", "Status" | "APIVersions" | "APIGroupList" | "APIGroup" | "APIResourceList")
        | ("meta.k8s.io/v1", "PartialObjectMetadata") => format!("meta.{kind}"),
        _ => format!("{api_version}.{kind}"),
    }
}
