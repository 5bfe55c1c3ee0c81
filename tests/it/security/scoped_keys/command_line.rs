//! Scopes on the command line.

use crate::support::{
    manifests::edge_with,
    program::{Folder, Run, finish},
    users::client,
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
    assert!(wide.err.contains("--apply SOURCE"), "{}", wide.err);
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
    ] {
        let refused = folder.run(&format!("keys create {options}"));
        assert!(refused.code != 0 && refused.err.contains(words), "{options}: {}", refused.all());
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
    let mut spaced = folder.command("keys create --store new --apply");
    spaced.arg("Team Shop").env_remove("EDGEWRIGHT_STORE");
    let run = finish(spaced, "");
    assert!(run.code == 1 && run.err.contains("a source name cannot contain spaces"), "{}", run.all());
    assert!(!folder.path("new").exists(), "no key and no store");
}
