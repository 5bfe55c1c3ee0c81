//! The programs of the examples say in a sentence why they cannot do what they are asked for.

use std::process::Command;

use edgewright::resources::Role;

use crate::support::{
    program::{Folder, REPOSITORY, Run, finish, has_nginx},
    server::Server,
};

/// Runs Python in a folder, with the package of `examples/nginx`.
fn python(folder: &Folder, line: &str) -> Run {
    let mut python = Command::new("python3");
    python.arg("-B").args(line.split_whitespace()).current_dir(folder.path(""));
    python.env("PYTHONPATH", format!("{REPOSITORY}/examples/nginx"));
    finish(python, "")
}

#[test]
fn a_wrong_option_is_told_in_one_line() {
    if !has_nginx("messages of the examples") {
        return;
    }
    let folder = Folder::new();
    for (line, expected) in [
        ("hello/gateway.py --server notaurl", "notaurl: expected https, or http to a loopback address"),
        (
            "hello/gateway.py --nginx nosuch",
            "nothing is served: the program nosuch was not found in PATH or /usr/sbin. Install nginx 1.21 or newer, or name it \
             with --nginx",
        ),
        (
            "replicas/replicas.py --program missing",
            "error: missing does not exist: build it, or name another with --program",
        ),
        (
            "replicas/replicas.py --program sh --new missing",
            "error: missing does not exist: build it, or name another with --new",
        ),
    ] {
        let run = python(&folder, &format!("{REPOSITORY}/examples/{line}"));
        assert_eq!((run.code, run.all()), (1, format!("exit 1\n--- stdout\n\n--- stderr\n{expected}\n")), "{line}");
    }
}

#[test]
fn a_gateway_without_its_files_serves_nothing_and_shows_no_token() {
    if !has_nginx("a gateway without its files") {
        return;
    }
    let (server, folder) = (Server::start(), Folder::new());
    let (url, token) = (format!("http://{}", server.address), server.key_of("bot_gateway", Role::Gateway));
    folder.write("one.token", &token);
    folder.write("two.token", &format!("{token}\nsecond\n"));
    let follow = |file: &str| {
        let files = format!("--token-file {file} --mapping missing.json --folder gateway");
        python(&folder, &format!("-m edgewright_nginx --once --server {url} {files}"))
    };
    let two = follow("two.token");
    let expected = format!(
        "cannot read the configuration from {url}: two.token must contain only a token: it has white space or several lines\n  \
         nothing is served yet; trying again. Check that the server runs at this URL, and that two.token has the token of a key \
         with the role gateway\n"
    );
    assert_eq!((two.code, two.err.as_str()), (1, expected.as_str()));
    assert!(!two.all().contains(token.trim()), "{}", two.all());
    let one = follow("one.token");
    assert_eq!((one.code, one.err.as_str()), (1, "nothing is served: missing.json: No such file or directory\n"));
}
