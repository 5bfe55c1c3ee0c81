//! Splits YAML into lines with their indentation levels, and one space before each value.
//!
//! It knows just enough YAML to distinguish structure from content: keys, dashes, quotes, brackets and block scalars.
//! It may be wrong about rare forms, so the caller compares the parsed documents.

use super::scan::{Continuation, Scan, key_end, rest_of, spaced, without_blanks};

/// A line of the formatted text.
#[derive(Debug)]
pub(super) struct ManifestLine {
    /// The kind of line.
    pub kind: LineKind,
    /// The text without the line break.
    pub text: String,
}

/// The kind of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    /// An empty line outside a scalar.
    Blank,
    /// A comment.
    Comment,
    /// `---`, `...` or a directive.
    Marker,
    /// A top-level key.
    Key(String),
    /// Any other line, or part of a scalar.
    Other,
}

impl ManifestLine {
    /// The top-level key at the start of the line.
    pub(super) fn key(&self) -> Option<&str> {
        match &self.kind {
            LineKind::Key(key) => Some(key),
            _ => None,
        }
    }

    /// Whether the line is a comment at a column.
    pub(super) fn is_comment_at(&self, column: usize) -> bool {
        self.kind == LineKind::Comment && indent_of(&self.text) == column
    }
}

/// Splits a text into lines without trailing whitespace and, with `indent`, indented by two columns per level. Returns
/// `None` for unsupported YAML.
pub(super) fn split(text: &str, indent: bool) -> Option<Vec<ManifestLine>> {
    let mut splitter = Splitter { lines: text.lines().collect(), indent, ..Splitter::default() };
    while let Some(line) = splitter.take() {
        splitter.line(line)?;
    }
    splitter.place_comments(None);
    Some(splitter.out)
}

/// A collection with entries or items below each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Collection {
    Mapping,
    Sequence,
}

/// An open block mapping or sequence.
#[derive(Debug, Clone, Copy)]
struct Nesting {
    old: usize,
    new: usize,
    collection: Collection,
}

#[derive(Default)]
struct Splitter<'a> {
    lines: Vec<&'a str>,
    at: usize,
    indent: bool,
    open: Vec<Nesting>,
    out: Vec<ManifestLine>,
    /// Comments whose indentation depends on the next line: their index in `out` and their column.
    comments: Vec<(usize, usize)>,
}

