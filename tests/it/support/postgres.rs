//! A server of PostgreSQL for tests, where its programs are installed.

use std::{
    fs::{self, File},
    io::Write,
    net::TcpListener,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use edgewright::{
    Store,
    storage::{MasterKeySource, Retention, StoreError},
};
use tempfile::TempDir;

use super::program::until;

/// Where distributions install the programs, by version.
const INSTALLED: &str = "/usr/lib/postgresql";
const PROGRAMS: [&str; 3] = ["initdb", "postgres", "psql"];

/// The server that tests share which run at the same time.
static SHARED: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());

/// A server on a socket in a temporary folder. It is killed when it is dropped.
pub(crate) struct Postgres {
    folder: TempDir,
    programs: PathBuf,
    /// The user and group that it runs as, if that is not this user: it refuses to run as root.
    user: Option<(u32, u32)>,
    /// In the name of its socket, and where it listens if its settings have an address.
    pub(crate) port: u16,
    /// Whether its data folder is a file system of its own.
    has_disk: bool,
    child: Mutex<Option<Child>>,
    databases: AtomicUsize,
}

impl Postgres {
    /// The server that tests share, or none if the programs are not installed.
    pub(crate) fn shared() -> Option<Arc<Self>> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = shared.upgrade() {
            return Some(running);
        }
        let started = Arc::new(Self::start()?);
        *shared = Arc::downgrade(&started);
        Some(started)
    }

    /// Starts a server, or says that it skips.
    pub(crate) fn start() -> Option<Self> {
        Self::start_with("", &[])
    }

    /// Starts a server with further settings, and with files in its data folder that only it can read.
    pub(crate) fn start_with(settings: &str, files: &[(&str, &str)]) -> Option<Self> {
        let server = Self::prepare()?;
        server.initialize(settings, files);
        server.run();
        Some(server)
    }

    /// Starts a server whose data has a small disk, where this machine lets us have one.
    pub(crate) fn start_on_small_disk() -> Option<Self> {
        let mut server = Self::prepare()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=160m", "tmpfs"]).arg(server.path("data"));
        server.has_disk = mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success());
        if !server.has_disk {
            eprintln!("skipped: a full disk of PostgreSQL needs the right to mount");
            return None;
        }
        server.initialize("max_wal_size = 48MB\nmin_wal_size = 32MB\n", &[]);
        server.run();
        Some(server)
    }

    /// The folder of a server.
    fn prepare() -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!("skipped: PostgreSQL (initdb, postgres and psql) is not installed");
            return None;
        };
        let user = if number("-u", None) == Some(0) {
            let Some(found) = number("-u", Some("postgres")).zip(number("-g", Some("postgres"))) else {
                eprintln!("skipped: PostgreSQL does not run as root, and there is no user `postgres`");
                return None;
            };
            Some(found)
        } else {
            None
        };
        // The path of a socket is short.
        let folder = tempfile::Builder::new().prefix("edgewright-pg-").tempdir_in("/tmp").unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let databases = AtomicUsize::new(0);
        let server = Self { folder, programs, user, port, has_disk: false, child: Mutex::default(), databases };
        fs::write(server.path("master.key"), "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")
            .unwrap();
        fs::set_permissions(server.path("master.key"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::create_dir(server.path("data")).unwrap();
        server.own(server.folder.path(), 0o700);
        Some(server)
    }

    /// Makes its data folder.
    fn initialize(&self, settings: &str, files: &[(&str, &str)]) {
        let data = self.path("data");
        self.own(&data, 0o700);
        let mut initdb = self.command("initdb");
        initdb.args(["-U", "edge", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"]).arg(&data);
        let made = initdb.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // What survives is not about power: the kernel keeps what a killed process has written.
        let usual = "listen_addresses = ''\nfsync = off\nmax_connections = 200\n";
        let config = fs::read_to_string(data.join("postgresql.conf")).unwrap() + usual + settings;
        for (name, text) in files.iter().chain([&("postgresql.conf", config.as_str())]) {
            fs::write(data.join(name), text).unwrap();
            self.own(&data.join(name), 0o600);
        }
    }

    /// Makes a file or folder its own.
    fn own(&self, path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        if let Some((user, group)) = self.user {
            std::os::unix::fs::chown(path, Some(user), Some(group)).unwrap();
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir("/").env_remove("PGPASSWORD").env_remove("PGOPTIONS");
        command.env("PGPORT", self.port.to_string());
        if let Some((user, group)) = self.user {
            command.gid(group).uid(user);
        }
        command
    }

    /// Starts the program, and waits until it answers.
    pub(crate) fn run(&self) {
        self.spawn();
        self.wait_until_it_answers();
    }

    fn spawn(&self) {
        let mut postgres = self.command("postgres");
        postgres.arg("-D").arg(self.path("data")).arg("-k").arg(self.folder.path());
        postgres.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        *self.child.lock().unwrap() = Some(postgres.spawn().unwrap());
    }

    /// Waits until it answers. Starts it again if it has ended, as a service manager does.
    pub(crate) fn wait_until_it_answers(&self) {
        until("PostgreSQL", || {
            let has_ended = |child: &mut Child| child.try_wait().unwrap().is_some();
            let has_ended = self.child.lock().unwrap().as_mut().is_some_and(has_ended);
            if has_ended {
                self.spawn();
            }
            self.psql("postgres", "SELECT 1").ok()
        });
    }

    /// Kills it at once, with all of its connections.
    pub(crate) fn kill(&self) {
        // Its children end themselves, which they would not do after a SIGKILL.
        self.end("-QUIT");
    }

    fn end(&self, signal: &str) {
        let Some(mut child) = self.child.lock().unwrap().take() else { return };
        let _ = Command::new("kill").args([signal, &child.id().to_string()]).status();
        let _ = child.wait();
    }

    /// Keeps a copy of its data for a standby that has nothing of what follows. Restarts it.
    pub(crate) fn keep_standby(&self) {
        // Complete, so that the standby answers at once.
        self.end("-INT");
        let (data, standby) = (self.path("data"), self.path("standby"));
        assert!(Command::new("cp").arg("-a").args([&data, &standby]).status().unwrap().success());
        fs::write(standby.join("standby.signal"), "").unwrap();
        self.own(&standby.join("standby.signal"), 0o600);
        self.run();
    }

    /// Has its address lead to the standby, and then to itself again.
    pub(crate) fn swap_with_standby(&self) {
        self.end("-INT");
        let [data, standby, swapped] = ["data", "standby", "swapped"].map(|name| self.path(name));
        for (from, to) in [(&data, &swapped), (&standby, &data), (&swapped, &standby)] {
            fs::rename(from, to).unwrap();
        }
        self.run();
    }

    /// Stops all of its processes until what is returned is dropped: connections are accepted, and nothing is answered.
    pub(crate) fn freeze(&self) -> FrozenPostgres {
        let others = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
        let mut pids: Vec<String> = self.psql("postgres", others).unwrap().lines().map(str::to_owned).collect();
        pids.extend(self.child.lock().unwrap().as_ref().map(|child| child.id().to_string()));
        let frozen = FrozenPostgres { pids };
        frozen.send("-STOP");
        frozen
    }

    /// Leaves no room on its small disk until what is returned is dropped.
    pub(crate) fn fill_disk(&self) -> FullDisk {
        let path = self.path("data/filler");
        let mut full = FullDisk { filler: File::create(&path).unwrap(), path };
        full.fill();
        full
    }

    /// Runs SQL in a database.
    pub(crate) fn psql(&self, database: &str, sql: &str) -> Result<String, String> {
        let mut psql = self.command("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "edge", "-d", database, "-c", sql, "-h"]);
        let ran = psql.arg(self.folder.path()).output().map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if ran.status.success() { Ok(text(&ran.stdout)) } else { Err(text(&ran.stderr)) }
    }

    /// Makes an empty database, and returns its name.
    pub(crate) fn database(&self) -> String {
        let name = format!("edge{}", self.databases.fetch_add(1, Ordering::SeqCst));
        self.psql("postgres", &format!("CREATE DATABASE {name}")).unwrap();
        name
    }

    /// The address of a store in a database.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://edge@/{database}?host={}&port={}", self.folder.path().display(), self.port)
    }

    /// The file with the master key of all stores.
    pub(crate) fn master_key(&self) -> PathBuf {
        self.path("master.key")
    }

    /// The options of a store in a database.
    pub(crate) fn options(&self, database: &str) -> String {
        format!("--store {} --master-key-file {}", self.url(database), self.master_key().display())
    }

    /// Opens the store in a database for writing.
    pub(crate) fn open(&self, database: &str) -> Result<Store, StoreError> {
        let source = MasterKeySource::File(self.master_key());
        Store::open_encrypted(self.url(database), Retention::default(), &source)
    }

    /// Opens the store in a database for reading.
    pub(crate) fn open_to_read(&self, database: &str) -> Result<Store, StoreError> {
        Store::open_encrypted_to_read(self.url(database), &MasterKeySource::File(self.master_key()))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
        if self.has_disk {
            let _ = Command::new("umount").arg("-l").arg(self.path("data")).status();
        }
    }
}

/// A disk without room.
pub(crate) struct FullDisk {
    filler: File,
    path: PathBuf,
}

impl FullDisk {
    /// Takes the room that others have left since.
    pub(crate) fn fill(&mut self) {
        for size in [1 << 16, 1 << 12] {
            while self.filler.write_all(&vec![b'x'; size]).is_ok() {}
        }
    }
}

impl Drop for FullDisk {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// A server that answers nothing.
pub(crate) struct FrozenPostgres {
    pids: Vec<String>,
}

impl FrozenPostgres {
    fn send(&self, signal: &str) {
        // Some of them may have ended.
        let _ = Command::new("kill").arg(signal).args(&self.pids).stderr(Stdio::null()).status();
    }
}

impl Drop for FrozenPostgres {
    fn drop(&mut self) {
        self.send("-CONT");
    }
}

/// The folder with the programs: of the newest version that is installed, or in `PATH`.
fn programs() -> Option<PathBuf> {
    let has_all = |folder: &PathBuf| PROGRAMS.iter().all(|program| folder.join(program).exists());
    let version = |folder: &Path| folder.parent()?.file_name()?.to_str()?.parse::<f64>().ok();
    let installed = fs::read_dir(INSTALLED).into_iter().flatten().flatten().map(|entry| entry.path().join("bin"));
    let mut installed: Vec<PathBuf> = installed.filter(has_all).collect();
    installed.sort_by(|one, other| version(one).partial_cmp(&version(other)).unwrap_or(std::cmp::Ordering::Equal));
    let in_path = || std::env::split_paths(&std::env::var_os("PATH")?).find(has_all);
    installed.pop().or_else(in_path)
}

/// The number of a user or of its group.
fn number(option: &str, user: Option<&str>) -> Option<u32> {
    let found = Command::new("id").arg(option).args(user).stderr(Stdio::null()).output().ok()?;
    String::from_utf8(found.stdout).ok()?.trim().parse().ok()
}
