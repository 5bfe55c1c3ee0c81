//! A disk whose power can go: a file system in an image, mounted through a loop device. The image has what was synced, and
//! nothing else.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use edgewright::Store;
use tempfile::TempDir;

/// Longer than the clock of a file system takes to show that something was written.
const MOMENT: Duration = Duration::from_millis(20);

/// A small disk of its own.
pub(crate) struct Disk {
    folder: TempDir,
    mounted: Vec<PathBuf>,
}

fn run(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

impl Disk {
    /// A disk, where this machine lets us have one.
    pub(crate) fn new() -> Option<Self> {
        let mut disk = Self { folder: tempfile::tempdir().unwrap(), mounted: Vec::new() };
        let image = disk.folder.path().join("image");
        fs::File::create(&image).unwrap().set_len(96 << 20).unwrap();
        let image = image.display().to_string();
        let formatted = run("mkfs.ext4", &["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", &image]);
        if !formatted || disk.mount("image", "disk").is_none() {
            eprintln!("skipped: a loss of power needs mkfs.ext4 and the right to mount");
            return None;
        }
        Some(disk)
    }

    fn mount(&mut self, image: &str, at: &str) -> Option<PathBuf> {
        let (image, at) = (self.folder.path().join(image), self.folder.path().join(at));
        fs::create_dir_all(&at).unwrap();
        let mounted = run("mount", &["-o", "loop", &image.display().to_string(), &at.display().to_string()]);
        mounted.then(|| self.mounted.push(at.clone()))?;
        Some(at)
    }

    fn unmount(&mut self) {
        let Some(at) = self.mounted.pop() else { return };
        // A program that another test starts has our open files until it is executed: the disk is in use for a moment.
        let unmounted = (0..100).any(|_| {
            let unmounted = run("umount", &[&at.display().to_string()]);
            if !unmounted {
                thread::sleep(Duration::from_millis(100));
            }
            unmounted
        });
        assert!(unmounted, "{} stays mounted", at.display());
    }

    /// Where a store on the disk is.
    pub(crate) fn store(&self) -> PathBuf {
        self.folder.path().join("disk/store")
    }

    /// The store as the next start finds it when the power goes now.
    pub(crate) fn after_power_loss(&mut self, check: impl FnOnce(Store)) {
        self.look_after_power_loss(|path| {
            check(Store::open(path).unwrap_or_else(|error| panic!("{}: {error}", error.code)))
        });
    }

    /// Copies an image at a moment in which nothing is written to it. The journal of a file system that goes on meanwhile forgets
    /// what was in place only after that place was copied, and no loss of power does that.
    fn copy_at_one_moment(&self, image: &str, copied: &str) {
        let (image, copied) = (self.folder.path().join(image), self.folder.path().join(copied));
        let written_at = || fs::metadata(&image).unwrap().modified().unwrap();
        let has_copied = (0..500).any(|_| {
            let before = written_at();
            if before.elapsed().is_ok_and(|rested| rested < MOMENT) {
                thread::sleep(MOMENT);
                return false;
            }
            assert!(run("cp", &["--sparse=always", &image.display().to_string(), &copied.display().to_string()]));
            written_at() == before
        });
        assert!(has_copied, "the disk is never at rest");
    }

    /// The folder of the store as the power loss leaves it.
    pub(crate) fn look_after_power_loss<T>(&mut self, look: impl FnOnce(&Path) -> T) -> T {
        self.copy_at_one_moment("image", "copied");
        let at = self.mount("copied", "again").expect("the copied file system can be mounted");
        let found = look(&at.join("store"));
        self.unmount();
        found
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        for at in self.mounted.drain(..).rev() {
            run("umount", &["-l", &at.display().to_string()]);
        }
    }
}
