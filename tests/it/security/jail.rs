//! Nothing outside the given folders is read (D50): no manifest and no value, through no link.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use edgewright::{Disk, ManifestFile, Tree, report::Format};

use crate::support::{
    manifests::bare_edge,
    program::{Folder, finish},
};

const MARKER: &str = "outside-7f3a91";

fn authority(file: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: CertificateAuthority\nmetadata: {{name: staff}}\n\
         spec: {{ca_pem: {{from_file: {file}}}}}\n"
    )
}

fn staff_pem() -> String {
    fs::read_to_string(format!("{}/examples/storefront/certs/staff-devices.pem", crate::support::program::REPOSITORY))
        .unwrap()
}

#[test]
fn a_link_to_the_environment_shows_nothing_of_it() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &bare_edge("a", ""));
    symlink("/proc/self/environ", folder.path("m/x.yaml")).unwrap();
    for path in ["m", "m/x.yaml"] {
        for format in Format::ALL {
            let mut command = folder.command(&format!("validate --format {} {path}", format.as_str()));
            command.env("EDGEWRIGHT_TOKEN", MARKER);
            let run = finish(command, "");
            assert_eq!(run.code, 3, "{}", run.all());
            assert!(format != Format::Text || run.err.contains("ERR_EDGEWRIGHT_OUTSIDE_FILE"), "{}", run.all());
            assert!(!run.all().contains(MARKER), "{format:?} of {path}");
        }
    }
    // With permission the file is read, and even then its damage is shown without its content.
    let mut command = folder.command("validate --allow-outside-files m");
    command.env("EDGEWRIGHT_TOKEN", MARKER);
    let run = finish(command, "");
    assert!(run.code == 3 && run.err.contains("NUL bytes") && !run.all().contains(MARKER), "{}", run.code);
}

#[test]
fn a_manifest_or_a_folder_outside_is_an_error_unless_it_is_allowed() {
    for (link, to) in
        [("m/b.yaml", "../outside/b.yaml"), ("m/more", "../outside"), ("m/deep/b.yaml", "../../outside/b.yaml")]
    {
        let folder = Folder::new();
        folder.write("m/a.yaml", &bare_edge("a", ""));
        folder.write("m/deep/c.yaml", &bare_edge("c", ""));
        folder.write("outside/b.yaml", &bare_edge("b", ""));
        symlink(to, folder.path(link)).unwrap();
        let run = folder.run("validate m");
        assert_eq!(run.code, 3, "{link}: {}", run.all());
        for word in ["ERR_EDGEWRIGHT_OUTSIDE_FILE", link, "--allow-outside-files"] {
            assert!(run.err.contains(word), "{link}: {word}: {}", run.err);
        }
        assert!(folder.ok("validate --allow-outside-files m").err.contains("3 files read"), "{link}");
    }
}

#[test]
fn links_that_stay_inside_are_followed() {
    let folder = Folder::new();
    folder.write("m/real/a.yaml", &bare_edge("a", ""));
    folder.write("m/real/notes.txt", "no manifest");
    let links: [(PathBuf, &str); 4] = [
        ("real/a.yaml".into(), "m/file.yaml"),
        ("../m/real".into(), "m/around"),
        (folder.path("m/real/a.yaml"), "m/absolute.yaml"),
        ("/etc/hostname".into(), "m/notes.txt"),
    ];
    for (to, link) in links {
        symlink(to, folder.path(link)).unwrap();
    }
    assert!(folder.ok("validate m").err.contains("1 file read"), "one file has many names");
    // The folder that is named may be a link itself.
    symlink("m", folder.path("current")).unwrap();
    folder.ok("validate current");
    folder.ok("validate m/file.yaml");
}

#[test]
fn nothing_is_read_inside_git() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &bare_edge("a", ""));
    folder.write("m/.git/config", &format!("[remote]\nurl = https://bot:{MARKER}@git.example.com\n"));
    folder.write("m/.git/deep/x.yaml", &format!("# {MARKER}\n{}", bare_edge("x", "")));
    for (link, to) in
        [("x.yaml", ".git/config"), ("y.yaml", "more/../.git/config"), ("hooks", ".git/deep"), ("all", ".git")]
    {
        fs::create_dir_all(folder.path("m/more")).unwrap();
        symlink(to, folder.path(&format!("m/{link}"))).unwrap();
        for line in ["validate m", "validate --allow-outside-files m", "validate m/x.yaml", "plan --format json m"] {
            if line == "validate m/x.yaml" && link != "x.yaml" {
                continue;
            }
            let run = folder.run(line);
            let said = run.all().contains("ERR_EDGEWRIGHT_OUTSIDE_FILE") && run.all().contains("leads into `.git`");
            assert_eq!((run.code, said), (3, true), "{line} with {link}: {}", run.all());
            assert!(!run.all().contains(MARKER), "{line} with {link}: {}", run.all());
        }
        fs::remove_file(folder.path(&format!("m/{link}"))).unwrap();
    }
    symlink(".git/config", folder.path("m/link.pem")).unwrap();
    for file in [".git/config", "link.pem", "more/../.git/config", "../m/.git/config"] {
        folder.write("m/a.yaml", &authority(file));
        for line in ["validate m", "validate --allow-outside-files m"] {
            let run = folder.run(line);
            let said = run.err.contains("ERR_EDGEWRIGHT_OUTSIDE_FILE") && run.err.contains("is inside `.git`");
            assert_eq!((run.code, said), (3, true), "{line} with {file}: {}", run.all());
            assert!(!run.all().contains(MARKER), "{line} with {file}: {}", run.all());
        }
    }
}

