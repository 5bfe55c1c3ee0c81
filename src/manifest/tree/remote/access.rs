//! How edgewright authenticates to the server of a repository, and the server to edgewright. Secrets are read at each
//! fetch, so that a rotated one takes effect without a restart, and are never part of a message.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use git2::{Cred, CredentialType};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{
    known_hosts::{HostKeyVerdict, KnownHosts, fingerprint, key_type},
    url::{GitTransport, RemoteUrl},
};
use crate::{
    model::secrets::secret::Secret,
    syntax::{text::printable, x509},
};

/// The user if neither the URL nor the configuration names one: the one of SSH at all forges, and any will do with a
/// token.
const USER: &str = "git";
/// The most bytes of a file with a secret or with known hosts.
const MOST_BYTES: u64 = 4 << 20;

/// The credentials of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RemoteAccess {
    /// The user, unless the URL has one.
    pub username: Option<String>,
    /// Where the password or token is.
    pub password: Option<PasswordPlace>,
    /// The private key for SSH; without one, the agent is asked.
    pub ssh_key_file: Option<PathBuf>,
    /// The file with the passphrase of the key.
    pub ssh_key_passphrase_file: Option<PathBuf>,
    /// The keys of SSH servers, by default `~/.ssh/known_hosts`.
    pub known_hosts_file: Option<PathBuf>,
    /// The authorities of HTTPS servers, by default those of the system.
    pub ca_file: Option<PathBuf>,
}

/// Where a password is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PasswordPlace {
    /// In a file.
    File(PathBuf),
    /// In an environment variable.
    Variable(String),
}

/// The credentials for one fetch.
pub(super) struct LoadedAccess {
    user: String,
    password: Option<Secret>,
    ssh_key_file: Option<PathBuf>,
    passphrase: Option<Secret>,
    known_hosts: KnownHosts,
    known_hosts_file: String,
}

/// Why credentials or a host key cannot be used: the message and the help.
pub(crate) type FetchRefusal = (String, String);

impl RemoteAccess {
    /// Checks the file of authorities, for which libgit2 has no message.
    pub(crate) fn check_authorities(&self) -> Result<(), FetchRefusal> {
        let Some(path) = &self.ca_file else { return Ok(()) };
        x509::authority(&text_of("ca_file", path)?).map(drop).map_err(|fault| {
            let message = format!("cannot use `ca_file` {}: {fault}", path.display());
            (message, "write the certificates of the authorities to the file, as PEM".to_owned())
        })
    }

    /// Reads what a fetch needs.
    pub(super) fn load(&self, url: &RemoteUrl) -> Result<LoadedAccess, FetchRefusal> {
        let user = url.user().or(self.username.as_deref()).unwrap_or(USER).to_owned();
        let password = match &self.password {
            None => None,
            Some(PasswordPlace::File(path)) => Some(secret_of("password_file", path)?),
            Some(PasswordPlace::Variable(name)) => {
                let value = env::var(name).ok().filter(|value| !value.trim().is_empty());
                let shown = printable(name);
                let missing = (
                    format!("the environment variable `{shown}` is empty or not set"),
                    "set it in edgewright's environment".to_owned(),
                );
                Some(Secret::new(value.ok_or(missing)?))
            }
        };
        let passphrase = self.ssh_key_passphrase_file.as_deref();
        let passphrase = passphrase.map(|path| secret_of("ssh_key_passphrase_file", path)).transpose()?;
        let ssh_key_file = self.ssh_key_file.clone();
        if let Some(path) = &ssh_key_file {
            // libssh2 does not say which file it cannot read.
            fs::File::open(path).map_err(|error| unreadable("ssh_key_file", path, &error.to_string()))?;
        }
        let file = self.known_hosts_file.clone().or_else(default_known_hosts);
        let known_hosts = match (&file, url.transport()) {
            (Some(path), GitTransport::Ssh) => KnownHosts::parse(&text_of("known_hosts_file", path)?),
            _ => KnownHosts::default(),
        };
        let known_hosts_file = file.map(|path| path.display().to_string()).unwrap_or_default();
        Ok(LoadedAccess { user, password, ssh_key_file, passphrase, known_hosts, known_hosts_file })
    }
}

