//! Standard output that cannot be written: a full disk is an error, a closed pipe is not, and no token is lost (D23, D31).

use std::{fs::File, process::Stdio};

use crate::support::{
    manifests::edge,
    program::{Folder, Run},
};

/// Runs the program with standard output going somewhere else.
fn run_into(folder: &Folder, line: &str, stdout: impl Into<Stdio>) -> Run {
    let output = folder.command(line).stdout(stdout).stderr(Stdio::piped()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
}

/// A disk with no space left.
fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// A pipe that nobody reads any more.
fn closed() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// A folder with the example, applied.
fn applied() -> Folder {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    folder
}

const READING: [&str; 17] = [
    "validate storefront --format json",
    "plan storefront",
    "plan storefront --format markdown",
    "reconcile storefront --format json",
    "diff storefront storefront",
    "export",
    "keys list",
    "owners list",
    "store check",
    "schema",
    "schema openapi",
    "explain",
    "explain ERR_EDGEWRIGHT_SYNTAX",
    "explain shadowed-route",
    "completions bash",
    "--help",
    "--version",
];

#[test]
fn a_full_disk_is_an_error_of_every_command() {
    let folder = applied();
    folder.ok("keys create");
    folder.write("loose.yaml", "kind: x   \n\n\n\n# y\n");
    let lines = READING.iter().copied().chain(["trace https://nowhere.example.com/", "fmt --check loose.yaml"]);
    for line in lines {
        let run = run_into(&folder, line, full());
        assert_eq!(run.code, 1, "{line}\n{}", run.all());
        assert!(run.err.contains("cannot write to standard output: No space left on device"), "{line}\n{}", run.err);
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let folder = applied();
    for line in READING {
        let run = run_into(&folder, line, closed());
        assert_eq!(run.code, 0, "{line}\n{}", run.all());
        assert!(!run.err.contains("standard output") && !run.err.contains("panicked"), "{line}\n{}", run.err);
    }
    let pending = Folder::with_storefront();
    let run = run_into(&pending, "plan storefront --detailed-exitcode", closed());
    assert_eq!(run.code, 2, "the code is the command's own\n{}", run.all());
}

#[test]
fn a_plan_that_could_not_be_shown_is_not_applied() {
    for format in ["text", "json", "markdown", "github", "sarif", "junit"] {
        let folder = Folder::with_storefront();
        let run = run_into(&folder, &format!("reconcile storefront --format {format}"), full());
        assert_eq!(run.code, 1, "{format}: {}", run.all());
        assert!(run.err.contains("Nothing was applied."), "{format}: {}", run.err);
        assert!(!folder.path("store").exists(), "{format}");
        let run = folder.run(&format!("reconcile storefront --format {format} --output /dev/full"));
        assert_eq!(run.code, 1, "{format}: {}", run.all());
        assert!(run.err.contains("cannot write the report to `/dev/full`"), "{format}: {}", run.err);
        assert!(run.err.contains("Nothing was applied.") && !folder.path("store").exists(), "{format}: {}", run.err);
    }
}

#[test]
fn a_report_that_is_started_before_the_apply_is_one_document() {
    let folder = Folder::with_storefront();
    let run = folder.ok("reconcile storefront --format json");
    let report: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(report["applied"], 1);
    folder.write("more/one.yaml", &edge("one", "one"));
    folder.ok("reconcile more --source more --format junit --output report.xml");
    let report = folder.read("report.xml");
    assert!(report.starts_with("<?xml version") && report.matches("<?xml").count() == 1, "{report}");
}

#[test]
fn a_revision_that_could_not_be_told_is_not_a_success() {
    let folder = Folder::with_storefront();
    let status = folder.command("reconcile storefront").stdout(Stdio::null()).stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(1));
    assert_eq!(folder.snapshot("store").revision, 1);
}

#[test]
fn no_key_is_created_whose_token_could_not_be_printed() {
    let folder = Folder::new();
    folder.ok("keys create --role admin");
    let (keys, owners) = (folder.ok("keys list").out, folder.ok("owners list").out);
    for stdout in [Stdio::from(full()), closed()] {
        let run = run_into(&folder, "keys create", stdout);
        assert_eq!(run.code, 1, "{}", run.all());
        assert!(run.err.contains("cannot write to standard output"), "{}", run.err);
        assert!(run.err.contains("No key was created."), "{}", run.err);
        assert!(!run.err.contains("ew_"), "{}", run.err);
    }
    assert_eq!((folder.ok("keys list").out, folder.ok("owners list").out), (keys, owners));
}

#[test]
fn no_admin_is_created_whose_token_could_not_be_shown() {
    let folder = Folder::new();
    let mut serve = folder.command("serve --listen 127.0.0.1:0");
    let status = serve.stdout(Stdio::null()).stderr(full()).status().unwrap();
    assert_eq!(status.code(), Some(1));
    let lost = folder.run("serve --listen 127.0.0.1:0 --admin-token-file missing/admin.token");
    assert_eq!(lost.code, 1, "{}", lost.all());
    for said in ["cannot write the admin token to missing/admin.token", "set --admin-token-file to a new file"] {
        assert!(lost.err.contains(said), "{}", lost.all());
    }
    assert_eq!(folder.ok("owners list").out, "");
    let early = folder.run("serve --store new --listen 127.0.0.1:0 --admin-token-file missing/admin.token");
    assert_eq!(early.code, 1, "{}", early.all());
    let words = "cannot write the admin token to missing/admin.token: the folder missing does not exist";
    assert!(early.err.contains(words), "{}", early.all());
    assert!(!folder.path("new").exists() && !folder.path("new.master.key").exists(), "no store is left behind");
    let serve = folder.serve("");
    assert_eq!(serve.get("/api_keys").status, 200, "the next start makes the admin");
}

#[test]
fn a_token_that_nobody_would_see_makes_no_key() {
    let folder = Folder::new();
    folder.ok("keys create --role admin");
    let mut command = folder.command("keys create --role editor");
    command.stdout(std::process::Stdio::null());
    assert!(!command.status().unwrap().success());
    assert_eq!(folder.ok("keys list").out.lines().count(), 2);
}

#[test]
fn an_admin_token_replaces_nothing_but_a_token() {
    let folder = Folder::new();
    folder.write("mine.txt", "precious\n");
    std::os::unix::fs::symlink("mine.txt", folder.path("link")).unwrap();
    for file in ["mine.txt", "link", "."] {
        let run = folder.run(&format!("serve --store new --listen 127.0.0.1:0 --admin-token-file {file}"));
        assert_ne!(run.code, 0, "{file}: {}", run.all());
        assert_eq!(folder.read("mine.txt"), "precious\n");
    }
}
