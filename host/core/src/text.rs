//! Text of modules in messages for people.

/// The most bytes of a quoted text, since messages end up in conditions and Events.
const MAX_QUOTED: usize = 80;

/// Quotes what a module wrote; of a long text the beginning.
pub(crate) fn quoted(text: &str) -> String {
    let short = format!("{text:.MAX_QUOTED$}");
    let dots = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{dots}")
}
