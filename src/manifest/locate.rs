//! Finds the place of a field path in a YAML file.
//!
//! Values are read without positions. Only when there is a fault to show is the file parsed a second
//! time, as events, to learn where everything stands. All spans are bytes of the text given, at most
//! one line long. Aliases stay references in an arena: a file is never expanded.

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    ops::Range,
};

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use crate::model::fault::{Aim, Path, Segment};

/// Nothing nested deeper can be read by `serde_yaml`, so nothing deeper needs its duplicates named.
const MAX_DEPTH: usize = 128;
/// Longest key text taken through an alias: one long anchor used as a key thousands of times would
/// otherwise be compared and copied thousands of times.
const MAX_ALIAS_KEY: usize = 256;

/// A key that occurs again in the same mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DuplicateKey {
    /// Number of the document, from 0.
    pub document: usize,
    /// Path of the repeated entry.
    pub path: Path,
    /// Where the key stands first.
    pub first: Range<usize>,
    /// Where it stands again.
    pub second: Range<usize>,
}

/// Positions of everything in one file.
#[derive(Debug)]
pub struct SourceMap {
    nodes: Vec<Node>,
    documents: Vec<Document>,
    duplicates: Vec<DuplicateKey>,
    length: usize,
}

#[derive(Debug)]
struct Document {
    /// The `---`, or an empty range where a document begins without one.
    mark: Range<usize>,
    root: Option<usize>,
}

#[derive(Debug)]
struct Node {
    /// `None` where nothing is written: the value of `key:`.
    span: Option<Range<usize>>,
    /// Kept for keys, and for anchored scalars since an alias may use them as a key.
    text: Option<Box<str>>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Scalar,
    /// The anchored node, which is never an alias itself.
    Alias(Option<usize>),
    Sequence(Vec<usize>),
    /// Key and value of each entry, by the key's text once the mapping has ended.
    Mapping(Vec<(usize, usize)>),
}

impl SourceMap {
    /// Never fails: after a syntax error it knows what came before it.
    #[must_use]
    pub fn new(text: &str) -> SourceMap {
        let mut builder = Builder {
            map: SourceMap { nodes: Vec::new(), documents: Vec::new(), duplicates: Vec::new(), length: text.len() },
            text,
            chars: 0,
            bytes: 0,
            line: usize::MAX..usize::MAX,
            open: Vec::new(),
            anchors: HashMap::new(),
        };
        let readable = without_tabs_after_colons(text);
        let mut parser = Parser::new_from_str(&readable);
        // After an error the parser would give the same error for ever.
        while let Some(Ok((event, span))) = parser.next_event() {
            builder.event(event, span);
        }
        while !builder.open.is_empty() {
            builder.close(text.len());
        }
        let mut map = builder.map;
        if map.documents.is_empty() {
            // serde_yaml gives one document for an empty file, the parser none.
            map.documents.push(Document { mark: 0..0, root: None });
        }
        map.duplicates.sort_by_key(|duplicate| duplicate.second.start);
        map
    }

