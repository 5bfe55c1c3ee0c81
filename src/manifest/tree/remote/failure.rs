//! Translates failures of git and ssh into the terms of a source's configuration.

use super::access::{FetchRefusal, LoadedAccess, refusal};
use super::url::RemoteUrl;
use crate::model::MASK;
use crate::syntax::text::{escaped, printable_path, replace_parts, url_passwords};

/// The most lines and characters that are quoted: the end has the reason.
const MOST_LINES: usize = 3;
const MOST_CHARS: usize = 400;
/// The beginnings of lines without a reason: the trace of ssh, which has the fingerprint of the host, and what git adds to it.
const NOISE: [&str; 9] = [
    "debug1: ",
    "OpenSSH_",
    "Authenticated to ",
    "Transferred: ",
    "Bytes per second: ",
    "fatal: Could not read from remote repository",
    "Please make sure you have the correct access rights",
    "and the repository exists",
    "From ",
];
/// Phrases of git and ssh, their meaning, and what to do.
const KNOWN: [(&str, &str, &str); 6] = [
    (
        "Authentication failed for ",
        "the server refused the credentials",
        "check `username`, `password_file` or `password_env`, and that the token may read the repository",
    ),
    (
        "dumb http transport",
        "the server supports only Git's dumb HTTP protocol, which cannot limit a fetch",
        "use a server with the smart protocol, such as `git http-backend`, or SSH",
    ),
    ("bad permissions", "other users can read `ssh_key_file`", "run `chmod 600` on it"),
    (
        "Permission denied (",
        "the server refused the credentials",
        "check the user and `ssh_key_file`, and that the server knows the public key",
    ),
    ("ssh: not found", "the program `ssh` is not installed", "install the client of OpenSSH"),
    ("ssh: command not found", "the program `ssh` is not installed", "install the client of OpenSSH"),
];
/// The help for other messages, which are quoted.
const HELPS: [(&str, &str); 6] = [
    ("unknown option: --config-env", "install Git 2.31 or newer"),
    ("ut of memory", "use a repository with fewer refs and without very large files"),
    ("certificate", "check the server's certificate; SSL_CERT_FILE or `ca_file` names the file of trusted authorities"),
    ("SSL", "check the server's certificate; SSL_CERT_FILE or `ca_file` names the file of trusted authorities"),
    ("unable to access", "check the URL, and that the credentials may read the repository"),
    ("not found", "check the URL, and that the credentials may read the repository"),
];
const NETWORK: &str = "check the URL and the network; the last commit that was fetched stays in effect";

/// Why a fetch did not succeed.
pub(super) enum FetchFault {
    /// The fetch was cancelled.
    Stopped,
    /// The remote repository, the network or the configuration.
    Remote(FetchRefusal),
    /// Perhaps the mirror; a new one can be used.
    Mirror(FetchRefusal),
}

impl FetchFault {
    pub(super) fn remote(reason: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Remote(refusal(reason, help))
    }
}

/// Explains why git failed.
pub(super) fn explain(url: &RemoteUrl, access: &LoadedAccess, said: &str) -> FetchFault {
    let has = |words: &str| said.contains(words);
    if has("Host key verification failed") {
        return FetchFault::Remote(host_key(url, &access.known_hosts, said));
    }
    if has("terminal prompts disabled")
        && let Some((_, asked)) = said.split_once("could not read ")
    {
        return FetchFault::Remote(unanswered(url, asked.split('\'').nth(1).unwrap_or_default()));
    }
    if let Some((_, reason, help)) = KNOWN.into_iter().find(|(words, ..)| has(words)) {
        return FetchFault::remote(reason, help);
    }
    let help = HELPS.into_iter().find(|(words, _)| has(words)).map_or(NETWORK, |(_, help)| help);
    let refusal = refusal(reason_in(said), help);
    // A new mirror would need as much.
    if has("ut of memory") { FetchFault::Remote(refusal) } else { FetchFault::Mirror(refusal) }
}

/// Refuses a repository at another host, which git has read already. Redirects to other ports of the host are followed.
pub(super) fn redirected(url: &RemoteUrl, said: &str) -> Option<FetchRefusal> {
    let to = said.lines().find_map(|line| line.strip_prefix("warning: redirecting to "))?;
    let is_own = RemoteUrl::parse(to.trim()).ok().flatten().is_some_and(|to| to.host == url.host);
    let help = "set `repository` to the URL that the server redirects to, if it is trusted";
    let reason = format!("the server redirects to another host: {}", printable_path(&without_passwords(to)));
    (!is_own).then(|| refusal(reason, help))
}

/// The refusal of a server that asks for credentials which the source does not have. `asking` is its origin.
fn unanswered(url: &RemoteUrl, asking: &str) -> FetchRefusal {
    let (scheme, host) = asking.split_once("://").unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    if !url.origin().eq_ignore_ascii_case(&format!("{scheme}://{host}")) {
        return refusal(
            "the server redirects to another port or protocol, which asks for credentials",
            "set `repository` to the URL that should receive the credentials",
        );
    }
    refusal("the server asks for credentials", "set `username`, and `password_file` or `password_env`")
}

/// The refusal of an SSH server by its key.
fn host_key(url: &RemoteUrl, file: &str, said: &str) -> FetchRefusal {
    let host = &url.host;
    let presented = said.lines().find_map(|line| line.trim().strip_prefix("debug1: Server host key: "));
    let presented = printable_path(presented.unwrap_or("its key"));
    if said.contains("REMOTE HOST IDENTIFICATION HAS CHANGED") {
        let reason = format!("the host key of {host} has changed: {presented} is not the one in {file}");
        let help =
            "find out why: someone may be intercepting the connection; if the change is intended, replace the key";
        return refusal(reason, help);
    }
    if said.contains("is marked as revoked") {
        let reason = format!("the host key of {host} is revoked in {file}: {presented}");
        return refusal(reason, "ask the operator of the server for its new host key");
    }
    let port = url.port.map(|port| format!("-p {port} ")).unwrap_or_default();
    let help = format!(
        "compare the fingerprint with the one that the operator publishes, and add it to {file}: ssh-keyscan {port}{host}"
    );
    refusal(format!("the host key of {host} is unknown: {presented} is not in {file}"), help)
}

