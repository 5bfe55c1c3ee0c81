//! Quotes keys and references in messages, and recognizes texts with the form of credentials: a message has no field
//! that says whether a text is public.

/// Shorter texts are treated as words.
const SHORTEST_TOKEN: usize = 20;
/// A variable's name without `_` that has digits and is as long may be a secret.
const LONGEST_PLAIN_VARIABLE: usize = 15;
/// The prefixes of the tokens of edgewright and of well-known services.
const TOKEN_STARTS: &str = "ew_ak_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- sk_live_ sk_test_ rk_live_ rk_test_ whsec_ \
                            xoxa- xoxb- xoxe- xoxp- xoxr- xoxs- AIza eyJ";
/// The minimum length of the text after such a prefix.
const SHORTEST_REST: usize = 4;

/// Returns a key that is safe to quote: without a value that became part of it through a missing space or colon.
pub(crate) fn quotable_key(key: &str) -> String {
    let end = key.find(|c: char| c.is_whitespace() || c == ':' || c == '=');
    let (name, more) = end.and_then(|end| key.split_at_checked(end)).unwrap_or((key, ""));
    match (is_token(name) || has_credential(name), more.is_empty()) {
        (true, _) => "…".to_owned(),
        (_, true) => name.to_owned(),
        (_, false) => format!("{name}…"),
    }
}

/// Returns the name of a variable if it is safe to quote: it may be the secret itself by mistake.
pub(crate) fn quotable_variable(name: &str) -> &str {
    let random =
        name.len() > LONGEST_PLAIN_VARIABLE && !name.contains('_') && name.contains(|c: char| c.is_ascii_digit());
    let is_variable = name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && name.bytes().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b'_')
        && !random
        && !is_value(name);
    if is_variable { name } else { "(hidden)" }
}

/// Returns the path of a file if it is safe to quote: it may be the secret itself by mistake.
pub(crate) fn quotable_path(path: &str) -> &str {
    let is_path = path.contains(['/', '\\', '.'])
        && path.chars().all(|c| c.is_alphanumeric() || " ._-/\\~:()@,".contains(c))
        && !is_value(path);
    if is_path { path } else { "(hidden)" }
}

/// Whether a text has a key as PEM, or a token of a well-known service, whatever else it is.
pub(super) fn has_credential(text: &str) -> bool {
    let is_rest = |rest: &str| rest.len() >= SHORTEST_REST;
    let is_access_key =
        |rest: &str| is_rest(rest) && rest.bytes().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit());
    text.contains("-----")
        || text.split(|c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c)).any(|run| {
            TOKEN_STARTS.split(' ').any(|start| run.strip_prefix(start).is_some_and(is_rest))
                || run.strip_prefix("AKIA").is_some_and(is_access_key)
        })
}

/// Whether a text looks random: long, with letters and digits that are not words.
fn is_token(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && !"_-+=".contains(c)).any(|run| {
        run.len() >= SHORTEST_TOKEN
            && run.bytes().any(|it| it.is_ascii_digit())
            && run.bytes().any(|it| it.is_ascii_alphabetic())
            && !run.split(['-', '_']).all(is_word)
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

/// Whether something that should be a name or a path is a secret value instead.
fn is_value(text: &str) -> bool {
    let extension = text.rsplit_once('.').map_or("", |(_, extension)| extension);
    let file = (1..=5).contains(&extension.len()) && extension.bytes().all(|it| it.is_ascii_alphanumeric());
    text.contains(['\n', '\r']) || has_credential(text) || (is_token(text) && !file)
}
