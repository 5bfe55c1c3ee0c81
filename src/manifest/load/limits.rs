//! Limits of a manifest file (D48), checked before a parser spends time or memory on it.
//!
//! # The problem
//!
//! The YAML reader takes time for each open bracket at each token, and about 200 bytes of memory per event. An alias
//! repeats its anchor, so that a small text can expand to billions of values. Whoever can propose a manifest could stop
//! the reconciler.
//!
//! # The idea
//!
//! One pass over the bytes counts the separators of values: no value is introduced without one, so their number is a
//! bound, even if some are in strings and comments. The pass also detects brackets that may nest too deep, and only
//! then the events are followed. Aliases are counted while they are expanded, with an allowance that grows with the
//! file.
//!
//! For example, 200 opening brackets in a row are an error at the first bracket too many, and the same brackets in a
//! comment are not: the events decide.
//!
//! # What it never does
//!
//! It builds no structure and does not recurse. It never rejects real configuration: a file with 10,000 routes of 20
//! fields each has about 400,000 separators.

use std::{collections::HashMap, ops::Range};

use saphyr_parser::{Event, Parser, ScanError, Span};

use crate::model::json::deserialize::{self, LimitError};
use crate::model::{Code, Fault};
use crate::syntax::yaml::{BYTES_OF_A_VALUE, without_tabs_after_colons};

/// The maximum nesting depth (D39).
pub(super) const MOST_LEVELS: usize = 128;
/// The most value separators in a manifest file, including those in text and comments.
pub(super) const MOST_SEPARATORS: usize = 1_000_000;
/// The most values of a file with expanded aliases. A separator introduces up to three: a mapping, its key and the
/// value.
const MOST_VALUES: usize = 3 * MOST_SEPARATORS + LEAST_ALLOWANCE;
/// The values that the aliases of the smallest file may expand to.
const LEAST_ALLOWANCE: usize = 50_000;
/// The additional values per byte of a file.
const VALUES_PER_BYTE: usize = 4;

/// An error in a text, such as an exceeded limit, and its position.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TextFault {
    /// The registered code.
    pub code: Code,
    /// One sentence without a full stop.
    pub message: String,
    /// The byte range in the text.
    pub span: Range<usize>,
    /// The help.
    pub help: String,
}

impl TextFault {
    /// An error in the syntax.
    pub(super) fn syntax(span: Range<usize>, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { code: Code::Syntax, message: message.into(), span, help: help.into() }
    }

    /// Too many levels of nesting.
    pub(super) fn levels(span: Range<usize>) -> Self {
        let message = format!("values nest more than {MOST_LEVELS} levels deep");
        Self::syntax(span, message, "check for unclosed brackets and unindented dashes")
    }

    fn values(span: Range<usize>) -> Self {
        let message = format!("the file contains more than {MOST_SEPARATORS} values");
        Self { code: Code::TooLarge, ..Self::syntax(span, message, "split the file") }
    }

    fn aliases(span: Range<usize>, most: usize) -> Self {
        let message = format!("with this alias, the file expands to more than {most} values");
        Self { code: Code::TooLarge, ..Self::syntax(span, message, "use the anchor less often, or repeat the value") }
    }
}

/// The number of values that a YAML text may expand to.
pub(crate) fn allowance(text: &str) -> usize {
    text.len().saturating_mul(VALUES_PER_BYTE).saturating_add(LEAST_ALLOWANCE).min(MOST_VALUES)
}

/// The limit that a YAML text exceeds, if any, ignoring aliases.
pub(crate) fn yaml_overrun(text: &str) -> Option<TextFault> {
    match may_be_deep(text.as_bytes()) {
        Ok(false) => None,
        Ok(true) => follow_events(text, usize::MAX),
        Err(at) => Some(TextFault::values(at..at + 1)),
    }
}

/// The limit that a YAML text exceeds that is no manifest, if any: its reader has the same costs.
pub(crate) fn yaml_fault(text: &str) -> Option<Fault> {
    let TextFault { code, message, span, help } = yaml_overrun(text)?;
    let line = 1 + text.bytes().take(span.start).filter(|byte| *byte == b'\n').count();
    Some(Fault::new(code, format!("{message}, at line {line}")).help(help))
}

/// The alias that exceeds a YAML text's allowance.
pub(super) fn alias_overrun(text: &str) -> Option<TextFault> {
    follow_events(text, allowance(text))
}

/// The limit that a JSON text exceeds, if any.
pub(super) fn json_overrun(text: &str) -> Option<TextFault> {
    Some(match deserialize::check_limits(text.as_bytes(), MOST_LEVELS, MOST_SEPARATORS)? {
        LimitError::Levels(at) => TextFault::levels(at..at + 1),
        LimitError::Values(at) => TextFault::values(at..at + 1),
    })
}

