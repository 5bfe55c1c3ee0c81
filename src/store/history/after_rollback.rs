//! Which manifests a rollback leaves, and whether manifests are such (D78).
//!
//! # The problem
//!
//! A rollback brings back revision 4. The source's branch still has the commit that made revision 5, and its next sync would
//! apply it again. To suspend the source would keep back every other change of the team, and somebody has to remember to
//! resume it.
//!
//! # The idea
//!
//! What a rollback undoes is the manifests as the source had them at its last sync before it. The commit of the rollback
//! notes them, as part of the state, by three marks, and a sync skips manifests that have one of them:
//!
//! - their **content**, a keyed digest of the files and values that were read. It is the same whatever else was applied
//!   or undone: the IDs of what is created anew and the modules that other sources require can make the same manifests lead
//!   to another state than before. The loop keeps it beside the store ([`SyncedManifests`]), because a sync that changes
//!   nothing leaves no record in the history.
//! - the Git **commit** that the source applied last, as the history has it, unless the same one made what is brought back:
//!   then other values are what the rollback undid.
//! - the **outcome**, keyed digests of the resources that the source had, with their IDs and by their names alone: a comment,
//!   another file name or another commit must not bring back what was undone, whatever the manifests look like.
//!
//! ```text
//! revision 4   source at c1
//! revision 5   source at c2, a mistake; then c3 = c2 + README, which changes nothing
//! revision 6   rollback to 4; notes: content of c3, commit c2, digest of what c2 led to
//!
//! next sync at c3, c4 = c3 + README  rejected: the content
//!              c4 = c2 + a comment   rejected: leads to the same state
//!              c4 = c2 reverted      in sync with revision 6: accepted, and the notes end
//!              c4 = a correction     applied, and the notes end
//! ```
//!
//! When the manifests are in sync again, that is recorded as a revision that changes no resource, so that what was undone can
//! be applied again. Resources that changed hands (`transferred_paths`) are left out of the digest: the former source's
//! manifests cannot lead to the whole state again.
//!
//! # What it never does
//!
//! The hold does not bind people: `reconcile` and `POST /reconciliations` apply what they are given. It never rejects
//! manifests that lead to the state that was brought back. The notes are state and not history, so retention does not
//! end them; the last sixteen of a source are kept.

mod digests;
mod transfers;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{commits::is_dirty, records::PAGE, rewind::RevisionError};
use crate::model::author::RejectedManifests;
use crate::model::{Author, DigestKey, Id, Snapshot};
use crate::store::attempt::Attempt;
use crate::store::commit::header::CommitHeader;
use crate::store::engine::Query;
use crate::store::error::{CommitError, Declined, StoreError};
use crate::store::open_store::Store;
use crate::store::speculative::NextState;
use digests::SourceDigests;
use transfers::{TransferredKeys, TransferredPaths};

/// How many records are searched for the manifests that are in effect.
const MOST_READ: usize = 5_000;
/// How many records of a page are read in the time in which one is found by its revision.
const LOOKUP: usize = 5;
/// The most manifests of a source that are remembered as left: the last ones.
const MOST_REJECTED: usize = 16;

/// Manifests of a source that were applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppliedManifests {
    /// Their commit, if they were in Git.
    pub commit: Option<String>,
    /// The revision that they made.
    pub revision: u64,
    /// The time.
    pub at: Timestamp,
    /// The API key and its owner, if a client applied them through the API.
    pub through: Option<(Id, Id)>,
}

/// The manifests of a source that its last sync found or brought into effect, for a rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SyncedManifests {
    /// The keyed digest of the files and values that were read.
    pub content: String,
    /// The revision that they led to first: unknown if there was nothing to apply and others had changed some of what they
    /// declare.
    pub revision: Option<u64>,
    /// A keyed digest of what they declare, if drift was left as it is: then the state of the revision has other content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declares: Option<String>,
}

impl SyncedManifests {
    /// What is known after a sync. `led_to` is the revision that the content led to, and `declares` the digest of what it
    /// declares beside drift, if these are known.
    pub(crate) fn after(known: Option<Self>, content: String, led_to: Option<u64>, declares: Option<String>) -> Self {
        match known.filter(|known| known.content == content) {
            Some(known) => Self { declares: known.declares.or(declares), ..known },
            None => Self { content, revision: led_to, declares },
        }
    }
}

