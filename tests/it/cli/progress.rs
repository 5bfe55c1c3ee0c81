//! Work over a second gives a sign of life; shorter work gives none.

use std::{io::Write, process::Stdio, thread::sleep, time::Duration};

use crate::support::program::Folder;

const MANIFEST: &str = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\nspec: {}\n";

/// What a plan of standard input says on stderr, when the input takes its time.
fn said(folder: &Folder, pause: Duration) -> String {
    let mut command = folder.command("plan -");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    sleep(pause);
    child.stdin.take().unwrap().write_all(MANIFEST.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    // There is no store yet, which is said, too.
    let said = String::from_utf8(output.stderr).unwrap();
    said.lines().filter(|line| !line.starts_with("No store found")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_log_gets_a_plain_line_after_a_second() {
    let folder = Folder::new();
    assert_eq!(said(&folder, Duration::from_millis(1500)), "Planning … 1 s\n");
    assert_eq!(said(&folder, Duration::ZERO), "");
}