    /// Number of documents, counted as `serde_yaml` does: an empty file has one.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.documents.len()
    }

    /// Byte range of `path` in a document, or of its nearest ancestor that exists.
    ///
    /// A path leads through aliases and merge keys to where the value was really written; a path that
    /// ends at an alias gives the alias. A collection is shown by its first line.
    #[must_use]
    pub fn locate(&self, document: usize, path: &Path, aim: Aim) -> Range<usize> {
        let Some(found) = self.documents.get(document) else {
            return self.length..self.length;
        };
        let mut node = found.root;
        let mut here = node.and_then(|root| self.span(root)).unwrap_or_else(|| found.mark.clone());
        for segment in &path.0 {
            let Some((key, value)) = node.and_then(|parent| self.child(parent, segment)) else {
                return here;
            };
            node = Some(value);
            here = key.and_then(|key| self.span(key)).or_else(|| self.span(value)).unwrap_or(here);
        }
        match aim {
            Aim::Key => here,
            Aim::Value => node.and_then(|value| self.span(value)).unwrap_or(here),
        }
    }

    /// Every key that occurs again in its mapping, in the order of the file.
    #[must_use]
    pub fn duplicate_keys(&self) -> Vec<DuplicateKey> {
        self.duplicates.clone()
    }

    /// Byte offset where a document's content starts; the end of the text if there is no such document.
    #[must_use]
    pub fn document_start(&self, document: usize) -> usize {
        self.documents.get(document).map_or(self.length, |found| {
            found.root.and_then(|root| self.span(root)).map_or(found.mark.start, |span| span.start)
        })
    }

    fn span(&self, node: usize) -> Option<Range<usize>> {
        self.nodes.get(node)?.span.clone()
    }

    fn text(&self, node: usize) -> Option<&str> {
        let found = self.nodes.get(node)?;
        match &found.kind {
            Kind::Alias(target) => {
                self.nodes.get((*target)?)?.text.as_deref().filter(|text| text.len() <= MAX_ALIAS_KEY)
            }
            _ => found.text.as_deref(),
        }
    }

    /// What the node is, an alias being what it stands for.
    fn resolve(&self, node: usize) -> Option<(usize, &Kind)> {
        let id = match self.nodes.get(node)?.kind {
            Kind::Alias(target) => target?,
            _ => node,
        };
        Some((id, &self.nodes.get(id)?.kind))
    }

    fn child(&self, parent: usize, segment: &Segment) -> Option<(Option<usize>, usize)> {
        match (self.resolve(parent)?, segment) {
            ((_, Kind::Sequence(items)), Segment::Index(index)) => Some((None, *items.get(*index)?)),
            ((_, Kind::Mapping(_)), Segment::Key(key)) => self.entry(parent, key),
            _ => None,
        }
    }

    /// The entry in the mapping itself, else in what it merges, the first named winning.
    fn entry(&self, mapping: usize, key: &str) -> Option<(Option<usize>, usize)> {
        // A mapping may merge itself, or the same one along many ways: each is looked at once.
        let mut seen = HashSet::new();
        let mut pending = vec![mapping];
        while let Some(next) = pending.pop() {
            let Some((id, kind)) = self.resolve(next) else {
                continue;
            };
            if !seen.insert(id) {
                continue;
            }
            match kind {
                Kind::Mapping(entries) => {
                    if let Some((key, value)) = self.entries(entries, key).next() {
                        return Some((Some(*key), *value));
                    }
                    let from = pending.len();
                    pending.extend(self.entries(entries, "<<").map(|(_, merged)| *merged));
                    if let Some(added) = pending.get_mut(from..) {
                        added.reverse();
                    }
                }
                Kind::Sequence(items) => pending.extend(items.iter().rev()),
                _ => {}
            }
        }
        None
    }

    fn entries<'a>(&'a self, sorted: &'a [(usize, usize)], key: &'a str) -> impl Iterator<Item = &'a (usize, usize)> {
        let from = sorted.partition_point(|(at, _)| self.text(*at) < Some(key));
        sorted.iter().skip(from).take_while(move |(at, _)| self.text(*at) == Some(key))
    }
}

/// A collection that has begun; `key` waits for its value.
struct Frame {
    node: usize,
    key: Option<usize>,
}

