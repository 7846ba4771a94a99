use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http_body::{Body, Frame, SizeHint};

use crate::pieces::Pieces;

/// The body of an answer: pieces that are there, or the lines of a watch as they come.
pub struct ApiBody(Content);

enum Content {
    Whole(Pieces),
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl ApiBody {
    pub(crate) fn whole(pieces: impl Into<Pieces>) -> Self {
        Self(Content::Whole(pieces.into()))
    }

    pub(crate) fn stream(lines: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self(Content::Stream(Box::pin(lines)))
    }

    /// All of it; a stream as it is.
    pub(crate) fn into_whole(self) -> Result<Bytes, Self> {
        match self.0 {
            Content::Whole(pieces) => Ok(pieces.into_bytes()),
            Content::Stream(_) => Err(self),
        }
    }
}

impl Body for ApiBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Content::Whole(pieces) => Poll::Ready(pieces.pop().map(|piece| Ok(Frame::data(piece)))),
            Content::Stream(lines) => lines
                .as_mut()
                .poll_next(cx)
                .map(|line| line.map(|line| Ok(Frame::data(line)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Content::Whole(pieces) if pieces.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(pieces) => SizeHint::with_exact(pieces.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for ApiBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.0 {
            Content::Whole(_) => "ApiBody(whole)",
            Content::Stream(_) => "ApiBody(stream)",
        })
    }
}
