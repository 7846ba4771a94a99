//! Temporary.
#![allow(clippy::unwrap_used, reason = "temporary")]
use configurator_apiserver::*;
use configurator_store::*;
#[tokio::main]
async fn main() {
    let store = Store::open(std::path::Path::new("/tmp/h1-serve.redb"), StoreOptions::default()).unwrap();
    let server = ApiServer::open(store, ApiServerOptions::new(jiff::Timestamp::now)).await.unwrap();
    let (at, serving) = server.serve(ServeOptions { addr: "127.0.0.1:16443".parse().unwrap(), token: None }, std::future::pending()).await.unwrap();
    std::fs::write("/tmp/h1-kubeconfig", at.kubeconfig()).unwrap();
    serving.await;
}
