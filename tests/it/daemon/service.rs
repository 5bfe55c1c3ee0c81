//! What service managers, containers and packages need of the program: its version, manual pages, a health check, and
//! messages to systemd (D110).

use std::{collections::BTreeSet, fs, os::unix::net::UnixDatagram, path::Path, process::Command, time::Duration};

use crate::support::program::{Folder, REPOSITORY, Serve, has, run_in_repository};

/// A line that Git prints in the repository, if it is one.
fn git(arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.args(["-C", REPOSITORY]).args(arguments).env("TZ", "UTC");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    let output = command.output().ok()?;
    let line = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !line.is_empty()).then_some(line)
}

#[test]
fn the_version_has_the_commit_and_its_date() {
    let run = run_in_repository("--version");
    let version = run.out.trim_end().strip_prefix("edgewright ").unwrap_or_else(|| panic!("{}", run.all()));
    assert_eq!(version.split(' ').next(), Some(env!("CARGO_PKG_VERSION")));
    for command in ["plan", "keys create"] {
        assert_eq!(run_in_repository(&format!("{command} --version")).out.trim_end(), format!("edgewright {version}"));
    }
    // A build without the repository, or with values of its own.
    let is_own = git(&["rev-parse", "--show-toplevel"])
        .is_some_and(|top| fs::canonicalize(top).unwrap() == fs::canonicalize(REPOSITORY).unwrap());
    if !is_own || option_env!("EDGEWRIGHT_COMMIT").is_some() || option_env!("SOURCE_DATE_EPOCH").is_some() {
        return;
    }
    let commit = git(&["rev-parse", "HEAD"]).unwrap();
    let date = git(&["log", "-1", "--date=format-local:%Y-%m-%d", "--format=%cd"]).unwrap();
    assert_eq!(version, format!("{} ({} {date})", env!("CARGO_PKG_VERSION"), &commit[..12]));
    let folder = Folder::new();
    let metrics = folder.serve("").get("/metrics").body;
    assert!(metrics.contains(&format!("commit=\"{commit}\"")), "{metrics:.2000}");
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = Folder::new();
    folder.ok("man pages/man1");
    let pages: BTreeSet<String> = fs::read_dir(folder.path("pages/man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for page in ["edgewright.1", "edgewright-plan.1", "edgewright-keys-create.1", "edgewright-man.1"] {
        assert!(pages.contains(page), "{page} is not in {pages:?}");
    }
    let help = folder.ok("--help").out;
    let commands = help.lines().skip_while(|line| *line != "Reconcile:").take_while(|line| *line != "Options:");
    let commands = commands.filter_map(|line| line.strip_prefix("  "));
    let commands: Vec<&str> = commands.filter_map(|line| line.split(' ').next()).collect();
    assert!(commands.len() > 20, "{help}");
    for command in commands {
        assert!(pages.contains(&format!("edgewright-{command}.1")), "{command} has no page");
    }
    let serve = folder.read("pages/man1/edgewright-serve.1");
    assert!(serve.contains(".TH") && serve.contains("EDGEWRIGHT_LISTEN"), "{serve:.500}");
    // They are the same on every machine.
    folder.ok("man again");
    assert_eq!(folder.read("again/edgewright-serve.1"), serve);
    folder.write("file", "");
    let run = folder.run("man file/man1");
    assert!(run.code == 1 && run.err.contains("cannot write the manual pages"), "{}", run.all());
}

#[test]
fn the_health_check_tells_whether_the_server_is_ready() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let run = folder.ok(&format!("healthcheck --listen {}", serve.address));
    assert_eq!(run.out, "ready\n");
    // A server that listens on all addresses is reached at this machine.
    let port = serve.address.rsplit_once(':').unwrap().1;
    folder.ok(&format!("healthcheck --listen 0.0.0.0:{port}"));
    folder.write("config.yaml", &format!("options: {{listen: '{}'}}\n", serve.address));
    let mut command = folder.command("healthcheck");
    command.env("EDGEWRIGHT_CONFIG", folder.path("config.yaml"));
    assert!(command.output().unwrap().status.success());
    let address = serve.address.clone();
    assert_eq!(serve.stop().code, 0);
    let run = folder.run(&format!("healthcheck --listen {address}"));
    assert!(run.code == 1 && run.err.contains("cannot reach"), "{}", run.all());
}

