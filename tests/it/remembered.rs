//! Dry runs that had nothing to do are remembered beside the store (D73), and what is remembered changes no outcome.

use std::{fs, os::unix::fs::symlink};

use crate::cli::{Folder, Run, http};

const MEMORY: &str = "store/remembered";
const SHOP: &str = "storefront/shop/storefront.yaml";
/// A part of a manifest that a test changes.
const BACKEND: &str = "bkd_1";

/// A folder with the example applied, and a warning in it.
fn applied() -> Folder {
    let folder = Folder::with_storefront();
    let lonely = "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {name: lonely}\nspec: {compression: {}}\n";
    folder.write("storefront/lonely.yaml", lonely);
    folder.ok("reconcile storefront");
    folder
}

fn same(one: &Run, other: &Run) {
    assert_eq!((one.code, &one.out, &one.err), (other.code, &other.out, &other.err));
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

/// An edge in a file that is long enough for the cache of parsed files.
fn edge(name: &str) -> String {
    format!(
        "{}apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec:\n  hostports: ['{name}.example.com:443']\n  \
         routes: [{{match_type: path_prefix, match: /, backend: {{backend_id: {BACKEND}}}}}]\n",
        "# A comment.\n".repeat(200)
    )
}

/// A folder with three edges that are applied, and in the cache of parsed files.
fn with_edges() -> Folder {
    let folder = Folder::new();
    for name in ["a", "b", "c"] {
        folder.write(&format!("m/{name}.yaml"), &edge(name));
    }
    folder.ok("reconcile m");
    // The first run had no store to keep them beside.
    folder.ok("plan --out plan.json m");
    folder
}

#[test]
fn a_change_of_few_files_is_planned_without_the_state() {
    let folder = with_edges();
    folder.edit("m/b.yaml", BACKEND, "bkd_2");
    folder.edit("m/c.yaml", "kind:", "# Another comment.\nkind:");
    let lines = ["plan --detailed-exitcode m", "plan --format json m", "reconcile --dry-run --format markdown m"];
    let expected = lines.map(|line| folder.run(&format!("{line} --no-cache")));
    assert_eq!(expected[0].code, 2, "{}", expected[0].all());
    damage_state(&folder);
    for (line, expected) in lines.iter().zip(&expected) {
        same(expected, &folder.run(line));
    }
    // Another host may be one of other edges, so all are read.
    folder.edit("m/b.yaml", "b.example.com", "d.example.com");
    assert_eq!(folder.run("plan m").code, 1);
}

#[test]
fn a_change_takes_what_it_needs_from_other_files() {
    let folder = Folder::new();
    let manifest = |kind: &str, name: &str, spec: &str| {
        format!("---\napiVersion: edgewright/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {spec}\n")
    };
    let route = |edge: &str, set: &str| {
        let fields = "match_type: path_prefix, match: /cart";
        format!("{{edge: {edge}, {fields}, backend: {{backend_id: {BACKEND}}}, modules_from: [{set}]}}")
    };
    let edges = ["shop", "other"]
        .map(|name| manifest("HttpsEdge", name, &format!("{{hostports: ['{name}.example.com:443']}}")));
    let sets = ["small", "large"].map(|name| manifest("ModuleSet", name, "{compression: {}}"));
    folder.write("m/edges.yaml", &edges.concat());
    folder.write("m/sets.yaml", &sets.concat());
    folder.write("m/other.yaml", &manifest("HttpsEdgeRoute", "other", &route("other", "large")));
    let comment = "# A comment.\n".repeat(200);
    folder.write("m/cart.yaml", &format!("{comment}{}", manifest("HttpsEdgeRoute", "cart", &route("shop", "small"))));
    folder.ok("reconcile m");
    folder.ok("plan --out plan.json m");
    folder.edit("m/cart.yaml", BACKEND, "bkd_2");
    let planned = folder.ok("plan --no-cache m");
    assert!(planned.out.contains("1 to change") && planned.out.contains("3 unchanged"), "{}", planned.all());
    damage_state(&folder);
    same(&planned, &folder.ok("plan m"));
}

#[test]
fn whatever_is_left_of_a_run_a_change_has_the_same_plan() {
    let folder = with_edges();
    let ties = walkdir::WalkDir::new(folder.path("store/ties")).into_iter().map(Result::unwrap);
    let ties = ties.into_iter().find(|entry| entry.file_type().is_file() && entry.file_name() != "swept");
    let ties = ties.unwrap().into_path();
    folder.edit("m/b.yaml", BACKEND, "bkd_2");
    let planned = folder.run("plan --no-cache m");
    let whole = fs::read(&ties).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 12) {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        fs::write(&ties, &flipped).unwrap();
        same(&planned, &folder.run("plan m"));
        fs::write(&ties, &whole[..at]).unwrap();
        same(&planned, &folder.run("plan m"));
    }
    fs::write(&ties, &whole).unwrap();
    fs::remove_dir_all(folder.path("store/parsed")).unwrap();
    same(&planned, &folder.run("plan m"));
    fs::remove_dir_all(folder.path("store/ties")).unwrap();
    symlink(folder.path("m"), folder.path("store/ties")).unwrap();
    same(&planned, &folder.run("plan m"));
    folder.ok("reconcile m");
    same(&folder.ok("plan --no-cache m"), &folder.ok("plan m"));
}