impl Store {
    /// The key of the digests of what sources read.
    pub(crate) fn content_key(&self) -> DigestKey {
        DigestKey::new(self.digest_key)
    }

    /// Whether a rollback left the manifests of a source: those with a content, of a commit, or that lead to a state.
    pub(crate) fn is_rejected(
        &self,
        current: &Snapshot,
        source: &str,
        content: Option<&str>,
        commit: Option<&str>,
        after: Option<&Snapshot>,
    ) -> Result<bool, StoreError> {
        let rejected = current.rejected(source);
        if rejected.is_empty() {
            return Ok(false);
        }
        if content.is_some() && rejected.iter().any(|left| Some(left.content.as_str()) == content) {
            return Ok(true);
        }
        // Other changes can follow under the name of a commit with changes that are not committed.
        let commit = commit.filter(|commit| !is_dirty(commit));
        if commit.is_some() && rejected.iter().any(|left| left.commit.as_deref() == commit) {
            return Ok(true);
        }
        let Some(after) = after else { return Ok(false) };
        // One rollback leaves the same resources out in all of its notes.
        let mut known: BTreeMap<&[String], SourceDigests> = BTreeMap::new();
        for left in rejected {
            let digests = match known.get(left.transferred_paths.as_slice()) {
                Some(digests) => digests.clone(),
                None => self.digests_of(after, source, &TransferredPaths::from_rejected(left))?,
            };
            let is_same_by_name = !left.digest_by_name.is_empty() && left.digest_by_name == digests.by_name;
            if left.digest == digests.exact || is_same_by_name {
                return Ok(true);
            }
            known.insert(&left.transferred_paths, digests);
        }
        Ok(false)
    }

    /// Records that a state is what other manifests of a source declare, so that none are rejected any longer. `content` is
    /// that of the manifests, and `permit` is asked inside the commit. Returns the revision; none if there is nothing to
    /// record, or others have committed since.
    pub(crate) fn accept(
        &self,
        author: &Author,
        content: Option<&str>,
        state: &Snapshot,
        permit: &dyn Fn() -> bool,
    ) -> Result<Option<u64>, StoreError> {
        let Author::Source { source, commit, .. } = author else { return Ok(None) };
        // The state may be that of rejected manifests only because somebody has made it so by hand.
        let is_rejected = || self.is_rejected(state, source, content, commit.as_deref(), Some(state));
        if state.rejected(source).is_empty() || is_rejected()? {
            return Ok(None);
        }
        let accepted = self.commit_next(Attempt::new(author.clone()), |current| {
            if current.revision == state.revision && permit() { Ok(NextState::Accepted) } else { Err(()) }
        });
        match accepted {
            Ok(snapshot) => Ok(Some(snapshot.revision)),
            Err(Declined::Commit(CommitError::Failed(error))) => Err(error),
            Err(Declined::Declined(()) | Declined::Commit(_)) => Ok(None),
        }
    }

    /// Returns the manifests that a source applied last: after a rollback, those that were in effect at the revision that it
    /// brought back, whatever others have changed besides.
    pub(crate) fn in_effect(&self, source: &str) -> Result<Option<AppliedManifests>, StoreError> {
        // Without a rollback, no other records count.
        let is_rolled_back = !self.snapshot().rejected(source).is_empty();
        let query = if is_rolled_back { Query::All } else { Query::Reconciliations };
        let (mut page, mut before, mut read) = (Vec::<CommitHeader>::new().into_iter(), u64::MAX, 0);
        loop {
            if page.as_slice().is_empty() && read < MOST_READ {
                page = self.headers(&query, before, PAGE)?.into_iter();
                read += page.len();
            }
            let Some(CommitHeader { position, revision, author, at, .. }) = page.next() else { return Ok(None) };
            before = position;
            match (author, revision) {
                (Author::Source { source: of, commit, through, destroyed, .. }, Some(revision)) if of == source => {
                    // After a destroy, nothing is in effect.
                    return Ok((!destroyed).then_some(AppliedManifests { commit, revision, at, through }));
                }
                (Author::Rollback { to, source: of, .. }, Some(_)) if of.as_deref().is_none_or(|of| of == source) => {
                    read += LOOKUP;
                    let brought_back = self.header(to)?.filter(|_| read < MOST_READ);
                    let Some(brought_back) = brought_back else { return Ok(None) };
                    page = vec![brought_back].into_iter();
                }
                _ => {}
            }
        }
    }