impl LoadedAccess {
    /// The credentials that a server asks for, which is at the URL `at` after redirects. `asked` counts how often it did: it
    /// asks again after a refusal.
    pub(super) fn credentials(
        &self,
        url: &RemoteUrl,
        at: &str,
        asked: u32,
        user: Option<&str>,
        allowed: CredentialType,
    ) -> Result<Cred, FetchRefusal> {
        let user = user.unwrap_or(&self.user);
        let made = |cred: Result<Cred, git2::Error>| {
            cred.map_err(|error| (error.message().to_owned(), "check the credentials of the source".to_owned()))
        };
        // libgit2 follows redirects to any port of the host.
        if url.transport() == GitTransport::Http && !url.is_same_origin(at) {
            return Err((
                "the server redirects to another port or protocol, which asks for credentials".to_owned(),
                "set `repository` to the URL that should receive the credentials".to_owned(),
            ));
        }
        if allowed.contains(CredentialType::USERNAME) && !allowed.contains(CredentialType::SSH_KEY) {
            return made(Cred::username(user));
        }
        if asked > 1 {
            let help = match url.transport() {
                GitTransport::Ssh => "check the user and `ssh_key_file`, and that the server knows the public key",
                GitTransport::Http | GitTransport::File => {
                    "check `username`, `password_file` or `password_env`, and that the token may read the repository"
                }
            };
            return Err(("the server refused the credentials".to_owned(), help.to_owned()));
        }
        if allowed.contains(CredentialType::SSH_KEY) {
            return made(match &self.ssh_key_file {
                Some(key) => Cred::ssh_key(user, None, key, self.passphrase.as_ref().map(Secret::expose)),
                None => Cred::ssh_key_from_agent(user),
            });
        }
        if allowed.contains(CredentialType::USER_PASS_PLAINTEXT) {
            return match &self.password {
                Some(password) => made(Cred::userpass_plaintext(user, password.expose())),
                None => Err((
                    "the server asks for credentials".to_owned(),
                    "set `username`, and `password_file` or `password_env`".to_owned(),
                )),
            };
        }
        Err((
            "the server asks for a kind of credentials that is not supported".to_owned(),
            "use a password, a token or an SSH key".to_owned(),
        ))
    }

    /// Checks the key of an SSH server.
    pub(super) fn check_host_key(&self, url: &RemoteUrl, key: &[u8]) -> Result<(), FetchRefusal> {
        let verdict = self.known_hosts.judge(url.host(), url.port(), key);
        if verdict == HostKeyVerdict::Known {
            return Ok(());
        }
        let (host, file) = (url.host(), self.known_hosts_file.as_str());
        let file = if file.is_empty() { "known_hosts" } else { file };
        let presented = format!("{} {}", printable(&key_type(key)), fingerprint(key));
        let port = url.port().map(|port| format!("-p {port} ")).unwrap_or_default();
        let add = format!(
            "compare the fingerprint with the one that the operator publishes, and add it to {file}: ssh-keyscan {port}{host}"
        );
        Err(match verdict {
            HostKeyVerdict::Known | HostKeyVerdict::Unknown => {
                (format!("the host key of {host} is unknown: {presented} is not in {file}"), add)
            }
            HostKeyVerdict::OtherTypes(types) => {
                let types = printable(&types.join(", "));
                (format!("the host key of {host} is unknown: {presented}; {file} has only {types}"), add)
            }
            HostKeyVerdict::Changed => (
                format!("the host key of {host} has changed: {presented} is not the one in {file}"),
                "find out why: someone may be intercepting the connection; if the change is intended, replace the key"
                    .to_owned(),
            ),
            HostKeyVerdict::Revoked => (
                format!("the host key of {host} is revoked in {file}: {presented}"),
                "ask the operator of the server for its new host key".to_owned(),
            ),
            HostKeyVerdict::CertAuthority => (
                format!("{file} has only a `@cert-authority` for {host}, which is not supported: {presented}"),
                "add the server's own host key to the file".to_owned(),
            ),
        })
    }

