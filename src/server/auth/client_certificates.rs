//! Clients that prove who they are with a certificate instead of a token (D97).
//!
//! The configuration maps names in certificates to owners. A connection knows its certificate, but the places that check a
//! token get only the headers of the request, some of them long after it has begun, and inside a commit. So a request without
//! a token over a connection with such a certificate gets a header that only this process can write: it has the owner and the
//! name, and a random value that was made at the start and is sent to nobody.
//!
//! A request that has a header of its own keeps it, and counts as what that says, valid or not: a client never acts as
//! somebody it did not mean.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use subtle::ConstantTimeEq;

use super::caller::Caller;
use crate::model::FieldPath;
use crate::model::author::CERTIFICATE;
use crate::server::net::tls::PeerCertificate;
use crate::server::prelude::*;
use crate::store::ids::random_secret;

/// The scheme of the header.
const SCHEME: &str = "Certificate";
/// The kinds of names that can be mapped.
const PREFIXES: [&str; 3] = ["dns:", "uri:", "email:"];
/// The most bytes of a name: it becomes part of a header and of the history.
const MOST_NAME_BYTES: usize = 512;

/// The owner that a certificate's name stands for, in the configuration file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CertificateOwner {
    /// A subject alternative name with its kind: `dns:…`, `uri:…` or `email:…`.
    subject_alt_name: String,
    /// The owner.
    owner: String,
}

/// The name in the certificate of a client that this process has vouched for, in the extensions of the request.
#[derive(Debug, Clone)]
pub(in crate::server) struct VouchedName(pub(in crate::server) String);

/// The owners that certificates stand for.
#[derive(Default)]
pub(crate) struct ClientCertificates {
    owners: Vec<CertificateOwner>,
    /// The proof that this process wrote the header.
    proof: String,
}

impl ClientCertificates {
    /// Checks the entries of a configuration file. The paths of faults are below the list.
    pub(crate) fn check(entries: &[CertificateOwner]) -> Result<(), Fault> {
        for (at, entry) in entries.iter().enumerate() {
            let name = &entry.subject_alt_name;
            let fault = |field: &str, code: Code, message: &str| {
                Fault::new(code, message).at(FieldPath::root().join(at).join(field))
            };
            let has_kind = PREFIXES.iter().any(|kind| name.len() > kind.len() && name.starts_with(kind));
            if !has_kind || name.len() > MOST_NAME_BYTES || !is_header_text(name) {
                let fault = fault("subject_alt_name", Code::InvalidFormat, "expected a name with its type");
                return Err(fault.help("write `dns:`, `uri:` or `email:` before the name in the certificate"));
            }
            if name.starts_with("dns:") && name.bytes().any(|byte| byte.is_ascii_uppercase()) {
                let fault = fault("subject_alt_name", Code::InvalidFormat, "a DNS name must be in lower case");
                return Err(fault.help("write the name in lower case; certificates match whatever their case"));
            }
            if entries.iter().take(at).any(|other| other.subject_alt_name == *name) {
                return Err(fault("subject_alt_name", Code::DuplicateName, "this name is listed twice"));
            }
            let owner = entry.owner.as_str();
            if !["usr_", "bot_"].iter().any(|kind| owner.starts_with(kind)) || !is_header_text(owner) {
                let fault = fault("owner", Code::InvalidFormat, "expected an owner");
                return Err(fault.help("write an ID such as `bot_deploy`; `edgewright owners list` shows the owners"));
            }
        }
        Ok(())
    }

    /// Maps certificates to owners.
    pub(crate) fn new(owners: Vec<CertificateOwner>) -> Self {
        Self { owners, proof: URL_SAFE_NO_PAD.encode(random_secret()) }
    }

