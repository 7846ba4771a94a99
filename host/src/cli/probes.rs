//! `/metrics`, `/livez` and `/readyz`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::controller::report::HostReport;
use crate::metrics::Metrics;

/// Serves them at this address until `stop`. The second of what is watched is why the host has not started. Returns the address, with the port that was taken.
///
/// # Errors
/// When the port is in use.
pub async fn serve(
    address: SocketAddr,
    metrics: Arc<Metrics>,
    (report, trouble): (watch::Receiver<HostReport>, watch::Receiver<Option<String>>),
    stop: CancellationToken,
) -> anyhow::Result<SocketAddr> {
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .map_err(|error| {
            anyhow::anyhow!(
                "metrics and health cannot be served at {address}: {error}. Choose another address with --metrics-listen"
            )
        })?;
    let at = listener.local_addr()?;
    let ready = move || {
        let report = report.borrow().clone();
        let trouble = trouble.borrow().clone();
        async move {
            let waiting: Vec<&str> = report
                .keepers
                .iter()
                .filter(|(_, keeper)| !keeper.is_bootstrapped)
                .map(|(name, _)| name.as_str())
                .collect();
            if report.is_ready() {
                (StatusCode::OK, "ok\n".to_owned()).into_response()
            } else {
                let text = format!(
                    "not ready: waits for {}\n",
                    match trouble.or(report.watch_error) {
                        Some(error) => format!("the cluster: {error}"),
                        None if waiting.is_empty() => "the first listing".into(),
                        None => waiting.join(", "),
                    }
                );
                (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
            }
        }
    };
    let text = move || {
        let text = metrics.encode();
        async move {
            (
                [(
                    header::CONTENT_TYPE,
                    "application/openmetrics-text; version=1.0.0; charset=utf-8",
                )],
                text,
            )
        }
    };
    let router = Router::new()
        .route("/metrics", get(text))
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(ready));
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router)
            .with_graceful_shutdown(stop.cancelled_owned())
            .await
        {
            tracing::warn!(%error, "metrics and health are no longer served");
        }
    });
    Ok(at)
}
