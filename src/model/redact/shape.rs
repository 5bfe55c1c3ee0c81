//! Heuristics for text: keys, references to values, ends of values, tokens.

/// Shorter texts are treated as words.
const SHORTEST_TOKEN: usize = 20;
/// Shorter base64 may be a word or a path.
const SHORTEST_BASE64: usize = 40;
/// A value with more possible ends than this counts as one that does not end on its line.
const MOST_ENDS: usize = 64;
/// The longest word that can be a key.
const LONGEST_KEY: usize = 40;
/// The most escapes to skip after a key.
const MOST_ESCAPES: usize = 8;
/// A variable's name without `_` that has digits and is as long may be a secret.
const LONGEST_PLAIN_VARIABLE: usize = 15;
/// The prefixes of well-known services' tokens.
const TOKEN_STARTS: &[&str] = &[
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "rk_test_",
    "whsec_",
    "xoxa-",
    "xoxb-",
    "xoxe-",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "AIza",
    "eyJ",
];
/// The minimum length of the text after such a prefix.
const SHORTEST_REST: usize = 4;

/// Whether a text looks random: long, with letters and digits that are not words.
pub(super) fn is_token(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && !"_-+=".contains(c)).any(|run| {
        run.len() >= SHORTEST_TOKEN
            && run.bytes().any(|it| it.is_ascii_digit())
            && run.bytes().any(|it| it.is_ascii_alphabetic())
            && !run.split(['-', '_']).all(is_word)
    })
}

/// A text with a token of a well-known service, whatever the token looks like otherwise.
pub(super) fn is_known_token(text: &str) -> bool {
    let is_rest = |rest: &str| rest.len() >= SHORTEST_REST;
    let is_access_key =
        |rest: &str| is_rest(rest) && rest.bytes().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit());
    text.split(|c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c)).any(|run| {
        TOKEN_STARTS.iter().any(|start| run.strip_prefix(start).is_some_and(is_rest))
            || run.strip_prefix("AKIA").is_some_and(is_access_key)
    })
}

/// `edge`, `Edge`, `EDGE`, `v2`, `2026`, or something short such as `eu1a`.
fn is_word(part: &str) -> bool {
    let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
    let tail = letters.get(1..).unwrap_or_default();
    let one_case = tail.bytes().all(|it| it.is_ascii_lowercase()) || letters.bytes().all(|it| it.is_ascii_uppercase());
    let starts_well = letters.bytes().next().is_none_or(|it| it.is_ascii_alphabetic());
    let word = one_case && starts_well && part.len() - letters.len() <= 4 && letters.len() < SHORTEST_TOKEN;
    word || part.len() <= 4
}

/// Whether a line consists only of enough base64.
pub(super) fn is_base64(line: &str) -> bool {
    let line = unwrapped(line);
    line.len() >= SHORTEST_BASE64 && continues_base64(line) && line.bytes().any(|it| it.is_ascii_digit())
}

/// Whether a line may be the last line of base64.
pub(super) fn continues_base64(line: &str) -> bool {
    let line = unwrapped(line);
    line.bytes().any(|it| it.is_ascii_alphabetic())
        && line.bytes().all(|it| it.is_ascii_alphanumeric() || b"+/=_-".contains(&it))
}

/// A line of text without the surrounding JSON or YAML syntax.
fn unwrapped(line: &str) -> &str {
    let line = line.trim().trim_matches(['"', '\'', ',']);
    line.strip_suffix("\\n").unwrap_or(line)
}

/// The bytes before a line's first key or value: whitespace, and list and key indicators.
pub(super) fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '-', '\t', '?']).len()
}

/// The key at the start of a line, after its indentation.
pub(super) fn key(line: &str) -> Option<&str> {
    let line = line.trim_start_matches(['{', '[', ' ']);
    let bare = line.trim_start_matches(['"', '\'']);
    let end = bare.find(|c: char| !c.is_ascii_alphanumeric() && !"_-./".contains(c))?;
    let (word, rest) = bare.split_at_checked(end)?;
    let quoted = rest.starts_with(['"', '\'']);
    let behind = rest.trim_start_matches(['"', '\'']).trim_start().strip_prefix(':')?;
    let separated = quoted || behind.is_empty() || behind.starts_with([' ', '\t']);
    (separated && !word.is_empty()).then_some(word)
}

/// Whether a word can be a key and is unlikely to be part of a secret.
pub(super) fn is_plain_key(word: &str) -> bool {
    word.len() <= LONGEST_KEY && word.bytes().all(|it| it.is_ascii_alphabetic() || b"_-./".contains(&it))
}

/// Whether a text can be a key of several words.
pub(super) fn is_phrase(text: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || " _-".contains(c);
    text.len() <= LONGEST_KEY && text.contains(' ') && text.chars().all(part)
}

