//! A first sync that takes long: the server answers meanwhile (D52).

use std::{
    fs::{self, OpenOptions},
    process::Command,
};

use crate::support::{
    program::CONFIG,
    sources::{in_state, repository},
};

#[test]
fn a_server_answers_while_the_first_sync_of_a_source_takes_long() {
    let folder = repository();
    let (signers, pipe) = (folder.path("signers"), folder.path("pipe"));
    // A pipe without a writer holds up whoever reads it.
    assert!(Command::new("mkfifo").arg(&signers).status().unwrap().success());
    let source = "{name: shop, repository: repo, ref: main, path: edge, verify: {allowed_signers_file: signers}}";
    folder.write(CONFIG, &format!("sources:\n- {source}\n"));
    let serve = folder.serve("");
    assert_eq!(serve.get("/healthz").status, 200);
    let ready = serve.get("/readyz");
    let is_starting = ready.body.contains("Unknown (Starting): the first sync has not finished");
    assert_eq!((ready.status, is_starting), (503, true), "{}", ready.body);
    assert_eq!(serve.get("/sources").status, 200);
    // The sync goes on, and the next one reads a file.
    fs::rename(&signers, &pipe).unwrap();
    folder.write("signers", "");
    drop(OpenOptions::new().write(true).open(&pipe).unwrap());
    in_state(&serve, "shop", "Refused");
    assert_eq!(serve.stop().code, 0);
}
