//! Hides secrets in the text of a manifest, for excerpts in diagnostics.

mod apart;
mod fields;
mod mask;
mod pem;
mod remark;
mod shape;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, ops::Range};

pub(crate) use fields::Fields;
use mask::{Mask, lines, next_word};
use shape::{
    closing, continues_base64, indentation, is_base64, is_known_token, is_phrase, is_plain_key, is_token, key,
    reference, separator, value_end,
};

use crate::text::token_secrets;

/// Shorter values are not searched elsewhere in the file, because public text may contain them.
const SHORTEST_REPEATED: usize = 6;
/// The most values to search elsewhere in the file, to bound the time.
const MOST_REPEATED: usize = 256;
/// A longer run of characters is checked in pieces.
const LONGEST_TOKEN: usize = 512;
/// The most levels of aliases to follow.
const MOST_PASSES: usize = 8;
/// The keys of values that are stored elsewhere.
const SOURCES: [&str; 2] = ["from_env", "from_file"];
/// The start of every token of edgewright itself.
const OWN_TOKEN: &str = "ew_ak_";

/// A text with its secrets hidden, and the secrets. Works on words rather than structure, because it matters most for
/// files with syntax errors. When in doubt, it hides more.
pub(crate) struct Redacted {
    /// The text, with `*` for each byte of a secret; all other bytes keep their position.
    pub text: String,
    secrets: Vec<String>,
}

impl Redacted {
    /// Hides the secrets of a text.
    pub(crate) fn new(text: &str, fields: &Fields) -> Self {
        let (text, secrets) = hide_secrets(text, fields);
        Self { text, secrets }
    }

    /// A message about the text without the secrets it quotes: an alias can repeat a secret in any field, and as a key.
    pub(crate) fn message(&self, message: &str) -> String {
        let quotes = |part: &str| self.secrets.iter().any(|secret| part.contains(secret.as_str()));
        if !quotes(message) {
            return message.to_owned();
        }
        // Quoted parts are in backquotes; the text around them is edgewright's own.
        let parts = message.split('`').enumerate();
        let parts = parts.map(|(at, part)| if at % 2 == 1 && quotes(part) { "(hidden)" } else { part });
        parts.collect::<Vec<_>>().join("`")
    }
}

fn hide_secrets(text: &str, fields: &Fields) -> (String, Vec<String>) {
    let mut mask = Mask::over(text);
    if text.contains('\0') {
        // A dump of memory or the environment rather than a manifest.
        mask.hide(0..text.len());
        return (mask.apply(text), Vec::new());
    }
    let public = pem::hide(text, fields, &mut mask);
    let mut aliases = BTreeSet::new();
    let mut passes = 0;
    let mut repeated = loop {
        passes += 1;
        let mut scanner = Scanner::new(fields, aliases.clone(), &mut mask);
        lines(text).for_each(|(start, line)| scanner.line(start, line));
        let Scanner { values, aliases: named, .. } = scanner;
        // An anchor precedes the aliases that reveal that its value is secret.
        if named == aliases || passes == MOST_PASSES {
            break values;
        }
        aliases = named;
    };
    hide_base64(text, &public, &mut mask);
    // Whether in a value, a key or a comment.
    token_secrets(text).for_each(|secret| mask.hide(secret));
    let apart = apart::hide(text, fields, &mut mask).into_iter().chain(apart::hide_userinfo(text, &mut mask));
    for value in apart.map(plain) {
        if is_repeated(value, fields) && repeated.len() < MOST_REPEATED {
            repeated.insert(value);
        }
    }
    for value in &repeated {
        text.match_indices(*value).for_each(|(at, found)| mask.hide(at..at + found.len()));
    }
    (mask.apply(text), repeated.into_iter().map(str::to_owned).collect())
}

/// Returns a key that is safe to quote: without a value that became part of it through a missing space or colon.
pub(crate) fn quotable_key(key: &str) -> String {
    let end = key.find(|c: char| c.is_whitespace() || c == ':' || c == '=');
    let (name, more) = end.and_then(|end| key.split_at_checked(end)).unwrap_or((key, ""));
    match (is_token(name) || is_known_token(name), more.is_empty()) {
        (true, _) => "…".to_owned(),
        (_, true) => name.to_owned(),
        (_, false) => format!("{name}…"),
    }
}

