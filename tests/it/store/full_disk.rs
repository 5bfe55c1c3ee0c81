//! A full disk: nothing is lost, reads go on, `/readyz` tells, and writes work again without a restart (D52, D58).

use std::{
    fs::{self, File},
    io::Write,
    path::PathBuf,
    process::{Command, Stdio},
};

use edgewright::{Store, resources::Kind};

use crate::support::{
    manifests::edge,
    program::{Folder, until},
};

/// A small file system of its own.
struct SmallDisk {
    folder: Folder,
}

fn run(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl SmallDisk {
    /// One of 24 MiB, where this machine lets us have one.
    fn new() -> Option<Self> {
        let folder = Folder::new();
        let (image, at) = (folder.path("image").display().to_string(), folder.path("disk").display().to_string());
        File::create(&image).unwrap().set_len(24 << 20).unwrap();
        fs::create_dir(&at).unwrap();
        let is_mounted = run("mkfs.ext4", &["-q", "-F", &image]) && run("mount", &["-o", "loop", &image, &at]);
        if !is_mounted && !run("mount", &["-t", "tmpfs", "-o", "size=24m", "tmpfs", &at]) {
            eprintln!("skipped: a full disk needs the right to mount");
            return None;
        }
        Some(Self { folder })
    }

    fn filler(&self) -> PathBuf {
        self.folder.path("disk/filler")
    }

    /// Leaves no room.
    fn fill(&self) {
        let mut filler = File::options().create(true).append(true).open(self.filler()).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while filler.write_all(&vec![b'x'; size]).is_ok() {}
        }
        let _ = filler.sync_all();
    }

    fn clear(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        run("umount", &["-l", &self.folder.path("disk").display().to_string()]);
    }
}

#[test]
fn a_full_disk_stops_writes_only_and_only_until_there_is_room() {
    let Some(disk) = SmallDisk::new() else { return };
    let folder = &disk.folder;
    fs::create_dir(folder.path("disk/inner")).unwrap();
    let serve = folder.serve("--store disk/inner/store");
    let body = |number: usize| format!(r#"{{"type": "api", "description": "number {number} {}"}}"#, "x".repeat(200));
    let create = |number: usize| serve.call("POST", "/ip_restrictions", &body(number));
    for number in 0..5 {
        assert_eq!(create(number).status, 201);
    }
    let mut created = 5;
    for _ in 0..2 {
        disk.fill();
        // What is left of the last block of a file can still be written.
        let refused = (0..200).find_map(|number| {
            let answer = create(number);
            created += usize::from(answer.status == 201);
            (answer.status != 201).then_some(answer)
        });
        let refused = refused.expect("a write fails on a full disk");
        assert_eq!((refused.status, refused.code().as_str()), (500, "ERR_EDGEWRIGHT_STORE_FAILED"));
        let ready = serve.get("/readyz");
        assert_eq!(ready.status, 503);
        assert!(ready.body.contains("disk is full"), "{}", ready.body);
        assert_eq!(serve.get("/healthz").status, 200);
        // Reads go on, and have exactly what was acknowledged.
        let listed = serve.get("/ip_restrictions?limit=1000").json();
        assert_eq!(listed["ip_restrictions"].as_array().unwrap().len(), created);
        assert_eq!(serve.get("/history?limit=5").status, 200);
        disk.clear();
        until("readiness", || (serve.get("/readyz").status == 200).then_some(()));
        assert_eq!(create(0).status, 201);
        created += 1;
    }
    assert_eq!(serve.get("/history?limit=5").status, 200);
    serve.stop();
    let store = Store::open(folder.path("disk/inner/store")).unwrap();
    assert_eq!(store.snapshot().count(Kind::IpRestriction), created);
    assert!(store.verify().unwrap().records >= store.snapshot().revision);
}

#[test]
fn an_export_to_a_full_disk_leaves_nothing_that_blocks_the_next_one() {
    let Some(disk) = SmallDisk::new() else { return };
    let folder = &disk.folder;
    folder.write("m/one.yaml", &edge("one", "first"));
    folder.ok("reconcile m");
    fs::create_dir(folder.path("disk/out")).unwrap();
    disk.fill();
    let failed = folder.run("export disk/out");
    assert!(failed.code == 1 && failed.err.contains("cannot write"), "{}", failed.all());
    assert_eq!(fs::read_dir(folder.path("disk/out")).unwrap().count(), 0, "{}", failed.all());
    disk.clear();
    folder.ok("export disk/out");
    assert!(folder.ok("plan disk/out").out.contains("No changes"));
}
