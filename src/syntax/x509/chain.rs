//! Facts about every certificate of a chain, for lints: validity, purpose and signature.

use super::asn1::{attribute, dotted, utc};
use super::key::{KeyType, rsa_bits, uncommon_curve};
use super::pem::{PemFault, with_chain};
use crate::syntax::text::printable;
use std::{collections::HashSet, fmt};

use jiff::civil;
use x509_parser::{
    certificate::X509Certificate, error::X509Error, oid_registry::OID_X509_COMMON_NAME,
    signature_algorithm::RsaSsaPssParams,
};

/// RSASSA-PSS, as a key and as a signature.
const RSA_PSS: &str = "1.2.840.113549.1.1.10";

/// One certificate of a PEM text. Displays as its common name in backquotes, or its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// The position in the text, from 1.
    pub place: usize,
    /// The subject's common name; empty if absent.
    pub subject_common_name: String,
    /// The start of validity in UTC, inclusive.
    pub not_before: civil::DateTime,
    /// The end of validity in UTC, inclusive.
    pub not_after: civil::DateTime,
    /// Whether the basic constraints include `CA:TRUE`.
    pub is_authority: bool,
    /// Whether the key usage includes signing certificates, or does not limit the key.
    pub may_sign_certificates: bool,
    /// Whether an earlier certificate of the text is the same.
    pub is_repeated: bool,
    /// Whether subject and issuer are equal, which ends a chain.
    pub is_self_issued: bool,
    /// The size of the key, if it is an RSA key.
    pub rsa_bits: Option<usize>,
    /// The name or OID of the key's curve, if it is one that not all common clients support.
    pub uncommon_curve: Option<String>,
    /// The signature's digest, if it is a broken one.
    pub broken_digest: Option<&'static str>,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.subject_common_name.as_str() {
            "" => write!(f, "certificate {}", self.place),
            name => write!(f, "`{}`", printable(name)),
        }
    }
}

/// Reads every certificate of a chain, in its order.
pub(super) fn links(chain: &[X509Certificate<'_>]) -> Result<Vec<Link>, PemFault> {
    let mut seen = HashSet::new();
    chain
        .iter()
        .zip(1..)
        .map(|(certificate, place)| link(certificate, place, !seen.insert(certificate.as_raw())))
        .collect()
}

fn link(certificate: &X509Certificate<'_>, place: usize, is_repeated: bool) -> Result<Link, PemFault> {
    Ok(Link {
        place,
        is_repeated,
        subject_common_name: attribute(certificate.subject(), &OID_X509_COMMON_NAME),
        not_before: utc(certificate.validity().not_before)?,
        not_after: utc(certificate.validity().not_after)?,
        is_authority: certificate.is_ca(),
        may_sign_certificates: may_sign_certificates(certificate),
        is_self_issued: certificate.subject().as_raw() == certificate.issuer().as_raw(),
        rsa_bits: rsa_bits(certificate.public_key()),
        uncommon_curve: uncommon_curve(certificate.public_key()),
        broken_digest: broken_digest(certificate),
    })
}

/// A malformed extension does not count as a limit: it is reported as a fault of its own.
fn may_sign_certificates(certificate: &X509Certificate<'_>) -> bool {
    let usage = certificate.key_usage().ok().flatten();
    usage.is_none_or(|usage| usage.value.key_cert_sign())
}

fn broken_digest(certificate: &X509Certificate<'_>) -> Option<&'static str> {
    let algorithm = &certificate.signature_algorithm;
    match dotted(&algorithm.algorithm)?.as_str() {
        "1.2.840.113549.1.1.2" => Some("MD2"),
        "1.2.840.113549.1.1.4" | "1.3.14.3.2.25" => Some("MD5"),
        "1.2.840.113549.1.1.5" | "1.3.14.3.2.29" | "1.2.840.10045.4.1" => Some("SHA-1"),
        RSA_PSS => {
            let parameters = RsaSsaPssParams::try_from(algorithm.parameters.as_ref()?).ok()?;
            // SHA-1 is the default digest of PSS (RFC 4055).
            let digest = parameters.hash_algorithm().map(|digest| dotted(&digest.algorithm));
            digest.is_none_or(|oid| oid.as_deref() == Some("1.3.14.3.2.26")).then_some("SHA-1")
        }
        _ => None,
    }
}

/// Returns the index, from 0, of the first certificate that the next one did not sign, or `None` for a complete chain.
pub(crate) fn unsigned_link(pem: &str) -> Result<Option<usize>, PemFault> {
    with_chain(pem, |chain| {
        let gap = |pair: &[_]| matches!(pair, [certificate, issuer] if !is_signed_by(certificate, issuer));
        Ok(chain.windows(2).position(gap))
    })
}

/// Whether `issuer` signed `certificate`. Where the signature cannot be verified, the names decide, so that a doubtful
/// case is not reported.
fn is_signed_by(certificate: &X509Certificate<'_>, issuer: &X509Certificate<'_>) -> bool {
    match certificate.verify_signature(Some(issuer.public_key())) {
        Ok(()) => true,
        Err(X509Error::SignatureVerificationError) if can_judge(certificate, issuer) => false,
        Err(_) => certificate.issuer().as_raw() == issuer.subject().as_raw(),
    }
}

/// Whether a failed verification proves a wrong signature. The library also fails for keys it does not support: small
/// or huge RSA keys, compressed points, and PSS with a salt length other than the digest's.
fn can_judge(certificate: &X509Certificate<'_>, issuer: &X509Certificate<'_>) -> bool {
    let public = issuer.public_key();
    let is_pss = dotted(&certificate.signature_algorithm.algorithm).is_none_or(|oid| oid == RSA_PSS);
    match KeyType::certified(public) {
        Ok(KeyType::Rsa) => !is_pss && rsa_bits(public).is_some_and(|bits| (2048..=8192).contains(&bits)),
        Ok(KeyType::Ecdsa) => public.subject_public_key.data.first() == Some(&4),
        Ok(KeyType::Ed25519) => true,
        Err(_) => false,
    }
}
