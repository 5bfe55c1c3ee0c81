//! What the PEM of an authority or a TLS certificate says, and whether a private key belongs to it (D19).

use std::net::IpAddr;

use base64::{Engine, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, civil};
use pkcs1::{RsaPrivateKey, RsaPublicKey};
use pkcs8::{
    PrivateKeyInfo,
    der::{self, Decode, ErrorKind, asn1::OctetStringRef},
};
use ring::signature::{Ed25519KeyPair, KeyPair};
use sec1::{EcParameters, EcPrivateKey};
use x509_parser::{
    asn1_rs::{Any, Oid, Tag},
    certificate::X509Certificate,
    extensions::GeneralName,
    oid_registry::{
        OID_X509_COMMON_NAME, OID_X509_COUNTRY_NAME, OID_X509_LOCALITY_NAME, OID_X509_ORGANIZATION_NAME,
        OID_X509_ORGANIZATIONAL_UNIT, OID_X509_STATE_OR_PROVINCE_NAME,
    },
    parse_x509_certificate,
    time::ASN1Time,
    x509::{SubjectPublicKeyInfo, X509Name},
};
use zeroize::Zeroizing;

/// What the first certificate of an authority's PEM says (D19).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuthorityFacts {
    /// Common name of the subject; empty when absent.
    pub subject_common_name: String,
    /// Start of validity, RFC 3339 in UTC.
    pub not_before: String,
    /// End of validity, RFC 3339 in UTC.
    pub not_after: String,
    /// Key usages in kebab-case, in the order of their bits.
    pub key_usages: Vec<String>,
    /// Extended key usages in kebab-case, then unknown ones as dotted OIDs.
    pub extended_key_usages: Vec<String>,
}

/// The names besides the common name that a certificate is valid for (D19).
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct SubjectAlternativeNames {
    /// DNS names, wildcards included.
    pub dns_names: Vec<String>,
    /// IP addresses.
    pub ips: Vec<String>,
}

/// What the leaf of a certificate chain says (D19). A text that the certificate lacks is empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CertificateFacts {
    /// Common name of the subject.
    pub subject_common_name: String,
    /// The names of the extension; the common name is not among them unless the certificate repeats it.
    pub subject_alternative_names: SubjectAlternativeNames,
    /// Start of validity, RFC 3339 in UTC.
    pub not_before: String,
    /// End of validity, RFC 3339 in UTC.
    pub not_after: String,
    /// Key usages in kebab-case, in the order of their bits.
    pub key_usages: Vec<String>,
    /// Extended key usages in kebab-case, then unknown ones as dotted OIDs.
    pub extended_key_usages: Vec<String>,
    /// `rsa`, `ecdsa` or `ed25519`.
    pub private_key_type: String,
    /// Common name of the issuer.
    pub issuer_common_name: String,
    /// Serial number in lower-case hex, two digits a byte.
    pub serial_number: String,
    /// Organization of the subject.
    pub subject_organization: String,
    /// Organizational unit of the subject.
    pub subject_organizational_unit: String,
    /// Locality of the subject.
    pub subject_locality: String,
    /// State or province of the subject.
    pub subject_province: String,
    /// Country of the subject.
    pub subject_country: String,
}

/// Why a PEM text is refused (D19). It holds labels, OIDs and positions, never content, so it may be shown anywhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PemFault {
    /// There is nothing to read.
    #[error("there is no PEM block in the text")]
    NoBlock,
    /// A BEGIN or END line with something before or behind it, by its number from 1.
    #[error("line {0} holds a PEM boundary that is damaged or does not stand alone")]
    Boundary(usize),
    /// A block that never ends, or ends under another label; by its label.
    #[error("the PEM block `{0}` has no END line of its own: it is cut off")]
    Truncated(String),
    /// A block whose body cannot be decoded, by its label.
    #[error("the PEM block `{0}` is not valid base64")]
    Base64(String),
    /// Another kind of block among the certificates, by its label.
    #[error("a PEM block `{0}` stands where a `CERTIFICATE` is meant")]
    WrongLabel(String),
    /// A certificate block without a certificate in it, by its position from 1.
    #[error("certificate {0} of the text is not X.509")]
    NotX509(usize),
    /// An extension that clients would refuse too, by its usual name.
    #[error("the certificate's extension `{0}` is malformed or repeated")]
    Extension(&'static str),
    /// Bytes behind the end of the structure in a block.
    #[error("a PEM block holds more bytes than the structure in it")]
    TrailingData,
    /// A public key that is neither RSA nor ECDSA nor Ed25519, by the dotted OID of its algorithm.
    #[error("the certificate's public key has the unsupported algorithm {0}")]
    UnsupportedPublicKey(String),
    /// No private key where one is meant.
    #[error("there is no private key in the text")]
    NoPrivateKey,
    /// More than the private key where only that is meant.
    #[error("there is more than one PEM block where only a private key is meant")]
    SeveralBlocks,
    /// A private key behind a passphrase.
    #[error("the private key is encrypted")]
    EncryptedPrivateKey,
    /// A block that is no private key, or one in another tool's format; by its label.
    #[error("a PEM block `{0}` is not a supported form of private key")]
    UnsupportedPrivateKey(String),
    /// A private key block without a private key in it.
    #[error("the private key cannot be read")]
    UnreadablePrivateKey,
    /// An EC key that cannot be compared with the certificate.
    #[error("the private key lacks its public point, which this curve cannot be checked without")]
    PublicPointMissing,
    /// The private key of another certificate.
    #[error("the private key does not belong to the first certificate")]
    KeyMismatch,
}