    /// A text without the secrets, should a server repeat one of them.
    pub(super) fn without_secrets(&self, text: &str) -> String {
        let secrets = self.password.iter().chain(&self.passphrase).filter(|secret| !secret.is_empty());
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret.expose(), "********"))
    }
}

/// The first line of a file with a secret.
fn secret_of(field: &str, path: &Path) -> Result<Secret, FetchRefusal> {
    let text = Zeroizing::new(text_of(field, path)?);
    let line = text.lines().next().unwrap_or_default().trim_end();
    if line.is_empty() {
        let message = format!("the first line of `{field}` {} is empty", path.display());
        return Err((message, "write the secret to the file".to_owned()));
    }
    Ok(Secret::new(line))
}

fn text_of(field: &str, path: &Path) -> Result<String, FetchRefusal> {
    let failed = |error: io::Error| unreadable(field, path, &error.to_string());
    let size = fs::metadata(path).map_err(failed)?.len();
    if size > MOST_BYTES {
        return Err(unreadable(field, path, &format!("larger than {} MiB", MOST_BYTES >> 20)));
    }
    fs::read_to_string(path).map_err(failed)
}

fn unreadable(field: &str, path: &Path, reason: &str) -> FetchRefusal {
    let message = format!("cannot read `{field}` {}: {reason}", path.display());
    (message, "check the path and its permissions".to_owned())
}

fn default_known_hosts() -> Option<PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())?;
    let file = home.join(".ssh/known_hosts");
    // Without the file no host is known, and the message about the host's key says what to do.
    file.exists().then_some(file)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::manifest::tree::remote::url::tests::url;

    #[test]
    fn a_secret_is_read_anew_at_each_fetch_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let access = RemoteAccess { password: Some(PasswordPlace::File(file.clone())), ..RemoteAccess::default() };
        let url = url("https://git.example.com/edge");
        assert!(access.load(&url).is_err_and(|(message, _)| message.contains("password_file")));
        for secret in ["one", "two"] {
            fs::write(&file, format!("{secret}\nsecond line\n")).unwrap();
            let loaded = access.load(&url).unwrap();
            assert_eq!(loaded.password.as_ref().unwrap().expose(), secret);
            assert_eq!(loaded.without_secrets(&format!("bad token {secret}!")), "bad token ********!");
        }
        fs::write(&file, "\n").unwrap();
        assert!(access.load(&url).is_err_and(|(message, _)| message.contains("is empty")));
    }

    #[test]
    fn an_unknown_or_changed_host_key_is_refused_with_its_fingerprint() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known");
        let key = [&[0, 0, 0, 11][..], b"ssh-ed25519", &[0, 0, 0, 1, 7]].concat();
        let access = RemoteAccess { known_hosts_file: Some(file.clone()), ..RemoteAccess::default() };
        let url = url("ssh://git@git.example.com:2222/edge");
        let refused = |text: &str| {
            fs::write(&file, text).unwrap();
            access.load(&url).unwrap().check_host_key(&url, &key).unwrap_err()
        };
        let (message, help) = refused("");
        assert!(message.contains("is unknown: ssh-ed25519 SHA256:"), "{message}");
        assert!(help.contains("ssh-keyscan -p 2222 git.example.com"), "{help}");
        let (message, _) = refused("[git.example.com]:2222 ssh-ed25519 AAAA\n");
        assert!(message.contains("has changed: ssh-ed25519 SHA256:"), "{message}");
    }
}
