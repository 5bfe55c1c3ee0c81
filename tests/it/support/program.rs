//! Runs the binary of this build as a user does: a line of arguments in a folder, and `serve` in the background.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use edgewright::{Snapshot, Store};
use tempfile::TempDir;

use super::http::{HttpAnswer, http};

/// The binary under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_edgewright");
/// The repository.
pub(crate) const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");
/// A folder of the user for configuration that cannot be created.
pub(crate) const NO_CONFIG: &str = "/dev/null";
/// The configuration file, which the program finds in its working folder.
pub(crate) const CONFIG: &str = "edgewright.config.yaml";
/// Names a configuration file. An empty variable is unset.
pub(crate) const CONFIG_VARIABLE: &str = "EDGEWRIGHT_CONFIG";
/// Has the allocator do without pages of two megabytes: clearing them is a tenth of the work of a short process.
pub(crate) const SMALL_PAGES: (&str, &str) = ("MIMALLOC_ALLOW_THP", "0");
/// How long something may take that takes a moment; a test that reaches it fails.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

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

/// Runs a command to its end, with something on standard input.
pub(crate) fn finish(mut command: Command, input: &str) -> Run {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Who reads nothing may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs a command to its end on a terminal, where somebody types. None if the machine has no `script`.
pub(crate) fn on_terminal(command: &Command, typed: &str) -> Option<Run> {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let line: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
    let mut script = Command::new("script");
    script.args(["-qec", &line.join(" "), "/dev/null"]).current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    Command::new("script").arg("--version").output().ok().map(|_| finish(script, typed))
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Run {
    /// The exit code; -1 after a signal.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Run {
    /// Both outputs, for messages.
    pub(crate) fn all(&self) -> String {
        format!("exit {}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.out, self.err)
    }

    /// The calls of a plan, as `METHOD path`, in their order.
    pub(crate) fn calls(&self) -> Vec<String> {
        let is_call = |line: &&str| {
            let methods = ["POST", "PATCH", "PUT", "DELETE"];
            line.split_once(" /").is_some_and(|(method, path)| methods.contains(&method) && !path.contains(' '))
        };
        self.out.lines().filter_map(|line| line.strip_prefix("    ")).filter(is_call).map(str::to_owned).collect()
    }

    /// The ids of a plan's resources, by kind and name.
    pub(crate) fn ids(&self) -> BTreeMap<String, String> {
        let title = |line: &str| {
            let (sign, rest) = line.split_once(' ')?;
            let (name, id) = rest.split_once("  ")?;
            let id = id.split(' ').next()?;
            ["+", "±", "~", "=", "-"].contains(&sign).then(|| (name.to_owned(), id.to_owned()))
        };
        self.out.lines().filter_map(title).collect()
    }

    /// The last line of standard output.
    pub(crate) fn summary(&self) -> &str {
        self.out.lines().last().unwrap_or_default()
    }
}

/// What a process writes, line by line as it comes.
struct Pipe {
    text: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Pipe {
    fn new(from: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(String::new()));
        let into = Arc::clone(&text);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(from).lines().map_while(Result::ok) {
                let mut text = into.lock().unwrap();
                text.push_str(&line);
                text.push('\n');
            }
        });
        Self { text, reader: Some(reader) }
    }

    fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    /// Everything, once the process has closed its end.
    fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.text()
    }
}

/// A running `edgewright serve`. It is killed when it is dropped.
pub(crate) struct Serve {
    /// Where it listens.
    pub address: String,
    /// The first admin's token.
    pub token: String,
    child: Child,
    out: Pipe,
    err: Pipe,
}

impl Serve {
    /// What it has said on standard error until now.
    pub(crate) fn said(&self) -> String {
        self.err.text()
    }

    /// Waits until it has said something.
    pub(crate) fn wait_for(&self, text: &str) {
        until(text, || self.said().contains(text).then_some(()));
    }

    /// A GET as the admin.
    pub(crate) fn get(&self, path: &str) -> HttpAnswer {
        self.call("GET", path, "")
    }

    /// A request as the admin.
    pub(crate) fn call(&self, method: &str, path: &str, body: &str) -> HttpAnswer {
        self.call_as(&self.token, method, path, body)
    }

    /// A request with any token.
    pub(crate) fn call_as(&self, token: &str, method: &str, path: &str, body: &str) -> HttpAnswer {
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str()), ("Service-Version", "2")];
        http(&self.address, method, path, &headers, body)
    }

    /// The value of a series on the page of metrics.
    pub(crate) fn metric(&self, series: &str) -> Option<f64> {
        let page = http(&self.address, "GET", "/metrics", &[], "").body;
        page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
    }

    /// The number of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, as an init system does.
    pub(crate) fn terminate(&self) {
        self.signal("TERM");
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) {
        let killed = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
    }

    /// Asks it to end, and waits for that.
    pub(crate) fn stop(mut self) -> Run {
        // It says its address a moment before it listens to signals; whoever got an answer is past that.
        let _ = self.get("/");
        self.terminate();
        self.ended()
    }

    /// Sends it a signal, if it has not ended by itself.
    pub(crate) fn signal_if_running(&mut self, name: &str) {
        if !self.has_ended() {
            self.signal(name);
        }
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> Run {
        let child = &mut self.child;
        let status = until("the end of serve", || child.try_wait().unwrap());
        Run { code: status.code().unwrap_or(-1), out: self.out.whole(), err: self.err.whole() }
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Checks that a run has printed all of these.
pub(crate) fn has(run: &Run, parts: &[&str]) {
    for part in parts {
        assert!(run.all().contains(part), "{part:?}\n{}", run.all());
    }
}

/// Looks again and again until there is something, and fails after a while.
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, look)
}

/// The same for what has to come within a time.
pub(crate) fn within<T>(time: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        let waited = since.elapsed();
        assert!(waited < time, "waited in vain for {what}");
        // What takes long is looked at less often.
        std::thread::sleep((waited / 10).clamp(Duration::from_millis(5), Duration::from_millis(40)));
    }
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

/// How much of something slow a test does: `usual` in `cargo test`, and `long` with `EDGEWRIGHT_LONG=1`, as in `.ci/run`.
pub(crate) fn rounds<T>(usual: T, long: T) -> T {
    if std::env::var("EDGEWRIGHT_LONG").is_ok_and(|value| value == "1") { long } else { usual }
}

/// The number in an environment variable, or the usual one.
pub(crate) fn number_in(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
