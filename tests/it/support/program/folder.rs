//! A folder in which the program runs, and where it serves from.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::Arc,
};

use edgewright::{Snapshot, Store};
use tempfile::TempDir;

use super::run::{Run, finish};
use super::serve::{Pipe, Serve};
use super::{CONFIG, CONFIG_VARIABLE, NO_CONFIG, PROGRAM, REPOSITORY, SMALL_PAGES, until};

/// What a folder has, for others like it without the runs that made it: the names, permissions and bytes of its files,
/// and its folders, which have no bytes.
pub(crate) struct MadeFolder(Vec<(String, u32, Option<Vec<u8>>)>);

/// A temporary folder to work in. Its store is `store`, unless a line says otherwise.
pub(crate) struct Folder {
    root: TempDir,
}

impl Folder {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    /// One with a copy of the example, as `storefront`.
    pub(crate) fn with_storefront() -> Self {
        let folder = Self::new();
        copy(&Path::new(REPOSITORY).join("examples/storefront"), &folder.path("storefront"));
        folder
    }

    /// One with what another one had.
    pub(crate) fn like(content: &MadeFolder) -> Self {
        let folder = Self::new();
        for (name, mode, bytes) in &content.0 {
            let path = folder.path(name);
            match bytes {
                Some(bytes) => fs::write(&path, bytes).unwrap(),
                None => fs::create_dir(&path).unwrap(),
            }
            fs::set_permissions(path, fs::Permissions::from_mode(*mode)).unwrap();
        }
        folder
    }

    /// What it has now, but for links.
    pub(crate) fn content(&self) -> MadeFolder {
        let entries = walkdir::WalkDir::new(self.root.path()).min_depth(1).into_iter().map(Result::unwrap);
        let kept = entries.filter(|entry| !entry.path_is_symlink()).map(|entry| {
            let name = entry.path().strip_prefix(self.root.path()).unwrap().to_str().unwrap().to_owned();
            let bytes = entry.file_type().is_file().then(|| fs::read(entry.path()).unwrap());
            let mode = self.mode(&name);
            (name, mode, bytes)
        });
        MadeFolder(kept.collect())
    }

    /// The path of something in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Writes a file, and its folders.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Reads a file.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The permissions of a file.
    pub(crate) fn mode(&self, name: &str) -> u32 {
        fs::metadata(self.path(name)).unwrap().permissions().mode() & 0o777
    }

    /// Replaces what stands exactly once in a file.
    pub(crate) fn edit(&self, name: &str, from: &str, to: &str) {
        let text = self.read(name);
        assert_eq!(text.matches(from).count(), 1, "{from:?} in {name}");
        self.write(name, &text.replace(from, to));
    }

    /// The program with a line of arguments, in this folder.
    pub(crate) fn command(&self, line: &str) -> Command {
        command_in(self.root.path(), line)
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, line: &str) -> Run {
        finish(self.command(line), "")
    }

    /// The same with something on standard input.
    pub(crate) fn run_with(&self, line: &str, input: &str) -> Run {
        finish(self.command(line), input)
    }

    /// Runs the program, which must end with 0.
    pub(crate) fn ok(&self, line: &str) -> Run {
        let run = self.run(line);
        assert_eq!(run.code, 0, "{line}\n{}", run.all());
        run
    }

    /// Serves on a free port, until the value is dropped.
    pub(crate) fn serve(&self, options: &str) -> Serve {
        self.serve_with(options, &[])
    }

    /// The same with environment variables.
    pub(crate) fn serve_with(&self, options: &str, variables: &[(&str, &str)]) -> Serve {
        let served = self.try_serve(options, variables);
        served.unwrap_or_else(|run| panic!("serve {options} ended:\n{}", run.all()))
    }

    /// The same for a server that may end before it listens.
    pub(crate) fn try_serve(&self, options: &str, variables: &[(&str, &str)]) -> Result<Serve, Run> {
        let mut command = self.command(&serve_line(options));
        command.envs(variables.iter().copied());
        self.started(command)
    }

    /// The same at an address that others can be told of before.
    pub(crate) fn try_serve_at(&self, address: &str, options: &str, variables: &[(&str, &str)]) -> Result<Serve, Run> {
        let mut command = self.command(&format!("serve --listen {address} --admin-token-file admin.token {options}"));
        command.envs(variables.iter().copied());
        self.started(command)
    }

