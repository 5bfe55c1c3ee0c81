//! Files that were parsed before are not parsed again (D75), and the cache changes no outcome.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use crate::cli::{Folder, Run, finish, until};

/// The cache beside the store.
const BESIDE: &str = "store/parsed";

/// An edge in a file that is long enough to be kept.
fn edge(name: &str) -> String {
    format!(
        "{}apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec:\n  hostports: ['{name}.example.com:443']\n  \
         routes: [{{match_type: path_prefix, match: /, backend: {{backend_id: bkd_1}}}}]\n",
        "# A comment.\n".repeat(200)
    )
}

/// A folder with three files.
fn with_manifests() -> Folder {
    let folder = Folder::new();
    for name in ["a", "b", "c"] {
        folder.write(&format!("m/{name}.yaml"), &edge(name));
    }
    folder
}

/// The entries of a cache, in order.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let walk = walkdir::WalkDir::new(folder).sort_by_file_name().into_iter().filter_map(Result::ok);
    let files = walk.filter(|entry| entry.file_type().is_file() && entry.file_name() != "swept");
    files.map(walkdir::DirEntry::into_path).collect()
}

/// Runs a line with the user's cache in a folder.
fn run_in(folder: &Folder, line: &str, caches: &Path) -> Run {
    let mut command = folder.command(line);
    command.env("XDG_CACHE_HOME", caches);
    finish(command, "")
}

fn same(one: &Run, other: &Run) {
    assert_eq!((one.code, &one.out, &one.err), (other.code, &other.out, &other.err));
}

