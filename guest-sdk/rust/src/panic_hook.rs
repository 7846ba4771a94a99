//! The last words of a handler that panics.

use crate::log;

/// Logs message and place of a panic, which then traps: the host's fault carries the line.
pub(crate) fn install() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("a panic without a message");
        let mut line = String::from("the handler panicked: ");
        line.push_str(message);
        let place = info
            .location()
            .map(|place| place.to_string())
            .unwrap_or_default();
        log::line(log::Level::Error, &line, &[("location", &place)]);
    }));
}
