//! Invalid content of a document: duplicate keys, keys that are too long, and numbers that JSON cannot represent.

use std::collections::HashSet;

use crate::model::diagnostics::{Code, Fault, MOST_FAULTS, Path, Segment};
use crate::model::secrets::redact::quotable_key;
use crate::syntax::text::printable;
use crate::syntax::yaml::{MOST_KEY_BYTES, Node, NodeEntries, NodeShape, Tape, TapeItem};

impl Tape {
    /// Removes and reports invalid content: later values of a duplicate key, keys that are too long, and numbers that
    /// JSON cannot represent exactly. Only the first hundred faults are reported, the last one with the number of the
    /// others.
    pub(crate) fn take_faults(&mut self) -> Vec<Fault> {
        if !std::mem::take(&mut self.has_faults) {
            return Vec::new();
        }
        let mut search = FaultSearch::default();
        search.visit(self.root());
        let FaultSearch { mut found, more, entries, numbers, .. } = search;
        for key in entries {
            self.replace(key, TapeItem::Removed);
        }
        for number in numbers {
            self.replace(number, TapeItem::Null);
        }
        if let Some(last) = found.last_mut().filter(|_| more > 0) {
            last.message += &format!(" (and {more} more faults in this document)");
        }
        found
    }
}

/// A visit of every value in the order of the document.
#[derive(Default)]
struct FaultSearch {
    /// The path to the visited value. It is extended and truncated in place, because copying it for each value would be
    /// slow.
    path: Path,
    /// The first hundred faults.
    found: Vec<Fault>,
    /// The number of the others.
    more: usize,
    /// The positions of keys whose entries must be removed.
    entries: Vec<u32>,
    /// The positions of numbers that become null.
    numbers: Vec<u32>,
}

impl FaultSearch {
    fn report(&mut self, fault: impl FnOnce(&Path) -> Fault) {
        if self.found.len() < MOST_FAULTS {
            self.found.push(fault(&self.path));
        } else {
            self.more += 1;
        }
    }

    fn visit(&mut self, node: Node<'_>) {
        match node.shape() {
            NodeShape::NotFinite => {
                self.numbers.push(node.position());
                self.report(|path| {
                    Fault::new(Code::WrongType, "a number must be finite: JSON has no infinity and no NaN")
                        .at(path.clone())
                        .help("write a finite number, or put the text in quotes")
                });
            }
            NodeShape::LongInteger => {
                self.numbers.push(node.position());
                self.report(|path| {
                    Fault::new(Code::OutOfRange, format!("an integer must be from {} to {}", i64::MIN, u64::MAX))
                        .at(path.clone())
                        .help("use a smaller number, or put its digits in quotes")
                });
            }
            NodeShape::Seq(items) => {
                for (index, item) in items.enumerate().filter(|(_, item)| is_visited(*item)) {
                    self.path.0.push(Segment::Index(index));
                    self.visit(item);
                    self.path.0.pop();
                }
            }
            NodeShape::Map(entries) => {
                for (key, value) in self.check_keys(entries) {
                    self.path.0.push(Segment::Key(key.to_owned()));
                    self.visit(value);
                    self.path.0.pop();
                }
            }
            _ => {}
        }
    }

    /// Reports duplicate and too long keys, and returns the other entries that must be visited. A duplicate key is one
    /// fault, however often it occurs.
    fn check_keys<'a>(&mut self, entries: NodeEntries<'a>) -> Vec<(&'a str, Node<'a>)> {
        let mut seen = HashSet::new();
        let mut reported = HashSet::new();
        let mut visited = Vec::new();
        for (key, value) in entries {
            if key.len() > MOST_KEY_BYTES {
                self.entries.push(value.key_position());
                self.report(|path| {
                    let message = format!(
                        "the key `{}` has {} bytes, over the limit of {MOST_KEY_BYTES}",
                        printable(&quotable_key(key)),
                        key.len()
                    );
                    Fault::new(Code::TooLong, message).at(path.clone())
                });
            } else if seen.insert(key) {
                visited.extend(is_visited(value).then_some((key, value)));
            } else {
                self.entries.push(value.key_position());
                if reported.insert(key) {
                    self.report(|path| {
                        Fault::new(Code::DuplicateKey, format!("duplicate key `{}`", printable(&quotable_key(key))))
                            .at(path.join(key))
                            .of_key()
                            .help("remove one of them")
                    });
                }
            }
        }
        visited
    }
}

fn is_visited(node: Node<'_>) -> bool {
    matches!(node.shape(), NodeShape::Seq(_) | NodeShape::Map(_) | NodeShape::NotFinite | NodeShape::LongInteger)
}