#[test]
fn a_run_keeps_what_it_parses_beside_its_store() {
    let folder = with_manifests();
    folder.write(
        "small/a.yaml",
        "apiVersion: edgewright/v1\nkind: IpRestriction\nmetadata: {name: a}\nspec: {type: api}\n",
    );
    let beside = folder.path(BESIDE);
    // The first run has no store yet.
    folder.ok("reconcile m");
    folder.ok("plan --no-cache m");
    folder.ok("plan --source other small");
    assert!(!beside.exists());
    let lines = ["plan --out plan.json m", "reconcile --dry-run m", "reconcile m"];
    for line in lines {
        let _ = (fs::remove_dir_all(&beside), fs::remove_file(folder.path("store/remembered")));
        let cold = folder.run(line);
        assert_eq!(entries(&beside).len(), 3, "{line}");
        same(&cold, &folder.run(line));
    }
    folder.write("m/b.yaml", &edge("b").replace("bkd_1", "bkd_2"));
    let changed = folder.run("plan --detailed-exitcode m");
    assert_eq!((changed.code, entries(&beside).len()), (2, 4), "{}", changed.all());
    same(&changed, &folder.run("plan --detailed-exitcode --no-cache m"));
    assert_eq!((folder.mode(BESIDE), folder.mode("store/parsed/swept")), (0o700, 0o600));
    for entry in entries(&beside) {
        assert_eq!(fs::metadata(entry).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // A store with a cache in its folder is still one.
    folder.ok("reconcile m");
    folder.ok("history verify");
}

#[test]
fn a_command_without_a_store_uses_the_cache_of_the_user() {
    let folder = with_manifests();
    folder.write("n/a.yaml", &edge("d"));
    for (line, kept) in [("validate m", 3), ("plan m", 3), ("diff m n", 4)] {
        let caches = folder.path(&format!("caches-{kept}-{}", &line[..4]));
        let cold = run_in(&folder, line, &caches);
        assert_eq!(entries(&caches.join("edgewright/parsed")).len(), kept, "{line}");
        same(&cold, &run_in(&folder, line, &caches));
        same(&cold, &folder.run(line));
        let none = folder.path("none");
        same(&cold, &run_in(&folder, &format!("{line} --no-cache"), &none));
        let mut command = folder.command(line);
        command.env("XDG_CACHE_HOME", &none).env("EDGEWRIGHT_NO_CACHE", "true");
        same(&cold, &finish(command, ""));
        assert!(!none.exists());
    }
    // Without the variable, or with a path that is not absolute, it is in the home folder.
    for setting in [None, Some("caches")] {
        let home = folder.path(&format!("home-{}", setting.is_some()));
        fs::create_dir(&home).unwrap();
        let mut command = folder.command("validate m");
        match setting {
            Some(value) => command.env("XDG_CACHE_HOME", value),
            None => command.env_remove("XDG_CACHE_HOME"),
        };
        command.env("HOME", &home);
        assert_eq!(finish(command, "").code, 0);
        assert_eq!(entries(&home).len(), 3);
    }
    assert!(!folder.path("caches").exists());
}

#[test]
fn damage_in_the_cache_is_neither_seen_nor_trusted() {
    let folder = with_manifests();
    folder.ok("reconcile m");
    let settled = folder.ok("plan --out plan.json m");
    let all = entries(&folder.path(BESIDE));
    let again = || same(&settled, &folder.ok("plan --out plan.json m"));
    let whole: Vec<Vec<u8>> = all.iter().map(|path| fs::read(path).unwrap()).collect();
    fs::write(&all[0], &whole[1]).unwrap();
    fs::write(&all[1], &whole[0][..whole[0].len() / 2]).unwrap();
    fs::remove_file(&all[2]).unwrap();
    again();
    assert_eq!(all.iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>(), whole, "it is repaired");
    fs::remove_file(&all[0]).unwrap();
    fs::create_dir(&all[0]).unwrap();
    folder.write("elsewhere", "mine");
    fs::remove_file(&all[1]).unwrap();
    symlink(folder.path("elsewhere"), &all[1]).unwrap();
    again();
    assert_eq!(folder.read("elsewhere"), "mine");
    fs::remove_dir_all(folder.path(BESIDE)).unwrap();
    fs::create_dir(folder.path("away")).unwrap();
    symlink(folder.path("away"), folder.path(BESIDE)).unwrap();
    again();
    assert_eq!(fs::read_dir(folder.path("away")).unwrap().count(), 0);
    fs::remove_file(folder.path(BESIDE)).unwrap();
    folder.write(BESIDE, "a file");
    again();
    assert_eq!(folder.read(BESIDE), "a file");
}

#[test]
fn no_secret_of_a_manifest_is_kept() {
    let folder = with_manifests();
    let hook = |name: &str, secret: &str| {
        edge(name).replace("bkd_1}", &format!("bkd_1}}, webhook_verification: {{provider: github, secret: {secret}}}"))
    };
    folder.write("m/plain.yaml", &hook("plain", "canary-in-the-manifest"));
    folder.write("secret", "canary-in-a-file");
    folder.write("m/value.yaml", &hook("value", "{from_file: ../secret}"));
    let caches = folder.path("caches");
    let run = run_in(&folder, "validate --allow-outside-files m", &caches);
    assert_eq!(run.code, 0, "{}", run.all());
    let kept = entries(&caches);
    assert_eq!(kept.len(), 3);
    for entry in kept {
        let bytes = fs::read(entry).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"canary"));
    }
    same(&run, &run_in(&folder, "validate --allow-outside-files m", &caches));
}

#[test]
fn a_server_keeps_what_it_parses_and_reads_it_at_its_next_start() {
    let folder = with_manifests();
    let beside = folder.path(BESIDE);
    let serve = folder.serve("--manifests m");
    // They are written after the first look.
    let is_whole = |path: &PathBuf| path.extension().is_none();
    until("three entries", || (entries(&beside).iter().filter(|path| is_whole(path)).count() == 3).then_some(()));
    assert_eq!(serve.stop().code, 0);
    let _ = fs::remove_file(folder.path("store/remembered"));
    // An entry that is used is marked, at most once a day.
    let long_ago = SystemTime::now() - Duration::from_secs(2 * 24 * 3600);
    for path in entries(&beside) {
        fs::File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
    }
    let serve = folder.serve("--manifests m");
    assert_eq!(serve.get("/readyz").status, 200);
    let edges = serve.get("/edges/https").json();
    assert_eq!(edges["https_edges"].as_array().unwrap().len(), 3);
    for path in entries(&beside) {
        let used = fs::metadata(&path).unwrap().modified().unwrap();
        assert!(used > long_ago + Duration::from_secs(3600), "{} was not read", path.display());
    }
    assert_eq!(serve.stop().code, 0);
}
