//! Hides secrets in the text of a manifest, for the lines around a fault that a person is shown.

/// The fields that hold secrets, as the modules and kinds name them.
const SECRET_FIELDS: &[&str] = &["client_secret", "private_key_pem", "secret"];

/// Of a longer line everything behind the first secret is hidden: to find each one takes the line's length again.
const MOST_LINE_BYTES: usize = 4096;

/// The text with a `*` for each byte of a secret that is written in it. Every other byte stays where it is, so places
/// in the one text are places in the other. It looks at words, not at structure: a file with a syntax error is where
/// it is needed most. When in doubt it hides more.
pub fn redact(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    // The indentation of a key whose value goes on over the next lines.
    let mut open: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches(['\n', '\r']);
        let indentation = content.len() - content.trim_start_matches([' ', '-', '\t']).len();
        if content.starts_with("---") || content.starts_with("...") {
            open = None;
        }
        if open.is_some_and(|key| content.trim().is_empty() || indentation > key) {
            if is_reference(content) {
                open = None;
                shown.push_str(content);
            } else {
                shown.push_str(&stars(content));
            }
        } else {
            open = None;
            shown.push_str(&redact_line(content, indentation, &mut open));
        }
        shown.push_str(line.get(content.len()..).unwrap_or_default());
    }
    shown
}

fn redact_line(line: &str, indentation: usize, open: &mut Option<usize>) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    if line.len() > MOST_LINE_BYTES
        && let Some((before, after)) = split_at_secret(line)
    {
        *open = Some(indentation);
        return before.to_owned() + &stars(after);
    }
    while let Some((before, value)) = split_at_secret(rest) {
        shown.push_str(before);
        let in_flow = line.get(..line.len() - value.len()).is_some_and(|before| before.contains(['{', '[']));
        if is_reference(value) {
            rest = value;
            continue;
        }
        // A value that does not end on its line, quoted or in brackets, goes on over the next ones.
        let end = value_end(value, in_flow);
        let (secret, after) = value.split_at(end.unwrap_or(value.len()));
        shown.push_str(&stars(secret));
        if end.is_none() {
            *open = Some(if in_flow { 0 } else { indentation });
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// Splits a line behind the first `secret:` of any name.
fn split_at_secret(line: &str) -> Option<(&str, &str)> {
    let ends = SECRET_FIELDS.iter().filter_map(|field| {
        line.match_indices(field).find_map(|(start, _)| {
            let behind = line.get(start + field.len()..)?;
            let value = behind.trim_start_matches(['"', '\'', ' ']).strip_prefix(':')?;
            Some(line.len() - value.len())
        })
    });
    line.split_at_checked(ends.min()?)
}

/// Whether a value says where the secret is, instead of what it is.
fn is_reference(value: &str) -> bool {
    let value = value.trim_start().trim_start_matches(['{', ' ', '"', '\'']);
    value.starts_with("from_env") || value.starts_with("from_file")
}

/// Where a value in brackets ends, if it ends on its line: at the next comma or bracket that is not quoted. In block
/// style a value may always go on.
fn value_end(value: &str, in_flow: bool) -> Option<usize> {
    if !in_flow {
        return None;
    }
    let text = value.trim_start();
    let blank = value.len() - text.len();
    let quote = text.chars().next().filter(|c| ['"', '\''].contains(c));
    let end = match quote {
        Some(quote) => closing_quote(text, quote),
        None => text.find([',', '}', ']']),
    };
    end.map(|end| blank + end)
}

/// Behind the quote that closes a text, past escaped ones.
fn closing_quote(text: &str, quote: char) -> Option<usize> {
    let mut escaped = true; // the opening quote itself
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if quote == '"' => escaped = true,
            other if other == quote => return Some(at + other.len_utf8()),
            _ => {}
        }
    }
    None
}

/// The text with a `*` for each byte that is no white space.
fn stars(text: &str) -> String {
    text.bytes().map(|byte| if byte.is_ascii_whitespace() { char::from(byte) } else { '*' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_and_places_stay() {
        for (text, hidden) in [
            ("client_secret: hunter2\nscopes: [a]\n", "client_secret: *******\nscopes: [a]\n"),
            ("  secret: \"a b\" # c\r\n  x: 1", "  secret: ** ** * *\r\n  x: 1"),
            ("secret: |\n  one\n\n  twö\nnext: 1", "secret: *\n  ***\n\n  ****\nnext: 1"),
            ("{\"client_secret\": \"a,b\", \"x\": 1}", "{\"client_secret\": *****, \"x\": 1}"),
            ("a: {secret: s1, client_secret: s2}", "a: {secret: **, client_secret: **}"),
            ("secret: {from_file: a}\nx: y", "secret: {from_file: a}\nx: y"),
            ("secret:\n  from_env: NAME\nx: y", "secret:\n  from_env: NAME\nx: y"),
            ("secret: s\n---\nx: y", "secret: *\n---\nx: y"),
            (
                "{\"d\": \"the secret door\", \"secret\": \"hunter2\"}",
                "{\"d\": \"the secret door\", \"secret\": *********}",
            ),
            ("{secret: \"a\\\"b\", x: 1}", "{secret: ******, x: 1}"),
            ("{secret:\n  hunter2,\n  x: 1}", "{secret:\n  ********\n  ** **"),
        ] {
            assert_eq!(redact(text), hidden);
            assert_eq!(redact(text).len(), text.len());
        }
        let long = format!("{{{}}}", "secret: hunter2, ".repeat(50_000));
        assert!(!redact(&long).contains("hunter") && redact(&long).len() == long.len());
    }
}
