//! Logs and traces.

use anyhow::Context as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use super::settings::{LogFormat, Settings};

/// Logs and traces under way.
pub struct Telemetry {}

impl Telemetry {
    /// Sends what has not been sent.
    pub fn end(self) {}
}

/// Starts logging as the settings say.
///
/// # Errors
/// When the filter has no sense.
pub fn start(settings: &Settings) -> anyhow::Result<Telemetry> {
    let filter = EnvFilter::try_new(&settings.log).with_context(|| {
        format!(
            "{:?} is no filter of log lines; try info,configurator=debug",
            settings.log
        )
    })?;
    let lines = match settings.log_format {
        LogFormat::Json => tracing_subscriber::fmt::layer()
            .json()
            .flatten_event(true)
            .boxed(),
        LogFormat::Text => tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .compact()
            .boxed(),
    };
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .init();
    Ok(Telemetry {})
}
