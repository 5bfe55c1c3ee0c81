//! API tokens in texts: somebody pastes one where it does not belong, and it must go no further (D23).

use std::{borrow::Cow, ops::Range};

/// The parts of a token before the ID of its key.
const START: [&str; 2] = ["ew", "ak"];
/// The fewest characters of a secret part that are hidden. A whole one has 27.
const SHORTEST_SECRET: usize = 12;
/// What stands for a secret part.
const HIDDEN: &str = "***";

/// Whether a text contains an API token.
pub(crate) fn has_token(text: &str) -> bool {
    secrets(text).next().is_some()
}

/// Hides the secret parts of the API tokens in a text.
pub(crate) fn without_tokens(text: &str) -> Cow<'_, str> {
    let mut shown = String::new();
    let mut from = 0;
    for Range { start, end } in secrets(text) {
        shown += text.get(from..start).unwrap_or_default();
        shown += HIDDEN;
        from = end;
    }
    match from {
        0 => Cow::Borrowed(text),
        _ => Cow::Owned(shown + text.get(from..).unwrap_or_default()),
    }
}

/// The ID of the API key of a text that is a token and nothing else.
pub(crate) fn key_of_token(text: &str) -> Option<&str> {
    let text = text.trim();
    let whole = secrets(text).next().filter(|secret| secret.end == text.len() && text.starts_with("ew_"))?;
    text.get(3..whole.start)?.strip_suffix('_')
}

/// Where the secret parts of the tokens in a text are.
fn secrets(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices(START[0]).filter_map(|(at, _)| {
        let mut rest = text.get(at..)?;
        for part in START {
            rest = after_separator(rest.strip_prefix(part)?)?;
        }
        let alphanumeric = |text: &str| text.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let id = alphanumeric(rest);
        rest = after_separator(rest.get(id..)?).filter(|_| id > 0)?;
        let start = text.len() - rest.len();
        let length = alphanumeric(rest);
        (length >= SHORTEST_SECRET).then(|| start..start + length)
    })
}

/// What follows an underscore, which the path of a request can write in another way.
fn after_separator(text: &str) -> Option<&str> {
    ["_", "%5F", "%5f"].iter().find_map(|separator| text.strip_prefix(separator))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "ew_ak_3MWmcLvtt0vjIX9kLlxuHz95QLB_Zirnp3rqEUFId13vm5Ms2LsUY6D";

    #[test]
    fn the_secret_part_of_a_token_is_hidden_wherever_it_is() {
        let hidden = "ew_ak_3MWmcLvtt0vjIX9kLlxuHz95QLB_***";
        for (text, expected) in [
            (TOKEN.to_owned(), hidden.to_owned()),
            (format!("new ew_ ew_ak_ `{TOKEN}`, {TOKEN}."), format!("new ew_ ew_ak_ `{hidden}`, {hidden}.")),
            (TOKEN.replace('_', "%5f"), hidden.replace('_', "%5f")),
            (TOKEN[..50].to_owned(), hidden.to_owned()),
            ("ew_ak_1_short, ew_ak_, ak_3MWmcLvtt0vjIX9kLlxuHz95QLB, über".to_owned(), String::new()),
        ] {
            let expected = if expected.is_empty() { text.clone() } else { expected };
            assert_eq!(without_tokens(&text), expected);
            assert_eq!(has_token(&text), text != expected);
        }
    }

    #[test]
    fn a_whole_token_names_its_key() {
        assert_eq!(key_of_token(TOKEN), Some("ak_3MWmcLvtt0vjIX9kLlxuHz95QLB"));
        assert_eq!(key_of_token(&format!(" {TOKEN}\n")), Some("ak_3MWmcLvtt0vjIX9kLlxuHz95QLB"));
        for other in ["ak_3MWmcLvtt0vjIX9kLlxuHz95QLB", "", "ew_ak_1_short", &format!("x{TOKEN}"), &format!("{TOKEN}.")]
        {
            assert_eq!(key_of_token(other), None, "{other}");
        }
    }
}
