//! The binary operators, by precedence.

/// A binary operator, except the logical ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CelOperator {
    Equal,
    Unequal,
    Less,
    AtMost,
    More,
    AtLeast,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// The symbols of each precedence, the loosest first.
pub(super) const LEVELS: [&[&str]; 5] =
    [&["||"], &["&&"], &["==", "!=", "<", "<=", ">", ">=", "in"], &["+", "-"], &["*", "/", "%"]];

const SYMBOLS: [(&str, CelOperator); 12] = [
    ("==", CelOperator::Equal),
    ("!=", CelOperator::Unequal),
    ("<", CelOperator::Less),
    ("<=", CelOperator::AtMost),
    (">", CelOperator::More),
    (">=", CelOperator::AtLeast),
    ("in", CelOperator::In),
    ("+", CelOperator::Add),
    ("-", CelOperator::Subtract),
    ("*", CelOperator::Multiply),
    ("/", CelOperator::Divide),
    ("%", CelOperator::Remainder),
];

impl CelOperator {
    /// Finds an operator by symbol.
    pub(super) fn from_symbol(symbol: &str) -> Option<Self> {
        SYMBOLS.iter().find(|(known, _)| *known == symbol).map(|(_, operator)| *operator)
    }

    /// Returns the symbol.
    pub(crate) fn symbol(self) -> &'static str {
        SYMBOLS.iter().find(|(_, operator)| *operator == self).map_or("", |(symbol, _)| *symbol)
    }
}