    /// Returns the manifests that a rollback leaves, of each source that it concerns. Manifests that lead to the state
    /// that is brought back are none of them. `synced` has those of the sources' last syncs.
    pub(crate) fn left_by(
        &self,
        current: &Snapshot,
        target: &Snapshot,
        source: Option<&str>,
        synced: &BTreeMap<String, SyncedManifests>,
    ) -> Result<Vec<RejectedManifests>, StoreError> {
        let sources = match source {
            Some(source) => BTreeSet::from([source.to_owned()]),
            None => sources_of(current).chain(sources_of(target)).cloned().collect(),
        };
        let mut applied = self.last_applied(&sources, current.revision)?;
        let brought_back = self.last_applied(&sources, target.revision)?;
        let mut rejected = Vec::new();
        let moved = TransferredKeys::between(current, target);
        for source in sources {
            let is_brought_back =
                |commit: &String| brought_back.get(&source).is_some_and(|(other, _)| other.as_ref() == Some(commit));
            let last = applied.remove(&source);
            let last = last.map(|(commit, at)| (commit.filter(|commit| !is_brought_back(commit)), at));
            let left = self.left_of(&source, current, target, &moved, last, synced.get(&source))?;
            let surplus = left.len().saturating_sub(MOST_REJECTED);
            rejected.extend(left.into_iter().skip(surplus));
        }
        Ok(rejected)
    }

    /// The manifests of a source that an earlier rollback left, unless this one brings back what they declare.
    fn still_rejected(
        &self,
        source: &str,
        current: &Snapshot,
        target: &Snapshot,
    ) -> Result<Vec<RejectedManifests>, StoreError> {
        let mut left: Vec<RejectedManifests> = Vec::new();
        for manifests in current.rejected(source) {
            let wanted = self.digests_of(target, source, &TransferredPaths::from_rejected(manifests))?;
            if manifests.digest != wanted.exact {
                let known = manifests.digest_by_name.clone();
                let digest_by_name = if known == wanted.by_name { String::new() } else { known };
                let retransferred_paths = Vec::new();
                left.push(RejectedManifests { digest_by_name, retransferred_paths, ..manifests.clone() });
            }
        }
        Ok(left)
    }

    /// Returns the manifests of a source that a rollback leaves. `moved` has what changed hands, `applied` the last manifests
    /// of the source that changed the store: their commit, and the revision that they made; and `synced` those of its last
    /// sync.
    fn left_of(
        &self,
        source: &str,
        current: &Snapshot,
        target: &Snapshot,
        moved: &TransferredKeys,
        applied: Option<(Option<String>, u64)>,
        synced: Option<&SyncedManifests>,
    ) -> Result<Vec<RejectedManifests>, StoreError> {
        let mut left = self.still_rejected(source, current, target)?;
        let (mut live, mut wanted) = (SourceDigests::default(), SourceDigests::default());
        let mut transferred = TransferredPaths::default();
        // If the source differs in nothing else, what changed hands is all there is to leave.
        for candidate in [moved.owned_by(source, current, target), TransferredPaths::default()] {
            (live, wanted) =
                (self.digests_of(current, source, &candidate)?, self.digests_of(target, source, &candidate)?);
            transferred = candidate;
            if live != wanted {
                break;
            }
        }
        if live != wanted {
            let mut leave = |commit: Option<String>, digests: SourceDigests, content: String| {
                // By name, the state that is brought back can be the same.
                let is_told_by_name = digests.by_name != wanted.by_name;
                add(
                    &mut left,
                    RejectedManifests {
                        source: source.to_owned(),
                        commit,
                        digest: digests.exact,
                        digest_by_name: if is_told_by_name { digests.by_name } else { String::new() },
                        content,
                        transferred_paths: transferred.paths(),
                        retransferred_paths: Vec::new(),
                    },
                );
            };
            let digests_then = |(commit, at)| Ok((commit, self.digests_at(at, source, &transferred)?));
            let last = applied.map(digests_then).transpose()?;
            // Others may have changed what the manifests declare, also to what the next ones declare.
            if last.as_ref().is_none_or(|(_, digests)| digests.as_ref() != Some(&live)) {
                leave(None, live, String::new());
            }
            if let Some((commit, digests)) = last
                && digests.as_ref() != Some(&wanted)
                && (commit.is_some() || digests.is_some())
            {
                leave(commit.filter(|commit| !is_dirty(commit)), digests.unwrap_or_default(), String::new());
            }
            if let Some(SyncedManifests { content, revision, .. }) = synced {
                let digests = revision.map(|at| self.digests_at(at, source, &transferred)).transpose()?.flatten();
                if digests.as_ref() != Some(&wanted) {
                    leave(None, digests.unwrap_or_default(), content.clone());
                }
            }
        }
        Ok(left)
    }