struct Builder<'a> {
    map: SourceMap,
    text: &'a str,
    /// The parser counts characters. Its events go forward, so a cursor turns them into bytes.
    chars: usize,
    bytes: usize,
    /// The line last looked at: many collections on one long line must not each search its end.
    line: Range<usize>,
    open: Vec<Frame>,
    anchors: HashMap<usize, usize>,
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, span: Span) {
        match event {
            Event::DocumentStart(_) => {
                // The parser lets an anchor live on in the next document; serde_yaml does not.
                self.anchors.clear();
                let start = self.byte(span.start.index());
                let end = start + if self.rest(start).starts_with("---") { 3 } else { 0 };
                self.map.documents.push(Document { mark: start..end, root: None });
            }
            Event::Alias(anchor) => {
                let start = self.byte(span.start.index());
                let end = self.byte(span.end.index());
                self.add(Some(start..end), None, Kind::Alias(self.anchors.get(&anchor).copied()), 0);
            }
            Event::Scalar(value, style, anchor, tag) => {
                let properties = usize::from(anchor != 0) + usize::from(tag.is_some());
                let place = self.scalar(style, value.is_empty(), properties, span);
                let kept = place.is_some() && (anchor != 0 || self.awaits_key());
                let text = kept.then(|| Box::from(&*value));
                self.add(place, text, Kind::Scalar, anchor);
            }
            Event::SequenceStart(anchor, tag) => {
                let properties = usize::from(anchor != 0) + usize::from(tag.is_some());
                self.open(Kind::Sequence(Vec::new()), anchor, properties, span);
            }
            Event::MappingStart(anchor, tag) => {
                let properties = usize::from(anchor != 0) + usize::from(tag.is_some());
                self.open(Kind::Mapping(Vec::new()), anchor, properties, span);
            }
            Event::SequenceEnd | Event::MappingEnd => {
                // The closing token of a flow collection takes the blanks and the comment after it along.
                let start = self.byte(span.start.index());
                self.close(start + usize::from(self.rest(start).starts_with([']', '}']) && !span.is_empty()));
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
    }

    fn scalar(&mut self, style: ScalarStyle, empty: bool, properties: usize, span: Span) -> Option<Range<usize>> {
        let from = self.byte(span.start.index());
        let missing = empty && style == ScalarStyle::Plain;
        if missing && properties == 0 {
            // The span is that of whichever token came next. An empty item still has its dash.
            return if self.in_mapping() || self.open.is_empty() {
                None
            } else {
                self.dash_before(from).map(|dash| dash..dash + 1)
            };
        }
        let start = if missing { from } else { self.content(from, properties) };
        if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded)
            && !span.is_empty()
            && let Some(indicator) = self.indicator_before(start)
        {
            return Some(indicator..self.line_end(indicator));
        }
        let end = match style {
            // The token takes the blanks and the comment after it along.
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => start + quoted(self.rest(start)),
            // A block scalar without content has an empty span where the next key is.
            ScalarStyle::Literal | ScalarStyle::Folded if span.is_empty() => start,
            ScalarStyle::Literal | ScalarStyle::Folded => self.line_end(start),
            ScalarStyle::Plain => {
                let end = self.byte(span.end.index());
                let line = self.text.get(start..end).unwrap_or_default().split(['\n', '\r']).next();
                start + line.unwrap_or_default().trim_end().len()
            }
        };
        (start < end).then_some(start..end)
    }

    /// The `|` or `>` of the block scalar whose text starts at `start`: the parser tells only where the text is.
    fn indicator_before(&self, start: usize) -> Option<usize> {
        let mut end = start;
        for line in self.text.get(..start)?.split_inclusive('\n').rev() {
            let offset = end - line.len();
            end = offset;
            let header = line.split(" #").next().unwrap_or_default().trim_end();
            let bare = header.trim_end_matches(|c: char| c.is_ascii_digit() || c == '+' || c == '-');
            if bare.ends_with(['|', '>']) {
                return Some(offset + bare.len() - 1);
            }
            if !line.trim().is_empty() {
                return None;
            }
        }
        None
    }

    fn open(&mut self, kind: Kind, anchor: usize, properties: usize, span: Span) {
        let from = self.byte(span.start.index());
        let mut start = self.content(from, properties);
        if properties == 0 && matches!(kind, Kind::Sequence(_)) && self.in_mapping() {
            // A sequence no deeper than its key is said to start after its first dash.
            start = self.dash_before(start).unwrap_or(start);
        }
        let end = self.line_end(start);
        let node = self.add(Some(start..end), None, kind, anchor);
        self.open.push(Frame { node, key: None });
    }

    /// Ends the innermost collection, whose text goes no further than `end`.
    fn close(&mut self, end: usize) {
        let Some(Frame { node, key }) = self.open.pop() else {
            return;
        };
        let mut entries = Vec::new();
        if let Some(found) = self.map.nodes.get_mut(node) {
            if let Some(span) = found.span.as_mut().filter(|span| span.start < end) {
                span.end = span.end.min(end);
            }
            if let Kind::Mapping(list) = &mut found.kind {
                entries = std::mem::take(list);
            }
        }
        if let Some(key) = key {
            // Cut off by a syntax error: the key at least is known.
            entries.push((key, self.map.nodes.len()));
            self.map.nodes.push(Node { span: None, text: None, kind: Kind::Scalar });
        }
        // Stable: of equal keys the one written first stays first.
        entries.sort_by(|a, b| self.map.text(a.0).cmp(&self.map.text(b.0)));
        let duplicates = self.duplicates(&entries);
        self.map.duplicates.extend(duplicates);
        if let Some(Node { kind: Kind::Mapping(list), .. }) = self.map.nodes.get_mut(node) {
            *list = entries;
        }
    }

    fn duplicates(&self, entries: &[(usize, usize)]) -> Vec<DuplicateKey> {
        let mut found = Vec::new();
        if self.open.len() >= MAX_DEPTH {
            return found;
        }
        for same in entries.chunk_by(|a, b| self.map.text(a.0).is_some() && self.map.text(a.0) == self.map.text(b.0)) {
            let [(first, _), again @ ..] = same else {
                continue;
            };
            for (second, _) in again {
                let (Some(first), Some(second), Some(text)) =
                    (self.map.span(*first), self.map.span(*second), self.map.text(*second))
                else {
                    continue;
                };
                let mut path: Vec<Segment> = self.open.iter().filter_map(|frame| self.step(frame)).collect();
                path.push(Segment::Key(text.to_owned()));
                let document = self.map.documents.len().saturating_sub(1);
                found.push(DuplicateKey { document, path: Path(path), first, second });
            }
        }
        found
    }

    /// The step from an open collection into the child that was added to it last.
    fn step(&self, frame: &Frame) -> Option<Segment> {
        match &self.map.nodes.get(frame.node)?.kind {
            Kind::Mapping(entries) => Some(Segment::Key(self.map.text(entries.last()?.0)?.to_owned())),
            Kind::Sequence(items) => Some(Segment::Index(items.len().checked_sub(1)?)),
            _ => None,
        }
    }

    /// Stores a node and hangs it into the collection it stands in.
    fn add(&mut self, span: Option<Range<usize>>, text: Option<Box<str>>, kind: Kind, anchor: usize) -> usize {
        let id = self.map.nodes.len();
        self.map.nodes.push(Node { span, text, kind });
        if anchor != 0 {
            self.anchors.insert(anchor, id);
        }
        if let Some(frame) = self.open.last_mut() {
            match self.map.nodes.get_mut(frame.node).map(|node| &mut node.kind) {
                Some(Kind::Sequence(items)) => items.push(id),
                Some(Kind::Mapping(entries)) => match frame.key.take() {
                    Some(key) => entries.push((key, id)),
                    None => frame.key = Some(id),
                },
                _ => {}
            }
        } else if let Some(document) = self.map.documents.last_mut() {
            document.root = Some(id);
        }
        id
    }

    fn in_mapping(&self) -> bool {
        let kind = self.open.last().and_then(|frame| self.map.nodes.get(frame.node)).map(|node| &node.kind);
        matches!(kind, Some(Kind::Mapping(_)))
    }

    fn awaits_key(&self) -> bool {
        self.in_mapping() && self.open.last().is_some_and(|frame| frame.key.is_none())
    }

    fn byte(&mut self, index: usize) -> usize {
        while index < self.chars {
            let Some(c) = self.text.get(..self.bytes).and_then(|before| before.chars().next_back()) else {
                break;
            };
            self.chars -= 1;
            self.bytes -= c.len_utf8();
        }
        while self.chars < index {
            let Some(c) = self.rest(self.bytes).chars().next() else {
                break;
            };
            self.chars += 1;
            self.bytes += c.len_utf8();
        }
        self.bytes
    }

    fn rest(&self, from: usize) -> &str {
        self.text.get(from..).unwrap_or_default()
    }

    /// Where a node's own text starts, after its anchor and its tag.
    fn content(&self, from: usize, properties: usize) -> usize {
        let mut rest = self.rest(from);
        for _ in 0..properties {
            let after = match rest.strip_prefix("!<").and_then(|tag| tag.split_once('>')) {
                Some((_, after)) => after,
                None => rest.trim_start_matches(|c: char| !c.is_whitespace() && !",[]{}".contains(c)),
            };
            rest = after.trim_start();
            while rest.starts_with('#') {
                rest = rest.trim_start_matches(|c| c != '\n' && c != '\r').trim_start();
            }
        }
        self.text.len() - rest.len()
    }

    /// The end of the line, without blanks at its end.
    fn line_end(&mut self, at: usize) -> usize {
        if !(self.line.start..=self.line.end).contains(&at) {
            let line = self.rest(at).split(['\n', '\r']).next().unwrap_or_default();
            self.line = at..at + line.trim_end().len();
        }
        self.line.end
    }

    /// The dash of a sequence's item, if nothing but blanks stands between it and `at`.
    fn dash_before(&self, at: usize) -> Option<usize> {
        let before = self.text.get(..at)?.trim_end().strip_suffix('-')?;
        let margin = before.trim_end_matches([' ', '-']);
        (margin.is_empty() || margin.ends_with(['\n', '\r', '\u{feff}'])).then_some(before.len())
    }
}

