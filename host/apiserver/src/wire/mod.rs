//! The binary form of the API, `application/vnd.kubernetes.protobuf`, as kubectl and typed Go clients write it.
//!
//! Bodies of requests are turned into JSON by a table of messages. Answers are always JSON, which all of those clients accept.

mod decode;
mod message;

pub(crate) use self::decode::decode;

/// What a binary body begins with.
const MAGIC: &[u8] = b"k8s\0";
