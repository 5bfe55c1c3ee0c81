//! Texts in lists that are empty or have white space around or in them.

/// Returns what is wrong with a text that is empty or has white space.
pub(in crate::lint::rules) fn blank_fault(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        Some("is empty")
    } else {
        text.contains(char::is_whitespace).then_some("contains white space")
    }
}