/// Returns the name of a variable if it is safe to quote: it may be the secret itself by mistake.
pub(crate) fn quotable_variable(name: &str) -> &str {
    if shape::is_variable(name) { name } else { "(hidden)" }
}

/// Returns the path of a file if it is safe to quote: it may be the secret itself by mistake.
pub(crate) fn quotable_path(path: &str) -> &str {
    if shape::is_path(path) { path } else { "(hidden)" }
}

/// Hides lines of base64 as a key without its label, unless they are inside a public label.
fn hide_base64(text: &str, public: &[Range<usize>], mask: &mut Mask) {
    let mut inside = false;
    for (start, line) in lines(text) {
        let before = public.partition_point(|range| range.start <= start);
        let labelled = before.checked_sub(1).and_then(|at| public.get(at)).is_some_and(|range| range.contains(&start));
        inside = !labelled && (is_base64(line) || (inside && continues_base64(line)));
        if inside {
            mask.hide(start..start + line.len());
        }
    }
}

/// A secret whose value may continue on the next lines.
struct OpenSecret {
    /// The key's indentation.
    indentation: usize,
    /// Whether the value has not started yet.
    empty: bool,
    /// Whether it is a reference to a value elsewhere.
    referred: bool,
}

/// Scans a text line by line.
struct Scanner<'t, 'f, 'm> {
    fields: &'f Fields,
    mask: &'m mut Mask,
    open: Option<OpenSecret>,
    /// The indentation of a key whose value must be a mapping, and is on the lines below it.
    holder: Option<usize>,
    /// Whether a comment ended with the key of a secret.
    remark: bool,
    /// Whether the last key was that of a public field.
    public: bool,
    /// The hidden values, which a comment may repeat.
    values: BTreeSet<&'t str>,
    /// The anchors referenced by secrets.
    aliases: BTreeSet<&'t str>,
}

impl<'t, 'f, 'm> Scanner<'t, 'f, 'm> {
    fn new(fields: &'f Fields, aliases: BTreeSet<&'t str>, mask: &'m mut Mask) -> Self {
        Self { fields, mask, open: None, holder: None, remark: false, public: false, values: BTreeSet::new(), aliases }
    }

    fn line(&mut self, start: usize, line: &'t str) {
        let indentation = indentation(line);
        if ["---", "..."].contains(&line.trim_end()) {
            // A block with too little indentation may start with text that looks like the end of a document.
            self.open = self.open.take().filter(|open| open.empty);
            return;
        }
        if let Some(open) = &mut self.open {
            let content = line.get(indentation..).unwrap_or_default();
            let outside = indentation <= open.indentation;
            let next = outside && key(content).is_some_and(|word| self.fields.knows(word) || is_plain_key(word));
            let comment = outside && open.referred && content.starts_with('#');
            if !next && !comment {
                if let Some((length, _)) = reference(content) {
                    (open.empty, open.referred) = (false, true);
                    self.mask.hide(start + indentation + length..start + line.len());
                } else if !content.trim_matches(['{', '}', '[', ']', ',', ' ', '\t']).is_empty() {
                    open.empty = false;
                    self.hide(start, line);
                }
                return;
            }
            self.open = None;
        }
        let content = line.get(indentation..).unwrap_or_default();
        let remark = content.strip_prefix('#').filter(|_| self.remark);
        self.remark = remark.is_some_and(|remark| key(remark.trim_start()).is_none());
        if self.remark {
            return self.hide(start + indentation + 1, remark.unwrap_or_default());
        }
        if !content.is_empty() && !content.starts_with('#') {
            let holder = self.holder.take();
            if holder.is_some_and(|holder| indentation > holder && is_scalar(content) && key(content).is_none()) {
                return self.hide(start, line);
            }
        }
        if let Some(from) = stray(line) {
            return self.hide(start + from, line.get(from..).unwrap_or_default());
        }
        self.words(start, line, indentation);
    }