impl PemFault {
    /// Whether both texts are sound but do not belong together, which has a code of its own (D19).
    pub fn is_key_mismatch(&self) -> bool {
        matches!(self, Self::KeyMismatch)
    }

    /// What to do about it (D19).
    pub fn help(&self) -> &'static str {
        match self {
            Self::NoBlock => {
                "paste the text from `-----BEGIN …-----` to `-----END …-----`; DER is turned into PEM by `openssl x509 -inform der -in FILE`"
            }
            Self::Boundary(_) => {
                "give each BEGIN and END line a line of its own, from the first column: files joined without a final newline and a literal `\\n` break this"
            }
            Self::Truncated(_) => "copy the block again, up to and including its END line",
            Self::Base64(_) => "copy the block again, unchanged; a mail client or an editor may have rewrapped it",
            Self::WrongLabel(_) => {
                "give certificates only: no private key, no certificate request, no `TRUSTED CERTIFICATE` (`openssl x509 -in FILE` rewrites that)"
            }
            Self::NotX509(_) => {
                "export the certificate again; `openssl x509 -in FILE -noout -text` must be able to read it"
            }
            Self::Extension(_) => "have the certificate issued again: TLS clients refuse it as it is",
            Self::TrailingData => "export it again: one structure in each block",
            Self::UnsupportedPublicKey(_) => "use a certificate with an RSA, ECDSA or Ed25519 key",
            Self::NoPrivateKey => {
                "give the key as PEM with the label `PRIVATE KEY`, `RSA PRIVATE KEY` or `EC PRIVATE KEY`"
            }
            Self::SeveralBlocks => "give the private key alone; certificates belong into the certificate's own field",
            Self::EncryptedPrivateKey => {
                "remove the passphrase, since nobody can type it here: `openssl pkey -in FILE -out PLAIN`"
            }
            Self::UnsupportedPrivateKey(_) => {
                "give the key as PKCS#8: `openssl pkey -in FILE -out NEW` converts most formats, `ssh-keygen -p -m PKCS8 -f FILE` those of OpenSSH"
            }
            Self::UnreadablePrivateKey => {
                "export it again with `openssl pkey -in FILE -out NEW`, with a named curve if it is an EC key"
            }
            Self::PublicPointMissing => "export it with its public key: `openssl ec -in FILE -out NEW`",
            Self::KeyMismatch => {
                "put the leaf certificate first and give the key it was issued for: `openssl x509 -pubkey -noout` and `openssl pkey -pubout` must print the same"
            }
        }
    }
}

/// Reads an authority's PEM: every block must be a certificate, and the facts come from the first (D19).
pub fn authority(ca_pem: &str) -> Result<AuthorityFacts, PemFault> {
    with_first(ca_pem, |first| {
        Ok(AuthorityFacts {
            subject_common_name: attribute(first.subject(), &OID_X509_COMMON_NAME),
            not_before: timestamp(first.validity().not_before)?,
            not_after: timestamp(first.validity().not_after)?,
            key_usages: key_usages(first)?,
            extended_key_usages: extended_key_usages(first)?,
        })
    })
}

