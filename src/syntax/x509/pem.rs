//! PEM blocks, and the faults they can have.

use base64::{Engine, engine::general_purpose::STANDARD};
use x509_parser::{certificate::X509Certificate, parse_x509_certificate};
use zeroize::Zeroizing;

/// A fault in a PEM text (D19). It contains labels, OIDs and positions but no content, so it is safe to show anywhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PemFault {
    /// No PEM block.
    #[error("no PEM block found")]
    NoBlock,
    /// A BEGIN or END line with other text before or after it, by its line number from 1.
    #[error("the PEM boundary in line {0} is damaged or shares its line with other text")]
    Boundary(usize),
    /// A block without an END line of the same label, by its label.
    #[error("the PEM block `{0}` is truncated: its END line is missing")]
    Truncated(String),
    /// A block with an invalid body, by its label.
    #[error("the PEM block `{0}` is not valid base64")]
    Base64(String),
    /// A block that is not a certificate, by its label.
    #[error("expected a PEM block `CERTIFICATE`, found `{0}`")]
    WrongLabel(String),
    /// A certificate block that is not X.509, by its position from 1.
    #[error("certificate {0} is not valid X.509")]
    NotX509(usize),
    /// An extension that clients would also reject, by its name.
    #[error("the certificate extension `{0}` is malformed or duplicate")]
    Extension(&'static str),
    /// Bytes after the end of the structure in a block.
    #[error("a PEM block has extra bytes after its content")]
    TrailingData,
    /// A public key other than RSA, ECDSA and Ed25519, by the dotted OID of its algorithm.
    #[error("unsupported public key algorithm `{0}` in the certificate")]
    UnsupportedPublicKey(String),
    /// No private key.
    #[error("no private key found")]
    NoPrivateKey,
    /// More than one block where only a private key is allowed.
    #[error("more than one PEM block found, expected only a private key")]
    SeveralBlocks,
    /// An encrypted private key.
    #[error("the private key is encrypted")]
    EncryptedPrivateKey,
    /// A block that is not a private key, or one in an unsupported format, by its label.
    #[error("unsupported private key format `{0}`")]
    UnsupportedPrivateKey(String),
    /// A private key block with invalid content.
    #[error("the private key is malformed")]
    UnreadablePrivateKey,
    /// An EC key that cannot be compared with the certificate.
    #[error("the private key does not include its public key, which this curve requires")]
    PublicPointMissing,
    /// The private key of another certificate.
    #[error("the private key does not belong to the first certificate")]
    KeyMismatch,
}

impl PemFault {
    /// Whether both texts are valid but do not match, which has its own code (D19).
    pub(crate) fn is_key_mismatch(&self) -> bool {
        matches!(self, Self::KeyMismatch)
    }

    /// Returns how to fix the fault (D19).
    pub(crate) fn help(&self) -> &'static str {
        match self {
            Self::NoBlock => {
                "paste the text from `-----BEGIN …-----` to `-----END …-----`, or in a manifest, name its file with `{from_file: PATH}`; convert DER with `openssl x509 -inform der -in FILE`"
            }
            Self::Boundary(_) => {
                "put each BEGIN and END marker on its own line, from the first column; look for a literal `\\n` and for files joined without a final newline"
            }
            Self::Truncated(_) => "copy the block again, up to and including its END line",
            Self::Base64(_) => "copy the block again without changes; a mail client or editor may have altered it",
            Self::WrongLabel(_) => {
                "provide certificates only, no private key or certificate request; convert a `TRUSTED CERTIFICATE` with `openssl x509 -in FILE`"
            }
            Self::NotX509(_) => "export the certificate again, and check it with `openssl x509 -in FILE -noout -text`",
            Self::Extension(_) => "reissue the certificate; TLS clients reject this one",
            Self::TrailingData => "export it again with one certificate or key per block",
            Self::UnsupportedPublicKey(_) => "use a certificate with an RSA, ECDSA or Ed25519 key",
            Self::NoPrivateKey => {
                "provide the key as PEM with the label `PRIVATE KEY`, `RSA PRIVATE KEY` or `EC PRIVATE KEY`"
            }
            Self::SeveralBlocks => "remove all other blocks; certificates belong in the certificate's field",
            Self::EncryptedPrivateKey => "remove the passphrase with `openssl pkey -in FILE -out PLAIN`",
            Self::UnsupportedPrivateKey(_) => {
                "convert the key to PKCS#8 with `openssl pkey -in FILE -out NEW`, or with `ssh-keygen -p -m PKCS8 -f FILE` if it is an OpenSSH key"
            }
            Self::UnreadablePrivateKey => {
                "export the key again with `openssl pkey -in FILE -out NEW`; use a named curve for an EC key"
            }
            Self::PublicPointMissing => "export the key with its public key: `openssl ec -in FILE -out NEW`",
            Self::KeyMismatch => {
                "put the leaf certificate first and use its private key; `openssl x509 -pubkey -noout` and `openssl pkey -pubout` must print the same public key"
            }
        }
    }
}