    /// Checks each word of a line.
    fn words(&mut self, start: usize, line: &'t str, indentation: usize) {
        let comment = comment(line);
        // Found once: a line can have as many words as it has bytes.
        let signs = signs(line);
        let prose = if line.trim_start().starts_with("//") { 0 } else { line.find("/*").unwrap_or(line.len()) };
        let prose = prose.min(comment);
        let mut cleared = 0;
        let flow = line.find(['{', '[']).unwrap_or(line.len());
        let mut at = 0;
        while let Some(word) = next_word(line, at) {
            at = word.end;
            let (Some(name), Some(before), Some(behind)) =
                (line.get(word.clone()), line.get(..word.start), line.get(word.end..))
            else {
                return;
            };
            let in_comment = word.start >= comment;
            let first = word.start <= signs;
            let separated = separator(behind);
            // An element of XML, and a section of an INI file.
            let element = behind.starts_with('>') && before.ends_with('<');
            let section = first && before.ends_with('[') && behind.trim_end() == "]";
            if (element || section) && self.fields.is_secret(name) {
                let value = behind.get(1..).unwrap_or_default();
                self.hide(start + word.end + 1, value);
                let empty = value.trim_end().is_empty();
                self.open = empty.then_some(OpenSecret { indentation, empty, referred: false });
                return;
            }
            let secret = match separated {
                Some((_, sign)) => {
                    let phrase = line.get(signs..word.end).filter(|phrase| !in_comment && is_phrase(phrase));
                    // Nobody needs an escape in the name of a field.
                    let escaped = before.ends_with('\\') && closing(behind).1 > 0;
                    self.fields.is_secret(name)
                        || phrase.is_some_and(|phrase| self.fields.is_secret(phrase))
                        // An alias as a key, and `tls.key`.
                        || (sign == ':' && (before.ends_with('*') || escaped || (name == "key" && before.ends_with('.'))))
                        || (SOURCES.contains(&name) && line.get(word.start..).and_then(reference).is_none())
                }
                None => first && word.start < prose && self.fields.is_secret_alone(name),
            };
            let in_prose = (word.start >= prose && self.fields.names_secret(name)) || remark::introduces(name);
            let told = if in_prose && separated.is_none() { remark::value(name, behind) } else { None };
            if let Some(told) = told {
                let told = word.end + told.start..word.end + told.end;
                self.hide(start + told.start, line.get(told.clone()).unwrap_or_default());
                at = told.end;
                continue;
            }
            if secret || (before.ends_with('&') && self.aliases.contains(name)) {
                let (gap, sign) = separated.unwrap_or((0, ' '));
                match self.value(start, line, word.end + gap, flow < word.start) {
                    ValueEnd::Ends(end) => at = end,
                    // A line of a shell script, a query or a comment has no next line.
                    ValueEnd::Open if sign == '=' || in_comment => {
                        self.remark = in_comment && line.get(word.end + gap..).is_some_and(says_nothing);
                        return;
                    }
                    ValueEnd::Open => {
                        let empty = line.get(word.end + gap..).is_some_and(says_nothing);
                        self.open = Some(OpenSecret { indentation, empty, referred: false });
                        return;
                    }
                    ValueEnd::OpenReference => {
                        self.open = Some(OpenSecret { indentation, empty: false, referred: true });
                        return;
                    }
                }
                continue;
            }
            let is_key = separated.is_some_and(|(gap, sign)| {
                sign == ':'
                    && (gap > 1 || behind.get(gap..).is_none_or(|it| it.is_empty() || it.starts_with([' ', '\t'])))
            });
            if is_key && !in_comment {
                self.public = self.fields.is_public(name);
                let gap = separated.map_or(0, |(gap, _)| gap);
                let value = line.get(word.end + gap..).unwrap_or_default();
                if self.fields.holds_secret(name) {
                    if says_nothing(value) {
                        self.holder = Some(indentation);
                    } else if is_scalar(value) {
                        self.hide(start + word.end + gap, value);
                        return;
                    }
                }
                continue;
            }
            if word.start < cleared {
                continue;
            }
            let near = behind.get(..behind.floor_char_boundary(LONGEST_TOKEN)).unwrap_or_default();
            let length = near.find(|c: char| c.is_whitespace() || "\"',;{}[]()<>".contains(c)).unwrap_or(near.len());
            let token = line.get(word.start..word.end + length).unwrap_or_default();
            if token.contains(OWN_TOKEN) || is_known_token(token) {
                self.hide(start + word.start, token);
                at = word.end + length;
            } else if (in_comment || !self.public) && is_token(token) {
                self.mask.hide(start + word.start..start + word.end + length);
                at = word.end + length;
            } else {
                // The rest of this run is a part of what was checked.
                cleared = word.end + length;
            }
        }
    }

