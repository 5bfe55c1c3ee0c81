//! Builds a [`SourceMap`] from parser events.

use std::{collections::HashMap, ops::Range};

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::{LocatedDocument, LocatedNode, NodeKind, SourceMap};
use crate::syntax::yaml::{YamlCursor, without_tabs_after_colons};

/// Reads a text up to its first syntax error.
pub(super) fn build(text: &str) -> SourceMap {
    let mut builder = SourceMapBuilder {
        map: SourceMap { nodes: Vec::new(), documents: Vec::new(), length: text.len() },
        text,
        cursor: YamlCursor::new(text),
        line: usize::MAX..usize::MAX,
        open: Vec::new(),
        anchors: HashMap::new(),
    };
    let readable = without_tabs_after_colons(text);
    let mut parser = Parser::new_from_str(&readable);
    // After an error the parser would repeat it forever.
    while let Some(Ok((event, span))) = parser.next_event() {
        builder.event(event, span);
    }
    while !builder.open.is_empty() {
        builder.close(text.len());
    }
    let mut map = builder.map;
    if map.documents.is_empty() {
        // serde_yaml reads an empty file as one document, the parser as none.
        map.documents.push(LocatedDocument { mark: 0..0, root: None });
    }
    map
}

/// An open collection; `key` waits for its value.
struct Frame {
    node: usize,
    key: Option<usize>,
}

struct SourceMapBuilder<'a> {
    map: SourceMap,
    text: &'a str,
    cursor: YamlCursor<'a>,
    /// The last line, cached so that many collections on one long line do not each search its end.
    line: Range<usize>,
    open: Vec<Frame>,
    anchors: HashMap<usize, usize>,
}

