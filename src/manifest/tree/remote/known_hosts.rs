//! The file `known_hosts` of OpenSSH, by which the key of an SSH server is checked.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD},
};
use ring::hmac;

/// The entries of a `known_hosts` file.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownHosts {
    entries: Vec<KnownHost>,
}

#[derive(Debug, Clone)]
struct KnownHost {
    marker: HostMarker,
    hosts: String,
    key_type: String,
    key: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostMarker {
    None,
    Revoked,
    CertAuthority,
}

/// What a `known_hosts` file says about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HostKeyVerdict {
    /// The key is the host's.
    Known,
    /// The file does not have the host.
    Unknown,
    /// The file has another key of this type for the host.
    Changed,
    /// The file has only keys of other types for the host.
    OtherTypes(Vec<String>),
    /// The key is marked `@revoked`.
    Revoked,
    /// The file has only a `@cert-authority` for the host, which is not supported.
    CertAuthority,
}

impl KnownHosts {
    /// Parses a file. Lines that OpenSSH would skip are skipped, too: they cannot make a key known.
    pub(crate) fn parse(text: &str) -> Self {
        Self { entries: text.lines().filter_map(KnownHost::parse).collect() }
    }

    /// Judges the key of a host, in the wire format of SSH. `port` is that of the URL, if it is not 22.
    pub(crate) fn judge(&self, host: &str, port: Option<u16>, key: &[u8]) -> HostKeyVerdict {
        let name = match port {
            Some(port) if port != 22 => format!("[{host}]:{port}"),
            _ => host.to_owned(),
        };
        let own: Vec<&KnownHost> = self.entries.iter().filter(|entry| entry.is_for(&name)).collect();
        let with = |marker: HostMarker| own.iter().filter(move |entry| entry.marker == marker);
        if with(HostMarker::Revoked).any(|entry| entry.key == key) {
            return HostKeyVerdict::Revoked;
        }
        if with(HostMarker::None).any(|entry| entry.key == key) {
            return HostKeyVerdict::Known;
        }
        let key_type = key_type(key);
        let mut types: Vec<String> = with(HostMarker::None).map(|entry| entry.key_type.clone()).collect();
        if types.contains(&key_type) {
            return HostKeyVerdict::Changed;
        }
        if !types.is_empty() {
            types.dedup();
            return HostKeyVerdict::OtherTypes(types);
        }
        match with(HostMarker::CertAuthority).next() {
            Some(_) => HostKeyVerdict::CertAuthority,
            None => HostKeyVerdict::Unknown,
        }
    }
}

impl KnownHost {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let first = words.next().filter(|word| !word.starts_with('#'))?;
        let (marker, hosts) = match first {
            "@revoked" => (HostMarker::Revoked, words.next()?),
            "@cert-authority" => (HostMarker::CertAuthority, words.next()?),
            other if other.starts_with('@') => return None,
            hosts => (HostMarker::None, hosts),
        };
        let key_type = words.next()?.to_owned();
        let key = STANDARD.decode(words.next()?).ok()?;
        Some(Self { marker, hosts: hosts.to_owned(), key_type, key })
    }

    fn is_for(&self, name: &str) -> bool {
        if let Some(hashed) = self.hosts.strip_prefix("|1|") {
            return is_hash_of(hashed, name).unwrap_or_default();
        }
        matches_list(&self.hosts.to_ascii_lowercase(), name)
    }
}

/// Whether `SALT|HASH` is the hash of a host.
fn is_hash_of(hashed: &str, name: &str) -> Option<bool> {
    let (salt, hash) = hashed.split_once('|')?;
    let (salt, hash) = (STANDARD.decode(salt).ok()?, STANDARD.decode(hash).ok()?);
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, &salt);
    Some(hmac::verify(&key, name.as_bytes(), &hash).is_ok())
}

/// Whether a name matches a list of patterns; a negated pattern that matches excludes it.
pub(in crate::manifest::tree) fn matches_list(patterns: &str, name: &str) -> bool {
    let mut is_match = false;
    for pattern in patterns.split(',') {
        match pattern.strip_prefix('!') {
            Some(pattern) if matches_pattern(pattern.as_bytes(), name.as_bytes()) => return false,
            Some(_) => {}
            None => is_match |= matches_pattern(pattern.as_bytes(), name.as_bytes()),
        }
    }
    is_match
}

