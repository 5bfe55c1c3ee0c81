//! What a command says about a mistake in its line: a path, a token, a URL.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::support::manifests::edges;
use crate::support::program::{Folder, finish};
use crate::support::users::{assert_refused, client, client_command, run_with_token};

#[test]
fn a_path_that_does_not_exist_gets_the_similar_one_beside_it() {
    let folder = Folder::with_storefront();
    for line in ["plan storefrnot", "validate storefrnot", "diff storefront storefrnot"] {
        let run = folder.run(line);
        assert!(run.code == 3 && run.err.contains("did you mean `storefront`?"), "{line}: {}", run.all());
    }
    assert!(folder.run("validate unlike").err.contains("check the path and its permissions"));
    folder.ok("reconcile storefront");
    folder.write("access.log", "");
    assert_refused(&folder.run("replay acces.log"), "did you mean `access.log`?");
    assert_refused(&folder.run("replay nothere"), "`-` reads standard input");
    let device = folder.run("validate /dev/null");
    assert!(device.code == 3 && device.err.contains("neither a folder nor a regular file"), "{}", device.all());
}

#[test]
fn a_store_is_a_folder_and_a_misspelt_one_above_it_is_told() {
    let folder = Folder::with_storefront();
    folder.write("file", "x");
    let run = folder.run("get edges --store file");
    assert_refused(&run, "file is not a folder");
    assert!(run.err.contains("a store is a folder") && !run.err.contains("newer"), "{}", run.all());
    folder.ok("reconcile --store shop.db storefront");
    let made = folder.ok("reconcile --store shpo.db/x storefront");
    assert!(made.err.contains("New store: shpo.db/x\nDid you mean `--store shop.db`?\n"), "{}", made.err);
}

#[test]
fn a_token_in_quotes_is_not_sent_and_an_unknown_one_is_told() {
    let folder = Folder::new();
    let serve = folder.serve("");
    for (token, wrong) in [("\"ew_ak_1_secret\"", "is in quotes"), ("Bearer ew_ak_1_secret", "has white space in it")] {
        let run = run_with_token(&folder, &serve, token, "keys list");
        assert_refused(&run, &format!("the token in EDGEWRIGHT_TOKEN {wrong}"));
        assert!(run.err.contains("tokens begin with `ew_`"), "{}", run.all());
    }
    let unknown = run_with_token(&folder, &serve, "ew_ak_1_secret", "keys list");
    assert_refused(&unknown, "the token in EDGEWRIGHT_TOKEN or of the context is not known");
}

#[test]
fn a_server_without_tls_is_told_as_one() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let _ = connection.read(&mut [0; 4096]);
            let _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    let folder = Folder::new();
    for line in ["keys list", "keys create"] {
        let run = finish(client_command(&folder, &format!("https://{address}"), "ew_ak_1_secret", line), "");
        assert_refused(&run, "the server does not speak TLS: use http://");
        assert!(!run.err.contains("may have been made"), "{line}: {}", run.all());
    }
}

#[test]
fn who_may_not_apply_is_not_told_how_to_raise_a_limit() {
    let folder = Folder::new();
    folder.write("m/e.yaml", &edges("e", 1));
    folder.ok("reconcile m");
    folder.write("m/e.yaml", &edges("e", 9));
    folder.ok("reconcile m");
    let serve = folder.serve("");
    let viewer = client(&folder, &serve, "keys create --role viewer").out;
    let refused = run_with_token(&folder, &serve, viewer.trim(), "rollback --to 1");
    assert_refused(&refused, "ERR_EDGEWRIGHT_FORBIDDEN");
    assert!(!refused.err.contains("max-deletes"), "{}", refused.all());
    let of_admin = client(&folder, &serve, "rollback --to 1");
    assert!(of_admin.code == 4 && of_admin.err.contains("TOO_MANY_DELETIONS"), "{}", of_admin.all());
}

#[test]
fn a_history_of_no_records_is_refused_rather_than_shown_as_an_empty_one() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    for line in ["history --limit 0", "history -n 0"] {
        assert_refused(&folder.run(line), "invalid value '0' for '--limit <N>': it must be at least 1");
    }
    assert_refused(&folder.run("history --limit x"), "invalid value 'x' for '--limit <N>'");
    assert!(folder.ok("history --limit 1").out.contains("applied"));
}
