//! Signatures of OpenSSH (PROTOCOL.sshsig), as Git puts them into commits with `gpg.format = ssh`.

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::digest::{self, digest};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA512,
    RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};

use super::wire::{WireReader, put_string};

const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";
const MAGIC: &[u8] = b"SSHSIG";
/// The flag of a security key that its user was present.
const USER_PRESENT: u8 = 1;

/// A parsed signature. Nothing of it is verified yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SshSignature {
    /// The public key in the wire format.
    pub key: Vec<u8>,
    /// The purpose of the signature.
    pub namespace: String,
    hash: String,
    reserved: Vec<u8>,
    signature: Vec<u8>,
}

impl SshSignature {
    /// Whether a text begins like such a signature.
    pub(super) fn is_one(text: &str) -> bool {
        text.trim_start().starts_with(BEGIN)
    }

    /// Parses the armored form.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let body = text.trim().strip_prefix(BEGIN)?.strip_suffix(END)?;
        let body: String = body.split_ascii_whitespace().collect();
        let bytes = STANDARD.decode(body).ok()?;
        let mut reader = WireReader(&bytes);
        if reader.take(MAGIC.len())? != MAGIC || reader.number()? != 1 {
            return None;
        }
        let key = reader.string()?.to_vec();
        let namespace = reader.text()?.to_owned();
        let reserved = reader.string()?.to_vec();
        let hash = reader.text()?.to_owned();
        let signature = reader.string()?.to_vec();
        reader.end()?;
        Some(Self { key, namespace, hash, reserved, signature })
    }

    /// Whether the key has signed a message. `None` if the kind of key or signature is not supported.
    pub(super) fn verifies(&self, message: &[u8]) -> Option<bool> {
        let hash = match self.hash.as_str() {
            "sha256" => digest(&digest::SHA256, message),
            "sha512" => digest(&digest::SHA512, message),
            _ => return None,
        };
        let mut signed = MAGIC.to_vec();
        put_string(&mut signed, self.namespace.as_bytes())?;
        put_string(&mut signed, &self.reserved)?;
        put_string(&mut signed, self.hash.as_bytes())?;
        put_string(&mut signed, hash.as_ref())?;
        let (mut signature, mut key) = (WireReader(&self.signature), WireReader(&self.key));
        let (algorithm, kind) = (signature.text()?, key.text()?);
        // SHA-1 (`ssh-rsa`) is not allowed for these signatures.
        if kind == "ssh-rsa" {
            let parameters = match algorithm {
                "rsa-sha2-256" => &RSA_PKCS1_2048_8192_SHA256,
                "rsa-sha2-512" => &RSA_PKCS1_2048_8192_SHA512,
                _ => return None,
            };
            let (e, n, bytes) = (key.big_number()?, key.big_number()?, signature.string()?);
            key.end()?;
            signature.end()?;
            return Some(RsaPublicKeyComponents { n, e }.verify(parameters, &signed, bytes).is_ok());
        }
        // The curve of an ECDSA key, and the size of the numbers of a signature.
        let (verification, curve): (&'static dyn VerificationAlgorithm, Option<(&str, usize)>) = match kind {
            _ if algorithm != kind => return None,
            "ssh-ed25519" | "sk-ssh-ed25519@openssh.com" => (&ED25519, None),
            "ecdsa-sha2-nistp256" | "sk-ecdsa-sha2-nistp256@openssh.com" => {
                (&ECDSA_P256_SHA256_FIXED, Some(("nistp256", 32)))
            }
            "ecdsa-sha2-nistp384" => (&ECDSA_P384_SHA384_FIXED, Some(("nistp384", 48))),
            _ => return None,
        };
        if let Some((curve, _)) = curve
            && key.text()? != curve
        {
            return None;
        }
        let point = key.string()?;
        let bytes = match curve {
            Some((_, size)) => fixed(signature.string()?, size)?,
            None => signature.string()?.to_vec(),
        };
        if kind.starts_with("sk-") {
            signed = by_security_key(signature, key.string()?, &signed)?;
        } else {
            signature.end()?;
        }
        key.end()?;
        Some(UnparsedPublicKey::new(verification, point).verify(&signed, &bytes).is_ok())
    }
}

