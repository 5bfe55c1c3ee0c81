//! Git in a folder of a test.

use std::process::Command;

use super::program::Folder;

/// Runs Git in a folder, and returns what it prints.
pub(crate) fn git(folder: &Folder, line: &str) -> String {
    let who = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"];
    let mut command = Command::new("git");
    command.args(who).args(line.split_whitespace()).current_dir(folder.path(""));
    let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(output.status.success(), "git {line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Commits everything in a repository in the folder, as somebody.
pub(crate) fn commit_as(folder: &Folder, repository: &str, author: &str, subject: &str) {
    git(folder, &format!("-C {repository} add -A"));
    let mut command = Command::new("git");
    command.args(["-c", &format!("user.name={author}"), "-c", "user.email=author@example.com"]);
    command.args(["-c", "commit.gpgsign=false", "commit", "-q", "-m", subject]).current_dir(folder.path(repository));
    assert!(command.env("GIT_CONFIG_GLOBAL", "/dev/null").status().unwrap().success(), "{subject}");
}

/// The commit of the main branch of a repository in the folder.
pub(crate) fn head(folder: &Folder, repository: &str) -> String {
    folder.read(&format!("{repository}/.git/refs/heads/main")).trim().to_owned()
}
