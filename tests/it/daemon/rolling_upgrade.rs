//! The example with several replicas runs: they are upgraded one after another, and no request of its clients fails.

use std::process::Command;

use crate::support::{
    postgres::Postgres,
    program::{PROGRAM, REPOSITORY, finish, has, rounds},
};

#[test]
fn no_request_fails_while_replicas_are_upgraded() {
    let Some(_postgres) = Postgres::shared() else { return };
    let check =
        "PATH=\"$PATH:/usr/sbin\"; command -v nginx && python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'";
    if !Command::new("sh").args(["-c", check]).output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: the example with several replicas needs nginx and Python 3.11");
        return;
    }
    let mut example = Command::new("python3");
    example.arg(format!("{REPOSITORY}/examples/replicas/replicas.py")).args(["--program", PROGRAM]);
    example.args(["--seconds", rounds("1", "10"), "--clients", rounds("8", "32")]);
    let run = finish(example, "");
    assert_eq!(run.code, 0, "{}", run.all());
    has(
        &run,
        &["24 to create", "replica 1 (writes) was replaced", "replica 3 (follows) was replaced", "0 requests failed"],
    );
}
