//! The YAML of a new resource, straight from its JSON. A first plan has millions of such lines, and a tree of values and
//! the emitter of serde_yaml take most of the time to make them.
//!
//! The text is the one that serde_yaml writes. What is rare and has special rules there, such as text of several lines,
//! is left to it.

use std::borrow::Cow;

/// No longer key is written here: those of more than 128 bytes have another form.
const LONGEST_KEY: usize = 64;
/// No deeper value is written here.
const DEEPEST: usize = 64;

/// Appends the lines of a JSON object without its unset values (D14), each after `prefix`. Returns false if the object is
/// left to serde_yaml; `out` is then as it was. The JSON must be on one line and valid.
pub(super) fn append(json: &str, prefix: &str, out: &mut String) -> bool {
    let start = out.len();
    let mut lines = YamlLines { rest: json, prefix, out: &mut *out };
    lines.start(0);
    let is_whole = match lines.fields(0, 0) {
        Some(IsSet::No) => {
            lines.out.push_str("{}\n");
            lines.rest.is_empty()
        }
        Some(IsSet::Yes) => lines.rest.is_empty(),
        None => false,
    };
    if !is_whole {
        out.truncate(start);
    }
    is_whole
}

/// Whether a value has anything that is set.
#[derive(Clone, Copy, PartialEq)]
enum IsSet {
    Yes,
    No,
}

/// Reads JSON and writes YAML. Every method returns none for what is left to serde_yaml.
struct YamlLines<'j, 'o> {
    rest: &'j str,
    prefix: &'o str,
    out: &'o mut String,
}

impl<'j> YamlLines<'j, '_> {
    /// Starts a line.
    fn start(&mut self, indent: usize) {
        self.out.push_str(self.prefix);
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    /// Skips a character.
    fn skip(&mut self, expected: char) -> bool {
        let rest = self.rest.strip_prefix(expected);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Writes the fields of an object. The first one continues the current line.
    fn fields(&mut self, indent: usize, depth: usize) -> Option<IsSet> {
        if depth > DEEPEST || !self.skip('{') {
            return None;
        }
        if self.skip('}') {
            return Some(IsSet::No);
        }
        let mut written = IsSet::No;
        loop {
            let mark = self.out.len();
            if written == IsSet::Yes {
                self.start(indent);
            }
            let key = self.text()?;
            if !is_simple_key(&key) || !self.skip(':') {
                return None;
            }
            self.out.push_str(&key);
            self.out.push(':');
            match self.field(indent, depth)? {
                IsSet::Yes => written = IsSet::Yes,
                IsSet::No => self.out.truncate(mark),
            }
            if !self.skip(',') {
                return self.skip('}').then_some(written);
            }
        }
    }

    /// Writes the value of a field after its key.
    fn field(&mut self, indent: usize, depth: usize) -> Option<IsSet> {
        match self.rest.as_bytes().first()? {
            b'{' => {
                self.out.push('\n');
                self.start(indent + 2);
                self.fields(indent + 2, depth + 1)
            }
            b'[' => {
                self.out.push('\n');
                self.start(indent);
                self.items(indent, depth + 1)
            }
            _ => {
                self.out.push(' ');
                let written = self.scalar()?;
                self.out.push('\n');
                Some(written)
            }
        }
    }

    /// Writes the items of a list. The first one continues the current line.
    fn items(&mut self, indent: usize, depth: usize) -> Option<IsSet> {
        if depth > DEEPEST || !self.skip('[') {
            return None;
        }
        if self.skip(']') {
            return Some(IsSet::No);
        }
        loop {
            self.out.push_str("- ");
            // An item stays, although it is unset.
            match self.rest.as_bytes().first()? {
                b'{' => {
                    if self.fields(indent + 2, depth + 1)? == IsSet::No {
                        self.out.push_str("{}\n");
                    }
                }
                b'[' => {
                    if self.items(indent + 2, depth + 1)? == IsSet::No {
                        self.out.push_str("[]\n");
                    }
                }
                _ => {
                    self.scalar()?;
                    self.out.push('\n');
                }
            }
            if !self.skip(',') {
                return self.skip(']').then_some(IsSet::Yes);
            }
            self.start(indent);
        }
    }

    fn scalar(&mut self) -> Option<IsSet> {
        if self.rest.starts_with('"') {
            let text = self.text()?;
            self.put_text(&text);
            return Some(if text.is_empty() { IsSet::No } else { IsSet::Yes });
        }
        let end = self.rest.bytes().position(|byte| matches!(byte, b',' | b']' | b'}'))?;
        let (scalar, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        let written = match scalar {
            "null" => IsSet::No,
            "true" | "false" => IsSet::Yes,
            number if !is_simple_number(number) => return None,
            number if number.bytes().all(|byte| matches!(byte, b'0' | b'.' | b'-')) => IsSet::No,
            _ => IsSet::Yes,
        };
        self.out.push_str(scalar);
        Some(written)
    }

    /// Reads a text of printable ASCII characters.
    fn text(&mut self) -> Option<Cow<'j, str>> {
        let rest = self.rest.strip_prefix('"')?;
        let end = rest.bytes().position(|byte| !stands_for_itself(byte))?;
        let (head, rest) = rest.split_at_checked(end)?;
        if let Some(rest) = rest.strip_prefix('"') {
            self.rest = rest;
            return Some(Cow::Borrowed(head));
        }
        let mut escaped = serde_json::Deserializer::from_str(self.rest).into_iter::<String>();
        let text = escaped.next()?.ok()?;
        self.rest = self.rest.get(escaped.byte_offset()..)?;
        text.bytes().all(is_printable).then_some(Cow::Owned(text))
    }

    fn put_text(&mut self, text: &str) {
        if text.is_empty() {
            self.out.push_str("''");
        } else if is_plain(text) {
            self.out.push_str(text);
        } else {
            let written = serde_yaml::to_string(text).unwrap_or_default();
            self.out.push_str(written.trim_end_matches('\n'));
        }
    }
}

/// Whether a byte of a JSON text is a printable ASCII character that is not escaped.
fn stands_for_itself(byte: u8) -> bool {
    is_printable(byte) && !matches!(byte, b'"' | b'\\')
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// Whether a key is written as it is in every place.
fn is_simple_key(key: &str) -> bool {
    key.len() <= LONGEST_KEY
        && key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        && !is_keyword(key)
}

/// Whether a number has the same form in JSON and YAML: those with an exponent may differ.
fn is_simple_number(number: &str) -> bool {
    let digits = number.strip_prefix('-').unwrap_or(number);
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match digits.split_once('.') {
        None => is_digits(digits),
        Some((whole, part)) => {
            is_digits(whole) && is_digits(part) && whole.len() + part.len() <= 15 && (whole != "0" || part.len() <= 4)
        }
    }
}

fn is_keyword(text: &str) -> bool {
    matches!(text, "null" | "Null" | "NULL" | "~" | "true" | "True" | "TRUE" | "false" | "False" | "FALSE")
}

/// Whether a text of printable ASCII characters is written as it is for sure: most of them begin like a word or a path.
fn is_plain(text: &str) -> bool {
    let mut pairs = text.as_bytes().windows(2);
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && !text.ends_with([' ', ':'])
        && !pairs.any(|pair| matches!(pair, b": " | b" #"))
        && !is_keyword(text)
}

#[cfg(test)]
mod tests;
