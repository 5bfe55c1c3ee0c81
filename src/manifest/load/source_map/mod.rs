//! Finds the place of a field path in a YAML file.
//!
//! Values are read without positions. Only when there is an error to show, the file is parsed a second time as events
//! to find the positions. Spans are byte ranges of at most one line. Aliases stay references in an arena, so a file is
//! never expanded.

mod build;

use std::{collections::HashSet, fmt, ops::Range};

use crate::model::{FaultTarget, Path, Segment};

/// The longest key text read through an alias: a long anchor used as a key thousands of times would otherwise be
/// compared and copied thousands of times.
const MAX_ALIAS_KEY: usize = 256;

/// The positions of all nodes in one file.
pub(crate) struct SourceMap {
    nodes: Vec<LocatedNode>,
    documents: Vec<LocatedDocument>,
    length: usize,
}

/// Omits the texts of keys and anchored values, which may be secrets.
impl fmt::Debug for SourceMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceMap({} nodes)", self.nodes.len())
    }
}

#[derive(Debug)]
struct LocatedDocument {
    /// The `---`, or an empty range if the document starts without one.
    mark: Range<usize>,
    root: Option<usize>,
}

#[derive(Debug)]
struct LocatedNode {
    /// `None` for an empty value, such as that of `key:`.
    span: Option<Range<usize>>,
    /// Kept for keys, and for anchored scalars because an alias may use them as a key.
    text: Option<Box<str>>,
    kind: NodeKind,
}

#[derive(Debug)]
enum NodeKind {
    Scalar,
    /// The anchored node, which is never an alias itself.
    Alias(Option<usize>),
    Sequence(Vec<usize>),
    /// Key and value of each entry, by the key's text once the mapping has ended.
    Mapping(Vec<(usize, usize)>),
}

impl SourceMap {
    /// Builds the map. Never fails: after a syntax error it covers the text before it.
    #[must_use]
    pub(crate) fn new(text: &str) -> SourceMap {
        build::build(text)
    }

    /// Byte range of `path` in a document, or of its nearest ancestor that exists.
    ///
    /// A path is followed through aliases and merge keys to the actual value; a path that ends at an alias
    /// gives the alias. A collection is located by its first line.
    #[must_use]
    pub(crate) fn locate(&self, document: usize, path: &Path, target: FaultTarget) -> Range<usize> {
        let Some(found) = self.documents.get(document) else { return self.length..self.length };
        let mut node = found.root;
        let mut here = node.and_then(|root| self.span(root)).unwrap_or_else(|| found.mark.clone());
        for segment in &path.0 {
            let Some((key, value)) = node.and_then(|parent| self.child(parent, segment)) else { return here };
            node = Some(value);
            here = key.and_then(|key| self.span(key)).or_else(|| self.span(value)).unwrap_or(here);
        }
        match target {
            FaultTarget::Key => here,
            FaultTarget::Value => node.and_then(|value| self.span(value)).unwrap_or(here),
        }
    }

    /// The first two positions of a path's last key in its mapping.
    #[must_use]
    pub(crate) fn repeated_key(&self, document: usize, path: &Path) -> Option<(Range<usize>, Range<usize>)> {
        let (Segment::Key(key), way) = path.0.split_last()? else { return None };
        let mut mapping = self.documents.get(document)?.root?;
        for segment in way {
            (_, mapping) = self.child(mapping, segment)?;
        }
        let (_, NodeKind::Mapping(entries)) = self.resolve(mapping)? else { return None };
        let mut same = self.entries(entries, key).filter_map(|(key, _)| self.span(*key));
        Some((same.next()?, same.next()?))
    }

    fn span(&self, node: usize) -> Option<Range<usize>> {
        self.nodes.get(node)?.span.clone()
    }

    fn text(&self, node: usize) -> Option<&str> {
        let found = self.nodes.get(node)?;
        match &found.kind {
            NodeKind::Alias(target) => {
                self.nodes.get((*target)?)?.text.as_deref().filter(|text| text.len() <= MAX_ALIAS_KEY)
            }
            _ => found.text.as_deref(),
        }
    }

    /// The node's id and kind; an alias resolves to its target.
    fn resolve(&self, node: usize) -> Option<(usize, &NodeKind)> {
        let id = match self.nodes.get(node)?.kind {
            NodeKind::Alias(target) => target?,
            _ => node,
        };
        Some((id, &self.nodes.get(id)?.kind))
    }

    fn child(&self, parent: usize, segment: &Segment) -> Option<(Option<usize>, usize)> {
        match (self.resolve(parent)?, segment) {
            ((_, NodeKind::Sequence(items)), Segment::Index(index)) => Some((None, *items.get(*index)?)),
            ((_, NodeKind::Mapping(_)), Segment::Key(key)) => self.entry(parent, key),
            _ => None,
        }
    }