impl<'a> Splitter<'a> {
    fn take(&mut self) -> Option<&'a str> {
        let line = self.lines.get(self.at).copied();
        self.at += 1;
        line
    }

    fn push(&mut self, kind: LineKind, text: impl Into<String>) {
        self.out.push(ManifestLine { kind, text: text.into() });
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let trimmed = line.trim_end_matches([' ', '\t']);
        let column = indent_of(trimmed);
        let body = trimmed.get(column..).unwrap_or_default();
        if trimmed.is_empty() {
            self.push(LineKind::Blank, "");
        } else if is_marker(trimmed) {
            self.place_comments(None);
            self.open.clear();
            // Content after a marker on the same line would open its own level.
            let rest = trimmed.get(3..).unwrap_or_default().trim_start();
            let alone = rest.is_empty() || rest.starts_with('#') || trimmed.starts_with('%');
            self.push(LineKind::Marker, trimmed);
            return alone.then_some(());
        } else if body.starts_with('#') {
            self.comments.push((self.out.len(), column));
            self.push(LineKind::Comment, trimmed);
        } else if body.starts_with('\t') {
            return None;
        } else {
            self.structure(column, body)?;
        }
        Some(())
    }

    /// Handles a line that starts an entry, an item or a value. The function is long because it is one loop: `- - key: value`
    /// has two items, a key and a value, each of which changes what follows.
    fn structure(&mut self, column: usize, body: &str) -> Option<()> {
        let before = if self.comments.is_empty() { Vec::new() } else { self.open.clone() };
        let (mut at, mut rest, mut text) = (column, body, String::new());
        let mut first: Option<usize> = None;
        let mut key = None;
        let value;
        loop {
            if rest == "?" || rest.starts_with("? ") {
                return None;
            }
            if let Some(after) =
                rest.strip_prefix('-').filter(|after| after.is_empty() || after.starts_with([' ', '\t']))
            {
                let level = self.enter(at, Collection::Sequence);
                first.get_or_insert(level.new);
                let item = after.trim_start_matches(' ');
                if item.starts_with('\t') {
                    return None;
                }
                let gap = after.len() - item.len();
                if item.is_empty() || item.starts_with('#') {
                    text.push_str(rest);
                    value = "";
                    break;
                }
                text.push_str(if self.indent { "- " } else { rest.get(..1 + gap).unwrap_or_default() });
                at += 1 + gap;
                rest = item;
                continue;
            }
            if let Some(colon) = key_end(rest) {
                let level = self.enter(at, Collection::Mapping);
                let is_root = self.open.len() == 1;
                if is_root && first.is_none() {
                    let name = rest.get(..colon).unwrap_or_default().trim();
                    key = Some(name.trim_matches(['"', '\'']).to_owned());
                }
                first.get_or_insert(level.new);
                value = rest.get(colon + 1..).unwrap_or_default();
                text.push_str(rest.get(..=colon).unwrap_or_default());
                match without_blanks(value) {
                    // A comment may be aligned with others.
                    none if none.is_empty() || none.starts_with('#') => text.push_str(value),
                    some => {
                        text.push(' ');
                        text.push_str(&spaced(some));
                    }
                }
            } else {
                // A value on its own line is deeper than its parent.
                if first.is_none() {
                    self.leave(|level| level.old >= at);
                    let inside = self.open.last().map_or(0, |level| level.new + 2);
                    first = Some(if self.indent { inside } else { at });
                }
                value = rest;
                text.push_str(&spaced(rest));
            }
            break;
        }
        let new = first.unwrap_or(column);
        self.place_comments(Some((before.as_slice(), column, new)));
        let kind = key.map_or(LineKind::Other, LineKind::Key);
        self.push(kind, format!("{}{text}", " ".repeat(new)));
        let owner = self.open.last().copied();
        match rest_of(value) {
            Continuation::Nothing => {}
            Continuation::Plain => self.plain(owner),
            Continuation::Open(scan) => self.quoted(owner, scan),
            Continuation::Block { keep, explicit } => self.block(owner, keep, explicit),
        }
        Some(())
    }

    /// Closes the levels for which `ends` is true.
    fn leave(&mut self, ends: impl Fn(&Nesting) -> bool) {
        while self.open.last().is_some_and(&ends) {
            self.open.pop();
        }
    }

    /// The level of an entry or item at a column; opens a new one if needed.
    fn enter(&mut self, column: usize, collection: Collection) -> Nesting {
        // A sequence may be at the column of its key, and ends with the next key.
        let ends = |level: &Nesting| level.collection == Collection::Sequence && collection == Collection::Mapping;
        self.leave(|level| level.old > column || (level.old == column && ends(level)));
        match self.open.last() {
            Some(level) if level.old == column && level.collection == collection => *level,
            parent => {
                let inside = parent.map_or(0, |parent| parent.new + 2);
                let level = Nesting { old: column, new: if self.indent { inside } else { column }, collection };
                self.open.push(level);
                level
            }
        }
    }

    /// Indents pending comments like the line below or the value above them.
    fn place_comments(&mut self, next: Option<(&[Nesting], usize, usize)>) {
        for (at, column) in std::mem::take(&mut self.comments) {
            let open = next.map_or(self.open.as_slice(), |(before, ..)| before);
            let behind = open.iter().rev().find(|level| level.old == column).map(|level| level.new);
            let new = match next {
                Some((_, old, new)) if old == column => new,
                Some((_, old, new)) => behind.unwrap_or_else(|| (column + new).saturating_sub(old)),
                None => behind.unwrap_or(column),
            };
            if let Some(line) = self.out.get_mut(at).filter(|_| self.indent) {
                line.text = format!("{}{}", " ".repeat(new), line.text.trim_start_matches(' '));
            }
        }
    }

    /// A line shifted with its level.
    fn moved(&self, line: &str, owner: Option<Nesting>) -> String {
        let Some(level) = owner.filter(|_| self.indent) else { return line.to_owned() };
        let column = (indent_of(line) + level.new).saturating_sub(level.old);
        format!("{}{}", " ".repeat(column), line.trim_start_matches(' '))
    }

    /// Copies the continuation lines of a plain scalar, including empty lines between them.
    fn plain(&mut self, owner: Option<Nesting>) {
        loop {
            let below = self.lines.get(self.at..).unwrap_or_default();
            let empty = below.iter().take_while(|line| line.trim().is_empty()).count();
            let Some(line) = below.get(empty).copied().map(str::trim_end) else { return };
            let deeper = owner.is_none_or(|level| indent_of(line) > level.old);
            if !deeper || line.trim_start().starts_with('#') || is_marker(line) {
                return;
            }
            for _ in 0..empty {
                self.push(LineKind::Other, "");
            }
            let line = self.moved(line, owner);
            self.push(LineKind::Other, line);
            self.at += empty + 1;
        }
    }

    /// Copies the lines of quotes or brackets until they are closed.
    fn quoted(&mut self, owner: Option<Nesting>, mut scan: Scan) {
        while scan.is_open() {
            let Some(line) = self.take() else { return };
            let line = scan.spaced(line);
            let line = line.as_str();
            scan = scan.over(line);
            // Keep trailing whitespace inside quotes: it is not part of the value, but removing it may look like a
            // change.
            let line = if scan.quote.is_some() { line } else { line.trim_end() };
            let line = if line.trim().is_empty() { String::new() } else { self.moved(line, owner) };
            self.push(LineKind::Other, line);
        }
    }

    /// Copies the lines of a block scalar.
    fn block(&mut self, owner: Option<Nesting>, keep: bool, explicit: Option<usize>) {
        let is_empty = |line: &str| line.trim_matches(' ').is_empty();
        let below = self.lines.get(self.at..).unwrap_or_default();
        let old = owner.map_or(0, |level| level.old);
        let first = below.iter().find(|line| !is_empty(line)).map(|line| indent_of(line));
        let first = first.filter(|column| owner.is_none_or(|level| *column > level.old));
        let content = explicit.map(|columns| old + columns).or(first).unwrap_or(usize::MAX);
        let inside = |line: &str| is_empty(line) || (indent_of(line) >= content && !is_marker(line));
        let mut lines: Vec<&str> = below.iter().copied().take_while(|line| inside(line)).collect();
        // Trailing empty lines are not part of it.
        while !keep && lines.last().is_some_and(|line| is_empty(line) && line.len() <= content) {
            lines.pop();
        }
        self.at += lines.len();
        let new = match (owner, explicit) {
            (Some(level), Some(columns)) => level.new + columns,
            (Some(level), None) => level.new + 2,
            (None, _) => content,
        };
        for line in lines {
            let text = match line.get(content..) {
                None | Some("") => String::new(),
                Some(text) if self.indent => format!("{}{text}", " ".repeat(new)),
                Some(_) => line.to_owned(),
            };
            self.push(LineKind::Other, text);
        }
    }
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_marker(line: &str) -> bool {
    let mark =
        |mark: &str| line.strip_prefix(mark).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']));
    mark("---") || mark("...") || line.starts_with('%')
}
