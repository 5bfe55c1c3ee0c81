//! Regular expressions of user agents, compiled within bounds: the API accepts any pattern, and a few bytes can take a second
//! (D46).

use std::cell::OnceCell;

use foldhash::HashMap;
use regex::{Error, Regex, RegexBuilder};

/// The longest pattern that is compiled, in bytes (D46). User agents are shorter.
pub(crate) const LONGEST_PATTERN: usize = 4096;
/// The most patterns that are tried for a request.
pub(super) const MOST_PATTERNS: usize = 1000;
/// The limit of a compiled pattern's memory, in bytes. It bounds the time to compile, and almost every pattern fits.
const COMPILED_BYTES: usize = 64 << 10;
/// The memory limit for a few costly patterns.
const COSTLY_BYTES: usize = 1 << 20;
const MOST_COSTLY: usize = 20;
/// The most memory of patterns that are kept.
const KEPT_BYTES: usize = 64 << 20;

/// Patterns that were compiled for earlier requests. Those of many requests are compiled once, whichever modules have them,
/// and kept until whoever asks about the requests is done.
#[derive(Debug, Default)]
pub struct CompiledPatterns {
    by_text: HashMap<String, CompiledPattern>,
    /// The most that all of them take.
    bytes: usize,
}

/// A pattern as far as it was compiled.
#[derive(Debug)]
enum CompiledPattern {
    Usual(Regex),
    /// Over the usual limit; compiled when a request may try another costly one.
    Costly(OnceCell<Option<Regex>>),
    Invalid,
}

/// The patterns that are tried for one request.
pub(super) struct TriedPatterns<'c> {
    compiled: &'c mut CompiledPatterns,
    tried: usize,
    costly: usize,
}

impl CompiledPatterns {
    fn get(&mut self, text: &str) -> Option<&CompiledPattern> {
        if !self.by_text.contains_key(text) {
            let compiled = CompiledPattern::new(text);
            let bytes = if matches!(compiled, CompiledPattern::Costly(_)) { COSTLY_BYTES } else { COMPILED_BYTES };
            if self.bytes + bytes > KEPT_BYTES {
                self.by_text.clear();
                self.bytes = 0;
            }
            self.bytes += bytes;
            self.by_text.insert(text.to_owned(), compiled);
        }
        self.by_text.get(text)
    }
}

impl CompiledPattern {
    fn new(text: &str) -> Self {
        match compile(text, COMPILED_BYTES) {
            Ok(regex) => Self::Usual(regex),
            Err(Error::CompiledTooBig(_)) => Self::Costly(OnceCell::new()),
            Err(_) => Self::Invalid,
        }
    }
}

impl<'c> TriedPatterns<'c> {
    pub(super) fn new(compiled: &'c mut CompiledPatterns) -> Self {
        Self { compiled, tried: 0, costly: 0 }
    }

    /// Whether a pattern matches; `None` if it is invalid or over a limit. What is kept changes no answer.
    pub(super) fn is_match(&mut self, pattern: &str, agent: &str) -> Option<bool> {
        self.tried += 1;
        if pattern.len() > LONGEST_PATTERN || self.tried > MOST_PATTERNS {
            return None;
        }
        let regex = match self.compiled.get(pattern)? {
            CompiledPattern::Usual(regex) => regex,
            CompiledPattern::Costly(regex) if self.costly < MOST_COSTLY => {
                self.costly += 1;
                regex.get_or_init(|| compile(pattern, COSTLY_BYTES).ok()).as_ref()?
            }
            CompiledPattern::Costly(_) | CompiledPattern::Invalid => return None,
        };
        Some(regex.is_match(agent))
    }
}

fn compile(pattern: &str, bytes: usize) -> Result<Regex, Error> {
    RegexBuilder::new(pattern).size_limit(bytes).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_tries_a_few_costly_patterns() {
        let mut compiled = CompiledPatterns::default();
        let mut tried = TriedPatterns { costly: MOST_COSTLY, ..TriedPatterns::new(&mut compiled) };
        assert_eq!((tried.is_match("\\w\\w\\w", "abc"), tried.is_match("bot", "a bot")), (None, Some(true)));
        // The next request has its own bound.
        assert_eq!(TriedPatterns::new(&mut compiled).is_match("\\w\\w\\w", "abc"), Some(true));
    }

    #[test]
    fn a_pattern_is_compiled_once_within_the_memory_of_all() {
        let mut compiled = CompiledPatterns::default();
        for agent in ["a bot", "an app"] {
            let mut tried = TriedPatterns::new(&mut compiled);
            assert_eq!((tried.is_match("bot", agent), tried.is_match("(", agent)), (Some(agent == "a bot"), None));
        }
        assert_eq!((compiled.by_text.len(), compiled.bytes), (2, 2 * COMPILED_BYTES));
        let most = KEPT_BYTES / COMPILED_BYTES;
        for number in 0..most {
            assert!(compiled.get(&format!("bot{number}")).is_some());
        }
        assert!(compiled.by_text.len() < most && compiled.bytes <= KEPT_BYTES);
    }
}
