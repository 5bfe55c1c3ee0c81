//! Authentication to the server of a repository, and of the server. Secrets are read at each fetch, so that a rotated
//! one takes effect without a restart, and are never part of a message.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{self, Path, PathBuf};
use std::{env, io};

use base64::Engine as _;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::percent_decode_str;
use zeroize::Zeroizing;

use super::url::{GitTransport, RemoteUrl};
use crate::model::{MASK, Secret};
use crate::syntax::text::printable;
use crate::syntax::x509;

/// The user if neither the URL nor the configuration names one: the one of SSH at all forges, and any will do with a
/// token.
const USER: &str = "git";
/// The most bytes of a file with a secret or with authorities.
const MOST_BYTES: u64 = 4 << 20;
/// Settings that take precedence over those of the user, which have helpers and proxies.
const SETTINGS: [(&str, &str); 4] = [
    // One pack of limited size for each fetch, which nothing packs again while it is read.
    ("fetch.unpackLimit", "1"),
    ("fetch.writeCommitGraph", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
];
/// Answers git with the secret in its environment.
const HELPER: &str = "!f() { test \"$1\" != get || \
                      printf 'username=%s\\npassword=%s\\n' \"$EDGEWRIGHT_GIT_USER\" \"$EDGEWRIGHT_GIT_SECRET\"; }; f";
/// Answers ssh with the passphrase in its environment. ssh runs a file, without arguments.
const ASKPASS: &str = "#!/bin/sh\nprintf '%s\\n' \"$EDGEWRIGHT_GIT_SECRET\"\n";
/// Asks nothing, checks the host's key, and tells its fingerprint (`-v`). A connection that is open already could be one
/// to a host with another key.
const SSH: &str =
    "ssh -v -o StrictHostKeyChecking=yes -o UpdateHostKeys=no -o ControlPath=none -o ServerAliveInterval=15";

/// The credentials of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RemoteAccess {
    /// The user, unless the URL has one.
    pub username: Option<String>,
    /// The location of the password or token; without one, the helpers of the user's configuration of Git are asked.
    pub password: Option<PasswordPlace>,
    /// The private key for SSH; without one, ssh uses those of the user.
    pub ssh_key_file: Option<PathBuf>,
    /// The file with the passphrase of the key.
    pub ssh_key_passphrase_file: Option<PathBuf>,
    /// The keys of SSH servers, by default those that ssh knows.
    pub known_hosts_file: Option<PathBuf>,
    /// The authorities of HTTPS servers, by default those of the system.
    pub ca_file: Option<PathBuf>,
}

/// The location of a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PasswordPlace {
    /// In a file.
    File(PathBuf),
    /// In an environment variable.
    Variable(String),
}

/// The credentials for one fetch.
pub(super) struct LoadedAccess {
    user: String,
    secret: Option<Secret>,
    /// The variables for git.
    pub environment: Vec<(String, OsString)>,
    /// The file with the keys of SSH servers, for messages.
    pub known_hosts: String,
}

/// Why a fetch is not possible: the message and the help.
pub(crate) type FetchRefusal = (String, String);

pub(super) fn refusal(reason: impl Into<String>, help: impl Into<String>) -> FetchRefusal {
    (reason.into(), help.into())
}

impl RemoteAccess {
    /// Checks the file of authorities, for which git has no message.
    pub(crate) fn check_authorities(&self) -> Result<(), FetchRefusal> {
        let Some(path) = &self.ca_file else { return Ok(()) };
        x509::authority(&text_of("ca_file", path)?).map(drop).map_err(|fault| {
            let message = format!("cannot use `ca_file` {}: {fault}", path.display());
            refusal(message, "write the certificates of the authorities to the file, as PEM")
        })
    }