#[test]
fn the_health_check_knows_a_server_that_is_not_ready() {
    let folder = Folder::new();
    folder.write("m/one.yaml", "kind: [");
    let serve = folder.serve("--manifests m");
    assert_eq!(serve.get("/readyz").status, 503);
    let run = folder.run(&format!("healthcheck --listen {}", serve.address));
    assert!(run.code == 1 && run.err.contains("the server is not ready: "), "{}", run.all());
}

#[test]
fn the_health_check_uses_tls_if_the_server_does() {
    let folder = Folder::with_storefront();
    let (certificate, key) = ("storefront/certs/shop.chain.pem", "storefront/certs/shop.key.pem");
    let serve = folder.serve(&format!("--tls-cert {certificate} --tls-key {key}"));
    // The certificate is for another name than the address.
    folder.ok(&format!("healthcheck --listen {} --tls-cert {certificate}", serve.address));
    let run = folder.run(&format!("healthcheck --listen {}", serve.address));
    assert_eq!(run.code, 1, "{}", run.all());
    let words =
        ["the server is not ready: this port requires TLS", "set EDGEWRIGHT_CONFIG or --tls-cert as for `serve`"];
    has(&run, &words);
}

/// The socket of a service manager.
fn service_manager(path: &Path) -> UnixDatagram {
    let socket = UnixDatagram::bind(path).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

/// The next message that is no sign of life.
fn next(socket: &UnixDatagram, serve: &Serve) -> String {
    loop {
        let mut message = [0; 4096];
        let length = socket.recv(&mut message).unwrap_or_else(|error| panic!("{error}: {}", serve.said()));
        let message = String::from_utf8(message[..length].to_vec()).unwrap();
        if message != "WATCHDOG=1" {
            return message;
        }
    }
}

#[test]
fn systemd_is_told_of_start_reload_and_stop() {
    let folder = Folder::new();
    let path = folder.path("notify");
    let socket = service_manager(&path);
    let mut serve = folder.serve_with("", &[("NOTIFY_SOCKET", path.to_str().unwrap())]);
    let ready = format!("READY=1\nSTATUS=Serving http://{}", serve.address);
    assert_eq!(next(&socket, &serve), ready);
    // It answers when it says that it is ready.
    assert_eq!(serve.get("/readyz").status, 200);
    for _ in 0..2 {
        serve.signal("HUP");
        assert_eq!(next(&socket, &serve), "RELOADING=1");
        assert_eq!(next(&socket, &serve), ready);
    }
    serve.terminate();
    assert_eq!(next(&socket, &serve), "STOPPING=1");
    assert_eq!(serve.ended().code, 0);
}

#[test]
fn systemd_gets_signs_of_life_if_it_wants_them() {
    let folder = Folder::new();
    let path = folder.path("notify");
    let socket = service_manager(&path);
    let variables = [("NOTIFY_SOCKET", path.to_str().unwrap()), ("WATCHDOG_USEC", "300000")];
    let serve = folder.serve_with("", &variables);
    let mut signs = 0;
    while signs < 3 {
        let mut message = [0; 4096];
        let length = socket.recv(&mut message).unwrap_or_else(|error| panic!("{error}: {}", serve.said()));
        signs += usize::from(message[..length] == *b"WATCHDOG=1");
    }
}

#[test]
fn a_service_manager_that_is_gone_does_not_stop_the_server() {
    let folder = Folder::new();
    let path = folder.path("nobody");
    let serve = folder.serve_with("", &[("NOTIFY_SOCKET", path.to_str().unwrap())]);
    assert_eq!(serve.get("/readyz").status, 200);
    assert_eq!(serve.stop().code, 0);
}
