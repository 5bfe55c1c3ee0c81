//! Builds tapes, in the same way for every reader.

use std::collections::HashSet;

use serde_json::Number;

use super::tape::{NodeEntries, Tape, TapeItem};

/// The longest key of a mapping (D48): a fault holds the path to its field, so keys must be short enough to copy.
pub(crate) const MOST_KEY_BYTES: usize = 4096;
/// The key of a YAML mapping that takes the entries of another mapping.
pub(crate) const MERGE_KEY: &str = "<<";

/// The keys of a mapping that are compared in pairs, which is faster than hashing them.
const FEW_KEYS: usize = 16;

/// `None` means that the document is larger than 4 GiB.
impl Tape {
    /// Adds a value or a key.
    pub(super) fn add(&mut self, item: TapeItem) -> Option<()> {
        position(self.items.len() + 1)?;
        self.items.push(item);
        Some(())
    }

    /// Adds a number.
    pub(super) fn add_number(&mut self, number: Number) -> Option<()> {
        let index = position(self.numbers.len())?;
        self.numbers.push(number);
        self.add(TapeItem::Number(index))
    }

    /// Adds a number that JSON cannot represent.
    pub(super) fn add_fault(&mut self, item: TapeItem) -> Option<()> {
        self.has_faults = true;
        self.add(item)
    }

    /// Stores a text that is not added yet.
    pub(super) fn store_text(&mut self, text: &str) -> Option<TapeItem> {
        let start = self.texts.len();
        position(start + text.len())?;
        self.texts.push_str(text);
        self.text_since(start)
    }

    /// Returns what was stored since the texts ended at `start` as one text.
    pub(super) fn text_since(&self, start: usize) -> Option<TapeItem> {
        let (start, end) = (position(start)?, position(self.texts.len())?);
        Some(TapeItem::String { start, bytes: end - start })
    }

    /// Returns the position of the next item.
    pub(super) fn next_position(&self) -> Option<u32> {
        position(self.items.len())
    }

    /// Starts a collection and returns its position.
    pub(super) fn open(&mut self) -> Option<u32> {
        let at = self.next_position()?;
        // The length is known only at the end.
        self.add(TapeItem::Null)?;
        Some(at)
    }

    /// Ends the list at a position.
    pub(super) fn close_seq(&mut self, at: u32) -> Option<()> {
        let end = self.next_position()?;
        self.replace(at, TapeItem::Seq(end - at));
        Some(())
    }

    /// Ends the mapping at a position.
    pub(super) fn close_map(&mut self, at: u32) -> Option<()> {
        let end = self.next_position()?;
        self.replace(at, TapeItem::Map(end - at));
        // Noted now, so that most documents need no further visit.
        let (has_faults, has_merge_keys) = self.node(at).entries().map(check_keys).unwrap_or_default();
        self.has_faults |= has_faults;
        self.has_merge_keys |= has_merge_keys;
        Some(())
    }

    /// Replaces the value or key at a position.
    pub(crate) fn replace(&mut self, at: u32, item: TapeItem) {
        if let Some(place) = self.items.get_mut(at as usize) {
            *place = item;
        }
    }
}

/// The form in which a tape stores positions and lengths. The limits of files and request bodies (D39, D48) are far
/// below this one, which protects readers without such limits.
fn position(count: usize) -> Option<u32> {
    u32::try_from(count).ok()
}

/// Whether a key is a duplicate or too long, and whether one is a merge key.
fn check_keys(entries: NodeEntries<'_>) -> (bool, bool) {
    let (mut has_faults, mut has_merge_keys) = (false, false);
    let mut few = [""; FEW_KEYS];
    let mut many: HashSet<&str> = HashSet::new();
    for (count, (key, _)) in entries.enumerate() {
        let is_new = match few.get(..count) {
            Some(earlier) if count < FEW_KEYS => !earlier.contains(&key),
            _ => {
                if many.is_empty() {
                    many.extend(few);
                }
                many.insert(key)
            }
        };
        if let Some(slot) = few.get_mut(count) {
            *slot = key;
        }
        has_faults |= !is_new || key.len() > MOST_KEY_BYTES;
        has_merge_keys |= key == MERGE_KEY;
    }
    (has_faults, has_merge_keys)
}