    /// The same with a limit of open files.
    pub(crate) fn serve_with_files(&self, files: u32, options: &str) -> Serve {
        let script = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        let served = self.serve_in_shell(&script, Stdio::null(), &serve_line(options), &[]);
        served.unwrap_or_else(|run| panic!("serve {options} ended:\n{}", run.all()))
    }

    /// The same where the system has no watches of files left. None where it does not let a test take them away.
    pub(crate) fn serve_without_watches(&self, options: &str) -> Option<Serve> {
        const TAKE: &str = "echo 0 >/proc/sys/user/max_inotify_instances";
        let taken = Command::new("unshare").args(["-Ur", "sh", "-c", TAKE]).stderr(Stdio::null()).status();
        taken.ok().filter(ExitStatus::success)?;
        let script = format!("exec unshare -Ur sh -c '{TAKE} && exec \"$0\" \"$@\"' \"$0\" \"$@\"");
        let served = self.serve_in_shell(&script, Stdio::null(), &serve_line(options), &[]);
        Some(served.unwrap_or_else(|run| panic!("serve {options} ended:\n{}", run.all())))
    }

    /// Serves from a shell, whose script ends with running the program.
    pub(crate) fn serve_in_shell(
        &self,
        script: &str,
        input: impl Into<Stdio>,
        line: &str,
        variables: &[(&str, &str)],
    ) -> Result<Serve, Run> {
        let mut serve = self.command(line);
        serve.envs(variables.iter().copied());
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(script).arg(PROGRAM).args(serve.get_args());
        for (name, value) in serve.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell.current_dir(self.root.path()).stdin(input);
        self.started(shell)
    }

    fn started(&self, mut command: Command) -> Result<Serve, Run> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = Pipe::new(child.stdout.take().unwrap());
        let mut err = Pipe::new(child.stderr.take().unwrap());
        let started = until("the address", || {
            let ended = child.try_wait().unwrap();
            if let Some((_, rest)) = err.text().split_once("(listening on ") {
                return Some(Ok(rest.split_once(')')?.0.to_owned()));
            }
            ended.map(|status| Err(status.code().unwrap_or(-1)))
        });
        match started {
            Ok(address) => {
                let token = fs::read_to_string(self.path("admin.token")).unwrap_or_default().trim().to_owned();
                Ok(Serve { address, token, child, out, err })
            }
            Err(code) => Err(Run { code, out: out.whole(), err: err.whole() }),
        }
    }

    /// What a store holds. A copy is opened: the store itself stays free for the next run.
    pub(crate) fn snapshot(&self, store: &str) -> Arc<Snapshot> {
        let aside = tempfile::tempdir().unwrap();
        let copied = aside.path().join("store");
        copy(&self.path(store), &copied);
        Store::open(&copied).unwrap().snapshot()
    }
}

/// Runs the program in the repository.
pub(crate) fn run_in_repository(line: &str) -> Run {
    finish(command_in(Path::new(REPOSITORY), line), "")
}

fn serve_line(options: &str) -> String {
    format!("serve --listen 127.0.0.1:0 --admin-token-file admin.token {options}")
}

fn command_in(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(line.split_whitespace()).current_dir(folder).stdin(Stdio::null());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("EDGEWRIGHT_") {
            command.env_remove(name);
        }
    }
    command.env("EDGEWRIGHT_STORE", "store").env("XDG_CONFIG_HOME", NO_CONFIG).env(SMALL_PAGES.0, SMALL_PAGES.1);
    // A file that is only found can set little. A test that is about one removes the variable.
    if folder.join(CONFIG).exists() {
        command.env(CONFIG_VARIABLE, CONFIG);
    }
    command
}

/// Copies a folder.
pub(crate) fn copy(from: &Path, to: &Path) {
    for entry in walkdir::WalkDir::new(from) {
        let entry = entry.unwrap();
        let target = to.join(entry.path().strip_prefix(from).unwrap());
        if entry.file_type().is_dir() {
            fs::create_dir_all(target).unwrap();
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
    // The master key of a store is beside it.
    let (key, target) = (beside(from), beside(to));
    if key.is_file() {
        fs::copy(key, target).unwrap();
    }
}

/// The path of the master key of a store.
pub(crate) fn beside(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".master.key");
    name.into()
}
