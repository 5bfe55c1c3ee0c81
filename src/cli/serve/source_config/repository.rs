//! The Git repository of a source: a local path or a URL, the revision, credentials and signatures (D82, D88, D89).

use std::path::Component;

use super::entry::SourceEntry;
use crate::cli::prelude::*;
use crate::manifest::tree::remote::{GitTransport, PasswordPlace, RemoteAccess, RemoteUrl};
use crate::manifest::tree::{CommitVerifier, RevisionSpec};
use crate::reconcile::sources::location::SourceLocation;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ConfiguredRepository {
    pub address: RepositoryAddress,
    pub wanted: RevisionSpec,
    /// Checks commits before they are read.
    pub verifier: Option<CommitVerifier>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum RepositoryAddress {
    Local(PathBuf),
    Remote { url: RemoteUrl, access: Box<RemoteAccess> },
}

/// Whether a path is relative to the top folder of a repository, and stays inside.
fn is_inside(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

fn fault(name: &str, code: Code, message: &str) -> Fault {
    Fault::new(code, message).at(FieldPath::root().join(name))
}

impl SourceEntry {
    /// The location of the manifests, and their repository if they are in one.
    pub(super) fn location(&self) -> Result<(SourceLocation, Option<ConfiguredRepository>), Fault> {
        let is_blank = |path: &PathBuf| path.as_os_str().is_empty();
        let paths: Vec<PathBuf> = self.path.iter().cloned().collect();
        let Some(repository) = &self.repository else {
            self.refuse_without_repository()?;
            return match &self.path {
                None => Err(fault("path", Code::Required, "`path` is required")
                    .help("set `path` to a folder or file, or `repository` to a Git repository")),
                Some(path) if is_blank(path) || path.as_os_str() == "-" => {
                    Err(fault("path", Code::InvalidFormat, "`path` must be a folder or file"))
                }
                Some(_) => Ok((SourceLocation { paths, ..SourceLocation::default() }, None)),
            };
        };
        if repository.is_empty() {
            return Err(fault("repository", Code::InvalidFormat, "`repository` cannot be empty"));
        }
        if !paths.iter().all(|path| is_inside(path)) {
            let message = "`path` must be relative to the top folder of `repository`, without `..`";
            return Err(fault("path", Code::InvalidFormat, message));
        }
        let wanted = self.revision_spec()?;
        let url = RemoteUrl::parse(repository).map_err(|fault| fault.at(FieldPath::root().join("repository")))?;
        let address = match url {
            None => {
                self.refuse_credentials(&[])?;
                RepositoryAddress::Local(PathBuf::from(repository))
            }
            Some(url) => {
                let access = Box::new(self.access(&url)?);
                RepositoryAddress::Remote { url, access }
            }
        };
        let verifier = match &self.verify {
            Some(verify) if is_blank(&verify.allowed_signers_file) => {
                let fault = fault("verify", Code::Required, "`allowed_signers_file` cannot be empty");
                return Err(fault.help("set it to the file with the keys that may sign"));
            }
            verifier => verifier.clone(),
        };
        let (revision, semver) = match &wanted {
            RevisionSpec::Ref(name) => (name.clone(), String::new()),
            RevisionSpec::Semver(_) => (String::new(), wanted.to_string()),
        };
        let location = SourceLocation { paths, repository: repository.clone(), revision, semver };
        Ok((location, Some(ConfiguredRepository { address, wanted, verifier })))
    }

    /// The paths of the surrounding manifests, which are where `path` is: on the disk or inside the repository.
    pub(super) fn surrounding(&self) -> Result<Vec<PathBuf>, Fault> {
        for (at, path) in self.with.iter().enumerate() {
            let place = FieldPath::root().join("with").join(at);
            let message = match &self.repository {
                _ if path.as_os_str().is_empty() || path.as_os_str() == "-" => "`with` must list folders or files",
                Some(_) if !is_inside(path) => {
                    "a path in `with` must be relative to the top folder of `repository`, without `..`"
                }
                _ => continue,
            };
            return Err(Fault::new(Code::InvalidFormat, message).at(place));
        }
        Ok(self.with.clone())
    }

    fn refuse_without_repository(&self) -> Result<(), Fault> {
        let set =
            [("ref", self.revision.is_some()), ("semver", self.semver.is_some()), ("verify", self.verify.is_some())];
        if let Some((name, _)) = set.into_iter().find(|(_, is_set)| *is_set) {
            return Err(fault(name, Code::NotAllowed, &format!("`{name}` requires `repository`"))
                .help(format!("set `repository` to the path or URL of a Git repository, or remove `{name}`")));
        }
        self.refuse_credentials(&[])
    }

    /// Refuses credentials that are not among those that the repository can use.
    fn refuse_credentials(&self, usable: &[&str]) -> Result<(), Fault> {
        let set = [
            ("username", self.username.is_some(), "an https:// or SSH URL"),
            ("password_file", self.password_file.is_some(), "an https:// URL"),
            ("password_env", self.password_env.is_some(), "an https:// URL"),
            ("ssh_key_file", self.ssh_key_file.is_some(), "an SSH URL"),
            ("ssh_key_passphrase_file", self.ssh_key_passphrase_file.is_some(), "an SSH URL"),
            ("known_hosts_file", self.known_hosts_file.is_some(), "an SSH URL"),
            ("ca_file", self.ca_file.is_some(), "an https:// URL"),
        ];
        match set.into_iter().find(|(name, is_set, _)| *is_set && !usable.contains(name)) {
            None => Ok(()),
            Some((name, _, protocol)) => {
                Err(fault(name, Code::NotAllowed, &format!("`{name}` requires a `repository` with {protocol}"))
                    .help(format!("remove `{name}`")))
            }
        }
    }

    fn revision_spec(&self) -> Result<RevisionSpec, Fault> {
        match (&self.revision, &self.semver) {
            (Some(_), Some(_)) => Err(fault("semver", Code::NotAllowed, "`semver` cannot be combined with `ref`")
                .help("remove one of the two")),
            (None, Some(range)) => RevisionSpec::semver(range).map_err(|reason| {
                fault("semver", Code::InvalidFormat, &format!("`semver` must be a range of versions: {reason}"))
                    .help("write it like ^1.2, ~1.2.3 or \">=1.2, <2\"")
            }),
            (revision, None) => {
                let revision = revision.clone().unwrap_or_else(|| "HEAD".to_owned());
                if revision.trim().is_empty() || revision.contains(char::is_control) {
                    return Err(fault("ref", Code::InvalidFormat, "`ref` must be a branch, tag or commit"));
                }
                Ok(RevisionSpec::Ref(revision))
            }
        }
    }

    fn access(&self, url: &RemoteUrl) -> Result<RemoteAccess, Fault> {
        self.refuse_credentials(match url.transport {
            GitTransport::Http => &["username", "password_file", "password_env", "ca_file"],
            GitTransport::Ssh => &["username", "ssh_key_file", "ssh_key_passphrase_file", "known_hosts_file"],
            GitTransport::File => &[],
        })?;
        if self.username.is_some() && url.user.is_some() {
            return Err(fault("username", Code::NotAllowed, "`repository` already names the user")
                .help("remove `username`, or the user from the URL"));
        }
        if self.ssh_key_passphrase_file.is_some() && self.ssh_key_file.is_none() {
            let message = "`ssh_key_passphrase_file` requires `ssh_key_file`";
            return Err(fault("ssh_key_passphrase_file", Code::NotAllowed, message));
        }
        let password = match (&self.password_file, &self.password_env) {
            (Some(_), Some(_)) => {
                let message = "`password_env` cannot be combined with `password_file`";
                return Err(fault("password_env", Code::NotAllowed, message).help("remove one of the two"));
            }
            (Some(path), None) => Some(PasswordPlace::File(path.clone())),
            (None, Some(name)) => Some(PasswordPlace::Variable(name.clone())),
            (None, None) => None,
        };
        Ok(RemoteAccess {
            username: self.username.clone(),
            password,
            ssh_key_file: self.ssh_key_file.clone(),
            ssh_key_passphrase_file: self.ssh_key_passphrase_file.clone(),
            known_hosts_file: self.known_hosts_file.clone(),
            ca_file: self.ca_file.clone(),
        })
    }
}