#[test]
fn what_others_have_changed_is_told_in_the_plan_of_a_change() {
    let folder = with_edges();
    let served = folder.serve("");
    let edges = served.get("/edges/https").body;
    let id = edges.split("\"edghts_").nth(1).unwrap().split('"').next().unwrap();
    let patched = served.call("PATCH", &format!("/edges/https/edghts_{id}"), "{\"description\":\"by hand\"}");
    assert_eq!((patched.status, served.stop().code), (200, 0));
    // The manifests take over what was set by hand, so that there is nothing to do.
    for name in ["a", "b", "c"] {
        folder.edit(&format!("m/{name}.yaml"), "spec:\n", "spec:\n  description: by hand\n");
    }
    folder.ok("reconcile m");
    folder.ok("plan --out again.json m");
    assert!(folder.ok("plan m").out.starts_with("No changes"));
    for name in ["a", "b", "c"] {
        folder.edit(&format!("m/{name}.yaml"), "by hand", "mine");
    }
    let planned = folder.ok("plan --no-cache m");
    assert!(planned.out.contains("1 conflict"), "{}", planned.all());
    same(&planned, &folder.ok("plan m"));
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
        crate::cli::finish(command, "")
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
    let steps = whole.len() / 12;
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

/// The texts of 64 hexadecimal digits in the files at a path.
fn digests_in(folder: &Folder, path: &str) -> Vec<String> {
    let files = walkdir::WalkDir::new(folder.path(path)).into_iter().map(Result::unwrap);
    let texts = files.filter(|file| file.file_type().is_file()).map(|file| fs::read(file.path()).unwrap());
    let texts: Vec<String> = texts.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect();
    let words = texts.iter().flat_map(|text| text.split(|letter: char| !letter.is_ascii_hexdigit()));
    words.filter(|word| word.len() >= 64).map(|word| word[..64].to_owned()).collect()
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
    let kept = [digests_in(&folder, MEMORY), digests_in(&folder, "store/ties")];
    assert!(kept.iter().all(|digests| !digests.is_empty()), "{kept:?}");
    let text = folder.read(MEMORY);
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
        assert!(!kept.concat().contains(&guess.to_hex().to_string()), "{guess}");
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
    let folder = with_edges();
    folder.ok("plan m");
    assert!(folder.path(MEMORY).exists() && folder.path("store/ties").exists());
    folder.ok("store rekey --forget-secrets");
    assert!(!folder.path(MEMORY).exists() && !folder.path("store/ties").exists());
    assert!(folder.ok("plan m").out.starts_with("No changes"));
    assert!(folder.path(MEMORY).exists());
}