/// Reads a chain, leaf first: every block must be a certificate, and the facts come from the leaf. One that has
/// expired is as good as any (D19).
pub fn certificate(certificate_pem: &str) -> Result<CertificateFacts, PemFault> {
    with_first(certificate_pem, |leaf| {
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

/// Whether a private key is the leaf's (D19); both texts must be sound by themselves.
pub fn check_key(certificate_pem: &str, private_key_pem: &str) -> Result<(), PemFault> {
    with_first(certificate_pem, |leaf| {
        let blocks = blocks(private_key_pem)?;
        // openssl writes the curve in front of an EC key, though the key names it as well.
        let mut keys = blocks.iter().filter(|block| block.label != "EC PARAMETERS");
        let key = keys.next().ok_or(PemFault::NoPrivateKey)?;
        if keys.next().is_some() {
            return Err(PemFault::SeveralBlocks);
        }
        if is_key_of(leaf.public_key(), key)? { Ok(()) } else { Err(PemFault::KeyMismatch) }
    })
}

// The text

struct Block<'a> {
    label: &'a str,
    encrypted: bool,
    der: Zeroizing<Vec<u8>>,
}

enum Line<'a> {
    Begin(&'a str),
    End(&'a str),
    Damaged,
    Text,
}

/// Reads every block. The parser's own reader drops what it does not recognize, such as the second of two files that
/// were joined without a newline; a chain would get shorter without a word.
fn blocks(text: &str) -> Result<Vec<Block<'_>>, PemFault> {
    let mut found = Vec::new();
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        match classify(line) {
            Line::Text => {}
            Line::Begin(label) => found.push(block(label, &mut lines)?),
            Line::End(_) | Line::Damaged => return Err(PemFault::Boundary(number)),
        }
    }
    Ok(found)
}

fn block<'a>(label: &'a str, lines: &mut impl Iterator<Item = (&'a str, usize)>) -> Result<Block<'a>, PemFault> {
    let mut body: Vec<&str> = Vec::new();
    let mut encrypted = false;
    for (line, number) in lines {
        match classify(line) {
            Line::End(end) if end == label => {
                // The body of an encrypted block is of no use without the passphrase.
                let body = Zeroizing::new(if encrypted { String::new() } else { body.concat() });
                let der = STANDARD.decode(body.as_str()).map_err(|_| PemFault::Base64(label.to_owned()))?;
                return Ok(Block { label, encrypted, der: Zeroizing::new(der) });
            }
            // Headers as in RFC 1421; base64 has no colon.
            Line::Text if line.contains(':') => {
                encrypted |= line.starts_with("Proc-Type:") && line.contains("ENCRYPTED");
            }
            Line::Text => body.extend(line.split_whitespace()),
            Line::Damaged => return Err(PemFault::Boundary(number)),
            Line::Begin(_) | Line::End(_) => break,
        }
    }
    Err(PemFault::Truncated(label.to_owned()))
}

fn classify(line: &str) -> Line<'_> {
    // A fault quotes the label, so what could be content is none.
    let is_label = |text: &&str| {
        text.len() <= 40 && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b" .#".contains(&b))
    };
    let behind = |start: &str| line.trim_end().strip_prefix(start)?.strip_suffix("-----").filter(is_label);
    if let Some(label) = behind("-----BEGIN ") {
        return Line::Begin(label);
    }
    if let Some(label) = behind("-----END ") {
        return Line::End(label);
    }
    let indented = line.trim_start_matches(['\u{feff}', ' ', '\t']);
    if indented.starts_with("-----BEGIN") || indented.starts_with("-----END") { Line::Damaged } else { Line::Text }
}

// The certificate

