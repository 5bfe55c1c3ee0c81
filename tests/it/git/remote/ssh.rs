//! A real `sshd` of the current user, if one is installed.

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
};

use super::{configure, has, push, pushed, serve, until_shown};
use crate::support::{
    manifests::edge,
    program::{Folder, until},
    sources::in_state,
};

const SSHD: &str = "/usr/sbin/sshd";

/// A running `sshd`. It is killed when it is dropped.
struct SshServer {
    child: Child,
    port: u16,
}

impl Drop for SshServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn keygen(folder: &Folder, name: &str, passphrase: &str) {
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-C", "", "-N", passphrase, "-f"]).arg(folder.path(name));
    assert!(command.status().unwrap().success());
}

/// Starts a server that the key `user` may log in to.
fn start(folder: &Folder) -> SshServer {
    // A daemon of root has its unprivileged part in there.
    let _ = fs::create_dir_all("/run/sshd");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let path = |name: &str| folder.path(name).display().to_string();
    let text = format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\nSetEnv PATH={}\n",
        path("host"),
        path("user.pub"),
        std::env::var("PATH").unwrap()
    );
    folder.write("sshd_config", &text);
    let mut command = Command::new(SSHD);
    command.args(["-D", "-f"]).arg(folder.path("sshd_config")).arg("-E").arg(folder.path("sshd.log"));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("sshd", || {
        assert!(child.try_wait().unwrap().is_none(), "{}", folder.read("sshd.log"));
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
    SshServer { child, port }
}

#[test]
fn a_repository_is_fetched_over_ssh_from_a_known_host_only() {
    if !Path::new(SSHD).exists() || !has("ssh", "-V") {
        eprintln!("skipped: sshd or ssh is not installed");
        return;
    }
    let folder = pushed();
    keygen(&folder, "host", "");
    keygen(&folder, "user", "opens it");
    let server = start(&folder);
    let port = server.port;
    folder.write("passphrase", "opens it\n");
    folder.write("known_hosts", "# no host yet\n");
    let user = Command::new("id").arg("-un").output().unwrap().stdout;
    let user = String::from_utf8(user).unwrap().trim().to_owned();
    let url = format!("ssh://{user}@127.0.0.1:{port}{}", folder.path("srv/edge.git").display());
    configure(
        &folder,
        &format!(
            "repository: \"{url}\", ref: main, interval: 1s, ssh_key_file: user, ssh_key_passphrase_file: passphrase, known_hosts_file: known_hosts"
        ),
    );
    let serve = serve(&folder);
    let found = in_state(&serve, "shop", "Failed");
    let message = found["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("the host key of 127.0.0.1 is unknown: ssh-ed25519 SHA256:"), "{message}");
    let key = folder.read("host.pub");
    folder.write("known_hosts", &format!("[127.0.0.1]:{port} {key}"));
    until_shown(&serve, "a");
    push(&folder, &edge("one", "b"));
    until_shown(&serve, "b");
    // Another key for the host is refused, and the last good state stays.
    keygen(&folder, "other", "");
    folder.write("known_hosts", &format!("[127.0.0.1]:{port} {}", folder.read("other.pub")));
    let found = in_state(&serve, "shop", "Failed");
    let message = found["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("has changed"), "{message}\n{}", folder.read("sshd.log"));
    assert_eq!(super::shown(&serve), "b");
}