    /// Reads what a fetch into the folder of a mirror needs.
    pub(super) fn load(&self, url: &RemoteUrl, mirror: &Path) -> Result<LoadedAccess, FetchRefusal> {
        self.check_authorities()?;
        let secret = self.secret()?;
        let mut settings = Vec::from(SETTINGS.map(|(name, value)| (name.to_owned(), value)));
        let mut variables = vec![
            ("EDGEWRIGHT_NO_HOOKS", "/dev/null".into()),
            ("GCM_INTERACTIVE", "never".into()),
            ("GIT_ASKPASS", OsString::new()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            ("LC_ALL", "C".into()),
        ];
        if let Some(secret) = &secret {
            variables.push(("EDGEWRIGHT_GIT_SECRET", secret.expose().into()));
        }
        let user = url.user.as_deref().or(self.username.as_deref()).unwrap_or(USER);
        variables.push(("EDGEWRIGHT_GIT_USER", user.into()));
        let protocols = match url.transport {
            GitTransport::File => "file",
            GitTransport::Http if url.is_local() => "http:https:ssh",
            // The user's configuration of Git can replace one by the other.
            GitTransport::Http | GitTransport::Ssh => "https:ssh",
        };
        variables.push(("GIT_ALLOW_PROTOCOL", protocols.into()));
        // The user's settings for a URL would otherwise be stronger.
        let mut of_url = |name: &str, value| settings.push((format!("http.{}.{name}", url.text), value));
        of_url("followRedirects", "initial");
        of_url("sslVerify", "true");
        if url.is_local() {
            of_url("proxy", "");
        }
        let origin = url.origin();
        if self.password.is_some() {
            // An empty helper removes those before it. A redirect to another origin gets nothing.
            settings.push(("credential.helper".to_owned(), ""));
            settings.push((format!("credential.{origin}.helper"), HELPER));
        } else if let Some(username) = &self.username {
            settings.push((format!("credential.{origin}.username"), username.as_str()));
        }
        if let Some(file) = &self.ca_file {
            // No folder: only the authorities in the file are trusted.
            variables.extend([("GIT_SSL_CAINFO", whole(file)), ("GIT_SSL_CAPATH", "/dev/null".into())]);
        } else {
            let set = [("GIT_SSL_CAINFO", "SSL_CERT_FILE"), ("GIT_SSL_CAPATH", "SSL_CERT_DIR")];
            variables.extend(set.into_iter().filter_map(|(name, set)| Some((name, env::var_os(set)?))));
        }
        self.set_ssh(url, mirror, &mut variables)?;
        variables.push(("GIT_CONFIG_COUNT", settings.len().to_string().into()));
        let mut environment: Vec<(String, OsString)> =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        for (at, (name, value)) in settings.into_iter().enumerate() {
            environment.push((format!("GIT_CONFIG_KEY_{at}"), name.into()));
            environment.push((format!("GIT_CONFIG_VALUE_{at}"), value.into()));
        }
        let known_hosts = self.known_hosts_file.as_deref().unwrap_or(Path::new("known_hosts")).display().to_string();
        Ok(LoadedAccess { user: user.to_owned(), secret, environment, known_hosts })
    }

    /// Reads the password, or the passphrase of the key.
    fn secret(&self) -> Result<Option<Secret>, FetchRefusal> {
        Ok(match (&self.password, &self.ssh_key_passphrase_file) {
            (Some(PasswordPlace::File(path)), _) => Some(secret_of("password_file", path)?),
            (Some(PasswordPlace::Variable(name)), _) => Some(secret_in(name)?),
            (None, Some(path)) => Some(secret_of("ssh_key_passphrase_file", path)?),
            (None, None) => None,
        })
    }

    /// Sets the command of ssh. The shell that runs it reads paths and names from variables.
    fn set_ssh(
        &self,
        url: &RemoteUrl,
        mirror: &Path,
        variables: &mut Vec<(&str, OsString)>,
    ) -> Result<(), FetchRefusal> {
        let mut ssh = SSH.to_owned();
        // ssh replaces percent signs.
        let escaped = |path: &Path| whole(path).to_string_lossy().replace('%', "%%");
        if let Some(file) = &self.known_hosts_file {
            check_readable("known_hosts_file", file)?;
            ssh += " -o GlobalKnownHostsFile=/dev/null -o \"$EDGEWRIGHT_KNOWN_HOSTS\"";
            let option = format!("UserKnownHostsFile=\"{}\"", escaped(file));
            variables.push(("EDGEWRIGHT_KNOWN_HOSTS", option.into()));
        }
        if let Some(file) = &self.ssh_key_file {
            check_readable("ssh_key_file", file)?;
            ssh += " -o IdentitiesOnly=yes -i \"$EDGEWRIGHT_SSH_KEY\"";
            variables.push(("EDGEWRIGHT_SSH_KEY", escaped(file).into()));
        }
        if url.transport == GitTransport::Ssh && url.user.is_none() {
            ssh += " -l \"$EDGEWRIGHT_GIT_USER\"";
        }
        if self.ssh_key_passphrase_file.is_some() {
            ssh += " -o PasswordAuthentication=no -o KbdInteractiveAuthentication=no -o NumberOfPasswordPrompts=1";
            let askpass = mirror.join("askpass");
            let written = fs::write(&askpass, ASKPASS);
            written.and_then(|()| fs::set_permissions(&askpass, Permissions::from_mode(0o700))).map_err(|error| {
                let help = "check free disk space and the permissions of the store's folder";
                refusal(format!("cannot write {}: {error}", askpass.display()), help)
            })?;
            // Versions of ssh before 8.4 need a display instead of the requirement.
            variables.extend([
                ("SSH_ASKPASS", whole(&askpass)),
                ("SSH_ASKPASS_REQUIRE", "force".into()),
                ("DISPLAY", "none".into()),
            ]);
        } else {
            ssh += " -o BatchMode=yes";
        }
        variables.extend([("GIT_SSH_COMMAND", OsString::from(ssh)), ("GIT_SSH_VARIANT", "ssh".into())]);
        Ok(())
    }
}

impl LoadedAccess {
    /// A text without the secret, should a server repeat it: as it is, as in the header of a request, or in a URL.
    pub(super) fn without_secrets(&self, text: &str) -> String {
        let Some(secret) = self.secret.as_ref().map(Secret::expose).filter(|secret| !secret.is_empty()) else {
            return text.to_owned();
        };
        let pair = Zeroizing::new(format!("{}:{secret}", self.user));
        let mut masked = text.replace(secret, MASK);
        for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            for part in [&**pair, secret].into_iter().flat_map(|text| within_base64(text, &alphabet)) {
                masked = masked.replace(&*part, MASK);
            }
        }
        let words = masked.split_inclusive(char::is_whitespace).map(|word| {
            let space = word.get(word.trim_end().len()..).unwrap_or_default();
            match percent_decode_str(word).decode_utf8_lossy().contains(secret) {
                true => format!("{MASK}{space}"),
                false => word.to_owned(),
            }
        });
        words.collect()
    }
}

