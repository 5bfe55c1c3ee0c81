//! The commit that a folder is a checkout of.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The commit of the git work tree around a path, if there is one. Changes that are not committed do not show.
pub fn commit_of(path: &Path) -> Option<String> {
    let start = path.canonicalize().ok()?;
    let git = start.ancestors().find_map(|folder| git_folder(&folder.join(".git")))?;
    let head = fs::read_to_string(git.join("HEAD")).ok()?;
    let Some(name) = head.trim().strip_prefix("ref: ") else { return is_commit(head.trim()) };
    // A linked work tree keeps its branches in the main one.
    let common =
        fs::read_to_string(git.join("commondir")).map_or_else(|_| git.clone(), |common| git.join(common.trim()));
    if let Ok(commit) = fs::read_to_string(common.join(name)) {
        return is_commit(commit.trim());
    }
    let packed = fs::read_to_string(common.join("packed-refs")).ok()?;
    let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(_, of)| *of == name).and_then(|(commit, _)| is_commit(commit))
}

/// The folder itself, or the one that a linked work tree's file names.
fn git_folder(path: &Path) -> Option<PathBuf> {
    if path.is_dir() {
        return Some(path.to_owned());
    }
    let text = fs::read_to_string(path).ok()?;
    Some(path.parent()?.join(text.trim().strip_prefix("gitdir: ")?))
}

fn is_commit(text: &str) -> Option<String> {
    (text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| text.to_owned())
}
