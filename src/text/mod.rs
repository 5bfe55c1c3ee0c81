//! How text from elsewhere is quoted in messages: short, and without characters that change what a terminal shows.

/// The most characters of a value that a message quotes.
const QUOTED_CHARS: usize = 60;
/// The most characters of a path that a message quotes.
const PATH_CHARS: usize = 255;

/// A value as a message can quote it: cut to one short line, with control, line-break and bidirectional characters
/// escaped. Otherwise a manifest could rewrite what a reviewer's terminal or log shows.
pub fn printable(text: &str) -> String {
    cut(text, QUOTED_CHARS)
}

/// Like [`printable`], for the path of a file: longer, as its end tells more than its start.
pub fn printable_path(text: &str) -> String {
    cut(text, PATH_CHARS)
}

fn cut(text: &str, most: usize) -> String {
    let mut printable: String = text.chars().take(most).flat_map(char::escape_debug).collect();
    if text.chars().nth(most).is_some() {
        printable.push('…');
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_short_and_cannot_steer_a_terminal() {
        for (text, expected) in [
            ("plain", "plain"),
            ("two\nlines\r", "two\\nlines\\r"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("abc\u{202e}cba\u{2066}", "abc\\u{202e}cba\\u{2066}"),
            ("\u{2028}", "\\u{2028}"),
        ] {
            assert_eq!(printable(text), expected);
        }
        assert_eq!(printable(&"ü".repeat(61)), "ü".repeat(60) + "…");
    }
}
