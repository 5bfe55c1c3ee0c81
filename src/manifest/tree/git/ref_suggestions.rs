//! Suggestions for a ref that a repository does not have.

use git2::Repository;

use crate::{model::diagnostics::fault::nearest, syntax::text::printable};

/// The most names that a message lists.
const MOST_LISTED: usize = 3;
/// The most names that are compared. A server can send any number of them.
const MOST_COMPARED: usize = 5_000;

/// Lists what exists, the most similar names first, such as "; the repository has `main`, `v1` and 3 more". `holder` is
/// what has the names. Returns nothing if there are none.
pub(super) fn list_existing<'n>(holder: &str, wanted: &str, names: impl Iterator<Item = &'n str>) -> String {
    let mut names: Vec<&'n str> = names.collect();
    names.sort_unstable();
    names.dedup();
    let count = names.len();
    names.truncate(MOST_COMPARED);
    let mut listed: Vec<&'n str> = Vec::new();
    while listed.len() < MOST_LISTED
        && let Some(near) = nearest(wanted, names.iter().copied())
    {
        names.retain(|name| *name != near);
        listed.push(near);
    }
    let others = MOST_LISTED.saturating_sub(listed.len());
    listed.extend(names.iter().copied().take(others));
    let shown: Vec<String> = listed.iter().map(|name| format!("`{}`", printable(name))).collect();
    match count.saturating_sub(listed.len()) {
        _ if shown.is_empty() => String::new(),
        0 => format!("; {holder} has {}", shown.join(", ")),
        more => format!("; {holder} has {} and {more} more", shown.join(", ")),
    }
}

/// A branch or tag as people name it. Returns none for other refs, such as those of pull requests.
pub(super) fn short_name(name: &str) -> Option<&str> {
    let short = name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/tags/"))?;
    // The object that a tag points to has a line of its own in a list of remote refs.
    (!short.ends_with("^{}")).then_some(short)
}

/// The remote-tracking branch of a name, such as `origin/main` of `main`: a clone has no branch of its own that nobody checked out.
pub(super) fn remote_branch<'n>(wanted: &str, refs: &'n [String]) -> Option<&'n str> {
    let remote = refs.iter().filter_map(|name| name.strip_prefix("refs/remotes/"));
    let found = remote.filter(|name| name.split_once('/').is_some_and(|(_, branch)| branch == wanted));
    found.min_by_key(|name| !name.starts_with("origin/"))
}

/// The names of all refs of a local repository.
pub(super) fn ref_names(repository: &Repository) -> Vec<String> {
    let Ok(mut references) = repository.references() else { return Vec::new() };
    references.names().map_while(Result::ok).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_names_are_listed_first_and_the_rest_is_counted() {
        let names = ["archive", "docs", "main", "maint", "release-1", "release-2"];
        let of = |wanted: &str| list_existing("the repository", wanted, names.into_iter());
        assert!(of("mian").starts_with("; the repository has `main`"), "{}", of("mian"));
        assert!(of("mian").ends_with(" and 3 more"), "{}", of("mian"));
        assert_eq!(of("zzzzzzzzzz"), "; the repository has `archive`, `docs`, `main` and 3 more");
        assert_eq!(list_existing("`a`", "x", ["y", "y"].into_iter()), "; `a` has `y`");
        assert_eq!(list_existing("`a`", "x", std::iter::empty()), "");
        let steering = list_existing("`a`", "x", ["y\u{202e}"].into_iter());
        assert!(!steering.contains('\u{202e}'), "{steering}");
    }

    #[test]
    fn a_branch_that_only_a_remote_has_is_found_first_in_the_origin() {
        let refs =
            ["refs/heads/checkout", "refs/remotes/fork/main", "refs/remotes/origin/main", "refs/remotes/fork/a/b"];
        let refs = refs.map(str::to_owned);
        let found = |wanted| remote_branch(wanted, &refs);
        assert_eq!(
            [found("main"), found("a/b"), found("b"), found("checkout")],
            [Some("origin/main"), Some("fork/a/b"), None, None]
        );
    }

    #[test]
    fn only_branches_and_tags_have_short_names() {
        let short = |name| short_name(name).unwrap_or_default();
        assert_eq!(["refs/heads/a/b", "refs/tags/v1"].map(short), ["a/b", "v1"]);
        assert_eq!(["HEAD", "refs/pull/1/head", "refs/tags/v1^{}"].map(short), ["", "", ""]);
    }
}
