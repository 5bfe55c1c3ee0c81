//! The file of allowed signers, as ssh-keygen(1) describes it.

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{Timestamp, civil::DateTime, tz::TimeZone};
use regex::Regex;

/// The keys that may sign.
#[derive(Debug)]
pub(super) struct AllowedSigners(Vec<SignerEntry>);

#[derive(Debug, Default)]
struct SignerEntry {
    key: Vec<u8>,
    /// The patterns of the namespaces, if they are limited.
    namespaces: Option<String>,
    valid_after: Option<Timestamp>,
    valid_before: Option<Timestamp>,
    /// The key signs certificates instead of commits.
    is_authority: bool,
}

/// Why a key may not sign.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SignerRefusal {
    /// The file does not have the key.
    Unknown,
    /// The key may not sign commits.
    Namespace,
    /// The key was not valid yet, or not any more.
    Time,
}

impl AllowedSigners {
    /// Parses a file. The error names the line: a line that is not understood could be the one that revokes a key.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let entries =
            lines.map(|(number, line)| SignerEntry::parse(line).map_err(|reason| format!("line {number}: {reason}")));
        entries.collect::<Result<_, _>>().map(Self)
    }

    /// Whether a key may sign at a time.
    pub(super) fn check(&self, key: &[u8], namespace: &str, at: Timestamp) -> Result<(), SignerRefusal> {
        let own: Vec<&SignerEntry> = self.0.iter().filter(|entry| entry.key == key && !entry.is_authority).collect();
        if own.is_empty() {
            return Err(SignerRefusal::Unknown);
        }
        let allows = |entry: &&SignerEntry| entry.namespaces.as_ref().is_none_or(|list| matches_list(list, namespace));
        let mut own = own.into_iter().filter(allows).peekable();
        if own.peek().is_none() {
            return Err(SignerRefusal::Namespace);
        }
        let is_valid = |entry: &SignerEntry| {
            entry.valid_after.is_none_or(|after| at >= after) && entry.valid_before.is_none_or(|before| at < before)
        };
        if own.any(is_valid) { Ok(()) } else { Err(SignerRefusal::Time) }
    }
}

impl SignerEntry {
    fn parse(line: &str) -> Result<Self, String> {
        let mut words = words(line)?.into_iter();
        let _principals = words.next();
        let mut entry = Self::default();
        let mut word = words.next().ok_or("expected principals, a key type and a key")?;
        if !is_key_type(&word) {
            entry.set(&word)?;
            word = words.next().ok_or("the key is missing")?;
        }
        if !is_key_type(&word) {
            return Err("unknown key type".into());
        }
        let key = words.next().and_then(|key| STANDARD.decode(key).ok());
        entry.key = key.ok_or("the key is not base64")?;
        Ok(entry)
    }

    /// Sets the options.
    fn set(&mut self, options: &str) -> Result<(), String> {
        for option in split_quoted(options, ',')? {
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name.to_ascii_lowercase(), Some(unquoted(value))),
                None => (option.to_ascii_lowercase(), None),
            };
            match (name.as_str(), value) {
                ("cert-authority", None) => self.is_authority = true,
                ("namespaces", Some(list)) => self.namespaces = Some(list),
                ("valid-after", Some(time)) => self.valid_after = Some(timestamp(&time)?),
                ("valid-before", Some(time)) => self.valid_before = Some(timestamp(&time)?),
                _ => return Err("unknown option or key type".into()),
            }
        }
        let is_empty = self.valid_after.zip(self.valid_before).is_some_and(|(after, before)| after >= before);
        if is_empty { Err("valid-before is not after valid-after".into()) } else { Ok(()) }
    }
}

fn is_key_type(word: &str) -> bool {
    ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-sha2-"].iter().any(|prefix| word.starts_with(prefix))
}

/// The words of a line; white space within double quotes is a part of a word.
fn words(line: &str) -> Result<Vec<String>, String> {
    let line = line.replace('\t', " ");
    Ok(split_quoted(&line, ' ')?.into_iter().filter(|word| !word.is_empty()).collect())
}

/// Splits at a character outside double quotes.
fn split_quoted(text: &str, at: char) -> Result<Vec<String>, String> {
    let (mut parts, mut part, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => {
                is_quoted = !is_quoted;
                part.push(c);
            }
            c if c == at && !is_quoted => parts.push(std::mem::take(&mut part)),
            c => part.push(c),
        }
    }
    parts.push(part);
    if is_quoted { Err("a quote is not closed".into()) } else { Ok(parts) }
}

