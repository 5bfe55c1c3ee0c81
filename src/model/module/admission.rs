//! Whom a module admits, as far as its configuration tells.

/// Whom an enabled module admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admittance {
    /// Nobody: no request gets further.
    Nobody,
    /// Some requests or all.
    Somebody,
    /// The configuration does not tell: it evaluates an expression, or admits either everyone or nobody.
    Unknown,
}