impl SourceMapBuilder<'_> {
    fn event(&mut self, event: Event<'_>, span: Span) {
        let properties = |anchor: usize, has_tag: bool| usize::from(anchor != 0) + usize::from(has_tag);
        match event {
            Event::DocumentStart(_) => {
                // The parser lets an anchor live on in the next document; serde_yaml does not.
                self.anchors.clear();
                let start = self.cursor.byte(span.start.index());
                let end = start + if self.cursor.rest(start).starts_with("---") { 3 } else { 0 };
                self.map.documents.push(LocatedDocument { mark: start..end, root: None });
            }
            Event::Alias(anchor) => {
                let start = self.cursor.byte(span.start.index());
                let end = self.cursor.byte(span.end.index());
                self.add(Some(start..end), None, NodeKind::Alias(self.anchors.get(&anchor).copied()), 0);
            }
            Event::Scalar(value, style, anchor, tag) => {
                let place = self.scalar(style, value.is_empty(), properties(anchor, tag.is_some()), span);
                let is_key = self.in_mapping() && self.open.last().is_some_and(|frame| frame.key.is_none());
                let kept = place.is_some() && (anchor != 0 || is_key);
                let text = kept.then(|| Box::from(&*value));
                self.add(place, text, NodeKind::Scalar, anchor);
            }
            Event::SequenceStart(anchor, tag) => {
                self.open(NodeKind::Sequence(Vec::new()), anchor, properties(anchor, tag.is_some()), span);
            }
            Event::MappingStart(anchor, tag) => {
                self.open(NodeKind::Mapping(Vec::new()), anchor, properties(anchor, tag.is_some()), span);
            }
            Event::SequenceEnd | Event::MappingEnd => {
                // The span of the closing token includes the whitespace and comment after it.
                let start = self.cursor.byte(span.start.index());
                self.close(start + usize::from(self.cursor.rest(start).starts_with([']', '}']) && !span.is_empty()));
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
        }
    }

    fn scalar(&mut self, style: ScalarStyle, empty: bool, properties: usize, span: Span) -> Option<Range<usize>> {
        let from = self.cursor.byte(span.start.index());
        let missing = empty && style == ScalarStyle::Plain;
        if missing && properties == 0 {
            // The span is that of the next token. An empty item still has its dash.
            return if self.in_mapping() || self.open.is_empty() {
                None
            } else {
                self.dash_before(from).map(|dash| dash..dash + 1)
            };
        }
        let start = if missing { from } else { self.cursor.content(from, properties) };
        if matches!(style, ScalarStyle::Literal | ScalarStyle::Folded)
            && !span.is_empty()
            && let Some(indicator) = self.indicator_before(start)
        {
            return Some(indicator..self.line_end(indicator));
        }
        let end = match style {
            // A block scalar without content has an empty span at the next key.
            ScalarStyle::Literal | ScalarStyle::Folded if span.is_empty() => start,
            ScalarStyle::Literal | ScalarStyle::Folded => self.line_end(start),
            _ => {
                // The span of a quoted one includes the whitespace and comment after the token.
                let is_plain = style == ScalarStyle::Plain;
                let end = if is_plain { self.cursor.byte(span.end.index()) } else { self.cursor.quoted_end(start) };
                let line = self.text.get(start..end).unwrap_or_default().split(['\n', '\r']).next();
                start + line.unwrap_or_default().trim_end().len()
            }
        };
        (start < end).then_some(start..end)
    }

    /// The `|` or `>` of the block scalar whose text starts at `start`; the parser reports only the text's position.
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

    fn open(&mut self, kind: NodeKind, anchor: usize, properties: usize, span: Span) {
        let from = self.cursor.byte(span.start.index());
        let mut start = self.cursor.content(from, properties);
        if properties == 0 && matches!(kind, NodeKind::Sequence(_)) && self.in_mapping() {
            // The parser reports a sequence at the column of its key as starting after its first dash.
            start = self.dash_before(start).unwrap_or(start);
        }
        let end = self.line_end(start);
        let node = self.add(Some(start..end), None, kind, anchor);
        self.open.push(Frame { node, key: None });
    }

    /// Closes the innermost collection, whose text ends at `end` or before.
    fn close(&mut self, end: usize) {
        let Some(Frame { node, key }) = self.open.pop() else { return };
        let mut entries = Vec::new();
        if let Some(found) = self.map.nodes.get_mut(node) {
            if let Some(span) = found.span.as_mut().filter(|span| span.start < end) {
                span.end = span.end.min(end);
            }
            if let NodeKind::Mapping(list) = &mut found.kind {
                entries = std::mem::take(list);
            }
        }
        if let Some(key) = key {
            // Truncated by a syntax error: keep the key.
            entries.push((key, self.map.nodes.len()));
            self.map.nodes.push(LocatedNode { span: None, text: None, kind: NodeKind::Scalar });
        }
        // A stable sort keeps equal keys in file order.
        entries.sort_by(|a, b| self.map.text(a.0).cmp(&self.map.text(b.0)));
        if let Some(LocatedNode { kind: NodeKind::Mapping(list), .. }) = self.map.nodes.get_mut(node) {
            *list = entries;
        }
    }

    /// Stores a node and adds it to its collection.
    fn add(&mut self, span: Option<Range<usize>>, text: Option<Box<str>>, kind: NodeKind, anchor: usize) -> usize {
        let id = self.map.nodes.len();
        self.map.nodes.push(LocatedNode { span, text, kind });
        if anchor != 0 {
            self.anchors.insert(anchor, id);
        }
        if let Some(frame) = self.open.last_mut() {
            match self.map.nodes.get_mut(frame.node).map(|node| &mut node.kind) {
                Some(NodeKind::Sequence(items)) => items.push(id),
                Some(NodeKind::Mapping(entries)) => match frame.key.take() {
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
        matches!(kind, Some(NodeKind::Mapping(_)))
    }

    /// The end of the line without trailing whitespace.
    fn line_end(&mut self, at: usize) -> usize {
        if !(self.line.start..=self.line.end).contains(&at) {
            let line = self.cursor.rest(at).split(['\n', '\r']).next().unwrap_or_default();
            self.line = at..at + line.trim_end().len();
        }
        self.line.end
    }

    /// The dash of a sequence item, if only whitespace is between it and `at`.
    fn dash_before(&self, at: usize) -> Option<usize> {
        let before = self.text.get(..at)?.trim_end().strip_suffix('-')?;
        let margin = before.trim_end_matches([' ', '-']);
        (margin.is_empty() || margin.ends_with(['\n', '\r', '\u{feff}'])).then_some(before.len())
    }
}
