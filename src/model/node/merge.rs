//! YAML merge keys: `<<: *defaults` adds the missing entries from another mapping.

use std::collections::HashSet;

use crate::model::diagnostics::{Code, Fault, MOST_FAULTS, Path, Segment};
use crate::syntax::yaml::{MERGE_KEY, Node, NodeShape, Tape, TapeItem};

impl Tape {
    /// Applies the merge keys of a document without duplicate keys, and reports invalid ones.
    pub(crate) fn merge(&mut self) -> Vec<Fault> {
        if !std::mem::take(&mut self.has_merge_keys) {
            return Vec::new();
        }
        let mut faults = Vec::new();
        check(self.root(), &mut Path::root(), &mut faults);
        let mut items = Vec::with_capacity(self.items.len());
        copy(self.root(), &mut items);
        // The texts and numbers stay where they are.
        self.items = items;
        faults
    }
}

/// Reports the merge keys with other values than mappings. `path` is extended and truncated in place, because copying it
/// for each value would be slow.
fn check(node: Node<'_>, path: &mut Path, faults: &mut Vec<Fault>) {
    match node.shape() {
        NodeShape::Seq(items) => {
            for (index, item) in items.enumerate().filter(|(_, item)| is_container(*item)) {
                path.0.push(Segment::Index(index));
                check(item, path, faults);
                path.0.pop();
            }
        }
        NodeShape::Map(entries) => {
            for (key, value) in entries.filter(|(_, value)| is_container(*value)) {
                path.0.push(Segment::Key(key.to_owned()));
                check(value, path, faults);
                path.0.pop();
            }
            if let Some(source) = node.get(MERGE_KEY) {
                check_source(source, &path.join(MERGE_KEY), faults);
            }
        }
        _ => {}
    }
}

fn check_source(source: Node<'_>, path: &Path, faults: &mut Vec<Fault>) {
    let mut report = |found: Node<'_>, path: Path| {
        if faults.len() < MOST_FAULTS {
            let message = format!("a merge key requires a mapping or a list of mappings (found {})", found.describe());
            let fault = Fault::new(Code::MergeKey, message).at(path);
            faults.push(fault.help("use an anchored mapping: `<<: *defaults`"));
        }
    };
    match source.shape() {
        NodeShape::Map(_) => {}
        NodeShape::Seq(items) => {
            for (index, item) in items.enumerate().filter(|(_, item)| item.entries().is_none()) {
                report(item, path.join(index));
            }
        }
        _ => report(source, path.clone()),
    }
}

fn is_container(node: Node<'_>) -> bool {
    matches!(node.shape(), NodeShape::Seq(_) | NodeShape::Map(_))
}

/// Copies a value to the end of `items` with its merge keys applied.
fn copy(node: Node<'_>, items: &mut Vec<TapeItem>) {
    let start = items.len();
    items.push(node.item());
    let collection: fn(u32) -> TapeItem = match node.shape() {
        NodeShape::Seq(list) => {
            for item in list {
                copy(item, items);
            }
            TapeItem::Seq
        }
        NodeShape::Map(_) => {
            for (_, value) in merged_entries(node) {
                items.push(value.key());
                copy(value, items);
            }
            TapeItem::Map
        }
        _ => return,
    };
    // Merging only moves and drops entries, so the length fits as before.
    let length = u32::try_from(items.len() - start).unwrap_or(u32::MAX);
    if let Some(item) = items.get_mut(start) {
        *item = collection(length);
    }
}

/// Returns the entries of a mapping: its own, and then those of its sources. In a list of sources, earlier ones win.
fn merged_entries<'a>(mapping: Node<'a>) -> Vec<(&'a str, Node<'a>)> {
    let own = mapping.entries().into_iter().flatten().filter(|(key, _)| *key != MERGE_KEY);
    let mut entries: Vec<(&'a str, Node<'a>)> = own.collect();
    let Some(source) = mapping.get(MERGE_KEY) else { return entries };
    let mut known: HashSet<&str> = entries.iter().map(|(key, _)| *key).collect();
    let sources: Vec<Node<'a>> = match source.items() {
        Some(items) => items.collect(),
        None => vec![source],
    };
    for (key, value) in sources.into_iter().filter(|source| source.entries().is_some()).flat_map(merged_entries) {
        if known.insert(key) {
            entries.push((key, value));
        }
    }
    entries
}
