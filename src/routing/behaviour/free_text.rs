//! The search for a text that begins in a given way and that nothing else claims.

use std::collections::VecDeque;

/// The knowledge about a text.
pub(super) enum TextState {
    /// Nothing claims the text.
    Free,
    /// The text is claimed, but not every longer one.
    Taken,
    /// The text is claimed, and so is every text that begins with it.
    Closed,
}

/// Returns the shortest free text that is longer than `base` and begins with it, with letters from `letters`. Ends because
/// only finitely many texts are taken.
pub(super) fn free_text(base: &str, letters: &str, state: impl Fn(&str) -> TextState) -> Option<String> {
    let mut taken = VecDeque::from([base.to_owned()]);
    while let Some(text) = taken.pop_front() {
        for letter in letters.chars() {
            let longer = format!("{text}{letter}");
            match state(&longer) {
                TextState::Free => return Some(longer),
                TextState::Taken => taken.push_back(longer),
                TextState::Closed => {}
            }
        }
    }
    None
}
