//! What a process opens a store for.

/// How long a process has a store open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionKind {
    /// For many commits and queries.
    Long,
    /// For one command. A person waits for it, so what no commit needs is left to later processes.
    Brief,
}
