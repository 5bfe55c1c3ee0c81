//! The options of resolving.

/// How the declarations of a source are resolved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResolveOptions<'s> {
    /// The source.
    pub source: &'s str,
    /// Whether owned resources that are no longer declared will be deleted, so that their names cannot be referenced.
    pub prune: bool,
    /// Whether a stated ID that the store does not have is used for a new resource.
    pub recreate_ids: bool,
}