    /// Hides the value that starts at an offset of a line.
    fn value(&mut self, start: usize, line: &'t str, from: usize, in_flow: bool) -> ValueEnd {
        let value = line.get(from..).unwrap_or_default();
        match reference(value) {
            Some((length, true)) => return ValueEnd::Ends(from + length),
            Some((_, false)) => return ValueEnd::OpenReference,
            None => {}
        }
        let end = if in_flow { value_end(value) } else { None };
        self.hide(start + from, value.get(..end.unwrap_or(value.len())).unwrap_or_default());
        end.map_or(ValueEnd::Open, |end| ValueEnd::Ends(from + end))
    }

    /// Hides and records a value.
    fn hide(&mut self, start: usize, value: &'t str) {
        self.mask.hide(start..start + value.len());
        let plain = plain(value);
        if let Some(alias) = plain.strip_prefix('*') {
            // More text may follow by mistake.
            let end = next_word(alias, 0).filter(|word| word.start == 0).map_or(0, |word| word.end);
            self.aliases.extend(alias.get(..end));
        } else if is_repeated(plain, self.fields) && self.values.len() < MOST_REPEATED {
            self.values.insert(plain);
        }
    }
}

/// A hidden value without its quotes, brackets, anchor, tag and comment.
fn plain(value: &str) -> &str {
    let plain = value.get(..comment(value)).unwrap_or_default().trim();
    let plain = plain.trim_matches(|c: char| c.is_whitespace() || "\"',{}[]:-".contains(c));
    match plain.split_once(char::is_whitespace) {
        Some((sign, rest)) if sign.starts_with(['&', '!']) => rest.trim().trim_matches(['"', '\'']),
        _ => plain,
    }
}

/// Whether to search the rest of the file for a hidden value.
fn is_repeated(plain: &str, fields: &Fields) -> bool {
    plain.len() >= SHORTEST_REPEATED && !fields.knows(plain)
}

/// Where a value ends.
enum ValueEnd {
    /// At this offset of the line.
    Ends(usize),
    /// It may continue.
    Open,
    /// It may continue, and is a reference to the secret.
    OpenReference,
}

/// The length of the indicators before a line's first word: list items, brackets, quotes, explicit keys, anchors, tags.
fn signs(line: &str) -> usize {
    let mut rest = line;
    for _ in 0..MOST_PASSES {
        rest = rest.trim_start_matches([' ', '\t', '-', '?', '"', '\'', '{', '[', ',']);
        let Some(end) = rest.find([' ', '\t']).filter(|_| rest.starts_with(['&', '!'])) else { break };
        rest = rest.get(end..).unwrap_or_default();
    }
    line.len() - rest.len()
}

/// Whether a value is a scalar other than null: no mapping, list or alias.
fn is_scalar(value: &str) -> bool {
    let value = value.trim_start();
    if value.starts_with(['{', '[']) {
        return false;
    }
    let value = value.get(..comment(value)).unwrap_or_default().trim_end();
    let value = match value.split_once(char::is_whitespace) {
        Some((sign, rest)) if sign.starts_with(['&', '!']) => rest.trim_start(),
        _ => value,
    };
    let other = value.starts_with(['{', '}', '[', ']', '*', '&', '!', '-', '?', ',', '#']) || value.starts_with("<<");
    let first = value.split([',', '}', ']']).next().unwrap_or_default().trim_end();
    !other && !["", "null", "~"].contains(&first)
}

/// The start of text that YAML takes for something else: a scalar to merge, or a directive.
fn stray(line: &str) -> Option<usize> {
    if let Some(directive) = line.strip_prefix('%') {
        let end = directive.find([' ', '\t'])?;
        return (!directive.starts_with("YAML ")).then_some(1 + end);
    }
    line.match_indices("<<").take(MOST_PASSES).find_map(|(at, sign)| {
        let behind = line.get(at + sign.len()..)?;
        let (gap, sign) = separator(behind)?;
        let value = behind.get(gap..)?;
        (sign == ':' && is_scalar(value)).then_some(line.len() - value.len())
    })
}

/// Whether only block indicators, anchors, tags or comments follow a key.
fn says_nothing(value: &str) -> bool {
    value.split_whitespace().all(|word| word.starts_with(['&', '!', '|', '>', '#']))
}

/// The start of a line's comment, or the end of the line.
fn comment(line: &str) -> usize {
    let begins = |at: usize| line.get(..at).is_some_and(|before| before.is_empty() || before.ends_with([' ', '\t']));
    line.match_indices('#').map(|(at, _)| at).find(|at| begins(*at)).unwrap_or(line.len())
}