/// Whether brackets may nest too deep, so that the events must be checked. The error is the offset of the first separator over
/// the limit. Scans every byte once: counts each comma, bracket, colon, dash and question mark that may separate values, even
/// inside text, because no value is introduced without one.
fn may_be_deep(bytes: &[u8]) -> Result<bool, usize> {
    let mut depth = Depth::default();
    let (mut separators, mut line_start, mut deep) = (0usize, 0, false);
    for (at, byte) in bytes.iter().copied().enumerate() {
        let ends = bytes.get(at + 1).is_none_or(|next| next.is_ascii_whitespace() || !next.is_ascii());
        match byte {
            b'\n' => line_start = at + 1,
            b',' | b'[' | b'{' => separators += 1,
            b':' | b'-' | b'?' if ends => separators += 1,
            _ => {}
        }
        if separators > MOST_SEPARATORS {
            return Err(at);
        }
        if byte == b'-' && ends && at == line_start + 2 && bytes.get(line_start..at) == Some(b"--".as_slice()) {
            depth = Depth::default();
        }
        depth.step(byte, ends);
        deep |= depth.most() > MOST_LEVELS;
    }
    Ok(deep)
}

/// An upper bound of the open brackets, whatever quotes, comments and block scalars surround them.
///
/// Inside a flow collection, the text is read as a YAML scanner does. Where that would need more context, the open
/// brackets count as open from then on. So no open bracket is missed, while one in a comment or text may be counted.
#[derive(Default)]
struct Depth {
    /// Open brackets with unknown ends.
    unknown: usize,
    /// Open brackets that are tracked to their ends.
    followed: usize,
    quote: Option<u8>,
    escaped: bool,
    /// Whether a value can start at this position.
    fresh: bool,
}

impl Depth {
    fn most(&self) -> usize {
        self.unknown + self.followed
    }

    fn step(&mut self, byte: u8, ends: bool) {
        let bracket = matches!(byte, b'[' | b'{' | b']' | b'}');
        if let Some(quote) = self.quote {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if quote == b'"' => self.escaped = true,
                _ if byte == quote => (self.quote, self.fresh) = (None, true),
                _ if bracket => self.give_up(byte),
                _ => {}
            }
            return;
        }
        match byte {
            b'[' | b'{' => (self.followed, self.fresh) = (self.followed + 1, true),
            _ if self.followed == 0 => {}
            b']' | b'}' => (self.followed, self.fresh) = (self.followed - 1, true),
            b',' => self.fresh = true,
            b'"' | b'\'' if self.fresh => self.quote = Some(byte),
            b'"' | b'\'' | b'#' => self.give_up(byte),
            b'!' | b'%' | b'@' | b'`' | b'|' | b'>' if self.fresh => self.give_up(byte),
            b':' if ends => self.fresh = true,
            b':' | b'?' | b'-' if self.fresh && ends => {}
            _ if byte.is_ascii_whitespace() => {}
            _ => self.fresh = false,
        }
    }

    fn give_up(&mut self, byte: u8) {
        *self = Self { unknown: self.most(), ..Self::default() };
        if matches!(byte, b'[' | b'{') {
            self.step(byte, false);
        }
    }
}

/// Counts the events of a text up to the first over a limit. An alias counts with the size of its anchor, so nothing is
/// expanded. In an unreadable text, the part before the error counts.
fn follow_events(text: &str, allowance: usize) -> Option<TextFault> {
    let readable = without_tabs_after_colons(text);
    let mut parser = Parser::new_from_str(&readable);
    let mut expanded = 0usize;
    let mut sizes: HashMap<usize, usize> = HashMap::new();
    // The anchor of each open collection, and what was expanded before it.
    let mut open: Vec<(usize, usize)> = Vec::new();
    loop {
        let (event, span) = match parser.next_event()? {
            Ok(next) => next,
            Err(error) => return unreadable(text, &error, allowance),
        };
        match event {
            Event::Scalar(value, _, anchor, _) => {
                let size = 1 + value.len() / BYTES_OF_A_VALUE;
                expanded = expanded.saturating_add(size);
                if anchor != 0 {
                    sizes.insert(anchor, size);
                }
            }
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                open.push((anchor, expanded));
                expanded = expanded.saturating_add(1);
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some((anchor, before)) = open.pop().filter(|(anchor, _)| *anchor != 0) {
                    sizes.insert(anchor, expanded - before);
                }
            }
            Event::Alias(anchor) => {
                expanded = expanded.saturating_add(sizes.get(&anchor).copied().unwrap_or(1));
                if expanded > allowance {
                    return Some(TextFault::aliases(range(text, span), allowance));
                }
            }
            _ => {}
        }
        if open.len() > MOST_LEVELS {
            return Some(TextFault::levels(character(text, range(text, span).start)));
        }
    }
}

