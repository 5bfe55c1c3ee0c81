//! Marks of unknown values: texts that stand for the value of a variable or file that is unset (D106).

/// Starts and ends the text that stands for an unknown value. The decoder rejects it in manifests and requests, so that
/// nobody can pass a value off as unknown, which rules do not check.
const UNKNOWN: &str = "\u{F5ED}";

/// Returns the text that stands for the value of `from_env` or `from_file` that is unset (D106). Two are equal if they are
/// for the same variable or file.
pub(crate) fn unknown(source: &str, argument: &str) -> String {
    format!("{UNKNOWN}{source} {argument}{UNKNOWN}")
}

/// Returns the source and argument of an unknown value.
pub(crate) fn unknown_source(text: &str) -> Option<(&str, &str)> {
    // A long text ends with a line break.
    text.trim_end_matches('\n').strip_prefix(UNKNOWN)?.strip_suffix(UNKNOWN)?.split_once(' ')
}

/// Whether a text stands for an unknown value.
pub(crate) fn is_unknown(text: &str) -> bool {
    text.starts_with(UNKNOWN)
}