fn unquoted(value: &str) -> String {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value).to_owned()
}

/// Parses `YYYYMMDD` or `YYYYMMDDHHMM[SS]`, in the time zone of the system unless it ends with `Z`.
fn timestamp(text: &str) -> Result<Timestamp, String> {
    let bad = || "a time must have the form YYYYMMDD or YYYYMMDDHHMM[SS], with Z for UTC".to_owned();
    let (digits, zone) = match text.strip_suffix(['Z', 'z']) {
        Some(digits) => (digits, TimeZone::UTC),
        None => (text, TimeZone::system()),
    };
    if !matches!(digits.len(), 8 | 12 | 14) || !digits.bytes().all(|c| c.is_ascii_digit()) {
        return Err(bad());
    }
    let time = DateTime::strptime("%Y%m%d%H%M%S", format!("{digits:0<14}"));
    let zoned = time.and_then(|time| time.to_zoned(zone)).map_err(|_| bad())?;
    Ok(zoned.timestamp())
}

/// Whether a name matches a list of patterns; a negated pattern that matches excludes it.
fn matches_list(patterns: &str, name: &str) -> bool {
    let mut is_match = false;
    for pattern in patterns.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches_pattern(pattern, name) => return false,
            Some(_) => {}
            None => is_match |= matches_pattern(pattern, name),
        }
    }
    is_match
}

/// Whether a name matches a pattern with `*` and `?`.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let pattern = regex::escape(pattern).replace(r"\*", ".*").replace(r"\?", ".");
    Regex::new(&format!("(?s)^{pattern}$")).is_ok_and(|pattern| pattern.is_match(name))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

    fn check(text: &str, at: &str) -> Result<(), SignerRefusal> {
        let signers = AllowedSigners::parse(text).unwrap();
        signers.check(&STANDARD.decode(KEY).unwrap(), "git", at.parse().unwrap())
    }

    #[test]
    fn a_key_may_sign_within_its_namespaces_and_its_time() {
        let now = "2026-06-01T12:00:00Z";
        for (entry, expected) in [
            ("a@example.com", Ok(())),
            ("a@example.com,b@example.com namespaces=\"git\"", Ok(())),
            ("\"a b\" NAMESPACES=\"file,git\"", Ok(())),
            ("* namespaces=\"file\"", Err(SignerRefusal::Namespace)),
            ("* namespaces=\"*,!git\"", Err(SignerRefusal::Namespace)),
            ("* valid-after=\"20260601Z\"", Ok(())),
            ("* valid-after=202606011201Z", Err(SignerRefusal::Time)),
            ("* valid-before=20260601120001Z,namespaces=git", Ok(())),
            ("* valid-before=20260601120000Z", Err(SignerRefusal::Time)),
            ("* cert-authority", Err(SignerRefusal::Unknown)),
        ] {
            assert_eq!(check(&format!("# comment\n\n{entry} ssh-ed25519 {KEY} me\n"), now), expected, "{entry}");
        }
        assert_eq!(check("", now), Err(SignerRefusal::Unknown));
        // A key that is listed several times may sign if one entry allows it.
        let twice = format!("* namespaces=file ssh-ed25519 {KEY}\n* ssh-ed25519 {KEY}\n");
        assert_eq!(check(&twice, now), Ok(()));
    }

    #[test]
    fn a_line_that_is_not_understood_is_an_error() {
        for (line, said) in [
            ("*".to_owned(), "line 1: expected principals"),
            (format!("* ssh-{KEY}"), "not base64"),
            (format!("* revoked ssh-ed25519 {KEY}"), "unknown option"),
            (format!("* valid-after=tomorrow ssh-ed25519 {KEY}"), "YYYYMMDD"),
            (format!("* valid-after=20261301Z ssh-ed25519 {KEY}"), "YYYYMMDD"),
            (format!("* valid-after=20260102Z,valid-before=20260101Z ssh-ed25519 {KEY}"), "not after"),
            (format!("* namespaces=\"git ssh-ed25519 {KEY}"), "quote"),
            ("* ssh-ed25519 ???".to_owned(), "not base64"),
        ] {
            let reason = AllowedSigners::parse(&line).unwrap_err();
            assert!(reason.contains(said), "{line}: {reason}");
        }
    }

    #[test]
    fn patterns_match_as_in_openssh() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "x", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abcdef", false),
            ("**a", "bba", true),
            ("?", "", false),
            ("ab?", "abc", true),
        ] {
            assert_eq!(matches_pattern(pattern, name), expected, "{pattern} {name}");
        }
    }
}