/// The overrun of a text that the event parser rejects. The parser stops at 255 open brackets before it reports the
/// first of them, so the scanned part is read again without the rest.
fn unreadable(text: &str, error: &ScanError, allowance: usize) -> Option<TextFault> {
    let at = byte(text, error.marker().index());
    let span = character(text, at);
    if !error.info().contains("recursion limit") {
        // The one reason that quotes a character of the text.
        let reason = match error.info() {
            info if info.starts_with("unexpected character") => "unexpected character",
            info => info,
        };
        let message = format!("invalid YAML: {reason}");
        return Some(TextFault::syntax(span, message, "check the quotes and brackets"));
    }
    let scanned = text.get(..at).filter(|scanned| scanned.len() < text.len())?;
    follow_events(scanned, allowance).filter(|found| found.span.start < at).or_else(|| Some(TextFault::levels(span)))
}

/// The bytes of a span, which counts characters.
fn range(text: &str, span: Span) -> Range<usize> {
    byte(text, span.start.index())..byte(text, span.end.index())
}

/// The character that starts at an offset.
pub(super) fn character(text: &str, at: usize) -> Range<usize> {
    at..at + text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8)
}

fn byte(text: &str, index: usize) -> usize {
    text.char_indices().nth(index).map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn is_quick<T>(what: &str, run: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let made = run();
        assert!(began.elapsed() < Duration::from_secs(5), "{what}: {:?}", began.elapsed());
        made
    }

    #[test]
    fn brackets_in_quotes_comments_and_texts_are_not_nesting() {
        let lines =
            ["a: ['[', \"]\", x]", "# see [1", "b: {c: \"it's [\"}", "d: can't [ be", "e: |\n  [[[", "f: [x, 'a''b']"];
        let text = lines.join("\n");
        assert_eq!(yaml_overrun(&text), None);
        let many: String = (0..200).map(|at| format!("k{at}: \"[ {{\"\nl{at}: [a, {{b: 'c'}}]\n")).collect();
        assert_eq!(may_be_deep(many.as_bytes()), Ok(true));
        assert_eq!(yaml_overrun(&many), None);
        let usual: String = (0..10_000).map(|at| format!("k{at}: {{a: [\"x:1\", b-c], d: 'e [f'}}\n---\n")).collect();
        assert_eq!(may_be_deep(usual.as_bytes()), Ok(false));
    }

    #[test]
    fn deep_nesting_is_found_at_its_place_whatever_stands_around_it() {
        for (before, after) in
            [("", ""), ("a: ", ""), ("a: \"]]]\"\nb: ", "]"), ("# it's [x\na: {'b': ", "}"), ("a: |\n  \"\nb: ", "]")]
        {
            let text = format!("{before}{}{after}", "[".repeat(100_000));
            let found = is_quick(before, || yaml_overrun(&text));
            let root = usize::from(before.contains(':')) + before.matches('{').count();
            let at = before.len() + MOST_LEVELS - root;
            assert_eq!(found, Some(TextFault::levels(at..at + 1)), "{before:?}");
        }
        for open in ["[\n", "{a: ", "[\"]\", ", "[']', ", "[x, # ]\n", "{\"a]\": "] {
            let text = format!("a: {}", open.repeat(50_000));
            let found = is_quick(open, || yaml_overrun(&text));
            assert!(found.is_some_and(|found| found.code == Code::Syntax), "{open:?}");
        }
        assert_eq!(yaml_overrun(&format!("{}{}", "[".repeat(128), "]".repeat(128))), None);
        let json = "[".repeat(200_000);
        assert_eq!(json_overrun(&json), Some(TextFault::levels(128..129)));
    }

    #[test]
    fn more_values_than_a_file_may_hold_are_not_read() {
        let list = format!("a: [{}]\n", "1,".repeat(MOST_SEPARATORS));
        let at = 3 + 2 * (MOST_SEPARATORS - 1);
        assert_eq!(yaml_overrun(&list), Some(TextFault::values(at..at + 1)));
        assert_eq!(json_overrun(&list.replace("a: ", "    ")).map(|found| found.code), Some(Code::TooLarge));
        assert_eq!(yaml_overrun(&"[1, {a: b}]\n--- ".repeat(100_000)), None);
    }

    #[test]
    fn aliases_are_counted_and_never_expanded() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..40 {
            let items = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb += &format!("a{level}: &a{level} [{items}]\n");
        }
        let found = is_quick("a bomb", || alias_overrun(&bomb));
        let shown = found.and_then(|found| Some((found.code, bomb.get(found.span)?.to_owned())));
        assert_eq!(shown, Some((Code::TooLarge, "*a3".to_owned())));
        assert_eq!(alias_overrun("a: &a {x: 1}\nb: [*a, *a]\nc: &c [*c]\n"), None);
    }
}
