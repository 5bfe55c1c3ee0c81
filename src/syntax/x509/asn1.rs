//! Names, times and object identifiers of certificates, as text.

use jiff::{SignedDuration, civil};
use x509_parser::asn1_rs::{Any, Oid, Tag};
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Name;

use super::pem::PemFault;

/// Returns an attribute of a name, or the last of several: names go from general to specific, and Go shows the last
/// too.
pub(super) fn attribute(name: &X509Name<'_>, oid: &Oid<'_>) -> String {
    let values = name.iter_attributes().filter(|attribute| attribute.attr_type() == oid);
    values.last().map(|attribute| text(attribute.attr_value())).unwrap_or_default()
}

/// Decodes any string type that names use. A wrongly declared type garbles characters but never loses the field.
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
        // T.61 is not Latin-1, but issuers write Latin-1, and openssl and Go read it as such.
        Tag::T61String => latin1(),
        _ => std::str::from_utf8(value.data).map_or_else(|_| latin1(), str::to_owned),
    }
}

/// Converts to a civil time, because `jiff::Timestamp` ends before 9999-12-31T23:59:59Z, RFC 5280's value for "never".
pub(super) fn utc(time: ASN1Time) -> Result<civil::DateTime, PemFault> {
    civil::date(1970, 1, 1)
        .at(0, 0, 0, 0)
        .checked_add(SignedDuration::from_secs(time.timestamp()))
        .map_err(|_| PemFault::NotX509(1))
}

pub(super) fn timestamp(time: ASN1Time) -> Result<String, PemFault> {
    utc(time).map(|utc| format!("{utc}Z"))
}

/// Formats an OID, or returns `None` if it is malformed. The parser's own formatting is quadratic in the length of an
/// arc, which the sender controls, and misreads a first byte of 128 or more.
pub(super) fn dotted(oid: &Oid<'_>) -> Option<String> {
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
