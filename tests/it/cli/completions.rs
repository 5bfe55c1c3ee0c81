//! Completion in a shell: kinds, names and sources of a store, silently and without a change.

use std::process::Command;

use crate::support::program::{Folder, PROGRAM, finish, until};

/// What a script gets for the last of some words; none if it completes the word itself.
fn completed(folder: &Folder, words: &[&str]) -> Option<Vec<String>> {
    let mut command = folder.command("__complete");
    command.args(words);
    let run = finish(command, "");
    assert!(run.code <= 1 && run.err.is_empty(), "{words:?}: {}", run.all());
    (run.code == 0).then(|| run.out.lines().map(str::to_owned).collect())
}

#[test]
fn words_are_completed_from_the_store() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile --source shop storefront");
    // On a busy machine, the time of an answer may be over before there is one.
    let lists = |words: &[&str], expected: &[&str]| {
        until(&format!("{expected:?} for {words:?}"), || {
            (completed(&folder, words).unwrap() == expected).then_some(())
        });
    };
    lists(&["get", "edg"], &["edges"]);
    lists(&["get", "edges", "sto"], &["storefront"]);
    lists(&["get", "routes", "--edge", "sto"], &["storefront"]);
    lists(&["blame", "storefront/che"], &["storefront/checkout"]);
    lists(&["get", "routes", "sto"], &["storefront/"]);
    lists(&["get", "routes", "storefront/che"], &["storefront/checkout"]);
    lists(&["suspend", ""], &["shop"]);
    lists(&["transfer", "--from", "shop", "--to", "docs", "edge/sto"], &["edge/storefront"]);
    lists(&["explain", "shadowed"], &["shadowed-route"]);
    lists(&["reconcile", "--source=s"], &["shop"]);
    lists(&["reconcile", "--source", "=", "s"], &["shop"]);
    lists(&["reconcile", "--format", "j"], &["json", "junit"]);
    lists(&["schema", "open"], &["openapi"]);
    lists(&["completions", "z"], &["zsh"]);
    lists(&["rollback", "--to", ""], &[]);
    // What the script knows itself.
    for words in [&["get", "edges", "--fil"] as &[&str], &["plan", ""], &[]] {
        assert_eq!(completed(&folder, words), None, "{words:?}");
    }
    // What only a server knows, and no file has.
    lists(&["get", "edges", "--server", "http://127.0.0.1:1", ""], &[]);
    lists(&["get", "edges", "--store", "none", ""], &[]);
    assert!(!folder.path("none").exists());
    // A store that a server has open is left alone.
    let serve = folder.serve("");
    completed(&folder, &["get", "edges", ""]);
    assert_eq!(serve.stop().code, 0);
}

#[test]
fn words_are_completed_from_the_server_that_the_command_uses() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile --source shop storefront");
    let serve = folder.serve("");
    let url = format!("http://{}", serve.address);
    let lists = |variables: &[(&str, &str)], line: &str, expected: &[&str]| {
        until(&format!("{expected:?} for {line:?}"), || {
            let mut command = folder.command("__complete");
            command.args(line.split(' ')).envs(variables.iter().copied());
            let run = finish(command, "");
            assert!(run.code == 0 && run.err.is_empty(), "{line}: {}", run.all());
            (run.out.lines().collect::<Vec<_>>() == expected).then_some(())
        });
    };
    let variables = [("EDGEWRIGHT_SERVER", url.as_str()), ("EDGEWRIGHT_TOKEN", serve.token.as_str())];
    lists(&variables, "get edges s", &["storefront"]);
    lists(&variables, "blame storefront/che", &["storefront/checkout"]);
    lists(&variables, "get routes sto", &["storefront/"]);
    lists(&variables, "get routes storefront/che", &["storefront/checkout"]);
    lists(&variables, "transfer --from shop --to docs edge/s", &["edge/storefront"]);
    lists(&variables, "suspend ", &["shop"]);
    lists(&variables, "status --source=", &["shop"]);
    let keys = serve.get("/api_keys").json();
    lists(&variables, "keys revoke ", &[keys["keys"][0]["id"].as_str().unwrap()]);
    let token = &variables[1..];
    lists(token, &format!("get edges --server={url} s"), &["storefront"]);
    let split = url.replace(':', " : ");
    lists(token, &format!("get edges --server {split} s"), &["storefront"]);
    // Without the token, and with another choice, even after what is not read.
    lists(&variables[..1], "get edges ", &[]);
    lists(&variables, "get edges --unknown --server http://127.0.0.1:1 ", &[]);
    lists(&variables, "get edges --store none ", &[]);
    assert_eq!(serve.stop().code, 0);
}

#[test]
fn the_script_for_bash_asks_the_program() {
    let folder = Folder::with_storefront();
    folder.ok("reconcile storefront");
    let script = format!(
        "source <({PROGRAM} completions bash); COMP_WORDS=({PROGRAM} get edges sto); COMP_CWORD=3; \
         _edgewright {PROGRAM} sto edges; echo \"${{COMPREPLY[@]}}\"; COMP_WORDS=({PROGRAM} valid); COMP_CWORD=1; \
         _edgewright {PROGRAM} valid {PROGRAM}; echo \"${{COMPREPLY[@]}}\""
    );
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).current_dir(folder.path("")).env("EDGEWRIGHT_STORE", "store");
    let run = finish(bash, "");
    assert_eq!(run.out, "storefront\nvalidate\n", "{}", run.all());
    for (shell, asks) in [
        ("bash", "compopt +o bashdefault +o default"),
        ("zsh", "compadd -- ${${(f)names}:#*/}"),
        ("fish", "complete -c edgewright -f -n '__edgewright_ask >/dev/null'"),
    ] {
        let script = folder.ok(&format!("completions {shell}")).out;
        assert_eq!(script.matches(asks).count(), 1, "{shell}");
        assert!(!script.contains("Write the generated pages") && !script.contains("edgewright,reference"), "{shell}");
    }
}
