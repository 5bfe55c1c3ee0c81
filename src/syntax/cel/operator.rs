//! The binary operators, by precedence.

/// The symbols of each precedence, the loosest first.
pub(super) const LEVELS: [&[&str]; 5] =
    [&["||"], &["&&"], &["==", "!=", "<", "<=", ">", ">=", "in"], &["+", "-"], &["*", "/", "%"]];

/// Declares the operators, each with its symbol.
macro_rules! operators {
    ($($name:ident $symbol:literal),+) => {
        /// A binary operator, except the logical ones.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum CelOperator {
            $($name),+
        }

        const SYMBOLS: &[(&str, CelOperator)] = &[$(($symbol, CelOperator::$name)),+];
    };
}

operators! {
    Equal "==", Unequal "!=", Less "<", AtMost "<=", More ">", AtLeast ">=", In "in", Add "+", Subtract "-", Multiply "*",
    Divide "/", Remainder "%"
}

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
