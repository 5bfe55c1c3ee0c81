//! A listening socket that a service manager passes to the server (D110).

use std::{
    fs::File,
    io::Write,
    net::{TcpListener, TcpStream, UdpSocket},
    os::{fd::OwnedFd, unix::net::UnixListener},
    process::Stdio,
};

use crate::support::{
    http::{answer, http, request},
    program::{Folder, Run, Serve},
};

/// Passes standard input on as systemd passes a socket.
pub(super) const PASS_ONE: &str = "exec 3<&0 </dev/null; export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=edgewright.socket; \
                        exec \"$0\" \"$@\"";
const SERVE: &str = "serve --admin-token-file admin.token";

fn try_serve_on(folder: &Folder, descriptor: impl Into<OwnedFd>, options: &str) -> Result<Serve, Run> {
    let descriptor: OwnedFd = descriptor.into();
    folder.serve_in_shell(PASS_ONE, Stdio::from(descriptor), &format!("{SERVE} {options}"), &[])
}

fn serve_on(folder: &Folder, socket: &TcpListener, options: &str) -> Serve {
    let served = try_serve_on(folder, socket.try_clone().unwrap(), options);
    served.unwrap_or_else(|run| panic!("serve {options} ended:\n{}", run.all()))
}

/// A socket as systemd opens it, and its address.
fn listen(address: &str) -> (TcpListener, String) {
    let socket = TcpListener::bind(address).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    (socket, address)
}

/// A client that has sent its request.
fn client(address: &str) -> TcpStream {
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(request(address, "GET", "/healthz", &[], "").as_bytes()).unwrap();
    client
}

#[test]
fn clients_that_connect_while_no_server_runs_are_answered_by_the_next_one() {
    let folder = Folder::new();
    let (socket, address) = listen("127.0.0.1:0");
    for is_killed in [false, true, false] {
        let waiting = [client(&address), client(&address)];
        let serve = serve_on(&folder, &socket, "");
        assert_eq!(serve.address, address);
        for client in waiting {
            assert_eq!(answer(client).status, 200);
        }
        // A reload keeps the socket.
        serve.signal("HUP");
        assert_eq!(serve.get("/edges/https").status, 200);
        folder.ok(&format!("healthcheck --listen {address}"));
        if is_killed {
            drop(serve);
        } else {
            let run = serve.stop();
            assert_eq!(run.code, 0, "{}", run.all());
        }
    }
}

fn refused(run: Option<Run>, reason: &str) {
    let run = run.unwrap_or_else(|| panic!("it serves: {reason}"));
    assert_eq!(run.code, 1, "{}", run.all());
    for expected in ["ERR_EDGEWRIGHT_CANNOT_LISTEN", reason, "ListenStream="] {
        assert!(run.err.contains(expected), "{expected}: {}", run.all());
    }
}

#[test]
fn anything_but_one_listening_tcp_socket_is_refused() {
    let folder = Folder::new();
    let (socket, address) = listen("127.0.0.1:0");
    folder.write("file", "");
    let cases: [(OwnedFd, &str); 4] = [
        (File::open(folder.path("file")).unwrap().into(), "not passed a TCP socket: fd 3 is not a socket"),
        (UnixListener::bind(folder.path("unix")).unwrap().into(), "not passed a TCP socket"),
        (UdpSocket::bind("127.0.0.1:0").unwrap().into(), "not passed a TCP socket"),
        (TcpStream::connect(&address).unwrap().into(), "a connection instead of a listening socket"),
    ];
    for (descriptor, reason) in cases {
        refused(try_serve_on(&folder, descriptor, "").err(), reason);
    }
    let two = PASS_ONE.replace("3<&0", "3<&0 4<&0").replace("FDS=1", "FDS=2").replace("NAMES=", "NAMES=other.socket:");
    let served = folder.serve_in_shell(&two, Stdio::from(OwnedFd::from(socket)), SERVE, &[]);
    refused(served.err(), "passed 2 sockets (other.socket:edgewright.socket), but `serve` uses one");
    assert!(!folder.path("store").exists());
}

#[test]
fn a_socket_that_was_passed_to_another_process_is_not_used() {
    let folder = Folder::new();
    let (socket, address) = listen("127.0.0.1:0");
    for other in ["LISTEN_PID=1", "LISTEN_PID="] {
        let script = PASS_ONE.replace("LISTEN_PID=$$", other);
        let descriptor = Stdio::from(OwnedFd::from(socket.try_clone().unwrap()));
        let served = folder.serve_in_shell(&script, descriptor, &format!("{SERVE} --listen 127.0.0.1:0"), &[]);
        let serve = served.unwrap_or_else(|run| panic!("{}", run.all()));
        assert_ne!(serve.address, address);
        assert_eq!(http(&serve.address, "GET", "/healthz", &[], "").status, 200);
    }
}

#[test]
fn the_commands_of_a_server_do_not_see_its_socket() {
    let folder = Folder::new();
    let (socket, _) = listen("127.0.0.1:0");
    let command = format!("env >environment; printf {}", "0123456789abcdef".repeat(4));
    let variables = [("EDGEWRIGHT_MASTER_KEY_COMMAND", command.as_str())];
    let served = folder.serve_in_shell(PASS_ONE, Stdio::from(OwnedFd::from(socket)), SERVE, &variables);
    let serve = served.unwrap_or_else(|run| panic!("{}", run.all()));
    assert_eq!(serve.get("/edges/https").status, 200);
    let environment = folder.read("environment");
    assert!(environment.contains("PATH=") && !environment.contains("LISTEN_"), "{environment}");
}

#[test]
fn the_address_of_the_socket_follows_the_rules_of_listen() {
    let folder = Folder::new();
    let (socket, address) = listen("127.0.0.1:0");
    let mismatch = format!("the passed socket listens on {address}, but `--listen` is 127.0.0.2:0");
    refused(try_serve_on(&folder, socket.try_clone().unwrap(), "--listen 127.0.0.2:0").err(), &mismatch);
    folder.write("config.yaml", &format!("options: {{listen: '{address}'}}\n"));
    let config = folder.path("config.yaml");
    let variables = [("EDGEWRIGHT_CONFIG", config.to_str().unwrap())];
    let served = folder.serve_in_shell(PASS_ONE, Stdio::from(OwnedFd::from(socket)), SERVE, &variables);
    assert_eq!(served.unwrap_or_else(|run| panic!("{}", run.all())).address, address);

    let (socket, address) = listen("0.0.0.0:0");
    let run = try_serve_on(&folder, socket.try_clone().unwrap(), "").err().unwrap();
    let expected = format!("{address} is not a loopback address");
    assert!(run.err.contains("ERR_EDGEWRIGHT_INSECURE_TRANSPORT") && run.err.contains(&expected), "{}", run.all());
    let serve = serve_on(&folder, &socket, "--insecure-http");
    folder.ok(&format!("healthcheck --listen {address}"));
    assert_eq!(serve.stop().code, 0);
}
