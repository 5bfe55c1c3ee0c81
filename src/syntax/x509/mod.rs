//! PEM, certificates and keys: the facts in a certificate, and whether a private key belongs to it.
//!
//! # The problem
//!
//! A certificate with the key of another one stops every connection of its hosts, and which names it is valid for
//! decides which edge presents it. Both are known when it is declared.
//!
//! # The idea
//!
//! `pem.rs` reads the blocks of a text and says what is wrong with them, `chain.rs` what each certificate of a chain
//! says and whether the next one signed it, and `key.rs` compares a private key with a public one.
//!
//! # An example
//!
//! A `certificate_pem` with the key of last year's certificate is a [`PemFault`]. A chain with the wrong issuer is
//! accepted, and the lint `incomplete-chain` reports the gap.
//!
//! # What it never does
//!
//! It trusts nothing: no root store, no clock, no revocation. Errors never quote a key.
//!
//! See D19.

mod asn1;
mod chain;
mod key;
mod pem;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use x509_parser::asn1_rs::{FromDer, Oid, Tag};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::oid_registry::{
    OID_X509_COMMON_NAME, OID_X509_COUNTRY_NAME, OID_X509_EXT_EXTENDED_KEY_USAGE, OID_X509_LOCALITY_NAME,
    OID_X509_ORGANIZATION_NAME, OID_X509_ORGANIZATIONAL_UNIT, OID_X509_STATE_OR_PROVINCE_NAME,
};
use x509_parser::parse_x509_certificate;

use asn1::{attribute, dotted, timestamp};
use chain::links;
use key::{KeyType, is_key_of};
use pem::{blocks, with_chain};

pub(crate) use chain::{Link, unsigned_link};
pub(crate) use key::is_ecdsa_public_key;
pub(crate) use pem::{PemFault, same_pem};

/// Facts from the first certificate in a certificate authority's PEM (D19).
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, schemars::JsonSchema)]
pub struct AuthorityFacts {
    /// The subject's common name; empty if absent.
    pub subject_common_name: String,
    /// The start of validity, as RFC 3339 in UTC.
    pub not_before: String,
    /// The end of validity, as RFC 3339 in UTC.
    pub not_after: String,
    /// Key usages in kebab case, in bit order.
    pub key_usages: Vec<String>,
    /// Extended key usages in kebab case, in the certificate's order; unknown ones are dotted OIDs.
    pub extended_key_usages: Vec<String>,
}

/// A certificate's subject alternative names.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct SubjectAlternativeNames {
    /// DNS names, including wildcards.
    pub dns_names: Vec<String>,
    /// IP addresses.
    pub ips: Vec<String>,
}

/// Facts from the leaf of a certificate chain (D19). Absent texts are empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, schemars::JsonSchema)]
pub struct CertificateFacts {
    /// The subject's common name.
    pub subject_common_name: String,
    /// The subject alternative names; they include the common name only if the certificate repeats it.
    pub subject_alternative_names: SubjectAlternativeNames,
    /// The start of validity, as RFC 3339 in UTC.
    pub not_before: String,
    /// The end of validity, as RFC 3339 in UTC.
    pub not_after: String,
    /// Key usages in kebab case, in bit order.
    pub key_usages: Vec<String>,
    /// Extended key usages in kebab case, in the certificate's order; unknown ones are dotted OIDs.
    pub extended_key_usages: Vec<String>,
    /// The key type: `rsa`, `ecdsa` or `ed25519`.
    pub private_key_type: String,
    /// The issuer's common name.
    pub issuer_common_name: String,
    /// The serial number in lower-case hexadecimal, two digits per byte.
    pub serial_number: String,
    /// The subject's organization.
    pub subject_organization: String,
    /// The subject's organizational unit.
    pub subject_organizational_unit: String,
    /// The subject's locality.
    pub subject_locality: String,
    /// The subject's state or province.
    pub subject_province: String,
    /// The subject's country.
    pub subject_country: String,
}

/// A PEM text of certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chain<F> {
    /// Facts from the first certificate.
    pub facts: F,
    /// All certificates in order; `None` if a validity cannot be represented.
    pub links: Vec<Link>,
}

