//! Escapes text that handlers and servers have chosen.

use std::fmt;

/// Shows a text on one line, so that its author cannot forge lines of the host. Escapes characters that end the line, move the
/// cursor, change colours or reverse the direction of reading, as in `\n` and `\u{1b}`.
pub struct Escaped<T>(pub T);

impl<T: fmt::Display> fmt::Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut escaping = Escaping(f);
        fmt::Write::write_fmt(&mut escaping, format_args!("{}", self.0))
    }
}

struct Escaping<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl fmt::Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(is_escaped) {
            let (plain, end) = rest.split_at(at);
            self.0.write_str(plain)?;
            let mut characters = end.chars();
            if let Some(character) = characters.next() {
                write!(self.0, "{}", character.escape_debug())?;
            }
            rest = characters.as_str();
        }
        self.0.write_str(rest)
    }
}

fn is_escaped(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Separators of lines and paragraphs; marks, embeddings and isolates of directions.
            '\u{2028}' | '\u{2029}' | '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn what_would_leave_the_line_is_escaped() {
        let text =
            "a\n2026 ERROR b\r\tc \u{1b}[31mred\u{9b}0m\u{7f} \u{202e}d\u{2028}e \\n \"é\" 日本";
        expect![[
            r#"a\n2026 ERROR b\r\tc \u{1b}[31mred\u{9b}0m\u{7f} \u{202e}d\u{2028}e \n "é" 日本"#
        ]]
        .assert_eq(&Escaped(text).to_string());
    }
}
