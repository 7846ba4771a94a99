//! Log lines of a handler.
//!
//! The host adds the Configurator, the phase and the run's id to each line, and drops lines past its limit: 1,000 lines
//! and 64 KiB a call, 4 KiB a line. Natively, lines go to standard error.

use crate::bindings::configurator::handler::log as host;

#[doc(inline)]
pub use host::Level;

/// For a person who follows every step.
pub fn trace(message: &str) {
    line(Level::Trace, message, &[]);
}

/// For a person who looks for a fault.
pub fn debug(message: &str) {
    line(Level::Debug, message, &[]);
}

/// What is worth knowing when all is well.
pub fn info(message: &str) {
    line(Level::Info, message, &[]);
}

/// What is odd and does no harm yet.
pub fn warn(message: &str) {
    line(Level::Warn, message, &[]);
}

/// What went wrong.
pub fn error(message: &str) {
    line(Level::Error, message, &[]);
}

/// A line with fields, which stay apart from the message in structured logs.
///
/// ```
/// use configurator_sdk::log::{self, Level};
///
/// log::line(Level::Info, "composed", &[("layers", "3"), ("keys", "12")]);
/// ```
pub fn line(level: Level, message: &str, fields: &[(&str, &str)]) {
    #[cfg(target_arch = "wasm32")]
    {
        let fields: Vec<(String, String)> = fields
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        host::log(level, message, &fields);
    }
    #[cfg(not(target_arch = "wasm32"))]
    eprintln!("{}", text(level, message, fields));
}

/// How a line looks on standard error.
#[cfg(any(test, not(target_arch = "wasm32")))]
fn text(level: Level, message: &str, fields: &[(&str, &str)]) -> String {
    let level = match level {
        Level::Trace => "TRACE",
        Level::Debug => "DEBUG",
        Level::Info => "INFO",
        Level::Warn => "WARN",
        Level::Error => "ERROR",
    };
    let mut text = format!("{level} {message}");
    for (key, value) in fields {
        text.push_str(&format!(" {key}={value:?}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_its_fields_in_order() {
        let line = text(
            Level::Warn,
            "no owner",
            &[("pod", "web-1"), ("why", "it is \"bare\"")],
        );
        expect_test::expect![[r#"WARN no owner pod="web-1" why="it is \"bare\"""#]]
            .assert_eq(&line);
    }
}
