//! Dry runs that had nothing to do are remembered beside the store (D73), and what is remembered changes no outcome.

use std::{fs, os::unix::fs::symlink};

use crate::support::{
    http::http,
    program::{Folder, Run, finish, rounds},
};

const MEMORY: &str = "store/remembered";
const SHOP: &str = "storefront/shop/storefront.yaml";

/// A folder with the example applied, and a warning in it.
fn applied() -> Folder {
    let folder = Folder::with_storefront();
    let lonely = "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: lonely}\nspec: {compression: {}}\n";
    folder.write("storefront/lonely.yaml", lonely);
    folder.ok("reconcile storefront");
    folder
}

/// Whether two runs say the same. Only a slow one tells its progress.
fn same(one: &Run, other: &Run) {
    let said =
        |run: &Run| run.err.lines().filter(|line| !line.starts_with("Planning …")).collect::<Vec<_>>().join("\n");
    assert_eq!((one.code, &one.out, said(one)), (other.code, &other.out, said(other)));
}

#[test]
fn a_remembered_dry_run_says_the_same_as_the_first() {
    let folder = applied();
    for line in ["plan storefront", "plan --format json storefront", "reconcile --dry-run --format sarif storefront"] {
        let _ = fs::remove_file(folder.path(MEMORY));
        let fresh = folder.run(&format!("{line} --no-cache"));
        assert!(!folder.path(MEMORY).exists());
        same(&fresh, &folder.run(line));
        assert_eq!(folder.mode(MEMORY), 0o600);
        same(&fresh, &folder.run(line));
    }
    let plan = folder.ok("plan storefront");
    assert!(plan.out.starts_with("No changes") && plan.err.contains("unused-module-set"), "{}", plan.all());
}

#[test]
fn runs_leave_nothing_but_what_is_remembered() {
    let folder = applied();
    folder.edit(SHOP, "Product pages", "All products");
    for line in ["plan storefront", "reconcile storefront", "validate storefront", "diff storefront storefront"] {
        for no_cache in ["false", "true"] {
            let mut command = folder.command(line);
            command.env("HOME", folder.path("")).env("XDG_CACHE_HOME", folder.path("caches"));
            // Commands without the option ignore the variable.
            command.env("EDGEWRIGHT_NO_CACHE", no_cache);
            assert_eq!(finish(command, "").code, 0, "{line}");
        }
    }
    assert!(!folder.path("caches").exists() && !folder.path(".cache").exists());
    let folders = walkdir::WalkDir::new(folder.path("store")).max_depth(1).into_iter().map(Result::unwrap);
    let names: Vec<String> = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|name| name == "parsed" || name == "ties"), "{names:?}");
    for command in ["validate", "diff"] {
        let run = folder.run(&format!("{command} --no-cache storefront"));
        assert!(run.code == 1 && run.err.contains("unexpected argument '--no-cache'"), "{}", run.all());
    }
}

/// Damages the state, and a record that leads to it. A fault inside of them is only found by reading: length and time stay as
/// they were.
fn damage_state(folder: &Folder) {
    let entries = fs::read_dir(folder.path("store")).unwrap().map(|entry| entry.unwrap().path());
    let state = entries.into_iter().find(|path| path.to_string_lossy().contains("/state.")).unwrap();
    for path in [state.join("db"), folder.path("store/log.0000000001")] {
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        let mut damaged = fs::read(&path).unwrap();
        let at = damaged.len() / 2;
        damaged[at] ^= 1;
        fs::write(&path, damaged).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    }
}

#[test]
fn a_remembered_dry_run_reads_no_state() {
    // The apply is remembered, too.
    let folder = applied();
    damage_state(&folder);
    folder.ok("plan storefront");
    assert_ne!(folder.run("plan --no-cache storefront").code, 0);
}

#[test]
fn every_change_is_seen() {
    let folder = applied();
    let settled = folder.ok("plan --detailed-exitcode storefront");
    let text = folder.read(SHOP);
    folder.edit(SHOP, "Product pages", "All products");
    assert_eq!(folder.run("plan --detailed-exitcode storefront").code, 2);
    folder.write(SHOP, &text);
    same(&settled, &folder.run("plan --detailed-exitcode storefront"));
    folder.write("storefront/new.yaml", "kind: [");
    assert_eq!(folder.run("plan storefront").code, 3);
    fs::remove_file(folder.path("storefront/new.yaml")).unwrap();
    same(&settled, &folder.run("plan --detailed-exitcode storefront"));
    // Options have runs of their own.
    assert_eq!(folder.run("plan --source other storefront").code, 3);
    same(&settled, &folder.run("plan --detailed-exitcode storefront"));
    // The state.
    folder.ok("keys create --store store --role editor");
    let other = folder.ok("plan storefront");
    assert_eq!(other.out, folder.ok("plan --no-cache storefront").out);
}