/// Reads all certificates of a text, and the facts of the first.
fn read<F>(pem: &str, facts: impl FnOnce(&X509Certificate<'_>) -> Result<F, PemFault>) -> Result<Chain<F>, PemFault> {
    with_chain(pem, |chain| {
        let facts = facts(chain.first().ok_or(PemFault::NoBlock)?)?;
        Ok(Chain { facts, links: links(chain).unwrap_or_default() })
    })
}

/// Reads an authority's PEM: every block must be a certificate, and the facts come from the first (D19).
pub(crate) fn authority(ca_pem: &str) -> Result<Chain<AuthorityFacts>, PemFault> {
    read(ca_pem, |first| {
        Ok(AuthorityFacts {
            subject_common_name: attribute(first.subject(), &OID_X509_COMMON_NAME),
            not_before: timestamp(first.validity().not_before)?,
            not_after: timestamp(first.validity().not_after)?,
            key_usages: key_usages(first)?,
            extended_key_usages: extended_key_usages(first)?,
        })
    })
}

/// Reads a chain, leaf first: every block must be a certificate, and the facts come from the leaf. Expired certificates
/// are accepted (D19).
pub(crate) fn certificate(certificate_pem: &str) -> Result<Chain<CertificateFacts>, PemFault> {
    read(certificate_pem, |leaf| {
        let subject = leaf.subject();
        Ok(CertificateFacts {
            subject_common_name: attribute(subject, &OID_X509_COMMON_NAME),
            subject_alternative_names: alternative_names(leaf)?,
            not_before: timestamp(leaf.validity().not_before)?,
            not_after: timestamp(leaf.validity().not_after)?,
            key_usages: key_usages(leaf)?,
            extended_key_usages: extended_key_usages(leaf)?,
            private_key_type: KeyType::certified(leaf.public_key())?.name().to_owned(),
            issuer_common_name: attribute(leaf.issuer(), &OID_X509_COMMON_NAME),
            serial_number: serial_number(leaf.raw_serial()),
            subject_organization: attribute(subject, &OID_X509_ORGANIZATION_NAME),
            subject_organizational_unit: attribute(subject, &OID_X509_ORGANIZATIONAL_UNIT),
            subject_locality: attribute(subject, &OID_X509_LOCALITY_NAME),
            subject_province: attribute(subject, &OID_X509_STATE_OR_PROVINCE_NAME),
            subject_country: attribute(subject, &OID_X509_COUNTRY_NAME),
        })
    })
}

/// Checks that a private key belongs to the leaf certificate (D19).
pub(crate) fn check_key(certificate_pem: &str, private_key_pem: &str) -> Result<(), PemFault> {
    with_chain(certificate_pem, |chain| {
        let leaf = chain.first().ok_or(PemFault::NoBlock)?;
        let blocks = blocks(private_key_pem)?;
        // openssl writes a separate block with the curve before an EC key, although the key includes the curve.
        let mut keys = blocks.iter().filter(|block| block.label != "EC PARAMETERS");
        let key = keys.next().ok_or(PemFault::NoPrivateKey)?;
        if keys.next().is_some() {
            return Err(PemFault::SeveralBlocks);
        }
        if is_key_of(leaf.public_key(), key)? { Ok(()) } else { Err(PemFault::KeyMismatch) }
    })
}

/// The names that a certificate can be told by, with their kinds: `dns:`, `uri:` or `email:`. None if it is not valid.
pub(crate) fn identities(der: &[u8]) -> Vec<String> {
    let Ok((_, certificate)) = parse_x509_certificate(der) else { return Vec::new() };
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return Vec::new() };
    let names = names.value.general_names.iter().filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(format!("dns:{}", name.to_ascii_lowercase())),
        GeneralName::URI(name) => Some(format!("uri:{name}")),
        GeneralName::RFC822Name(name) => Some(format!("email:{name}")),
        _ => None,
    });
    names.collect()
}

/// Formats a serial number as unsigned: issuers that omit the leading zero mean a positive number.
fn serial_number(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().skip_while(|byte| **byte == 0).map(|byte| format!("{byte:02x}")).collect();
    if hex.is_empty() { "00".to_owned() } else { hex }
}

#[rustfmt::skip] // in rows
const KEY_USAGES: [&str; 9] = [
    "digital-signature", "content-commitment", "key-encipherment", "data-encipherment", "key-agreement", "cert-sign",
    "crl-sign", "encipher-only", "decipher-only",
];

fn key_usages(certificate: &X509Certificate<'_>) -> Result<Vec<String>, PemFault> {
    let usage = certificate.key_usage().map_err(|_| PemFault::Extension("keyUsage"))?;
    let flags = usage.map_or(0, |usage| usage.value.flags);
    let set = KEY_USAGES.into_iter().enumerate().filter(|(bit, _)| (flags >> bit) & 1 == 1);
    Ok(set.map(|(_, name)| name.to_owned()).collect())
}

/// Returns the usages in the certificate's order, like openssl.
fn extended_key_usages(certificate: &X509Certificate<'_>) -> Result<Vec<String>, PemFault> {
    let fault = PemFault::Extension("extendedKeyUsage");
    let extension = certificate.get_extension_unique(&OID_X509_EXT_EXTENDED_KEY_USAGE).map_err(|_| fault.clone())?;
    let Some(extension) = extension else { return Ok(Vec::new()) };
    let (_, usages) = <Vec<Oid<'_>>>::from_der(extension.value).map_err(|_| fault.clone())?;
    let named = usages.iter().map(|oid| {
        let dotted = dotted(oid)?;
        Some(match dotted.as_str() {
            "2.5.29.37.0" => "any".to_owned(),
            "1.3.6.1.5.5.7.3.1" => "server-auth".to_owned(),
            "1.3.6.1.5.5.7.3.2" => "client-auth".to_owned(),
            "1.3.6.1.5.5.7.3.3" => "code-signing".to_owned(),
            "1.3.6.1.5.5.7.3.4" => "email-protection".to_owned(),
            "1.3.6.1.5.5.7.3.8" => "time-stamping".to_owned(),
            "1.3.6.1.5.5.7.3.9" => "ocsp-signing".to_owned(),
            _ => dotted,
        })
    });
    named.collect::<Option<_>>().ok_or(fault)
}

fn alternative_names(certificate: &X509Certificate<'_>) -> Result<SubjectAlternativeNames, PemFault> {
    let fault = PemFault::Extension("subjectAltName");
    let mut found = SubjectAlternativeNames::default();
    let Some(names) = certificate.subject_alternative_name().map_err(|_| fault.clone())? else {
        return Ok(found);
    };
    for name in &names.value.general_names {
        match name {
            GeneralName::DNSName(name) => found.dns_names.push((*name).to_owned()),
            GeneralName::IPAddress(bytes) => found.ips.push(ip(bytes).ok_or_else(|| fault.clone())?.to_string()),
            // Tag 2 is a DNS name; an invalid one is not text.
            GeneralName::Invalid(Tag(2), _) => return Err(fault),
            _ => {}
        }
    }
    Ok(found)
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}
