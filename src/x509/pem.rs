//! The text around certificates and keys: blocks of PEM, and what can be wrong with them.

use base64::{Engine, engine::general_purpose::STANDARD};
use x509_parser::{certificate::X509Certificate, parse_x509_certificate};
use zeroize::Zeroizing;

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

/// One block, decoded.
pub(super) struct Block<'a> {
    pub(super) label: &'a str,
    pub(super) encrypted: bool,
    pub(super) der: Zeroizing<Vec<u8>>,
}

enum Line<'a> {
    Begin(&'a str),
    End(&'a str),
    Damaged,
    Text,
}

/// Reads every block. The parser's own reader drops what it does not recognize, such as the second of two files that
/// were joined without a newline; a chain would get shorter without a word.
pub(super) fn blocks(text: &str) -> Result<Vec<Block<'_>>, PemFault> {
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

/// Reads such a text for its first certificate.
pub(super) fn with_first<T>(
    pem: &str,
    read: impl FnOnce(&X509Certificate<'_>) -> Result<T, PemFault>,
) -> Result<T, PemFault> {
    with_chain(pem, |chain| read(chain.first().ok_or(PemFault::NoBlock)?))
}

/// Reads a text that holds certificates only, at least one.
pub(super) fn with_chain<T>(
    pem: &str,
    read: impl FnOnce(&[X509Certificate<'_>]) -> Result<T, PemFault>,
) -> Result<T, PemFault> {
    let blocks = blocks(pem)?;
    let chain: Vec<_> = blocks.iter().zip(1..).map(|(block, place)| parse(block, place)).collect::<Result<_, _>>()?;
    if chain.is_empty() { Err(PemFault::NoBlock) } else { read(&chain) }
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