/// Whether a name matches a pattern with `*` and `?`, in time linear in both per star.
fn matches_pattern(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // The pattern behind the last star, and where in the name it was tried last.
    let mut retry: Option<(usize, usize)> = None;
    while from < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                retry = Some((at + 1, from));
                at += 1;
            }
            Some(c) if *c == b'?' || name.get(from) == Some(c) => {
                at += 1;
                from += 1;
            }
            _ => match retry {
                Some((behind, tried)) => {
                    retry = Some((behind, tried + 1));
                    at = behind;
                    from = tried + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|c| *c == b'*')
}

/// The type of a key in the wire format of SSH, such as `ssh-ed25519`.
pub(super) fn key_type(key: &[u8]) -> String {
    let length = key.first_chunk::<4>().map(|length| u32::from_be_bytes(*length) as usize).unwrap_or_default();
    let name = key.get(4..).and_then(|rest| rest.get(..length)).unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// The fingerprint of a key, as `ssh-keygen -l` prints it.
pub(in crate::manifest::tree) fn fingerprint(key: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, key);
    format!("SHA256:{}", STANDARD_NO_PAD.encode(digest.as_ref()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const KEY: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";
    const OTHER: &str = "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

    fn judge(text: &str, host: &str, port: Option<u16>) -> HostKeyVerdict {
        KnownHosts::parse(text).judge(host, port, &STANDARD.decode(KEY).unwrap())
    }

    #[test]
    fn a_key_is_known_by_name_pattern_port_or_hash() {
        let hashed = {
            let salt = b"0123456789abcdefghij";
            let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, salt);
            let hash = hmac::sign(&key, b"[git.example.com]:2222");
            format!("|1|{}|{}", STANDARD.encode(salt), STANDARD.encode(hash.as_ref()))
        };
        for (hosts, port, expected) in [
            ("git.example.com", None, true),
            ("GIT.example.com,10.0.0.1", None, true),
            ("*.example.com", None, true),
            ("g?t.example.com", None, true),
            ("*.example.com,!git.example.com", None, false),
            ("example.com", None, false),
            ("git.example.com", Some(2222), false),
            ("[git.example.com]:2222", Some(2222), true),
            ("[git.example.com]:2222", None, false),
            (hashed.as_str(), Some(2222), true),
            (hashed.as_str(), None, false),
            ("|1|x|y", None, false),
        ] {
            let text = format!("# comment\n\n{hosts} ssh-ed25519 {KEY} comment\n");
            let is_known = judge(&text, "git.example.com", port) == HostKeyVerdict::Known;
            assert_eq!(is_known, expected, "{hosts} {port:?}");
        }
    }

    #[test]
    fn a_key_that_is_not_known_is_told_from_a_changed_and_a_revoked_one() {
        let host = "git.example.com";
        let line = |marker: &str, key_type: &str, key: &str| format!("{marker}{host} {key_type} {key}\n");
        for (text, expected) in [
            (String::new(), HostKeyVerdict::Unknown),
            (line("", "ssh-ed25519", OTHER), HostKeyVerdict::Changed),
            (line("", "ssh-rsa", OTHER), HostKeyVerdict::OtherTypes(vec!["ssh-rsa".into()])),
            (line("", "ssh-ed25519", KEY) + &line("@revoked ", "ssh-ed25519", KEY), HostKeyVerdict::Revoked),
            (line("@revoked ", "ssh-ed25519", OTHER), HostKeyVerdict::Unknown),
            (line("@cert-authority ", "ssh-ed25519", KEY), HostKeyVerdict::CertAuthority),
            (line("@other ", "ssh-ed25519", KEY), HostKeyVerdict::Unknown),
            (line("", "ssh-ed25519", "not base64"), HostKeyVerdict::Unknown),
        ] {
            assert_eq!(judge(&text, host, None), expected, "{text}");
        }
    }

    #[test]
    fn a_key_has_the_fingerprint_and_the_type_that_ssh_keygen_prints() {
        let key = STANDARD.decode(KEY).unwrap();
        assert_eq!(key_type(&key), "ssh-ed25519");
        assert_eq!(fingerprint(&key), "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU");
        assert_eq!(key_type(&[0, 0, 0, 9, b'x']), "");
    }

    #[test]
    fn patterns_match_as_in_openssh() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("*", "x", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abcdef", false),
            ("**a", "bba", true),
            ("?", "", false),
            ("ab?", "abc", true),
        ] {
            assert_eq!(matches_pattern(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
