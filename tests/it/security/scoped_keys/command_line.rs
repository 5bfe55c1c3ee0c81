//! Scopes on the command line.

use crate::support::{
    manifests::edge_with,
    program::{Folder, Run, finish},
    users::{client, run_with_token},
};

#[test]
fn the_command_line_sets_scopes_and_counts_keys_without_limits() {
    let folder = Folder::new();
    let limited = folder.ok(
        "keys create --owner bot_shop --apply shop --kind TlsCertificate --action update --host *.shop.example.com",
    );
    assert!(!limited.err.contains("every source"), "{}", limited.err);
    let quiet = folder.ok("keys list");
    assert!(
        quiet.out.contains("  apply=shop kinds=TlsCertificate actions=update hosts=*.shop.example.com  "),
        "{}",
        quiet.out
    );
    assert!(!quiet.err.contains("every source"), "{}", quiet.err);
    let wide = folder.ok("keys create --owner bot_shop");
    for said in ["The key has the role editor and may apply every source.", "another with --role or --apply SOURCE"] {
        assert!(wide.err.contains(said), "{}", wide.err);
    }
    for command in ["keys list", "owners list"] {
        let run = folder.ok(command);
        assert!(run.err.starts_with("Key ak_"), "{command}: {}", run.err);
        let said = " may apply every source: create another with --apply SOURCE, and revoke it\n";
        assert!(run.err.ends_with(said) && run.err.lines().count() == 1, "{command}: {}", run.err);
    }
    let listed = folder.ok("keys list").out;
    assert!(listed.contains("  every source  "), "{listed}");
    let serve = folder.serve("");
    for line in ["keys list", "owners list"] {
        let run = client(&folder, &serve, line);
        assert_eq!(run.err.matches("may apply every source").count(), 1, "an admin's is none: {line}: {}", run.all());
    }
    drop(serve);
    for (options, words) in [
        ("--apply team*shop", "`*` can only end the name of a source"),
        ("--kind TlsCertificat", "did you mean `TlsCertificate`?"),
        ("--expires-at soon", "`expires_at` must be a time"),
        ("--address 10.0.0.1/8", "is not a network"),
        ("--host docs-*", "`docs-*` is not a host"),
        ("--scope-role viewer --all-secrets", "`secrets` cannot be true"),
        ("--expires-at 2020-01-01T00:00:00Z", "--expires-at 2020-01-01T00:00:00Z is in the past"),
        ("--role gateway --apply docs", "a gateway key reads the configuration of all sources"),
        ("--role gateway --apply docs", "help: omit --apply"),
        ("--role gateway --address 192.0.2.0/24", "help: add --all-secrets"),
        ("--owner docs", "an owner begins with usr_ or bot_; did you mean bot_docs?"),
    ] {
        let refused = folder.run(&format!("keys create {options}"));
        assert!(refused.code != 0 && refused.err.contains(words), "{options}: {}", refused.all());
    }
}

#[test]
fn a_key_of_a_team_says_what_it_may_do() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge_with("a", "{}"));
    let serve = folder.serve("");
    let token = client(&folder, &serve, "keys create --owner bot_docs --apply docs").out;
    let team = |line: &str| run_with_token(&folder, &serve, token.trim(), line);
    let unnamed = team("reconcile m");
    for said in [
        "does not allow it to plan source `default`; it may apply `docs`\n",
        "  help: name a source, with `--source docs` on the command line, or ask an admin: usr_",
    ] {
        assert!(unnamed.code == 1 && unnamed.err.contains(said), "{}", unnamed.all());
    }
    let other = team("reconcile m --source shop");
    assert!(other.err.contains("source `shop`; it may apply `docs`\n  help: ask an admin: usr_"), "{}", other.all());
    for options in ["--owner bot_shop", "--owner bot_shop --role editor"] {
        let run = team(&format!("keys create {options}"));
        assert!(run.code == 1 && run.err.contains("only admins can create keys for `bot_shop`"), "{}", run.all());
    }
}

#[test]
fn a_misspelt_source_is_told_and_an_impossible_one_refused() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge_with("a", "{}"));
    folder.ok("reconcile --source shop m");
    let serve = folder.serve("--store other");
    let of_store = |options: &str| folder.run(&format!("keys create --role planner {options}"));
    assert_eq!(client(&folder, &serve, "reconcile --source shop m").code, 0);
    let of_server = |options: &str| client(&folder, &serve, &format!("keys create --role planner {options}"));
    for create in [&of_store as &dyn Fn(&str) -> Run, &of_server] {
        for (options, said) in [
            ("--apply shpo", "No source is called `shpo` yet. Did you mean `shop`?"),
            ("--plan docs-*", "No source begins with `docs-` yet."),
        ] {
            let run = create(options);
            assert!(run.code == 0 && run.err.contains(said), "{options}: {}", run.all());
        }
        for options in ["--apply shop", "--plan sh*", "--apply *"] {
            let run = create(options);
            assert!(run.code == 0 && !run.err.contains("No source"), "{options}: {}", run.all());
        }
    }
    for create in [&of_store as &dyn Fn(&str) -> Run, &of_server] {
        for (options, said) in [
            ("--apply shop", "The role planner cannot apply: this key can only plan source shop."),
            ("--apply shop,docs", "The role planner cannot apply: this key can only plan sources shop, docs."),
            ("--apply *", "The role planner cannot apply: this key can only plan every source."),
        ] {
            let run = create(options);
            assert!(run.code == 0 && run.err.contains(said), "{options}: {}", run.all());
        }
        assert!(!create("--plan shop").err.contains("cannot apply"));
    }
    let mut spaced = folder.command("keys create --store new --apply");
    spaced.arg("Team Shop").env_remove("EDGEWRIGHT_STORE");
    let run = finish(spaced, "");
    assert!(run.code == 1 && run.err.contains("a source name cannot contain spaces"), "{}", run.all());
    assert!(!folder.path("new").exists(), "no key and no store");
}
