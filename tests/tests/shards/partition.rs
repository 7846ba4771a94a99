//! An API that one host cannot reach for a while, and that may be replaced by another.

use std::task::{Context, Poll};

use bytes::Bytes;
use configurator_apiserver::ApiServer;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use kube::client::Body;
use tokio::sync::watch;
use tower::Service;

/// The way of one host to the API.
#[derive(Clone)]
pub struct Way {
    server: watch::Receiver<ApiServer>,
    is_open: watch::Receiver<bool>,
}

impl Way {
    /// A way to whichever server there is, and what closes it.
    pub fn to(server: watch::Receiver<ApiServer>) -> (Self, watch::Sender<bool>) {
        let (open, is_open) = watch::channel(true);
        (Self { server, is_open }, open)
    }
}

impl Service<Request<Body>> for Way {
    type Response = Response<UnsyncBoxBody<Bytes, std::io::Error>>;
    type Error = <ApiServer as Service<Request<Body>>>::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut servers = self.server.clone();
        let mut is_open = self.is_open.clone();
        async move {
            // While it is closed nothing arrives, and nothing is refused.
            let _ = is_open.wait_for(|is_open| *is_open).await;
            let mut server = servers.borrow_and_update().clone();
            let response = server.call(request).await?;
            // With the server its connections end.
            let is_gone = async move {
                if servers.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            Ok(response.map(|body| {
                let frames = body.into_data_stream().map_ok(Frame::data);
                let frames = frames.map_err(std::io::Error::other);
                StreamBody::new(frames.take_until(is_gone.boxed())).boxed_unsync()
            }))
        }
        .boxed()
    }
}