/// Returns the text after the closing quotes of a key, escaped quotes and whitespace, and the number of quotes.
pub(super) fn closing(behind_key: &str) -> (&str, usize) {
    let (mut rest, mut quotes) = (behind_key, 0);
    for _ in 0..MOST_ESCAPES {
        let bare = rest.trim_start_matches(['"', '\'']);
        quotes += rest.len() - bare.len();
        rest = bare;
        let Some(escape) = rest.strip_prefix('\\') else { break };
        let mut characters = escape.chars();
        match characters.next() {
            Some('"' | '\'') => quotes += 1,
            Some('u') => _ = characters.nth(3),
            Some(_) => {}
            None => break,
        }
        rest = characters.as_str();
    }
    (rest, quotes)
}

/// The bytes between a key and its value: the closing quote and the separator.
pub(super) fn separator(behind_key: &str) -> Option<(usize, char)> {
    let rest = closing(behind_key).0.trim_start();
    let sign = rest.chars().next().filter(|sign| [':', '='].contains(sign))?;
    let value = rest.strip_prefix(sign)?;
    (sign == ':' || !value.starts_with('=')).then_some((behind_key.len() - value.len(), sign))
}

/// A reference to a secret instead of its value: its bytes, and whether its bracket is closed.
pub(super) fn reference(value: &str) -> Option<(usize, bool)> {
    let start = value.trim_start();
    let inner = start.strip_prefix('{');
    let unquoted = inner.unwrap_or(start).trim_start().trim_start_matches(['"', '\'']);
    let variable = unquoted.strip_prefix("from_env");
    let name = variable.or_else(|| unquoted.strip_prefix("from_file"))?;
    let argument = name.trim_start_matches(['"', '\'']).trim_start().strip_prefix(':')?.trim_start();
    let argument = argument.trim_start_matches(['"', '\'']);
    let end = argument.find(|c: char| c.is_whitespace() || "\"',{}[]".contains(c)).unwrap_or(argument.len());
    let (argument, behind) = argument.split_at_checked(end)?;
    let is_name = if variable.is_some() { is_variable(argument) } else { is_path(argument) };
    if !is_name {
        return None;
    }
    let behind = behind.trim_start_matches(['"', '\'']).trim_start();
    match inner {
        Some(_) if behind.is_empty() => Some((value.len(), false)),
        Some(_) => behind.strip_prefix('}').map(|rest| (value.len() - rest.len(), true)),
        None => {
            (behind.is_empty() || behind.starts_with(['#', ',', '}'])).then_some((value.len() - behind.len(), true))
        }
    }
}

/// Whether a text is the name of a variable, and not a secret in its place.
pub(super) fn is_variable(text: &str) -> bool {
    let random =
        text.len() > LONGEST_PLAIN_VARIABLE && !text.contains('_') && text.contains(|c: char| c.is_ascii_digit());
    text.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && text.bytes().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b'_')
        && !random
        && !is_value(text)
}

/// Whether a text is the path of a file, and not a secret in its place.
pub(super) fn is_path(text: &str) -> bool {
    text.contains(['/', '\\', '.'])
        && text.chars().all(|c| c.is_alphanumeric() || " ._-/\\~:()@,".contains(c))
        && !is_value(text)
}

/// Whether something that should be a name or a path is a secret value instead.
fn is_value(text: &str) -> bool {
    let extension = text.rsplit_once('.').map_or("", |(_, extension)| extension);
    let file = (1..=5).contains(&extension.len()) && extension.bytes().all(|it| it.is_ascii_alphanumeric());
    text.contains(['\n', '\r']) || text.contains("-----") || is_known_token(text) || (is_token(text) && !file)
}

/// The end of a value in brackets, if it is certain: another key or the end must follow.
pub(super) fn value_end(value: &str) -> Option<usize> {
    let text = value.trim_start();
    let blank = value.len() - text.len();
    let first = text.chars().next()?;
    let end = match first {
        '"' | '\'' => closing_quote(text, first).filter(|end| is_end(text.get(*end..).unwrap_or_default())),
        _ => {
            let ends = text.match_indices([',', '}', ']']).map(|(at, _)| at).take(MOST_ENDS);
            ends.into_iter().find(|at| is_end(text.get(*at..).unwrap_or_default()))
        }
    };
    end.map(|end| blank + end)
}

fn is_end(rest: &str) -> bool {
    let next = rest.trim_start_matches([' ', '\t', ',', '}', ']']);
    let separated = rest.trim_start().starts_with([',', '}', ']']);
    next.is_empty() || (separated && key(next).is_some())
}

/// Returns the text after a closing quote, ignoring escaped quotes.
pub(super) fn closing_quote(text: &str, quote: char) -> Option<usize> {
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