/// The last lines with a reason.
fn reason_in(said: &str) -> String {
    let is_noise = |line: &&str| {
        line.is_empty() || line.contains("% (") || NOISE.iter().any(|beginning| line.starts_with(beginning))
    };
    let lines = said.split(['\n', '\r']).map(str::trim).filter(|line| !is_noise(line));
    let lines: Vec<&str> = lines.map(without_prefix).collect();
    let last = lines.get(lines.len().saturating_sub(MOST_LINES)..).unwrap_or_default();
    let text = without_passwords(&last.join("; "));
    match escaped(&text).chars().take(MOST_CHARS).collect::<String>() {
        empty if empty.is_empty() => "the connection ended early".to_owned(),
        reason => reason,
    }
}

/// A line of git without its beginning, which names the URL again.
fn without_prefix(line: &str) -> &str {
    let line = line.strip_prefix("fatal: ").unwrap_or(line);
    let behind = line.strip_prefix("unable to access '").and_then(|rest| rest.split_once("': "));
    behind.map_or(line, |(_, reason)| reason)
}

/// A text without passwords in URLs: the user's configuration of Git can add them.
fn without_passwords(text: &str) -> String {
    replace_parts(text, url_passwords(text), |_| MASK.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::manifest::tree::remote::access::RemoteAccess;
    use crate::manifest::tree::remote::url::GitTransport;
    use crate::manifest::tree::remote::url::tests::url;

    /// The message and help of a failure.
    fn explained(at: &str, said: &str) -> FetchRefusal {
        let folder = tempfile::tempdir().unwrap();
        let known_hosts = folder.path().join("known");
        std::fs::write(&known_hosts, "").unwrap();
        let url = url(at);
        let known_hosts_file = (url.transport == GitTransport::Ssh).then_some(known_hosts);
        let access = RemoteAccess { known_hosts_file, ..RemoteAccess::default() };
        match explain(&url, &access.load(&url, folder.path()).unwrap(), said) {
            FetchFault::Stopped => unreachable!(),
            FetchFault::Remote(refusal) | FetchFault::Mirror(refusal) => refusal,
        }
    }

    #[test]
    fn the_last_lines_with_a_reason_are_quoted_without_progress_traces_and_passwords() {
        for (said, expected) in [
            ("fatal: unable to access 'https://h/e/': Could not resolve host: h\n", "Could not resolve host: h"),
            ("Receiving objects:  33% (1/3)\rReceiving objects:  66% (2/3)\rfatal: early EOF\n", "early EOF"),
            (
                "remote: gone\nfatal: repository 'https://h/e/' not found\n",
                "remote: gone; repository 'https://h/e/' not found",
            ),
            (
                "debug1: x\r\nERROR: no such project\r\nfatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n",
                "ERROR: no such project",
            ),
            ("fatal: bad https://me:hunter2@h/e \u{1b}[31m", "bad https://me:********@h/e \\u{1b}[31m"),
            ("a\nb\nc\nd", "b; c; d"),
            ("", "the connection ended early"),
        ] {
            assert_eq!(explained("https://h/e", said).0, expected);
        }
    }

    #[test]
    fn an_unknown_changed_or_revoked_host_key_is_refused_with_its_fingerprint() {
        let key = "debug1: Server host key: ssh-ed25519 SHA256:x\r\n";
        for (line, said) in [
            ("No ED25519 host key is known for [git.example.com]:2222", "is unknown: ssh-ed25519 SHA256:x is not in "),
            ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @", "has changed: ssh-ed25519 SHA256:x is not"),
            ("The ED25519 host key for git.example.com is marked as revoked.", "is revoked in "),
        ] {
            let text = format!("{key}{line}\r\nHost key verification failed.\r\n");
            let (message, help) = explained("ssh://git@git.example.com:2222/edge", &text);
            assert!(message.contains(said), "{message}");
            assert_eq!(help.contains("ssh-keyscan -p 2222 git.example.com"), said.contains("unknown"), "{help}");
        }
    }

    #[test]
    fn only_the_own_origin_may_ask_for_credentials() {
        for (asking, is_own) in [
            ("https://git.example.com", true),
            ("https://me@GIT.example.com", true),
            ("https://git.example.com:8443", false),
            ("http://git.example.com", false),
            ("https://git.example.com.evil.example", false),
        ] {
            let said = format!("fatal: could not read Username for '{asking}': terminal prompts disabled\n");
            let (message, _) = explained("https://git.example.com/edge", &said);
            assert_eq!(message == "the server asks for credentials", is_own, "{asking}: {message}");
        }
    }

    #[test]
    fn a_redirect_may_change_the_port_and_not_the_host() {
        let own = url("http://127.0.0.1:3000/edge");
        for (to, is_refused) in [
            ("http://127.0.0.1:3001/edge/", false),
            ("http://localhost:3000/edge/", true),
            ("https://evil.example/edge/", true),
            ("http://git.example.com/edge/", true),
        ] {
            let said = format!("warning: redirecting to {to}\n");
            assert_eq!(redirected(&own, &said).is_some(), is_refused, "{to}");
        }
        assert!(redirected(&own, "").is_none());
    }
}