#[test]
fn a_value_from_the_environment_is_part_of_the_run() {
    let folder = Folder::new();
    let manifest = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\nspec:\n  hostports: ['a.example.com:443']\n  \
                    routes:\n    - match_type: path_prefix\n      match: /\n      backend: {backend_id: bkd_1}\n      \
                    webhook_verification: {provider: github, secret: {from_env: HOOK}}\n";
    folder.write("edges/a.yaml", manifest);
    let run = |line: &str, secret: &str| {
        let mut command = folder.command(line);
        command.env("HOOK", secret);
        finish(command, "")
    };
    assert_eq!(run("reconcile edges", "one-secret-of-a-webhook").code, 0);
    for _ in 0..2 {
        assert_eq!(run("plan --detailed-exitcode edges", "one-secret-of-a-webhook").code, 0);
    }
    assert!(!folder.read(MEMORY).contains("one-secret"));
    assert_eq!(run("plan --detailed-exitcode edges", "another-secret").code, 2);
    assert_eq!(run("plan --detailed-exitcode edges", "").code, 3);
}

#[test]
fn whatever_is_in_the_file_the_outcome_is_the_same() {
    let folder = applied();
    let settled = folder.ok("plan storefront");
    let whole = fs::read(folder.path(MEMORY)).unwrap();
    let steps = whole.len() / rounds(5, 12);
    for at in (0..whole.len()).step_by(steps) {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        fs::write(folder.path(MEMORY), &flipped).unwrap();
        same(&settled, &folder.run("plan storefront"));
        fs::write(folder.path(MEMORY), &whole[..at]).unwrap();
        same(&settled, &folder.run("plan storefront"));
    }
    fs::remove_file(folder.path(MEMORY)).unwrap();
    fs::create_dir(folder.path(MEMORY)).unwrap();
    same(&settled, &folder.run("plan storefront"));
    fs::remove_dir(folder.path(MEMORY)).unwrap();
    folder.write("elsewhere", "mine");
    symlink(folder.path("elsewhere"), folder.path(MEMORY)).unwrap();
    same(&settled, &folder.run("plan storefront"));
    assert_eq!(folder.read("elsewhere"), "mine");
}

#[test]
fn a_server_starts_from_what_is_remembered() {
    let folder = applied();
    let started = |line: &str| {
        let served = folder.serve(line);
        let ready = http(&served.address, "GET", "/readyz", &[], "");
        assert_eq!((ready.status, ready.body.as_str()), (200, "ready\n"));
        assert_eq!(served.stop().code, 0);
        // A run that is remembered anew has another salt.
        fs::read(folder.path(MEMORY)).unwrap()
    };
    let first = started("--manifests storefront");
    assert_eq!(started("--manifests storefront"), first);
    folder.edit(SHOP, "Product pages", "All products");
    let served = folder.serve("--manifests storefront");
    assert!(served.get("/edges/https").body.contains("All products"));
    assert_eq!(served.stop().code, 0);
    let applied = fs::read(folder.path(MEMORY)).unwrap();
    assert_ne!(applied, first);
    assert_eq!(started("--manifests storefront"), applied);
}

/// The digests in a text: the words that begin with 64 hexadecimal digits.
fn digests_in(text: &str) -> Vec<&str> {
    text.split(|letter: char| !letter.is_ascii_hexdigit()).filter_map(|word| word.get(..64)).collect()
}

#[test]
fn nothing_that_is_kept_confirms_a_guess() {
    let folder = Folder::new();
    let route = "    - match_type: path_prefix\n      match: /\n      backend: {backend_id: bkd_1}\n";
    let manifest = |name: &str, secret: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec:\n  hostports: ['{name}.example.com:443']\n  \
             routes:\n{route}      webhook_verification: {{provider: github, secret: {secret}}}\n"
        )
    };
    let inline = manifest("a", "hunter2-of-a-webhook");
    folder.write("m/a.yaml", &inline);
    folder.write("m/b.yaml", &manifest("b", "{from_file: b.txt}"));
    folder.write("m/b.txt", "hunter2-in-a-file");
    folder.ok("reconcile m");
    let text = folder.read(MEMORY);
    let kept = digests_in(&text);
    assert!(!kept.is_empty(), "{text}");
    let (_, salt) = text.split_once("\"salt\":\"").unwrap();
    let salt = salt.split('"').next().unwrap();
    let mut value = blake3::Hasher::new_derive_key("edgewright 2026 value of a remembered run");
    value.update(salt.as_bytes()).update(b"hunter2-in-a-file");
    let mut guesses = vec![value.finalize()];
    for name in ["a.yaml", "m/a.yaml"] {
        let mut file = blake3::Hasher::new();
        file.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes()).update(inline.as_bytes());
        guesses.push(file.finalize());
    }
    for guess in guesses {
        assert!(!kept.contains(&guess.to_hex().as_str()), "{guess}");
    }
    // A run that was remembered with another master key, or that was made up without one, is none.
    folder.ok("plan m");
    damage_state(&folder);
    folder.ok("plan m");
    fs::rename(folder.path("store.master.key"), folder.path("elsewhere.key")).unwrap();
    assert_ne!(folder.run("plan m").code, 0);
}

#[test]
fn new_keys_leave_nothing_of_earlier_runs() {
    let folder = applied();
    assert!(folder.path(MEMORY).exists());
    folder.ok("store rekey --forget-secrets");
    assert!(!folder.path(MEMORY).exists());
    assert!(folder.ok("plan storefront").out.starts_with("No changes"));
    assert!(folder.path(MEMORY).exists());
}