/// The parser refuses `key:<tab>value`, which `serde_yaml` reads. A blank in place of the tab changes no
/// position.
fn without_tabs_after_colons(text: &str) -> Cow<'_, str> {
    if !text.contains('\t') {
        return Cow::Borrowed(text);
    }
    let mut after = false;
    let replace = |c| {
        after = c == ':' || after && matches!(c, ' ' | '\t');
        if after && c == '\t' { ' ' } else { c }
    };
    Cow::Owned(text.chars().map(replace).collect())
}

/// Length of the quoted scalar that `text` starts with, or of its first line.
fn quoted(text: &str) -> usize {
    let quote = text.chars().next().unwrap_or_default();
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if matches!(c, '\n' | '\r') {
            return text.get(..at).map_or(at, |line| line.trim_end().len());
        } else if escaped {
            escaped = false;
        } else if c == '\\' && quote == '"' {
            escaped = true;
        } else if c == quote {
            escaped = quote == '\'' && text.get(at + 1..).is_some_and(|rest| rest.starts_with('\''));
            if !escaped {
                return at + 1;
            }
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `spec.ports.1` as a path.
    fn path(dotted: &str) -> Path {
        let steps = dotted.split('.').filter(|step| !step.is_empty());
        Path(steps.map(|s| s.parse().map_or_else(|_| Segment::Key(s.to_owned()), Segment::Index)).collect())
    }

    /// The line number and the text found at a path of the first document.
    #[track_caller]
    fn at(text: &str, dotted: &str, aim: Aim, line: usize, shown: &str) {
        let span = SourceMap::new(text).locate(0, &path(dotted), aim);
        let found =
            (text.get(..span.start).unwrap_or_default().matches('\n').count() + 1, text.get(span).unwrap_or("?"));
        assert_eq!(found, (line, shown), "{dotted} in {text:?}");
    }

    #[track_caller]
    fn value(text: &str, dotted: &str, line: usize, shown: &str) {
        at(text, dotted, Aim::Value, line, shown);
    }

    #[test]
    fn scalars_are_shown_exactly() {
        let text = "a: \"x \\\" y\"  # é\nb: 'it''s' # c\nc:\td e \t# c\nd: |\n\n  one\n  two\ne: one\n  two\nf: \"one \n  two\"\n'é g' : 1\n";
        value(text, "a", 1, "\"x \\\" y\"");
        value(text, "b", 2, "'it''s'");
        value(text, "c", 3, "d e");
        value(text, "d", 4, "|");
        value(text, "e", 8, "one");
        value(text, "f", 10, "\"one");
        value(text, "é g", 12, "1");
        at(text, "é g", Aim::Key, 12, "'é g'");
    }

    #[test]
    fn collections_are_shown_by_their_first_line() {
        let text =
            "m:\n  a: 1\n  b: 2\ns:\n- x: 1\n  y: 2\n- 2\nf: {a: [1, 2] , b: 3} # c\nw: [1,\n  2]\ni:\n  - - 1\n";
        value(text, "", 1, "m:");
        value(text, "m", 2, "a: 1");
        value(text, "s", 5, "- x: 1");
        value(text, "s.0", 5, "x: 1");
        value(text, "s.1", 7, "2");
        value(text, "f", 8, "{a: [1, 2] , b: 3}");
        value(text, "f.a", 8, "[1, 2]");
        value(text, "f.a.1", 8, "2");
        value(text, "w", 9, "[1,");
        value(text, "w.1", 10, "2");
        value(text, "i", 12, "- - 1");
        value(text, "i.0", 12, "- 1");
        value("a: [b: 1, c]\n", "a.0", 1, "b: 1");
    }

    #[test]
    fn what_is_empty_or_missing_is_shown_by_what_holds_it() {
        let text = "a:\nb: |\nc: &x\nd:\n  e: {f: , g}\n  - \n".replace("  - \n", "s:\n- 1\n-\n- 3\n");
        value(&text, "a", 1, "a");
        value(&text, "b", 2, "b");
        value(&text, "c", 3, "&x");
        value(&text, "d.e.f", 5, "f");
        value(&text, "d.e.g", 5, "g");
        value(&text, "d.e.nope.deep", 5, "e");
        value(&text, "s.1", 8, "-");
        value(&text, "s.7", 6, "s");
        value(&text, "nope", 1, "a:");
        at(&text, "d.nope", Aim::Key, 4, "d");
        value("- a: 1\n", "0.b", 1, "a: 1");
    }

    #[test]
    fn aliases_and_merges_lead_to_where_the_value_was_written() {
        let text = "a: &a !t # c\n  x: 1\nb: &b {x: 2, y: 3}\nc: *b # c\nd:\n  <<: [*a, *b]\n  z: 4\ne: {<<: *b}\nf: &f [*f]\ng: &g\n  <<: *g\n";
        value(text, "a", 2, "x: 1");
        value(text, "b", 3, "{x: 2, y: 3}");
        value(text, "c", 4, "*b");
        value(text, "c.y", 3, "3");
        at(text, "c.nope", Aim::Value, 4, "c");
        value(text, "d.x", 2, "1");
        value(text, "d.y", 3, "3");
        value(text, "d.z", 7, "4");
        value(text, "e.x", 3, "2");
        value(text, "f.0.0.0", 9, "*f");
        value(text, "g.nope", 10, "g");
        // An anchor of one document is not known in the next.
        assert_eq!(SourceMap::new("a: &a {b: 1}\n---\nc: *a\n").locate(1, &path("c.b"), Aim::Value), 17..18);
    }

    #[test]
    fn an_alias_bomb_stays_small() {
        let mut text = "a0: &a0 {x: 1}\n".to_owned();
        for n in 1..60 {
            text += &format!("a{n}: &a{n} {{<<: [*a{0}, *a{0}, *a{0}]}}\n", n - 1);
        }
        value(&text, "a59.x", 1, "1");
        value(&text, "a59.nope", 60, "a59");
    }

    #[test]
    fn bytes_are_right_after_crlf_a_bom_and_wide_characters() {
        value("\u{feff}a: é\r\nb: |\r\n  日本 \r\n  x\r\nc: 🦀 x\r\nd:\r\n- e\r\n", "b", 2, "|");
        value("a: é # 🦀\r\nc: 🦀 x\r\nd:\r\n- e\r\n", "c", 2, "🦀 x");
        value("a: é # 🦀\r\nc: 🦀 x\r\nd:\r\n- e\r\n", "d", 4, "- e");
    }

    #[test]
    fn keys_that_occur_twice_are_named() {
        let text = "s:\n- a: 1\n  \"a\": 2\n  a: 3\n---\n<<: {}\n<<: {}\nb: 1\n: 1\n: 2\n";
        let found = SourceMap::new(text).duplicate_keys();
        let shown: Vec<_> =
            found.iter().map(|d| (d.document, d.path.clone(), d.first.start, text.get(d.second.clone()))).collect();
        assert_eq!(
            shown,
            [(0, path("s.0.a"), 5, Some("\"a\"")), (0, path("s.0.a"), 5, Some("a")), (1, path("<<"), 30, Some("<<")),]
        );
    }

    #[test]
    fn documents_are_counted_as_serde_yaml_counts_them() {
        use serde::Deserialize as _;
        for text in [
            "",
            "# c",
            "---",
            "a: 1",
            "\n---\n---\n# c\n...\n---\nx: 1\n",
            "--- a\n--- b\n...\n",
            "a\n---\n",
            "---\n...\n# c\n",
        ] {
            let read = serde_yaml::Deserializer::from_str(text).map(serde_yaml::Value::deserialize).count();
            assert_eq!(SourceMap::new(text).documents(), read, "{text:?}");
        }
        let map = SourceMap::new("# c\n---\n---\n# c\nx: 1\n");
        assert_eq!((map.document_start(0), map.document_start(1), map.document_start(9)), (4, 16, 21));
        assert_eq!(map.locate(0, &path("x"), Aim::Key), 4..7);
    }

    #[test]
    fn a_file_cut_off_or_broken_anywhere_is_no_trouble() {
        value("a: 1\nb:\n  c: [2, 3\nd: }", "b.c.0", 3, "2");
        let text = "# é\n? [a, b]\n: &x !<t>\n\t\n  - - *x\n  -\n*x : 🦀\n\"k\\\"\": 'it''s'\nb: >-\n  t\n{a, b: , [c]: d}: 1\n%\r\n---\n...";
        let cuts = text.char_indices().map(|(at, _)| at);
        for (from, to) in cuts.clone().flat_map(|from| cuts.clone().map(move |to| (from, to))) {
            let Some(part) = text.get(from..to) else {
                continue;
            };
            let map = SourceMap::new(part);
            for node in map.nodes.iter().filter_map(|node| node.span.clone()) {
                assert!(part.get(node.clone()).is_some_and(|shown| !shown.contains('\n')), "{node:?} of {part:?}");
            }
        }
    }
}
