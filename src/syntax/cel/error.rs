//! Errors in expressions.

/// An error in an expression, and its position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CelError {
    /// The offset in the expression, in bytes.
    pub at: usize,
    /// One clause without a full stop.
    pub message: String,
    /// An unknown word and the known ones, to suggest the nearest.
    pub unknown: Option<(String, Vec<String>)>,
    /// Whether the expression is nested too deeply, which ends the parsing and is not wrong in CEL.
    pub(super) is_too_deep: bool,
}

impl CelError {
    pub(super) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), unknown: None, is_too_deep: false }
    }

    pub(super) fn unknown<'a>(
        at: usize,
        message: impl Into<String>,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let known = known.into_iter().map(str::to_owned).collect();
        Self { unknown: Some((word.to_owned(), known)), ..Self::new(at, message) }
    }

    /// The evaluation has taken too many steps, or was stopped.
    pub(super) fn exhausted() -> Self {
        Self::new(0, "the evaluation takes too long")
    }

    /// The column in the expression, from 1.
    pub(crate) fn column(&self, expression: &str) -> usize {
        expression.char_indices().take_while(|(at, _)| *at < self.at).count() + 1
    }
}

/// Why an expression has no result.
pub(super) enum CelFailure {
    /// A part has no value: a field of null, an index out of range, a text that is no timestamp.
    NoValue,
    /// A value has the wrong type.
    Mismatch(CelError),
    /// The steps are used up.
    Exhausted,
}
