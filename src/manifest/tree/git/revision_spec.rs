//! The revision of a repository that a source reads: a ref, or the highest tag within a range of versions.

use git2::{Oid, Repository};
use semver::{Version, VersionReq};

use super::ref_suggestions::{list_existing, ref_names, short_name};
use super::repository::commit;
use crate::manifest::prelude::*;
use crate::manifest::tree::faults::not_read;

/// The names of tags start with it.
const TAGS: &str = "refs/tags/";
/// In a list of remote refs, the object that a tag points to has its own line.
const PEELED: &str = "^{}";

/// A revision to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RevisionSpec {
    /// A branch, tag or commit.
    Ref(String),
    /// The tag with the highest version in the range.
    Semver(VersionReq),
}

impl RevisionSpec {
    /// Parses a range of versions such as `^1.2`.
    pub(crate) fn semver(text: &str) -> Result<Self, String> {
        VersionReq::parse(text).map(Self::Semver).map_err(|error| error.to_string())
    }

    /// The commit in a local repository, and the tag that was chosen from a range of versions.
    pub(super) fn resolve(&self, repository: &Repository) -> Result<(Oid, Option<String>), Diagnostic> {
        let range = match self {
            Self::Ref(name) => {
                let exists = |full: &str| repository.find_reference(full).is_ok();
                if let Some(error) = self.ambiguous(exists) {
                    return Err(error);
                }
                if is_full(name) && !exists(without_expression(name)) {
                    return Err(self.missing(ref_names(repository).iter().map(String::as_str)));
                }
                return Ok((commit(repository, name)?, None));
            }
            Self::Semver(range) => range,
        };
        let tags = repository
            .tag_names(None)
            .map_err(|error| not_read(format!("cannot list the tags of the repository: {}", error.message())))?;
        let names: Vec<&str> = tags.iter().filter_map(|name| name.ok().flatten()).collect();
        match best_tag(range, names.into_iter()) {
            Some(tag) => Ok((commit(repository, &format!("{TAGS}{tag}"))?, Some(tag.to_owned()))),
            None => Err(self.missing(ref_names(repository).iter().map(String::as_str))),
        }
    }

    /// The name in a list of remote refs, and its commit. Returns none if the list does not have it, which may still be
    /// true for a commit that exists.
    pub(crate) fn pick<'l>(&self, listed: &'l [(String, Oid)]) -> Option<(&'l str, Oid)> {
        let found = |name: &str| listed.iter().find(|(known, _)| known == name);
        let peeled = |name: &str, id: Oid| found(&format!("{name}{PEELED}")).map_or(id, |(_, id)| *id);
        let named = |name: &str| found(name).map(|(name, id)| (name.as_str(), peeled(name, *id)));
        match self {
            Self::Semver(range) => {
                let tags = listed.iter().filter_map(|(name, _)| name.strip_prefix(TAGS));
                let tag = best_tag(range, tags.filter(|name| !name.ends_with(PEELED)))?;
                named(&format!("{TAGS}{tag}"))
            }
            Self::Ref(_) if self.commit_id().is_some() => {
                // A branch can be called like the ID of a commit, and is not that commit.
                let commit = self.commit_id()?;
                let (known, _) = listed.iter().find(|(name, id)| *id == commit && !name.ends_with(PEELED))?;
                Some((known.as_str(), commit))
            }
            Self::Ref(name) if is_full(name) => named(name),
            Self::Ref(name) => {
                // The order is that of Git.
                let names =
                    [name.clone(), format!("refs/{name}"), format!("{TAGS}{name}"), format!("refs/heads/{name}")];
                names.iter().find_map(|name| named(name))
            }
        }
    }

    /// The tag in the name of a picked ref, if it was chosen from a range of versions.
    pub(crate) fn chosen_tag<'n>(&self, picked: &'n str) -> Option<&'n str> {
        match self {
            Self::Semver(_) => picked.strip_prefix(TAGS),
            Self::Ref(_) => None,
        }
    }

    /// The commit, if the revision is a whole commit ID.
    pub(crate) fn commit_id(&self) -> Option<Oid> {
        match self {
            Self::Ref(name) if name.len() == 40 => Oid::from_str(name).ok(),
            _ => None,
        }
    }

    /// Whether the revision can be a commit ID, whole or abbreviated.
    pub(crate) fn may_be_commit(&self) -> bool {
        let is_hex = |name: &str| (7..=40).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_hexdigit());
        matches!(self, Self::Ref(name) if is_hex(name))
    }

    /// The error for a short name of several refs. Git prefers a tag, so whoever may push one could replace a protected
    /// branch.
    pub(crate) fn ambiguous(&self, exists: impl Fn(&str) -> bool) -> Option<Diagnostic> {
        let Self::Ref(revision) = self else { return None };
        let name = without_expression(revision);
        if self.commit_id().is_some() || exists(name) {
            return None;
        }
        let full = ["", "tags/", "remotes/", "heads/"].map(|folder| format!("refs/{folder}{name}"));
        let mut found = full.iter().filter(|full| exists(full));
        let (one, other) = (found.next()?, found.next_back()?);
        let message = format!("Git revision `{name}` is ambiguous: the repository has `{one}` and `{other}`");
        Some(not_read(message).help(format!("set `ref` to the full name of one of them, such as `{other}`")))
    }

    /// The error for a revision that a repository with these refs does not have.
    pub(crate) fn missing<'n>(&self, refs: impl Iterator<Item = &'n str>) -> Diagnostic {
        match self {
            Self::Ref(name) => {
                let existing = list_existing("the repository", name, refs.filter_map(short_name));
                not_read(format!("unknown Git revision `{name}`{existing}")).help("use a branch, tag or commit")
            }
            Self::Semver(range) => {
                let tags = refs.filter(|name| name.starts_with(TAGS)).filter_map(short_name);
                let existing = list_existing("the repository", &range.to_string(), tags);
                let message = format!("no tag has a version in the range `{range}`{existing}");
                not_read(message).help("use a range that contains the version of a tag, such as `v1.2.3` or `1.2.3`")
            }
        }
    }
}