fn with_first<T>(pem: &str, read: impl FnOnce(&X509Certificate<'_>) -> Result<T, PemFault>) -> Result<T, PemFault> {
    let blocks = blocks(pem)?;
    let chain: Vec<_> = blocks.iter().zip(1..).map(|(block, place)| parse(block, place)).collect::<Result<_, _>>()?;
    read(chain.first().ok_or(PemFault::NoBlock)?)
}

fn parse<'a>(block: &'a Block<'_>, place: usize) -> Result<X509Certificate<'a>, PemFault> {
    if block.label != "CERTIFICATE" {
        return Err(PemFault::WrongLabel(block.label.to_owned()));
    }
    match parse_x509_certificate(&block.der) {
        Ok(([], certificate)) => Ok(certificate),
        Ok(_) => Err(PemFault::TrailingData),
        Err(_) => Err(PemFault::NotX509(place)),
    }
}

/// An attribute of a name. Of several the last counts: names run from the general to the specific, and it is the one
/// that Go shows.
fn attribute(name: &X509Name<'_>, oid: &Oid<'_>) -> String {
    let values = name.iter_attributes().filter(|attribute| attribute.attr_type() == oid);
    values.last().map(|attribute| text(attribute.attr_value())).unwrap_or_default()
}

/// Text of any of the string types that names use; a wrong declaration costs characters but never the field.
fn text(value: &Any<'_>) -> String {
    let latin1 = || -> String { value.data.iter().copied().map(char::from).collect() };
    match value.tag() {
        Tag::BmpString => {
            let units = value.data.as_chunks::<2>().0.iter().map(|pair| u16::from_be_bytes(*pair));
            char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
        Tag::UniversalString => {
            let points = value.data.as_chunks::<4>().0.iter().map(|four| u32::from_be_bytes(*four));
            points.map(|point| char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
        // Not Latin-1 by the letter of T.61, but that is how it is written and how openssl and Go read it.
        Tag::T61String => latin1(),
        _ => std::str::from_utf8(value.data).map_or_else(|_| latin1(), str::to_owned),
    }
}

/// A civil time because `jiff::Timestamp` ends before 9999-12-31T23:59:59Z, which RFC 5280 has for "never".
fn timestamp(time: ASN1Time) -> Result<String, PemFault> {
    civil::date(1970, 1, 1)
        .at(0, 0, 0, 0)
        .checked_add(SignedDuration::from_secs(time.timestamp()))
        .map(|utc| format!("{utc}Z"))
        .map_err(|_| PemFault::NotX509(1))
}

/// A sign is read as part of the number: issuers that forget the leading zero mean a positive one.
fn serial_number(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().skip_while(|byte| **byte == 0).map(|byte| format!("{byte:02x}")).collect();
    if hex.is_empty() { "00".to_owned() } else { hex }
}

const KEY_USAGES: [&str; 9] = [
    "digital-signature",
    "content-commitment",
    "key-encipherment",
    "data-encipherment",
    "key-agreement",
    "cert-sign",
    "crl-sign",
    "encipher-only",
    "decipher-only",
];

fn key_usages(certificate: &X509Certificate<'_>) -> Result<Vec<String>, PemFault> {
    let usage = certificate.key_usage().map_err(|_| PemFault::Extension("keyUsage"))?;
    let flags = usage.map_or(0, |usage| usage.value.flags);
    let set = KEY_USAGES.into_iter().enumerate().filter(|(bit, _)| (flags >> bit) & 1 == 1);
    Ok(set.map(|(_, name)| name.to_owned()).collect())
}

fn extended_key_usages(certificate: &X509Certificate<'_>) -> Result<Vec<String>, PemFault> {
    let fault = PemFault::Extension("extendedKeyUsage");
    let Some(usage) = certificate.extended_key_usage().map_err(|_| fault.clone())? else {
        return Ok(Vec::new());
    };
    let usage = usage.value;
    let known = [
        (usage.any, "any"),
        (usage.server_auth, "server-auth"),
        (usage.client_auth, "client-auth"),
        (usage.code_signing, "code-signing"),
        (usage.email_protection, "email-protection"),
        (usage.time_stamping, "time-stamping"),
        (usage.ocsp_signing, "ocsp-signing"),
    ];
    let known = known.into_iter().filter(|(set, _)| *set).map(|(_, name)| Some(name.to_owned()));
    known.chain(usage.other.iter().map(dotted)).collect::<Option<_>>().ok_or(fault)
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
            // The tag of a DNS name: one that is not text.
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

/// An OID as text, unless it is malformed. The parser's own way takes time quadratic in the length of an arc, which
/// the sender chooses, and misreads a first byte of 128 and more.
fn dotted(oid: &Oid<'_>) -> Option<String> {
    let mut arcs = Vec::new();
    let mut arc = 0u128;
    for byte in oid.as_bytes() {
        arc = arc.checked_mul(128)? | u128::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            arcs.push(std::mem::take(&mut arc));
        }
    }
    if oid.as_bytes().last()? & 0x80 != 0 {
        return None;
    }
    let (first, rest) = arcs.split_first()?;
    let root = (first / 40).min(2);
    let arcs = [root, first - root * 40].into_iter().chain(rest.iter().copied());
    Some(arcs.map(|arc| arc.to_string()).collect::<Vec<_>>().join("."))
}

// The key

#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyType {
    Rsa,
    Ecdsa,
    Ed25519,
}

impl KeyType {
    fn from_oid(dotted: &str) -> Option<Self> {
        match dotted {
            // rsaEncryption, and RSASSA-PSS, whose keys are RSA keys with a restriction on their use
            "1.2.840.113549.1.1.1" | "1.2.840.113549.1.1.10" => Some(Self::Rsa),
            "1.2.840.10045.2.1" => Some(Self::Ecdsa),
            "1.3.101.112" => Some(Self::Ed25519),
            _ => None,
        }
    }

    fn certified(public: &SubjectPublicKeyInfo<'_>) -> Result<Self, PemFault> {
        let oid = dotted(&public.algorithm.algorithm).ok_or(PemFault::NotX509(1))?;
        Self::from_oid(&oid).ok_or(PemFault::UnsupportedPublicKey(oid))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Rsa => "rsa",
            Self::Ecdsa => "ecdsa",
            Self::Ed25519 => "ed25519",
        }
    }
}

fn is_key_of(certified: &SubjectPublicKeyInfo<'_>, key: &Block<'_>) -> Result<bool, PemFault> {
    let wanted = KeyType::certified(certified)?;
    if key.encrypted || key.label == "ENCRYPTED PRIVATE KEY" {
        return Err(PemFault::EncryptedPrivateKey);
    }
    let (key_type, curve, private) = match key.label {
        "PRIVATE KEY" => {
            let info = PrivateKeyInfo::from_der(&key.der).map_err(unreadable)?;
            let curve = info.algorithm.parameters_oid().ok().map(|oid| oid.to_string());
            (KeyType::from_oid(&info.algorithm.oid.to_string()), curve, info.private_key)
        }
        "RSA PRIVATE KEY" => (Some(KeyType::Rsa), None, key.der.as_slice()),
        "EC PRIVATE KEY" => (Some(KeyType::Ecdsa), None, key.der.as_slice()),
        other => return Err(PemFault::UnsupportedPrivateKey(other.to_owned())),
    };
    if key_type != Some(wanted) {
        return Ok(false);
    }
    match wanted {
        KeyType::Rsa => {
            let public = RsaPublicKey::from_der(&certified.subject_public_key.data);
            let public = public.map_err(|_| PemFault::NotX509(1))?;
            Ok(RsaPrivateKey::from_der(private).map_err(unreadable)?.public_key() == public)
        }
        KeyType::Ecdsa => is_ec_key_of(certified, curve, private),
        KeyType::Ed25519 => {
            let seed = OctetStringRef::from_der(private).map_err(unreadable)?;
            let pair = Ed25519KeyPair::from_seed_unchecked(seed.as_bytes());
            let pair = pair.map_err(|_| PemFault::UnreadablePrivateKey)?;
            Ok(pair.public_key().as_ref() == &*certified.subject_public_key.data)
        }
    }
}

fn is_ec_key_of(certified: &SubjectPublicKeyInfo<'_>, curve: Option<String>, private: &[u8]) -> Result<bool, PemFault> {
    let key = EcPrivateKey::from_der(private).map_err(unreadable)?;
    let inner = || key.parameters.and_then(EcParameters::named_curve).map(|oid| oid.to_string());
    let curve = curve.or_else(inner);
    let parameters = certified.algorithm.parameters.as_ref();
    let wanted = parameters.and_then(|any| any.as_oid().ok()).and_then(|oid| dotted(&oid));
    if curve.is_some() && curve != wanted {
        return Ok(false);
    }
    let point = &certified.subject_public_key.data;
    if wanted.as_deref() == Some("1.2.840.10045.3.1.7") {
        // On P-256 the point is computed even if the key brings one, which proves more.
        let derived = p256::SecretKey::from_slice(key.private_key).map(|secret| secret.public_key().to_sec1_bytes());
        return Ok(derived.is_ok_and(|derived| same_point(&derived, point)));
    }
    key.public_key.map(|own| same_point(own, point)).ok_or(PemFault::PublicPointMissing)
}

fn same_point(one: &[u8], other: &[u8]) -> bool {
    one == other || coordinates(one).is_some_and(|one| coordinates(other) == Some(one))
}

/// The x coordinate and the parity of y, which is all that a compressed point has and all that it takes.
fn coordinates(point: &[u8]) -> Option<(&[u8], u8)> {
    let (form, rest) = point.split_first()?;
    match form {
        2 | 3 => Some((rest, form & 1)),
        4 | 6 | 7 => Some((rest.get(..rest.len() / 2)?, rest.last()? & 1)),
        _ => None,
    }
}

/// The decoder's error is dropped but for its kind: it quotes positions in a secret.
fn unreadable(error: der::Error) -> PemFault {
    match error.kind() {
        ErrorKind::TrailingData { .. } => PemFault::TrailingData,
        _ => PemFault::UnreadablePrivateKey,
    }
}
