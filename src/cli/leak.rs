//! Memory that the end of the process frees.

/// Leaves a large value to the end of the process, which frees its memory at once. Freeing the values of a large source
/// one by one takes longer than checking them.
pub(super) fn leak<T>(value: T) {
    std::mem::forget(value);
}