    /// The last manifests of each source that changed the store up to a revision: their commit, and the revision that they made.
    fn last_applied(
        &self,
        sources: &BTreeSet<String>,
        upto: u64,
    ) -> Result<BTreeMap<String, (Option<String>, u64)>, StoreError> {
        let (mut found, mut headers) = (BTreeMap::new(), self.headers_before(&Query::Reconciliations, u64::MAX));
        while found.len() < sources.len()
            && let Some(CommitHeader { author, revision, .. }) = headers.next().transpose()?
        {
            if let (Author::Source { source, commit, .. }, Some(revision)) = (author, revision)
                && revision <= upto
                && sources.contains(&source)
            {
                found.entry(source).or_insert((commit, revision));
            }
        }
        Ok(found)
    }

    /// The commit of the last manifests of a source that changed the store, if the history has them.
    pub(crate) fn last_commit(&self, source: &str) -> Result<Option<String>, StoreError> {
        let mut found = self.last_applied(&BTreeSet::from([source.to_owned()]), u64::MAX)?;
        Ok(found.remove(source).and_then(|(commit, _)| commit))
    }

    /// The digests of what a source had at a revision, if that is still known.
    fn digests_at(
        &self,
        revision: u64,
        source: &str,
        transferred: &TransferredPaths,
    ) -> Result<Option<SourceDigests>, StoreError> {
        match self.snapshot_at(revision) {
            // Masks are in the places of lost secrets (D96).
            Ok(state) if has_lost_secrets(&state, source) => Ok(None),
            Ok(state) => Ok(Some(self.digests_of(&state, source, transferred)?)),
            Err(RevisionError::Failed(error)) => Err(error),
            Err(RevisionError::Gone { .. } | RevisionError::Future { .. }) => Ok(None),
        }
    }

    /// Whether a source has in a state what it had at a revision. False if that is no longer known.
    pub(crate) fn has_same(&self, source: &str, revision: u64, state: &Snapshot) -> Result<bool, StoreError> {
        let all = TransferredPaths::default();
        Ok(self.digests_at(revision, source, &all)? == Some(self.digests_of(state, source, &all)?))
    }

    /// The digest of what manifests declare that a sync brought into effect, if it is known.
    pub(crate) fn declared_by(&self, source: &str, synced: &SyncedManifests) -> Result<Option<String>, StoreError> {
        match (&synced.declares, synced.revision) {
            (Some(digest), _) => Ok(Some(digest.clone())),
            (None, Some(revision)) => {
                let digests = self.digests_at(revision, source, &TransferredPaths::default())?;
                Ok(digests.map(|digests| digests.exact))
            }
            (None, None) => Ok(None),
        }
    }

    /// A keyed digest of what a source has in a state.
    pub(crate) fn declared_digest(&self, source: &str, state: &Snapshot) -> Result<String, StoreError> {
        Ok(self.digests_of(state, source, &TransferredPaths::default())?.exact)
    }
}

/// Adds manifests to those that are left, unless they are among them. The same ones without a content get that of these.
fn add(left: &mut Vec<RejectedManifests>, manifests: RejectedManifests) {
    if left.contains(&manifests) {
        return;
    }
    let is_same_but_content = |it: &&mut RejectedManifests| {
        it.content.is_empty()
            && (&it.digest, &it.transferred_paths) == (&manifests.digest, &manifests.transferred_paths)
    };
    match left.iter_mut().find(is_same_but_content).filter(|_| !manifests.content.is_empty()) {
        Some(same) => same.content = manifests.content,
        None => left.push(manifests),
    }
}

fn has_lost_secrets(state: &Snapshot, source: &str) -> bool {
    state.iter().any(|entry| entry.is_owned_by(source) && entry.lazy_spec.has_lost_secrets())
}

/// The sources that own a resource, or whose manifests a rollback left.
fn sources_of(state: &Snapshot) -> impl Iterator<Item = &String> {
    let owners = state.iter().filter_map(|entry| entry.claim.as_deref().map(|claim| &claim.source));
    owners.chain(state.sources_with_rejected())
}
