//! An API that one host cannot reach for a while.

use std::task::{Context, Poll};

use configurator_apiserver::ApiServer;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::Request;
use kube::client::Body;
use tokio::sync::watch;
use tower::Service;

/// The way of one host to the API.
#[derive(Clone)]
pub struct Way {
    server: ApiServer,
    is_open: watch::Receiver<bool>,
}

impl Way {
    /// A way, and what closes it.
    pub fn to(server: ApiServer) -> (Self, watch::Sender<bool>) {
        let (open, is_open) = watch::channel(true);
        (Self { server, is_open }, open)
    }
}

impl Service<Request<Body>> for Way {
    type Response = <ApiServer as Service<Request<Body>>>::Response;
    type Error = <ApiServer as Service<Request<Body>>>::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::<Request<Body>>::poll_ready(&mut self.server, context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut server = self.server.clone();
        let mut is_open = self.is_open.clone();
        async move {
            // While it is closed nothing arrives, and nothing is refused.
            let _ = is_open.wait_for(|is_open| *is_open).await;
            server.call(request).await
        }
        .boxed()
    }
}
