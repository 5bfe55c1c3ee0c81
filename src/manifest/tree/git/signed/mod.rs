//! Signed commits (D89): whether a commit has the SSH signature of a key that may sign.
//!
//! Verification is done here and not by `git verify-commit`, which runs ssh-keygen and trusts the configuration around
//! it. The signature and the content are read from the commit object, the signature's own format in [`sshsig`], and the
//! keys that may sign from the file of allowed signers. That file is read for each commit, so a key that is removed
//! ends to count; a line that cannot be parsed refuses everything, because it could be the one that limits a key.
//!
//! It only answers for one commit. Whether history moved forward is [`lineage`](super::lineage).

mod allowed_signers;
mod sshsig;
mod wire;

use std::fs;

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use git2::{ErrorCode, Oid, Repository};

use crate::manifest::prelude::*;
use crate::model::Cause;
use allowed_signers::{AllowedSigners, SignerRefusal};
use sshsig::SshSignature;

/// The namespace in which Git signs.
const NAMESPACE: &str = "git";

/// Verifies the commits of a source, as the configuration file says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommitVerifier {
    /// The file of allowed signers.
    pub allowed_signers_file: PathBuf,
}

impl CommitVerifier {
    /// Checks the signature of a commit. The file is read each time, so that a removed key takes effect at once.
    pub(super) fn check(&self, repository: &Repository, id: Oid) -> Result<(), Diagnostic> {
        let signers = self.signers()?;
        let refused = |reason: String, help: &str| {
            let message = format!("commit {id} is not applied: {reason}");
            Err(unverified(message).help(help))
        };
        let sign = "sign the commit with `git commit -S` and `gpg.format=ssh`";
        let (signature, content) = match repository.extract_signature(&id, None) {
            Ok(found) => found,
            Err(error) if error.code() == ErrorCode::NotFound => return refused("it is not signed".into(), sign),
            Err(error) => return refused(format!("its signature cannot be read: {}", error.message()), sign),
        };
        let text = String::from_utf8_lossy(&signature);
        if !SshSignature::is_one(&text) {
            return refused("it is signed, but not with an SSH key".into(), sign);
        }
        let Some(signature) = SshSignature::parse(&text) else {
            return refused("its SSH signature is damaged".into(), sign);
        };
        let key = fingerprint(&signature.key);
        if signature.namespace != NAMESPACE {
            let namespace = printable(&signature.namespace);
            return refused(format!("its signature is for the namespace `{namespace}`"), sign);
        }
        match signature.verifies(&content) {
            Some(true) => {}
            Some(false) => return refused(format!("its signature by the key {key} is invalid"), sign),
            None => {
                let help = "sign with a key of type ed25519, ecdsa (256 or 384 bits) or rsa";
                return refused(format!("its signature by the key {key} has an unsupported type"), help);
            }
        }
        let seconds = repository.find_commit(id).map(|commit| commit.time().seconds()).unwrap_or_default();
        let at = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
        let file = self.allowed_signers_file.display();
        match signers.check(&signature.key, NAMESPACE, at) {
            Ok(()) => Ok(()),
            Err(SignerRefusal::Unknown) => {
                refused(format!("{file} does not list its key {key}"), "add the key to the file, or revert the commit")
            }
            Err(SignerRefusal::Namespace) => {
                refused(format!("{file} does not allow its key {key} to sign commits"), "add `git` to its namespaces")
            }
            Err(SignerRefusal::Time) => {
                let reason = format!("its key {key} was not valid at the time of the commit, {at}");
                refused(reason, "sign with a key that is valid now")
            }
        }
    }

    fn signers(&self) -> Result<AllowedSigners, Diagnostic> {
        let failed = |reason: String| {
            let file = self.allowed_signers_file.display();
            unverified(format!("cannot read the allowed signers in {file}: {reason}"))
                .help("fix the file; no commit is applied until it is valid")
        };
        let text = fs::read_to_string(&self.allowed_signers_file).map_err(|error| failed(error.to_string()))?;
        AllowedSigners::parse(&text).map_err(failed)
    }
}

fn unverified(message: String) -> Diagnostic {
    Diagnostic::error(Code::UnverifiedCommit, message).caused_by(Cause::RefusedCommit)
}

/// The fingerprint of a key, as `ssh-keygen -l` prints it.
fn fingerprint(key: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, key);
    format!("SHA256:{}", STANDARD_NO_PAD.encode(digest.as_ref()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use git2::Signature;

    use super::*;
    use crate::model::diagnostics::diagnostic::Name;

    /// Commits an empty tree with a signature.
    fn signed(repository: &Repository, signature: Option<&str>) -> Oid {
        let tree = repository.find_tree(repository.treebuilder(None).unwrap().write().unwrap()).unwrap();
        let author = Signature::new("t", "t@example.com", &git2::Time::new(1_780_000_000, 0)).unwrap();
        let content = repository.commit_create_buffer(&author, &author, "edge", &tree, &[]).unwrap();
        let text = content.as_str().unwrap();
        match signature {
            Some(signature) => repository.commit_signed(text, signature, None).unwrap(),
            None => repository.odb().unwrap().write(git2::ObjectType::Commit, text.as_bytes()).unwrap(),
        }
    }

    #[test]
    fn commits_without_a_signature_of_an_allowed_key_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let repository = Repository::init_bare(folder.path().join("r")).unwrap();
        let file = folder.path().join("signers");
        fs::write(&file, "").unwrap();
        let verifier = CommitVerifier { allowed_signers_file: file.clone() };
        let refused = |signature: Option<&str>| {
            let refused = verifier.check(&repository, signed(&repository, signature)).unwrap_err();
            assert_eq!(refused.code, Name::Code(Code::UnverifiedCommit));
            refused.message
        };
        let foreign = include_str!("signatures.txt").split_inclusive("-----END SSH SIGNATURE-----").next().unwrap();
        for (signature, said) in [
            (None, "it is not signed"),
            (Some("-----BEGIN PGP SIGNATURE-----\n\nx\n-----END PGP SIGNATURE-----"), "not with an SSH key"),
            (Some("-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----"), "is damaged"),
            // The signature is of another message.
            (Some(foreign), "is invalid"),
        ] {
            let message = refused(signature);
            assert!(message.contains(said), "{said}: {message}");
        }
        fs::write(&file, "* ssh-ed25519 ???\n").unwrap();
        assert!(refused(None).contains("line 1: the key is not base64"));
        fs::remove_file(&file).unwrap();
        assert!(refused(None).contains("cannot read the allowed signers"));
    }

    #[test]
    fn a_key_has_the_fingerprint_that_ssh_keygen_prints() {
        let key = "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
        let key = base64::engine::general_purpose::STANDARD.decode(key).unwrap();
        assert_eq!(fingerprint(&key), "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU");
    }
}
