//! Checks that a source only moves forward: a commit that it reads must descend from the one that it applied last
//! (D89).
//!
//! A signature does not expire, so anyone who can push can bring back any earlier commit that was signed once: by
//! moving a branch or a tag, or by removing the newest tag of a range. All of these lead to a commit that does not
//! descend from the last one, so one check refuses them, whatever the cause. A descent that cannot be proved, as in a
//! shallow clone, is none.
//!
//! For example, `main` was at `C`, after `A` and `B`. A push that sets it to `B` is refused with `REWOUND`; `D` after
//! `C` is applied, and so is a merge of `C` into another branch. A long history is searched once: the descendant that
//! was found is remembered.

use git2::{Oid, Repository};

use super::repository::shallow_hint;
use crate::manifest::prelude::*;
use crate::model::Cause;

/// The digits of a whole commit ID.
const DIGITS: usize = 40;

/// The commit that a source applied last, and whether the one that it reads descends from it.
#[derive(Debug)]
pub(crate) struct Lineage {
    /// The name of the source.
    source: String,
    /// Whether other commits are refused. Otherwise they are applied with a warning.
    is_enforced: bool,
    state: Lock<LineageState>,
}

#[derive(Debug, Default)]
struct LineageState {
    /// Whether the commit that was applied last is known, or that there is none.
    is_known: bool,
    applied: Option<Oid>,
    /// A commit that descends from it: a long history is searched once.
    descendant: Option<Oid>,
    /// The warning of the last reading, if any.
    warning: Option<Diagnostic>,
}

impl Lineage {
    /// The lineage of a source, of which nothing is known yet.
    pub(crate) fn new(source: &str, is_enforced: bool) -> Self {
        Self { source: source.to_owned(), is_enforced, state: Lock::default() }
    }

    /// Whether the commit that was applied last is known.
    pub(crate) fn is_known(&self) -> bool {
        self.state.lock().is_known
    }

    /// Sets the commit that was applied last. Returns whether it is another one than before.
    pub(crate) fn set_applied(&self, commit: Option<&str>) -> bool {
        let applied = commit.and_then(commit_id);
        let mut state = self.state.lock();
        let is_new = !state.is_known || state.applied != applied;
        if is_new {
            *state = LineageState { is_known: true, applied, ..LineageState::default() };
        }
        is_new
    }

    /// The warning about the commit that was read last, if it does not descend from the one that was applied before.
    pub(crate) fn warning(&self) -> Option<Diagnostic> {
        self.state.lock().warning.clone()
    }

    /// Checks a commit before it is read.
    pub(super) fn check(&self, repository: &Repository, id: Oid) -> Result<(), Diagnostic> {
        let mut state = self.state.lock();
        state.warning = None;
        let Some(applied) = state.applied.filter(|applied| *applied != id && state.descendant != Some(id)) else {
            return Ok(());
        };
        // A descent that cannot be proved, because a commit is missing, does not count.
        if repository.graph_descendant_of(id, applied).unwrap_or(false) {
            state.descendant = Some(id);
            return Ok(());
        }
        if self.is_enforced {
            let message = format!(
                "commit {id} is not applied: it does not descend from {applied}, the commit that was applied last"
            );
            let accept = || {
                let source = printable(&self.source);
                format!(
                    "find out who moved the revision; to accept the commit, run `edgewright resume {source} --accept-commit {id}`"
                )
            };
            let help = shallow_hint(repository).map_or_else(accept, str::to_owned);
            return Err(Diagnostic::error(Code::Rewound, message).caused_by(Cause::RefusedCommit).help(help));
        }
        let message = format!("commit {id} does not descend from {applied}, the commit that was applied before it");
        let warning = Diagnostic::warning(Code::Rewound, message);
        state.warning = Some(warning.help("if this is not intended, find out who moved the revision"));
        Ok(())
    }
}

/// The ID of a commit, also of one with uncommitted changes.
fn commit_id(commit: &str) -> Option<Oid> {
    let id = commit.split('-').next().filter(|id| id.len() == DIGITS)?;
    Oid::from_str(id).ok()
}

/// Parses a whole commit ID.
pub(crate) fn whole_commit(text: &str) -> Result<String, String> {
    let is_whole = text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_whole.then(|| text.to_ascii_lowercase()).ok_or_else(|| format!("expected a commit ID of {DIGITS} digits"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use git2::Signature;

    use super::*;
    use crate::model::diagnostics::Name;

    /// Commits an empty tree.
    fn commit(repository: &Repository, parents: &[Oid], message: &str) -> Oid {
        let tree = repository.find_tree(repository.treebuilder(None).unwrap().write().unwrap()).unwrap();
        let author = Signature::new("t", "t@example.com", &git2::Time::new(1_780_000_000, 0)).unwrap();
        let parents: Vec<_> = parents.iter().map(|id| repository.find_commit(*id).unwrap()).collect();
        let parents: Vec<_> = parents.iter().collect();
        repository.commit(None, &author, &author, message, &tree, &parents).unwrap()
    }

    #[test]
    fn only_the_same_commit_and_its_descendants_follow_one() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(folder.path()).unwrap();
        let first = commit(&repository, &[], "first");
        let second = commit(&repository, &[first], "second");
        let third = commit(&repository, &[second], "third");
        let side = commit(&repository, &[first], "side");
        let merge = commit(&repository, &[side, second], "merge");
        let unrelated = commit(&repository, &[], "unrelated");
        let missing = "0123456789".repeat(4);
        for (applied, id, follows) in [
            (None, first, true),
            (Some("not a commit"), first, true),
            (Some(second.to_string().as_str()), second, true),
            (Some(second.to_string().as_str()), third, true),
            (Some(second.to_string().as_str()), merge, true),
            (Some(format!("{second}-dirty").as_str()), third, true),
            (Some(second.to_string().as_str()), first, false),
            (Some(second.to_string().as_str()), side, false),
            (Some(second.to_string().as_str()), unrelated, false),
            (Some(format!("{second}-dirty").as_str()), first, false),
            (Some(missing.as_str()), first, false),
        ] {
            let (strict, lenient) = (Lineage::new("shop", true), Lineage::new("shop", false));
            assert!(strict.set_applied(applied) && !strict.set_applied(applied));
            lenient.set_applied(applied);
            // The second time, it is remembered.
            for _ in 0..2 {
                let checked = strict.check(&repository, id);
                assert_eq!(checked.is_ok(), follows, "{applied:?} {id}");
                let refused = checked.err().map(|refused| refused.code);
                assert!(refused.is_none_or(|code| code == Name::Code(Code::Rewound)));
                assert!(lenient.check(&repository, id).is_ok());
                assert_eq!(lenient.warning().is_none(), follows, "{applied:?} {id}");
            }
            lenient.set_applied(Some(&id.to_string()));
            assert!(lenient.warning().is_none(), "it is reported once");
        }
    }

    #[test]
    fn only_a_whole_commit_is_accepted() {
        assert_eq!(whole_commit(&"Ab".repeat(20)), Ok("ab".repeat(20)));
        let (no_digits, dirty) = ("g".repeat(40), format!("{}-dirty", "a".repeat(40)));
        for text in ["", "main", "4f2a", no_digits.as_str(), dirty.as_str()] {
            assert!(whole_commit(text).is_err(), "{text}");
        }
    }
}