/// A decoded block.
pub(super) struct PemBlock<'a> {
    pub(super) label: &'a str,
    pub(super) encrypted: bool,
    pub(super) der: Zeroizing<Vec<u8>>,
}

enum PemLine<'a> {
    Begin(&'a str),
    End(&'a str),
    Damaged,
    Text,
}

/// Reads every block. The parser's own reader drops anything it does not recognize, such as the second of two files
/// joined without a newline, which would silently shorten a chain.
pub(super) fn blocks(text: &str) -> Result<Vec<PemBlock<'_>>, PemFault> {
    let mut found = Vec::new();
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        match classify(line) {
            PemLine::Text => {}
            PemLine::Begin(label) => found.push(block(label, &mut lines)?),
            PemLine::End(_) | PemLine::Damaged => return Err(PemFault::Boundary(number)),
        }
    }
    Ok(found)
}

/// Whether two texts encode the same blocks, whatever their line breaks and the text around them.
pub(crate) fn same_pem(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    let (Ok(one), Ok(other)) = (blocks(one), blocks(other)) else { return false };
    let is_same = |(one, other): (&PemBlock<'_>, &PemBlock<'_>)| one.label == other.label && one.der == other.der;
    !one.is_empty() && one.len() == other.len() && one.iter().zip(&other).all(is_same)
}

fn block<'a>(label: &'a str, lines: &mut impl Iterator<Item = (&'a str, usize)>) -> Result<PemBlock<'a>, PemFault> {
    let mut body: Vec<&str> = Vec::new();
    let mut encrypted = false;
    for (line, number) in lines {
        match classify(line) {
            PemLine::End(end) if end == label => {
                // The body of an encrypted block is useless without the passphrase.
                let body = Zeroizing::new(if encrypted { String::new() } else { body.concat() });
                let der = STANDARD.decode(body.as_str()).map_err(|_| PemFault::Base64(label.to_owned()))?;
                return Ok(PemBlock { label, encrypted, der: Zeroizing::new(der) });
            }
            // Headers as in RFC 1421; base64 has no colon.
            PemLine::Text if line.contains(':') => {
                encrypted |= line.starts_with("Proc-Type:") && line.contains("ENCRYPTED");
            }
            PemLine::Text => body.extend(line.split_whitespace()),
            PemLine::Damaged => return Err(PemFault::Boundary(number)),
            PemLine::Begin(_) | PemLine::End(_) => break,
        }
    }
    Err(PemFault::Truncated(label.to_owned()))
}

fn classify(line: &str) -> PemLine<'_> {
    // Faults quote the label, so text that could be key material must not count as one.
    let is_label = |text: &&str| {
        text.len() <= 40 && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b" .#".contains(&b))
    };
    let label_after = |start: &str| line.trim_end().strip_prefix(start)?.strip_suffix("-----").filter(is_label);
    if let Some(label) = label_after("-----BEGIN ") {
        return PemLine::Begin(label);
    }
    if let Some(label) = label_after("-----END ") {
        return PemLine::End(label);
    }
    let indented = line.trim_start_matches(['\u{feff}', ' ', '\t']);
    if indented.starts_with("-----BEGIN") || indented.starts_with("-----END") {
        PemLine::Damaged
    } else {
        PemLine::Text
    }
}

/// Reads a PEM text that must consist of certificates, at least one.
pub(super) fn with_chain<T>(
    pem: &str,
    read: impl FnOnce(&[X509Certificate<'_>]) -> Result<T, PemFault>,
) -> Result<T, PemFault> {
    let blocks = blocks(pem)?;
    let chain: Vec<_> = blocks.iter().zip(1..).map(|(block, place)| parse(block, place)).collect::<Result<_, _>>()?;
    if chain.is_empty() { Err(PemFault::NoBlock) } else { read(&chain) }
}

fn parse<'a>(block: &'a PemBlock<'_>, place: usize) -> Result<X509Certificate<'a>, PemFault> {
    if block.label != "CERTIFICATE" {
        return Err(PemFault::WrongLabel(block.label.to_owned()));
    }
    match parse_x509_certificate(&block.der) {
        Ok(([], certificate)) => Ok(certificate),
        Ok(_) => Err(PemFault::TrailingData),
        Err(_) => Err(PemFault::NotX509(place)),
    }
}