#[test]
fn nothing_is_read_in_a_folder_inside_git() {
    let folder = Folder::new();
    folder.write("own/a.yaml", &bare_edge("a", ""));
    folder.write("m/.git/deep/config", MARKER);
    folder.write("m/.git/deep/x.yaml", &format!("# {MARKER}\n{}", bare_edge("x", "")));
    symlink("m/.git/deep", folder.path("linked")).unwrap();
    for path in ["m/.git", "m/.git/deep", "m/.git/deep/x.yaml", "linked", "linked/x.yaml"] {
        for line in ["validate", "plan --format json", "validate --allow-outside-files", "plan own --with"] {
            let run = folder.run(&format!("{line} {path}"));
            let said = run.all().contains("ERR_EDGEWRIGHT_OUTSIDE_FILE") && run.all().contains("leads into `.git`");
            assert_eq!((run.code, said), (3, true), "{line} {path}: {}", run.all());
            assert!(!run.all().contains(MARKER), "{line} {path}: {}", run.all());
        }
    }
    // The manifest is another file, so only its value is in there.
    let manifest = ManifestFile::new("x.yaml".into(), String::new(), folder.path("linked"), folder.path("linked"));
    let refused = Disk::new([folder.path("linked")]).file(&manifest, "config").unwrap_err();
    assert!(refused.message.contains("is inside `.git`"), "{}", refused.message);
}

#[test]
fn a_mounted_volume_is_read_through_its_links() {
    let folder = Folder::new();
    folder.write("m/..2026_01/a.yaml", &authority("staff.pem"));
    folder.write("m/..2026_01/staff.pem", &staff_pem());
    symlink("..2026_01", folder.path("m/..data")).unwrap();
    for name in ["a.yaml", "staff.pem"] {
        symlink(format!("..data/{name}"), folder.path(&format!("m/{name}"))).unwrap();
    }
    assert!(folder.ok("validate m").err.contains("1 file read"));
}

#[test]
fn what_is_not_a_regular_file_is_reported_and_never_waited_for() {
    let fifo = |path: &Path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let folder = Folder::new();
    folder.write("m/a.yaml", &authority("pipe.pem"));
    fifo(&folder.path("m/pipe.pem"));
    fifo(&folder.path("m/pipe"));
    let run = folder.run("validate m");
    assert!(run.code == 3 && run.err.contains("ERR_EDGEWRIGHT_FILE_UNREADABLE"), "{}", run.all());
    symlink("pipe", folder.path("m/x.yaml")).unwrap();
    for path in ["m", "m/x.yaml"] {
        let run = folder.run(&format!("validate {path}"));
        assert!(run.code == 3 && run.err.contains("ERR_EDGEWRIGHT_UNREADABLE"), "{}", run.all());
        assert!(!run.err.contains("ERR_EDGEWRIGHT_EMPTY_SOURCE"), "one fault: {}", run.err);
    }
}

#[test]
fn a_link_that_is_swapped_while_it_is_read_never_leads_outside() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &bare_edge("a", ""));
    folder.write("m/real/x.yaml", &bare_edge("x", ""));
    folder.write("outside/x.yaml", &format!("# {MARKER}\n{}", bare_edge("x", "")));
    let (aside, link) = (folder.path("m/.aside"), folder.path("m/x.yaml"));
    symlink("real/x.yaml", &link).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let swaps = Arc::clone(&done);
    let swapper = thread::spawn(move || {
        while !swaps.load(Ordering::Relaxed) {
            for target in ["../outside/x.yaml", "real/x.yaml"] {
                symlink(target, &aside).unwrap();
                fs::rename(&aside, &link).unwrap();
            }
        }
    });
    let disk = Disk::new([folder.path("m")]);
    for round in 0..300 {
        let (files, _) = disk.manifests();
        assert!(files.iter().all(|file| !file.source.text.contains(MARKER)), "a manifest in round {round}");
        let manifest = files.iter().find(|file| file.source.name.ends_with("m/a.yaml")).unwrap();
        let value = disk.file(manifest, "x.yaml").unwrap_or_default();
        assert!(!value.contains(MARKER), "a value in round {round}");
    }
    done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
}

#[test]
fn one_token_file_is_found_in_all_its_spellings() {
    let folder = Folder::new();
    let key = |name: &str, file: &str| {
        format!("apiVersion: edgewright/v1\nkind: ApiKey\nmetadata: {{name: {name}}}\nspec: {{token_file: {file}}}\n")
    };
    folder.write("keys/note.txt", "");
    symlink("keys", folder.path("link")).unwrap();
    symlink("../m", folder.path("keys/back")).unwrap();
    folder.write("m/a.yaml", &key("a", "../keys/a"));
    let absolute = folder.path("keys/a").display().to_string();
    for other in ["../keys/a", ".././keys/../keys/a", "../link/a", absolute.as_str()] {
        folder.write("m/deep/b.yaml", &key("b", &other.replacen("../", "../../", 1)));
        for line in ["plan m", "reconcile m"] {
            let run = folder.run(line);
            assert_eq!(run.code, 3, "{line} with {other}: {}", run.all());
            assert!(run.err.contains("duplicate `token_file`"), "{line} with {other}: {}", run.err);
        }
    }
    folder.write("m/deep/b.yaml", &key("b", "../../link/back/b"));
    let run = folder.run("plan m");
    assert_eq!((run.code, run.err.contains("ERR_EDGEWRIGHT_NOT_ALLOWED")), (3, true), "through a link: {}", run.all());
    folder.write("m/deep/b.yaml", &key("b", "../../link/b"));
    folder.ok("reconcile m");
    assert!(folder.path("keys/a").exists() && folder.path("keys/b").exists());
}
