//! Logs and traces.

use std::fmt;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::WithExportConfig as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter, Tracer};
use tracing::Level;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use super::escape::Escaped;
use super::settings::{LogFormat, Settings};

/// Spans of these targets, and of those that begin so, are exported: a run, its calls, its requests.
const TRACED: &str = "configurator";

/// Logs and traces under way.
pub struct Telemetry {
    tracers: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Sends what has not been sent. Must not be called on a thread of an asynchronous runtime.
    pub fn end(self) {
        if let Some(tracers) = self.tracers
            && let Err(error) = tracers.shutdown()
        {
            anstream::eprintln!("the last traces could not be sent: {error}");
        }
    }
}

/// Starts logging as the settings say. Must not be called on a thread of an asynchronous runtime.
///
/// # Errors
/// When the filter or the address of the collector has no sense.
pub fn start(settings: &Settings) -> anyhow::Result<Telemetry> {
    let filter = settings.log_filter();
    let filter = EnvFilter::try_new(filter).with_context(|| {
        format!("{filter:?} is no filter of log lines; try info,configurator=debug")
    })?;
    let lines = match settings.log_format {
        LogFormat::Json => tracing_subscriber::fmt::layer()
            .json()
            .flatten_event(true)
            // Every line has the fields of its run itself.
            .with_current_span(false)
            .with_span_list(false)
            .boxed(),
        LogFormat::Text => tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal())
            .fmt_fields(OneLine)
            .compact()
            .boxed(),
    };
    let tracers = settings
        .otlp_endpoint
        .as_deref()
        .map(exporter)
        .transpose()?;
    let traces = tracers.as_ref().map(|tracers| {
        let tracer: Tracer = tracers.tracer("configurator");
        tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_filter(Targets::new().with_target(TRACED, Level::INFO))
    });
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .with(traces)
        .init();
    Ok(Telemetry { tracers })
}

/// Writes messages and fields on one line. Handlers and servers choose their text, and must not forge lines of the host.
struct OneLine;

impl<'a> FormatFields<'a> for OneLine {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'a>, fields: R) -> fmt::Result {
        let mut text = String::new();
        DefaultFields::new().format_fields(Writer::new(&mut text), fields)?;
        write!(writer, "{}", Escaped(text))
    }
}

/// Sends spans in batches, from a thread of its own, by OTLP over HTTP. What cannot be sent is dropped.
fn exporter(endpoint: &str) -> anyhow::Result<SdkTracerProvider> {
    let refusal =
        || format!("{endpoint:?} is no address of a collector; try http://127.0.0.1:4318");
    anyhow::ensure!(
        endpoint.starts_with("http://") || endpoint.starts_with("https://"),
        refusal()
    );
    // The exporter's client panics where the process has chosen no TLS.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        .build()
        .with_context(refusal)?;
    let exporter = Collector {
        exporter,
        endpoint: endpoint.to_owned(),
        is_away: AtomicBool::new(false),
    };
    let resource = Resource::builder()
        .with_service_name("configurator")
        .build();
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource)
        .build())
}

/// A collector; says once when it takes no spans, and once when it takes them again.
#[derive(Debug)]
struct Collector {
    exporter: opentelemetry_otlp::SpanExporter,
    endpoint: String,
    is_away: AtomicBool,
}

impl SpanExporter for Collector {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let sent = self.exporter.export(batch).await;
        let was_away = self.is_away.swap(sent.is_err(), Ordering::Relaxed);
        match &sent {
            Err(error) if !was_away => {
                tracing::warn!(%error, "traces cannot be sent to {}; they are dropped", self.endpoint);
            }
            Ok(()) if was_away => tracing::warn!("traces are sent to {} again", self.endpoint),
            _ => {}
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
