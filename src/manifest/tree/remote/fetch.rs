//! One fetch into a mirror: list the refs, fetch the wanted one, publish its commit.
//!
//! A ref can move between the list and the fetch: what was fetched counts, and nothing else. A commit ID that no ref
//! has can only be found with the history of all branches and tags. A mirror that fails is fetched anew once, beside
//! the old one.

use std::path::{Path, PathBuf};
use std::{fs, io};

use git2::{Oid, Repository};

use super::RemoteMirror;
use super::access::refusal;
use super::failure::FetchFault;
use super::git_process::RunningFetch;
use super::mirrors::{create_folder, remove_leftovers};
use crate::files::if_exists;
use crate::model::Diagnostic;

/// A mirror with more packs is fetched again: nothing else ever merges them.
const MOST_PACKS: usize = 200;
/// The whole history that the server has, however long. With any depth, git also fetches from a shallow repository, and it
/// refuses the dumb HTTP protocol: there, a fetch is any number of files, and only the size of each is limited.
const WHOLE: &str = "--depth=2147483647";
/// The ref of a mirror that a fetch moves.
const FETCHED: &str = "refs/edgewright/fetched";
const DISK: &str = "check free disk space and the permissions of the store's folder";

impl RemoteMirror {
    /// Fetches, and moves the mirror's ref to the new commit. A mirror that cannot be used is replaced by a new one, once
    /// that is complete.
    pub(super) fn run(&self, run: &mut RunningFetch<'_>) -> Result<(), FetchFault> {
        remove_leftovers(&self.folder);
        let is_usable = |mirror: &Repository| {
            let (packs, bytes) = packs(&self.folder);
            packs <= MOST_PACKS && bytes <= 2 * self.limits.bytes && is_sound(mirror)
        };
        match Repository::open_bare(&self.folder).ok().filter(is_usable) {
            Some(mirror) => match self.update(&mirror, run) {
                Err(FetchFault::Mirror(_)) => self.rebuild(run),
                other => other,
            },
            None => self.rebuild(run),
        }
    }

    /// Fetches into a new mirror, and puts it into the place of the old one.
    fn rebuild(&self, run: &mut RunningFetch<'_>) -> Result<(), FetchFault> {
        let local = |error: io::Error| {
            FetchFault::remote(format!("cannot write the mirror {}: {error}", self.folder.display()), DISK)
        };
        let [new, old] = ["new", "old"].map(|name| self.folder.with_extension(name));
        // Files of a fetch that was killed.
        remove(&new).and_then(|()| remove(&old)).map_err(local)?;
        create_folder(&new).map_err(local)?;
        let updated = Repository::init_bare(&new).map_err(broken).and_then(|mirror| self.update(&mirror, run));
        if let Err(fault) = updated {
            // A partial fetch is useless.
            let _ = remove(&new);
            return Err(fault);
        }
        if self.folder.exists() {
            fs::rename(&self.folder, &old).map_err(local)?;
        }
        fs::rename(&new, &self.folder).map_err(local)?;
        remove(&old).map_err(local)
    }