/// What a text is in base64, wherever it stands in what is encoded: without the characters that depend on its neighbours.
fn within_base64(text: &str, alphabet: &GeneralPurpose) -> Vec<Zeroizing<String>> {
    let encoded = (0..3).filter_map(|before: usize| {
        let padded = Zeroizing::new(format!("{}{text}", "x".repeat(before)));
        let encoded = Zeroizing::new(alphabet.encode(padded.as_bytes()));
        // A character has six bits.
        let part = encoded.get((before * 8).div_ceil(6)..padded.len() * 8 / 6)?;
        (!part.is_empty()).then(|| Zeroizing::new(part.to_owned()))
    });
    encoded.collect()
}

/// The secret in a variable.
fn secret_in(name: &str) -> Result<Secret, FetchRefusal> {
    let value = env::var(name).unwrap_or_default();
    value.lines().next().filter(|line| !line.trim().is_empty()).map(Secret::new).ok_or_else(|| {
        let message = format!("the environment variable `{}` is empty or not set", printable(name));
        refusal(message, "set it in edgewright's environment")
    })
}

/// The absolute path of a file for git and ssh, which may run elsewhere.
fn whole(path: &Path) -> OsString {
    path::absolute(path).unwrap_or_else(|_| path.to_owned()).into_os_string()
}

/// Checks that a file can be read. ssh would ignore it.
fn check_readable(field: &str, path: &Path) -> Result<(), FetchRefusal> {
    fs::File::open(path).map(drop).map_err(|error| unreadable(field, path, &error.to_string()))
}

