//! API tokens in texts: somebody pastes one where it does not belong, and it must go no further (D23).

use std::{borrow::Cow, ops::Range};

use super::replace_parts;

/// The start of a token, before the ID of its key. Somebody who copies a token may miss it.
const START: &str = "ew";
/// The start of the ID of a key.
const KEY: &str = "ak";
/// The characters of an ID after its start.
const ID_CHARS: usize = 27;
/// The separator between the parts of a token; the path of a request can write it in another way.
const SEPARATORS: [&str; 3] = ["_", "%5F", "%5f"];
/// The prefix of a token in a header.
const SCHEME: &str = "bearer ";
/// The fewest characters of a secret part that are hidden. A whole one has 27.
const SHORTEST_SECRET: usize = 12;
/// The placeholder for a secret part.
const HIDDEN: &str = "***";

/// Whether a text contains an API token.
pub(crate) fn has_token(text: &str) -> bool {
    token_secrets(text).next().is_some()
}

/// Hides the secret parts of the API tokens in a text.
pub(crate) fn without_tokens(text: &str) -> Cow<'_, str> {
    match has_token(text) {
        false => text.into(),
        true => replace_parts(text, token_secrets(text), |_| HIDDEN.into()).into(),
    }
}

/// The ID of the API key of a text that is a token and nothing else. Whoever pastes one may have copied a part of it, or the
/// marks around it.
pub(crate) fn key_of_token(text: &str) -> Option<&str> {
    let mut text = without_marks(text);
    if let Some((scheme, rest)) = text.split_at_checked(SCHEME.len())
        && scheme.eq_ignore_ascii_case(SCHEME)
    {
        text = without_marks(rest);
    }
    let (has_start, text) = match text.strip_prefix("ew_") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let id = alphanumerics(text.strip_prefix("ak_")?);
    let (key, rest) = text.split_at_checked("ak_".len() + id)?;
    let is_token = match rest.strip_prefix('_') {
        Some(secret) => alphanumerics(secret) == secret.len() && ((has_start && id > 0) || id == ID_CHARS),
        None => rest.is_empty() && has_start && id == ID_CHARS,
    };
    is_token.then_some(key)
}

/// Trims quotes, brackets and other marks around a token in a text, including those of a hidden secret part.
fn without_marks(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || "\"'`.,;:<>()[]*…".contains(c))
}

/// Where the secret parts of the tokens in a text are.
pub(crate) fn token_secrets(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices(KEY).filter_map(|(at, _)| {
        let (before, rest) = text.split_at_checked(at)?;
        let rest = after_separator(rest.strip_prefix(KEY)?)?;
        let has_start = SEPARATORS.iter().any(|it| before.strip_suffix(it).is_some_and(|it| it.ends_with(START)));
        let id = alphanumerics(rest);
        let rest = after_separator(rest.get(id..)?).filter(|_| (has_start && id > 0) || id == ID_CHARS)?;
        let start = text.len() - rest.len();
        let length = alphanumerics(rest);
        (length >= SHORTEST_SECRET).then(|| start..start + length)
    })
}

/// How many letters and digits a text starts with.
fn alphanumerics(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_alphanumeric).count()
}

/// The rest after a separator.
fn after_separator(text: &str) -> Option<&str> {
    SEPARATORS.iter().find_map(|separator| text.strip_prefix(separator))
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
            (format!("without its start: {}", &TOKEN[3..]), format!("without its start: {}", &hidden[3..])),
            (TOKEN[3..].replace('_', "%5F"), hidden[3..].replace('_', "%5F")),
            ("ew_ak_1_short, ew_ak_, ak_3MWmcLvtt0vjIX9kLlxuHz95QLB, über".to_owned(), String::new()),
            ("ak_1_Zirnp3rqEUFId13vm5Ms2LsUY6D, break_out".to_owned(), String::new()),
        ] {
            let expected = if expected.is_empty() { text.clone() } else { expected };
            assert_eq!(without_tokens(&text), expected);
            assert_eq!(has_token(&text), text != expected);
        }
    }

    #[test]
    fn a_token_names_its_key_however_it_was_copied() {
        for copied in [
            TOKEN.to_owned(),
            format!(" {TOKEN}\n"),
            format!("\"{TOKEN}\","),
            format!("<'{TOKEN}'>."),
            format!("Bearer {TOKEN}"),
            format!("\"bearer {TOKEN}\""),
            TOKEN[3..].to_owned(),
            format!("'{}'", &TOKEN[3..]),
            TOKEN[..TOKEN.len() - 20].to_owned(),
            TOKEN[3..40].to_owned(),
            TOKEN[..34].to_owned(),
            TOKEN[..33].to_owned(),
            without_tokens(TOKEN).into_owned(),
        ] {
            assert_eq!(key_of_token(&copied), Some("ak_3MWmcLvtt0vjIX9kLlxuHz95QLB"), "{copied}");
        }
        assert_eq!(key_of_token("ew_ak_1_short"), Some("ak_1"));
        for other in ["ak_3MWmcLvtt0vjIX9kLlxuHz95QLB", "", "ak_1_short", "ew_ak_", "Bearer ü", "ew_ak_1", "bearer"] {
            assert_eq!(key_of_token(other), None, "{other}");
        }
        for other in [format!("x{TOKEN}"), format!("{TOKEN}/routes"), format!("{TOKEN} {TOKEN}")] {
            assert_eq!(key_of_token(&other), None, "{other}");
        }
    }
}
