//! What each certificate of a text is worth: how long, for what, and who has signed it. Lints ask for it.

use crate::text::printable;
use std::fmt;

use jiff::civil;
use x509_parser::{
    certificate::X509Certificate, error::X509Error, oid_registry::OID_X509_COMMON_NAME,
    signature_algorithm::RsaSsaPssParams,
};

use super::{
    attribute, dotted,
    key::{KeyType, rsa_bits},
    pem::{PemFault, with_chain},
    utc,
};

/// RSASSA-PSS, as a key and as a signature.
const RSA_PSS: &str = "1.2.840.113549.1.1.10";

/// One certificate of a text; displays as its common name in backticks, or its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Its position in the text, from 1.
    pub place: usize,
    /// Common name of the subject; empty when absent.
    pub subject_common_name: String,
    /// Start of validity, in UTC; this second is part of it.
    pub not_before: civil::DateTime,
    /// End of validity, in UTC; this second is part of it.
    pub not_after: civil::DateTime,
    /// Whether its basic constraints say `CA:TRUE`.
    pub is_authority: bool,
    /// Whether subject and issuer are one: the end of a chain, which nobody looks behind.
    pub is_self_issued: bool,
    /// The size of its key, if that is an RSA key.
    pub rsa_bits: Option<usize>,
    /// The digest under its signature, where that is a broken one.
    pub broken_digest: Option<&'static str>,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.subject_common_name.as_str() {
            "" => write!(f, "certificate {} of the text", self.place),
            name => write!(f, "`{}`", printable(name)),
        }
    }
}

/// Reads every certificate of a chain, in its order.
pub(super) fn links(chain: &[X509Certificate<'_>]) -> Result<Vec<Link>, PemFault> {
    chain.iter().zip(1..).map(|(certificate, place)| link(certificate, place)).collect()
}

fn link(certificate: &X509Certificate<'_>, place: usize) -> Result<Link, PemFault> {
    Ok(Link {
        place,
        subject_common_name: attribute(certificate.subject(), &OID_X509_COMMON_NAME),
        not_before: utc(certificate.validity().not_before)?,
        not_after: utc(certificate.validity().not_after)?,
        is_authority: certificate.is_ca(),
        is_self_issued: certificate.subject().as_raw() == certificate.issuer().as_raw(),
        rsa_bits: rsa_bits(certificate.public_key()),
        broken_digest: broken_digest(certificate),
    })
}

fn broken_digest(certificate: &X509Certificate<'_>) -> Option<&'static str> {
    let algorithm = &certificate.signature_algorithm;
    match dotted(&algorithm.algorithm)?.as_str() {
        "1.2.840.113549.1.1.4" | "1.3.14.3.2.25" => Some("MD5"),
        "1.2.840.113549.1.1.5" | "1.3.14.3.2.29" | "1.2.840.10045.4.1" => Some("SHA-1"),
        RSA_PSS => {
            let parameters = RsaSsaPssParams::try_from(algorithm.parameters.as_ref()?).ok()?;
            // SHA-1 is what no digest at all stands for (RFC 4055).
            let digest = parameters.hash_algorithm().map(|digest| dotted(&digest.algorithm));
            digest.is_none_or(|oid| oid.as_deref() == Some("1.3.14.3.2.26")).then_some("SHA-1")
        }
        _ => None,
    }
}

/// The position, from 0, of the first certificate that the next one has not signed; none in a sound chain.
pub fn unsigned_link(pem: &str) -> Result<Option<usize>, PemFault> {
    with_chain(pem, |chain| {
        let gap = |pair: &[_]| matches!(pair, [certificate, issuer] if !is_signed_by(certificate, issuer));
        Ok(chain.windows(2).position(gap))
    })
}

/// Where the signature cannot be judged, the names decide: a doubt is no finding.
fn is_signed_by(certificate: &X509Certificate<'_>, issuer: &X509Certificate<'_>) -> bool {
    match certificate.verify_signature(Some(issuer.public_key())) {
        Ok(()) => true,
        Err(X509Error::SignatureVerificationError) if can_judge(certificate, issuer) => false,
        Err(_) => certificate.issuer().as_raw() == issuer.subject().as_raw(),
    }
}

/// Whether a failed verification means a wrong signature. The library fails alike for keys that it does not read:
/// small or huge RSA keys, compressed points, PSS with a salt of another length than the digest.
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
