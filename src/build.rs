//! The build script: tells the program which commit it is built from, and the date of that commit. Not a part of the crate.
//!
//! Builds are reproducible, so the clock is never read. `EDGEWRIGHT_COMMIT` and `SOURCE_DATE_EPOCH` set both values for
//! builds without Git.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The length of the commit in `--version`.
const SHORT_COMMIT: usize = 12;
/// Where `cargo package` writes the commit that it has packed.
const PACKED: &str = ".cargo_vcs_info.json";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=src/build.rs");
    println!("cargo:rerun-if-env-changed=EDGEWRIGHT_COMMIT");
    println!("cargo:rerun-if-env-changed=SOURCE_DATE_EPOCH");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let head = head(&root);
    if head.is_some() {
        watch_head(&root);
    }
    let given = env::var("EDGEWRIGHT_COMMIT").ok().filter(|commit| !commit.is_empty());
    if let Some(commit) = given.as_ref().filter(|commit| !is_commit(commit)) {
        return Err(format!("EDGEWRIGHT_COMMIT must be a Git commit in hexadecimal (found {commit:?})").into());
    }
    let is_given = given.is_some();
    let commit = given.or_else(|| packed_commit(&root)).or_else(|| head.clone()).unwrap_or_default();
    let seconds = match env::var("SOURCE_DATE_EPOCH").ok().filter(|seconds| !seconds.is_empty()) {
        Some(seconds) => {
            let parsed = seconds.parse::<u64>();
            Some(parsed.map_err(|_| format!("SOURCE_DATE_EPOCH must be a number of seconds (found {seconds:?})"))?)
        }
        // The date of another commit would be wrong.
        None if is_given => None,
        None => head.and_then(|_| git(&root, &["log", "-1", "--format=%ct"])?.parse().ok()),
    };
    let short = commit.get(..SHORT_COMMIT).unwrap_or(&commit);
    let details = format!("{short} {}", seconds.map(date).unwrap_or_default());
    let mut version = env::var("CARGO_PKG_VERSION")?;
    if !details.trim().is_empty() {
        version = format!("{version} ({})", details.trim());
    }
    println!("cargo:rustc-env=EDGEWRIGHT_BUILD_VERSION={version}");
    println!("cargo:rustc-env=EDGEWRIGHT_BUILD_COMMIT={commit}");
    Ok(())
}

fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the commit of a source package from a registry, which has no repository.
fn packed_commit(root: &Path) -> Option<String> {
    let text = fs::read_to_string(root.join(PACKED)).ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    let commit = rest.split('"').nth(1)?;
    is_commit(commit).then(|| commit.to_owned())
}

/// Returns the commit that is checked out, if the source is a repository of its own and not a folder inside another one.
fn head(root: &Path) -> Option<String> {
    let top = PathBuf::from(git(root, &["rev-parse", "--show-toplevel"])?);
    let is_own = top.canonicalize().ok()? == root.canonicalize().ok()?;
    is_own.then(|| git(root, &["rev-parse", "HEAD"])).flatten().filter(|commit| is_commit(commit))
}

/// Has the script run again when HEAD moves, and only then.
fn watch_head(root: &Path) {
    let file = |name: &str| git(root, &["rev-parse", "--git-path", name]).map(|path| root.join(path));
    let mut watched = vec![file("HEAD")];
    if let Some(branch) = git(root, &["symbolic-ref", "-q", "HEAD"]).and_then(|branch| file(&branch)) {
        if branch.is_file() {
            watched.push(Some(branch));
        } else {
            // A packed branch: the next commit creates its file, in a folder that may not exist yet.
            watched.push(branch.ancestors().skip(1).find(|folder| folder.is_dir()).map(Path::to_owned));
            watched.push(file("packed-refs"));
        }
    }
    // Cargo always runs the script again for a file that does not exist.
    for path in watched.into_iter().flatten().filter(|path| path.exists()) {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

/// Runs Git and returns the line that it prints, if it can.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    // A build in a hook of another repository has its variables.
    command.env_remove("GIT_DIR").env_remove("GIT_WORK_TREE").env_remove("GIT_INDEX_FILE");
    let output = command.arg("-C").arg(root).args(arguments).output().ok()?;
    let line = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}

/// Formats the day of a Unix time, in UTC.
fn date(seconds: u64) -> String {
    // Days since 1 March of the year 0, in eras of 400 years, which all have the same days.
    let days = seconds / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}