impl fmt::Display for RevisionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ref(name) => f.write_str(name),
            Self::Semver(range) => write!(f, "{range}"),
        }
    }
}

/// Whether a name is that of a ref from the root. Git would also take a tag called `refs/heads/main` for a missing branch.
fn is_full(name: &str) -> bool {
    name.starts_with("refs/")
}

/// The name in a revision of a local repository, which can be an expression such as `main~1`.
fn without_expression(revision: &str) -> &str {
    let end = [revision.find(['^', '~', ':']), revision.find("@{")].into_iter().flatten().min();
    revision.get(..end.unwrap_or(revision.len())).unwrap_or_default()
}

/// The tag with the highest version in a range. A version may start with `v`.
fn best_tag<'t>(range: &VersionReq, tags: impl Iterator<Item = &'t str>) -> Option<&'t str> {
    let versions = tags.filter_map(|tag| {
        let version = Version::parse(tag.strip_prefix('v').unwrap_or(tag)).ok()?;
        range.matches(&version).then_some((version, tag))
    });
    // Among spellings of one version, the last one wins, so that the order of the list does not matter.
    versions.max().map(|(_, tag)| tag)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn best(range: &str, tags: &[&str]) -> Option<String> {
        best_tag(&VersionReq::parse(range).unwrap(), tags.iter().copied()).map(str::to_owned)
    }

    #[test]
    fn the_highest_version_in_the_range_wins_and_prereleases_only_if_named() {
        let tags = ["v1.2.3", "1.10.0", "v1.9.9", "v2.0.0", "v2.0.0-rc.1", "2.1.0-rc.1", "v1.11", "latest", "vv1.12.0"];
        for (range, expected) in [
            ("^1.2", Some("1.10.0")),
            (">=1.2, <1.10", Some("v1.9.9")),
            ("2", Some("v2.0.0")),
            ("*", Some("v2.0.0")),
            (">=2.1.0-rc.0", Some("2.1.0-rc.1")),
            ("^3", None),
        ] {
            assert_eq!(best(range, &tags).as_deref(), expected, "{range}");
        }
        assert_eq!(best("1", &["v1.0.0", "1.0.0"]), best("1", &["1.0.0", "v1.0.0"]));
        assert!(RevisionSpec::semver("newest").is_err());
    }

    #[test]
    fn a_revision_is_found_in_a_list_of_remote_refs() {
        let id = |c: &str| Oid::from_str(&c.repeat(40)).unwrap();
        let listed = [
            ("HEAD", "1"),
            ("refs/heads/main", "1"),
            ("refs/heads/v1", "2"),
            ("refs/tags/v1", "3"),
            ("refs/tags/v1^{}", "4"),
            ("refs/tags/1.2.0", "5"),
            ("refs/tags/v1.3.0", "6"),
            ("refs/tags/v1.3.0^{}", "7"),
        ];
        let mut listed: Vec<(String, Oid)> = listed.iter().map(|(name, c)| ((*name).to_owned(), id(c))).collect();
        // Anyone who can push can give a branch the name of a commit.
        listed.push((format!("refs/heads/{}", "9".repeat(40)), id("8")));
        let of = |name: &str| RevisionSpec::Ref(name.to_owned());
        for (wanted, expected) in [
            (of("HEAD"), Some(("HEAD", "1"))),
            (of("main"), Some(("refs/heads/main", "1"))),
            (of("v1"), Some(("refs/tags/v1", "4"))),
            (of("heads/v1"), Some(("refs/heads/v1", "2"))),
            (of("refs/heads/v1"), Some(("refs/heads/v1", "2"))),
            (of("other"), None),
            (of(&"5".repeat(40)), Some(("refs/tags/1.2.0", "5"))),
            (of(&"9".repeat(40)), None),
            (RevisionSpec::semver("^1").unwrap(), Some(("refs/tags/v1.3.0", "7"))),
            (RevisionSpec::semver("^2").unwrap(), None),
        ] {
            assert_eq!(wanted.pick(&listed), expected.map(|(name, c)| (name, id(c))), "{wanted}");
        }
        let exists = |name: &str| listed.iter().any(|(known, _)| known == name);
        let ambiguous = |name: &str| of(name).ambiguous(exists).map(|error| error.message).unwrap_or_default();
        for name in ["v1", "v1~2", "v1^{commit}", "v1@{1}"] {
            assert!(
                ambiguous(name).ends_with("`v1` is ambiguous: the repository has `refs/tags/v1` and `refs/heads/v1`")
            );
        }
        for name in ["HEAD", "main", "heads/v1", "refs/heads/v1", "refs/tags/v1", "other", &"9".repeat(40)] {
            assert_eq!(ambiguous(name), "", "{name}");
        }
        let chosen = |wanted: &RevisionSpec| wanted.chosen_tag("refs/tags/v1.3.0").map(str::to_owned);
        assert_eq!(chosen(&RevisionSpec::semver("^1").unwrap()).as_deref(), Some("v1.3.0"));
        assert_eq!(chosen(&of("v1.3.0")), None, "it is the ref");
        assert!(of("0a1b2c3").may_be_commit() && !of("main").may_be_commit() && of("0a1b2c3").commit_id().is_none());
    }
}
