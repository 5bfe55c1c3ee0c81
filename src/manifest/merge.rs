//! YAML merge keys: `<<: *defaults` adds the missing entries from another mapping.

use std::collections::HashSet;

use crate::model::{
    code::Code,
    fault::{Fault, MOST_FAULTS, Path, Segment},
    node::{MERGE_KEY, Node},
};

/// Applies the merge keys of a document and reports invalid ones.
pub(super) fn apply(node: &mut Node) -> Vec<Fault> {
    let mut faults = Vec::new();
    visit(node, &mut Path::root(), &mut faults);
    faults
}

/// `path` is extended and truncated in place, because copying it for each value would be slow.
fn visit(node: &mut Node, path: &mut Path, faults: &mut Vec<Fault>) {
    match node {
        Node::Seq(items) => {
            for (index, item) in items.iter_mut().enumerate().filter(|(_, item)| is_container(item)) {
                path.0.push(Segment::Index(index));
                visit(item, path, faults);
                path.0.pop();
            }
        }
        Node::Map(entries) => {
            for (key, value) in entries.iter_mut().filter(|(_, value)| is_container(value)) {
                path.0.push(Segment::Key(key.clone()));
                visit(value, path, faults);
                path.0.pop();
            }
            // Sources were visited above, so their own merge keys are already applied.
            let mut merged = Vec::new();
            while let Some(at) = entries.iter().position(|(key, _)| key == MERGE_KEY) {
                let (_, source) = entries.remove(at);
                gather(source, &path.join(MERGE_KEY), &mut merged, faults);
            }
            if merged.is_empty() {
                return;
            }
            let mut known: HashSet<String> = entries.iter().map(|(key, _)| key.clone()).collect();
            entries.extend(merged.into_iter().filter(|(key, _)| known.insert(key.clone())));
        }
        _ => {}
    }
}

fn is_container(node: &Node) -> bool {
    matches!(node, Node::Seq(_) | Node::Map(_))
}

/// Collects the entries of a merge key's value. In a list of mappings, earlier ones win.
fn gather(source: Node, path: &Path, merged: &mut Vec<(String, Node)>, faults: &mut Vec<Fault>) {
    let fault = |found: &Node, path: Path| {
        Fault::new(
            Code::MergeKey,
            format!("a merge key requires a mapping or a list of mappings (found {})", found.describe()),
        )
        .at(path)
        .help("use an anchored mapping: `<<: *defaults`")
    };
    match source {
        Node::Map(entries) => merged.extend(entries),
        Node::Seq(items) => {
            for (index, item) in items.into_iter().enumerate() {
                match item {
                    Node::Map(entries) => merged.extend(entries),
                    other if faults.len() < MOST_FAULTS => faults.push(fault(&other, path.join(index))),
                    _ => {}
                }
            }
        }
        other if faults.len() < MOST_FAULTS => faults.push(fault(&other, path.clone())),
        _ => {}
    }
}