    /// Notes in a request without a token whom its connection's certificate stands for.
    pub(crate) fn vouch(&self, request: &mut Request) {
        if self.owners.is_empty() || request.headers().contains_key(header::AUTHORIZATION) {
            return;
        }
        let Some(certificate) = request.extensions().get::<PeerCertificate>() else { return };
        let is_shown = |owner: &&CertificateOwner| certificate.names.contains(&owner.subject_alt_name);
        let Some(CertificateOwner { subject_alt_name, owner }) = self.owners.iter().find(is_shown) else { return };
        let value = format!("{SCHEME} {} {owner} {subject_alt_name}", self.proof);
        if let Ok(mut value) = HeaderValue::from_str(&value) {
            value.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, value);
            request.extensions_mut().insert(VouchedName(subject_alt_name.clone()));
        }
    }

    /// Returns the owner that a certificate stands for, if this process has noted it.
    pub(super) fn caller(&self, snapshot: &Snapshot, headers: &HeaderMap) -> Option<Caller> {
        if self.owners.is_empty() {
            return None;
        }
        let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, rest) = value.split_once(' ')?;
        let (proof, rest) = rest.split_once(' ')?;
        if scheme != SCHEME || !bool::from(proof.as_bytes().ct_eq(self.proof.as_bytes())) {
            return None;
        }
        let (owner, name) = rest.split_once(' ')?;
        let key = Id::new(&format!("{CERTIFICATE}{name}"));
        Some(Caller { key, owner: Id::new(owner), role: rules::role_of(snapshot, owner)?, scope: None })
    }
}

/// Whether a text can stand in a header that blanks separate.
fn is_header_text(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use axum::body::Body;

    use super::*;
    use crate::model::Kind;
    use crate::model::key::Key;
    use crate::model::kind::owner::{Owner, Role};
    use crate::model::operation::Operation;
    use crate::store::clock::now;

    fn entry(subject_alt_name: &str, owner: &str) -> CertificateOwner {
        CertificateOwner { subject_alt_name: subject_alt_name.into(), owner: owner.into() }
    }

    fn request(names: &[&str]) -> Request {
        let mut request = Request::new(Body::empty());
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        request.extensions_mut().insert(PeerCertificate { names: names.into() });
        request
    }

    #[test]
    fn a_mapped_name_is_its_owner_and_nobody_can_write_the_header() {
        let create =
            Operation::create(Key::new(Kind::Owner, Id::new("bot_deploy")), Arc::new(Owner { role: Role::Editor }));
        let snapshot = Snapshot::default().apply(&[create], now()).map(|(snapshot, _)| snapshot).unwrap_or_default();
        let clients =
            ClientCertificates::new(vec![entry("uri:spiffe://a/b", "bot_deploy"), entry("dns:x", "bot_gone")]);
        let caller = |request: &Request| clients.caller(&snapshot, request.headers());

        let mut known = request(&["dns:other", "uri:spiffe://a/b"]);
        clients.vouch(&mut known);
        let found = caller(&known).unwrap();
        assert_eq!((found.owner.as_str(), found.role), ("bot_deploy", Role::Editor));
        assert_eq!(found.key.as_str(), "certificate:uri:spiffe://a/b");
        // Another process has another proof.
        assert!(ClientCertificates::new(clients.owners.clone()).caller(&snapshot, known.headers()).is_none());

        for names in [&["dns:x"][..], &["dns:spiffe://a/b"], &[]] {
            let mut other = request(names);
            clients.vouch(&mut other);
            assert!(caller(&other).is_none(), "{names:?}");
        }
        let mut forged = request(&["uri:spiffe://a/b"]);
        let value = HeaderValue::from_static("Certificate  bot_deploy uri:spiffe://a/b");
        forged.headers_mut().insert(header::AUTHORIZATION, value);
        clients.vouch(&mut forged);
        assert!(caller(&forged).is_none(), "a token, even a wrong one, is what counts");
        assert!(ClientCertificates::default().caller(&snapshot, forged.headers()).is_none());
    }

    #[test]
    fn entries_name_a_kind_and_an_owner_and_no_name_twice() {
        let faulty = |entries: &[CertificateOwner]| ClientCertificates::check(entries).unwrap_err().path.to_string();
        assert_eq!(faulty(&[entry("deploy.example.com", "bot_a")]), "/0/subject_alt_name");
        assert_eq!(faulty(&[entry("dns:", "bot_a")]), "/0/subject_alt_name");
        assert_eq!(faulty(&[entry("dns:a b", "bot_a")]), "/0/subject_alt_name");
        assert_eq!(faulty(&[entry("dns:CI.example.com", "bot_a")]), "/0/subject_alt_name");
        assert!(ClientCertificates::check(&[entry("uri:urn:CI", "bot_a")]).is_ok());
        assert_eq!(faulty(&[entry("dns:a", "deploy")]), "/0/owner");
        assert_eq!(faulty(&[entry("dns:a", "bot_a"), entry("dns:a", "bot_b")]), "/1/subject_alt_name");
        assert!(ClientCertificates::check(&[entry("dns:a", "bot_a"), entry("email:a@b", "bot_a")]).is_ok());
    }
}
