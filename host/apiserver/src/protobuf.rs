//! Answers in protobuf.

use bytes::Bytes;
use configurator_background::work::LARGE;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};

use crate::body::ApiBody;
use crate::server::Inner;
use crate::status::{Result, Status};
use crate::wire;

/// The media type of documents in protobuf.
pub(crate) const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
/// The media type of a watch in protobuf.
pub(crate) const PROTOBUF_WATCH: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// Turns an answer in JSON into protobuf. One whose kind has no message stays as it is, as does the stream of a watch.
///
/// # Errors
/// When a large answer could not be encoded in the background.
pub(crate) async fn in_protobuf(
    server: &Inner,
    response: Response<ApiBody>,
) -> Result<Response<ApiBody>> {
    let is_json = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|media| media == "application/json");
    if !is_json {
        return Ok(response);
    }
    let (mut head, body) = response.into_parts();
    let json = match body.into_whole() {
        Ok(json) => json,
        Err(stream) => return Ok(Response::from_parts(head, stream)),
    };
    let text = json.clone();
    let encoded = match json.len() < LARGE {
        true => wire::encode(&text),
        false => {
            let encoding = server.background.run(0, move || wire::encode(&text));
            encoding.await.map_err(Status::internal)?
        }
    };
    let Some(encoded) = encoded.map_err(Status::internal)? else {
        return Ok(Response::from_parts(head, ApiBody::whole(json)));
    };
    head.headers
        .insert(CONTENT_TYPE, HeaderValue::from_static(PROTOBUF));
    Ok(Response::from_parts(
        head,
        ApiBody::whole(Bytes::from(encoded)),
    ))
}

/// Turns a line of a watch into a frame of protobuf. `None`: its kind has no message, so it is not watched in protobuf.
pub(crate) fn frame(line: &Bytes) -> Option<Bytes> {
    wire::encode_event(line).ok().flatten().map(Bytes::from)
}