/// The first line of a file with a secret.
fn secret_of(field: &str, path: &Path) -> Result<Secret, FetchRefusal> {
    let text = Zeroizing::new(text_of(field, path)?);
    let line = text.lines().next().unwrap_or_default().trim_end();
    if line.is_empty() {
        let message = format!("the first line of `{field}` {} is empty", path.display());
        return Err(refusal(message, "write the secret to the file"));
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
    refusal(message, "check the path and its permissions")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::manifest::tree::remote::url::tests::url;

    #[test]
    fn a_secret_is_read_anew_at_each_fetch_and_only_in_one_variable() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let access = RemoteAccess { password: Some(PasswordPlace::File(file.clone())), ..RemoteAccess::default() };
        let url = url("https://git.example.com/edge");
        let load = || access.load(&url, folder.path());
        assert!(load().is_err_and(|(message, _)| message.contains("password_file")));
        for secret in ["first-token", "second-token"] {
            fs::write(&file, format!("{secret}\nsecond line\n")).unwrap();
            let loaded = load().unwrap();
            let mut with = loaded.environment.iter().filter(|(_, value)| value.to_string_lossy().contains(secret));
            assert_eq!(with.next().map(|(name, _)| name.as_str()), Some("EDGEWRIGHT_GIT_SECRET"));
            assert!(with.next().is_none());
            assert_eq!(loaded.without_secrets(&format!("bad token {secret}!")), "bad token ********!");
        }
        fs::write(&file, "\n").unwrap();
        assert!(load().is_err_and(|(message, _)| message.contains("is empty")));
    }

    #[test]
    fn a_secret_that_a_server_repeats_is_masked_in_each_of_its_forms() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        fs::write(&file, "p@ss/w+ord?>").unwrap();
        let password = Some(PasswordPlace::File(file));
        let access = RemoteAccess { username: Some("me".into()), password, ..RemoteAccess::default() };
        let loaded = access.load(&url("https://git.example.com/edge"), folder.path()).unwrap();
        let said = "you sent me:p@ss/w+ord?> as Basic bWU6cEBzcy93K29yZD8+\r\nor bWU6cEBzcy93K29yZD8- in \
                    https://me:p%40ss%2fw%2Bord%3F%3E@git.example.com/\nremote: 1% of it\n";
        let masked = "you sent me:******** as Basic ********\r\nor ******** in ********\nremote: 1% of it\n";
        assert_eq!(loaded.without_secrets(said), masked);
        for before in ["", "x", "xy", "token "] {
            let encoded = STANDARD_NO_PAD.encode(format!("{before}p@ss/w+ord?>{before}"));
            let masked = loaded.without_secrets(&encoded);
            assert!(masked.contains(MASK) && !encoded.contains(&masked), "{encoded} {masked}");
            assert!(masked.len() <= MASK.len() + 4 + before.len() * 8 / 3, "{encoded} {masked}");
        }
    }

    #[test]
    fn the_helpers_of_the_user_answer_only_for_sources_without_a_password() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        fs::write(&file, "secret").unwrap();
        let url = url("https://Git.example.com:8443/edge");
        let settings = |password: Option<PasswordPlace>| {
            let access = RemoteAccess { username: Some("me".into()), password, ..RemoteAccess::default() };
            let loaded = access.load(&url, folder.path()).unwrap();
            let of_git = loaded.environment.iter().filter(|(name, _)| name.starts_with("GIT_CONFIG_"));
            of_git.map(|(_, value)| value.to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        let (with, without) = (settings(Some(PasswordPlace::File(file.clone()))), settings(None));
        let has = |settings: &[String], name: &str| settings.iter().any(|setting| setting == name);
        assert!(has(&with, "credential.helper") && has(&with, "credential.https://Git.example.com:8443.helper"));
        assert!(!has(&without, "credential.helper"));
        assert!(has(&without, "credential.https://Git.example.com:8443.username"));
        assert!(has(&without, "http.https://Git.example.com:8443/edge.sslVerify"));
    }
}