/// The two numbers of an ECDSA signature, each in so many bytes.
fn fixed(signature: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut reader = WireReader(signature);
    let (r, s) = (reader.big_number()?, reader.big_number()?);
    reader.end()?;
    let mut bytes = Vec::with_capacity(2 * size);
    for number in [r, s] {
        bytes.resize(bytes.len() + size.checked_sub(number.len())?, 0);
        bytes.extend_from_slice(number);
    }
    Some(bytes)
}

/// Returns the data that a security key signs instead of a message: its application, its flags and counter, and the
/// message's hash.
fn by_security_key(mut rest: WireReader<'_>, application: &[u8], message: &[u8]) -> Option<Vec<u8>> {
    let (flags, counter) = (rest.take(1)?, rest.take(4)?);
    rest.end()?;
    // Without its user's presence, a stolen key could sign by itself.
    flags.first().filter(|flags| **flags & USER_PRESENT != 0)?;
    let (application, message) = (digest(&digest::SHA256, application), digest(&digest::SHA256, message));
    Some([application.as_ref(), flags, counter, message.as_ref()].concat())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    const MESSAGE: &[u8] = b"tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\n\nedge\n";

    /// Made by `ssh-keygen -Y sign -n git` with keys of each type.
    const SIGNATURES: &str = include_str!("signatures.txt");

    #[test]
    fn signatures_of_ssh_keygen_verify_and_changed_ones_do_not() {
        let all: Vec<&str> = SIGNATURES.split_inclusive(END).filter(|text| text.contains(BEGIN)).collect();
        assert_eq!(all.len(), 5);
        let mut types = Vec::new();
        for text in all {
            let mut signature = SshSignature::parse(text).unwrap();
            types.push(WireReader(&signature.key).text().unwrap().to_owned());
            assert_eq!(signature.namespace, "git");
            assert_eq!(signature.verifies(MESSAGE), Some(true), "{text}");
            assert_eq!(signature.verifies(b"another"), Some(false), "{text}");
            signature.namespace = "file".into();
            assert_eq!(signature.verifies(MESSAGE), Some(false), "{text}");
        }
        types.sort();
        assert_eq!(types, ["ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ssh-ed25519", "ssh-rsa", "ssh-rsa"]);
    }

    #[test]
    fn damaged_signatures_are_refused() {
        let text = SIGNATURES.split_inclusive(END).next().unwrap();
        let whole = SshSignature::parse(text).unwrap();
        let truncated =
            SshSignature { signature: whole.signature[..10].to_vec(), ..SshSignature::parse(text).unwrap() };
        assert_eq!(truncated.verifies(MESSAGE), None);
        let other = SshSignature { hash: "md5".into(), ..SshSignature::parse(text).unwrap() };
        assert_eq!(other.verifies(MESSAGE), None);
        for text in ["", BEGIN, &format!("{BEGIN}\nU1NIU0lH\n{END}"), &format!("{BEGIN}\n???\n{END}")] {
            assert_eq!(SshSignature::parse(text), None, "{text}");
        }
        assert!(SshSignature::is_one(text) && !SshSignature::is_one("-----BEGIN PGP SIGNATURE-----"));
    }

    #[test]
    fn a_security_key_signs_with_its_user_present() {
        let signed = |flags: u8| by_security_key(WireReader(&[flags, 0, 0, 0, 7]), b"ssh:", b"message");
        assert_eq!(signed(USER_PRESENT).map(|bytes| bytes.len()), Some(32 + 5 + 32));
        assert_eq!(signed(0), None);
    }
}