    /// The entry in the mapping, or in its merged mappings, of which the first wins.
    fn entry(&self, mapping: usize, key: &str) -> Option<(Option<usize>, usize)> {
        // A mapping may merge itself, or another one several times: visit each once.
        let mut seen = HashSet::new();
        let mut pending = vec![mapping];
        while let Some(next) = pending.pop() {
            let Some((id, kind)) = self.resolve(next) else { continue };
            if !seen.insert(id) {
                continue;
            }
            match kind {
                NodeKind::Mapping(entries) => {
                    if let Some((key, value)) = self.entries(entries, key).next() {
                        return Some((Some(*key), *value));
                    }
                    let from = pending.len();
                    pending.extend(self.entries(entries, "<<").map(|(_, merged)| *merged));
                    if let Some(added) = pending.get_mut(from..) {
                        added.reverse();
                    }
                }
                NodeKind::Sequence(items) => pending.extend(items.iter().rev()),
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
    fn at(text: &str, dotted: &str, target: FaultTarget, line: usize, shown: &str) {
        let span = SourceMap::new(text).locate(0, &path(dotted), target);
        let found =
            (text.get(..span.start).unwrap_or_default().matches('\n').count() + 1, text.get(span).unwrap_or("?"));
        assert_eq!(found, (line, shown), "{dotted} in {text:?}");
    }

    #[track_caller]
    fn value(text: &str, dotted: &str, line: usize, shown: &str) {
        at(text, dotted, FaultTarget::Value, line, shown);
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
        at(text, "é g", FaultTarget::Key, 12, "'é g'");
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
        at(&text, "d.nope", FaultTarget::Key, 4, "d");
        value("- a: 1\n", "0.b", 1, "a: 1");
    }

    #[test]
    fn aliases_and_merges_lead_to_where_the_value_was_written() {
        let text = "a: &a !t # c\n  x: 1\nb: &b {x: 2, y: 3}\nc: *b # c\nd:\n  <<: [*a, *b]\n  z: 4\ne: {<<: *b}\nf: &f [*f]\ng: &g\n  <<: *g\n";
        value(text, "a", 2, "x: 1");
        value(text, "b", 3, "{x: 2, y: 3}");
        value(text, "c", 4, "*b");
        value(text, "c.y", 3, "3");
        at(text, "c.nope", FaultTarget::Value, 4, "c");
        value(text, "d.x", 2, "1");
        value(text, "d.y", 3, "3");
        value(text, "d.z", 7, "4");
        value(text, "e.x", 3, "2");
        value(text, "f.0.0.0", 9, "*f");
        value(text, "g.nope", 10, "g");
        // An anchor of one document is not known in the next.
        assert_eq!(SourceMap::new("a: &a {b: 1}\n---\nc: *a\n").locate(1, &path("c.b"), FaultTarget::Value), 17..18);
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
        let map = SourceMap::new(text);
        let shown = |document: usize, dotted: &str| {
            let (first, second) = map.repeated_key(document, &path(dotted))?;
            Some((first.start, text.get(second)?))
        };
        assert_eq!(shown(0, "s.0.a"), Some((5, "\"a\"")));
        assert_eq!(shown(1, "<<"), Some((30, "<<")));
        for (document, once) in [(0, "s"), (1, "b"), (0, "s.0.b"), (2, "s"), (0, "")] {
            assert_eq!(shown(document, once), None, "{once}");
        }
    }

    #[test]
    fn very_many_repeated_keys_are_placed_in_little_time() {
        let text: String = (0..30_000).map(|at| format!("k{at}: 1\nk{at}: 2\n")).collect();
        let began = std::time::Instant::now();
        let map = SourceMap::new(&text);
        assert!((0..100).all(|at| map.repeated_key(0, &path(&format!("k{at}"))).is_some()));
        assert!(began.elapsed() < std::time::Duration::from_secs(5), "{:?}", began.elapsed());
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
            assert_eq!(SourceMap::new(text).documents.len(), read, "{text:?}");
        }
        let map = SourceMap::new("# c\n---\n---\n# c\nx: 1\n");
        let places = [0, 1, 9].map(|document| map.locate(document, &path("x"), FaultTarget::Key));
        assert_eq!(places, [4..7, 16..17, 21..21]);
    }

    #[test]
    fn a_file_cut_off_or_broken_anywhere_is_no_trouble() {
        value("a: 1\nb:\n  c: [2, 3\nd: }", "b.c.0", 3, "2");
        let text = "# é\n? [a, b]\n: &x !<t>\n\t\n  - - *x\n  -\n*x : 🦀\n\"k\\\"\": 'it''s'\nb: >-\n  t\n{a, b: , [c]: d}: 1\n%\r\n---\n...";
        let cuts = text.char_indices().map(|(at, _)| at);
        for (from, to) in cuts.clone().flat_map(|from| cuts.clone().map(move |to| (from, to))) {
            let Some(part) = text.get(from..to) else { continue };
            let map = SourceMap::new(part);
            for node in map.nodes.iter().filter_map(|node| node.span.clone()) {
                assert!(part.get(node.clone()).is_some_and(|shown| !shown.contains('\n')), "{node:?} of {part:?}");
            }
        }
    }
}