    /// Fetches into a mirror what the wanted revision needs.
    fn update(&self, mirror: &Repository, run: &mut RunningFetch<'_>) -> Result<(), FetchFault> {
        let has_tree = |commit: Oid| mirror.find_commit(commit).is_ok_and(|commit| commit.tree().is_ok());
        let whole_id = self.wanted.commit_id();
        if let Some(commit) = whole_id.filter(|commit| has_tree(*commit)) {
            return self.publish(mirror, commit);
        }
        let access = self.access.load(&self.url, mirror.path()).map_err(FetchFault::Remote)?;
        let mut git = |arguments: &[&str]| run.git(mirror.path(), &self.url, &access, arguments);
        let listed = git(&["ls-remote", "--", &self.url.text]).map_err(|fault| match fault {
            FetchFault::Mirror(refusal) => FetchFault::Remote(refusal),
            other => other,
        })?;
        let listed: Vec<(String, Oid)> = listed.lines().filter_map(listed_ref).collect();
        let refused = |error: Diagnostic| FetchFault::remote(error.message, error.help.unwrap_or_default());
        let missing = || refused(self.wanted.missing(listed.iter().map(|(name, _)| name.as_str())));
        if let Some(error) = self.wanted.ambiguous(|name| listed.iter().any(|(known, _)| known == name)) {
            return Err(refused(error));
        }
        let picked = self.wanted.pick(&listed);
        let mut fetch = |specs: &[String]| {
            let options =
                ["fetch", "--progress", "--prune", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"];
            let from = [WHOLE, "--", self.url.text.as_str()];
            let arguments: Vec<&str> =
                options.into_iter().chain(from).chain(specs.iter().map(String::as_str)).collect();
            git(&arguments).map_err(|fault| {
                let fault = self.too_large(mirror.path()).unwrap_or(fault);
                remove_leftovers(mirror.path());
                fault
            })
        };
        let found = match picked {
            Some((_, id)) if self.published(mirror) == Some(id) && has_tree(id) => mirror.find_object(id, None),
            Some((name, _)) => {
                fetch(&[format!("+{name}:{FETCHED}")])?;
                // The ref may have moved since it was listed.
                whole_id.map_or_else(|| mirror.revparse_single(FETCHED), |id| mirror.find_object(id, None))
            }
            // Only the history of all branches and tags can have it.
            None if self.wanted.may_be_commit() => {
                fetch(&["heads", "tags"].map(|folder| format!("+refs/{folder}/*:refs/edgewright/{folder}/*")))?;
                mirror.revparse_single(&self.wanted.to_string())
            }
            None => return Err(missing()),
        };
        let found = found.map_err(|error| if picked.is_none() { missing() } else { broken(error) })?;
        let commit = found.peel_to_commit().map_err(|error| {
            let reason = format!("`{}` is not a commit: {}", self.wanted, error.message());
            FetchFault::remote(reason, "use a branch, tag or commit")
        })?;
        // A mirror that lost a part of its files is noticed.
        commit.tree().map_err(broken)?;
        self.publish(mirror, commit.id())?;
        let tag = picked.and_then(|(name, _)| self.wanted.chosen_tag(name));
        let chosen = tag.map(|tag| (commit.id(), tag.to_owned()));
        *self.chosen.lock() = chosen;
        Ok(())
    }

    /// The commit to read.
    pub(super) fn published(&self, mirror: &Repository) -> Option<Oid> {
        mirror.refname_to_id(&self.head_ref()).ok()
    }

    /// Makes a commit the one to read.
    fn publish(&self, mirror: &Repository, commit: Oid) -> Result<(), FetchFault> {
        mirror.reference(&self.head_ref(), commit, true, "fetch").map(drop).map_err(broken)
    }

    /// The ref of the mirror that names the commit to read. It depends on the revision: after a change of the
    /// configuration, the commit of the former one must not be read.
    fn head_ref(&self) -> String {
        let digest = blake3::hash(format!("{:?}", self.wanted).as_bytes()).to_hex();
        format!("refs/edgewright/{digest:.16}")
    }

    /// The fault of a pack that has reached the limit of its size, and has no final name.
    fn too_large(&self, mirror: &Path) -> Option<FetchFault> {
        let limit = self.limits.bytes;
        let mut partial = in_pack_folder(mirror).filter(|file| file.extension().is_none());
        let is_reached = partial.any(|file| file.metadata().is_ok_and(|it| it.len() >= limit));
        let message = format!("more than {} MiB to receive", limit >> 20);
        let help = "use a repository of manifests, without large files in its history";
        is_reached.then(|| FetchFault::remote(message, help))
    }
}

/// A line of `git ls-remote`.
fn listed_ref(line: &str) -> Option<(String, Oid)> {
    let (id, name) = line.split_once('\t')?;
    Some((name.to_owned(), Oid::from_str(id).ok()?))
}

/// The fault of a mirror.
fn broken(error: git2::Error) -> FetchFault {
    FetchFault::Mirror(refusal(error.message(), DISK))
}

/// Whether a mirror has the commits that its refs name: a power loss can take the end of a pack.
fn is_sound(mirror: &Repository) -> bool {
    let Ok(mut references) = mirror.references_glob("refs/edgewright/*") else { return false };
    references.all(|found| {
        let commit = found.and_then(|reference| reference.peel_to_commit());
        commit.and_then(|commit| commit.tree().map(drop)).is_ok()
    })
}

fn in_pack_folder(mirror: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(mirror.join("objects/pack")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// The number of packs in a mirror, and their size in bytes.
fn packs(mirror: &Path) -> (usize, u64) {
    let packs = in_pack_folder(mirror).filter(|file| file.extension().is_some_and(|extension| extension == "pack"));
    packs.fold((0, 0), |(count, bytes), pack| (count + 1, bytes + pack.metadata().map_or(0, |it| it.len())))
}

/// Removes a folder if it exists.
fn remove(folder: &Path) -> io::Result<()> {
    if_exists(fs::remove_dir_all(folder)).map(drop)
}
