//! The records of the current state, which are all read when a store opens. Most of them have no secret and no reference. What
//! such a record has besides its Spec is read from its end, so that the Spec is only read when it is first used.

use std::sync::Arc;

use bytestring::ByteString;
use jiff::Timestamp;

use super::{Lost, decode_with};
use crate::{
    model::{
        id::Id,
        lazy_spec::{LazySpec, StoredSecrets, StoredText},
        operation::Claim,
        snapshot::Entry,
    },
    store::{
        commit::{
            codec::{RECORD, decode_key_with},
            record_arena::StateRecord,
        },
        seal::Keyring,
    },
};

/// How a record starts. Its Spec follows.
const SPEC: &[u8] = br#"{"spec":"#;
/// What is between the Spec and the list of references.
const REFERENCES: &[u8] = br#","references":"#;

/// What a record can take from the one that was read before it.
#[derive(Default)]
pub(in crate::store) struct LastRecord {
    parent: Option<Id>,
    created_at: Option<(Vec<u8>, Timestamp)>,
}

impl LastRecord {
    /// The ID of a parent, whose children share its text.
    fn parent(&mut self, text: &str) -> Id {
        if let Some(same) = self.parent.as_ref().filter(|id| id.as_str() == text) {
            return same.clone();
        }
        self.parent.insert(Id::new(text)).clone()
    }

    /// A time. Many resources are of one commit.
    fn created_at(&mut self, text: &[u8]) -> Option<Timestamp> {
        if let Some((_, same)) = self.created_at.as_ref().filter(|(known, _)| known.as_slice() == text) {
            return Some(*same);
        }
        let time = std::str::from_utf8(text).ok()?.parse().ok()?;
        self.created_at = Some((text.to_vec(), time));
        Some(time)
    }
}

/// Reads a record of the current state. A Spec without a secret stays in the memory of the record.
pub(in crate::store) fn decode_in_place(
    StateRecord { key, value, memory }: StateRecord<'_>,
    keyring: Option<&Keyring>,
    last: &mut LastRecord,
) -> Result<Arc<Entry>, String> {
    let (key, shared) = (key.as_bytes(), |text: &[u8]| ByteString::try_from(memory.slice_ref(text)).ok());
    if keyring.is_some()
        && let Some(PlainRecord { spec, created_at, order, claim }) = PlainRecord::of(value)
        && let Some(created_at) = last.created_at(created_at)
        && let Some(spec) = shared(spec)
    {
        let key = decode_key_with(RECORD, key, |parent| last.parent(parent))?;
        let secrets = StoredSecrets::At(Box::default());
        let lazy_spec = LazySpec::from_stored(key.kind, Vec::new(), StoredText::from(spec), secrets);
        // It is made where it stays: it is larger than the pointer to it.
        return Ok(Arc::new(Entry { key, lazy_spec, created_at, order, claim, token: None, rendered: Arc::default() }));
    }
    let mut entry = decode_with(key, value, keyring, Lost::Refused, |text| {
        shared(text.as_bytes()).map_or_else(|| StoredText::from(text), StoredText::from)
    })?;
    entry.key.parent = entry.key.parent.take().map(|parent| last.parent(parent.as_str()));
    Ok(Arc::new(entry))
}

/// A record without secrets and references, in the form in which they are written.
struct PlainRecord<'r> {
    spec: &'r [u8],
    created_at: &'r [u8],
    order: u64,
    claim: Option<Arc<Claim>>,
}

impl<'r> PlainRecord<'r> {
    /// Reads all but the Spec. Returns none if the record has any other form.
    fn of(record: &'r [u8]) -> Option<Self> {
        let (before, others) = record.split_at_checked(references_at(record)?)?;
        let spec = before.strip_prefix(SPEC)?.strip_suffix(REFERENCES)?;
        let others = others.strip_prefix(br#"[],"created_at":""#)?;
        let (created_at, others) = others.split_at_checked(others.iter().position(|byte| *byte == b'"')?)?;
        let others = others.strip_prefix(br#"","order":"#)?;
        let (order, others) = others.split_at_checked(others.iter().position(|byte| !byte.is_ascii_digit())?)?;
        let order = std::str::from_utf8(order).ok()?.parse().ok()?;
        let claim = match others.strip_prefix(br#","claim":"#) {
            // Whatever follows the claim is an error here.
            Some(claim) => Some(Arc::new(claim_of(claim.strip_suffix(b"}")?)?)),
            None if others == b"}" => None,
            None => return None,
        };
        let is_object = spec.starts_with(b"{") && spec.ends_with(b"}");
        is_object.then_some(Self { spec, created_at, order, claim })
    }
}

/// Reads a claim. Most have only a source and a name, without an escape.
fn claim_of(json: &[u8]) -> Option<Claim> {
    let short = || {
        let (source, rest) = plain_text(json.strip_prefix(br#"{"source":"#)?)?;
        let (name, rest) = plain_text(rest.strip_prefix(br#","name":"#)?)?;
        let claim = || Claim { source: source.to_owned(), name: name.to_owned(), ..Claim::default() };
        (rest == b"}").then(claim)
    };
    short().or_else(|| serde_json::from_slice(json).ok())
}

/// Returns the text at the start of some JSON, if it has no escape, and what follows.
fn plain_text(json: &[u8]) -> Option<(&str, &[u8])> {
    let json = json.strip_prefix(b"\"")?;
    let (text, rest) = json.split_at_checked(json.iter().position(|byte| *byte == b'"')?)?;
    let is_plain = !text.iter().any(|byte| *byte == b'\\' || byte.is_ascii_control());
    Some((std::str::from_utf8(text).ok().filter(|_| is_plain)?, rest.get(1..)?))
}

/// Finds the last list of references. It is that of the record if what follows is the rest of the record: inside of the Spec,
/// one brace more would follow, and in a text, each quote has a backslash before it.
fn references_at(record: &[u8]) -> Option<usize> {
    let mut end = record.len();
    loop {
        end = record.get(..end)?.iter().rposition(|byte| *byte == b'[')?;
        if record.get(..end)?.ends_with(REFERENCES) {
            return Some(end);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{
        model::{
            Kind,
            diagnostics::{code::Code, fault::Faults},
            key::Key,
            secrets::secret::Secret,
        },
        store::{
            commit::{
                codec::encode_key,
                record::{decode, encode},
            },
            seal::MasterKey,
        },
    };

    fn keyring() -> Keyring {
        let master = MasterKey::random("a test".into());
        Keyring::create([5; 32], master, None, Box::new(|_: &[u8]| Ok(()))).unwrap()
    }

    fn route(description: &str, claim: Option<Arc<Claim>>) -> Entry {
        let key = Key::child(Kind::HttpsEdgeRoute, Id::new("edghts_1"), Id::new("edghtsrt_1"));
        let description = serde_json::to_string(description).unwrap();
        let text = format!(r#"{{"match_type":"path_prefix","match":"/","description":{description}}}"#);
        let lazy_spec = LazySpec::new((key.kind.info().restore)(&text).unwrap());
        let created_at = Timestamp::UNIX_EPOCH;
        Entry { key, lazy_spec, created_at, order: 7, claim, token: None, rendered: Arc::default() }
    }

    fn in_place(key: &str, value: &Bytes, keyring: &Keyring, last: &mut LastRecord) -> Result<Arc<Entry>, String> {
        decode_in_place(StateRecord { key, value, memory: value }, Some(keyring), last)
    }

    fn assert_same(one: &Entry, other: &Entry) {
        assert_eq!((&one.key, one.order, one.created_at), (&other.key, other.order, other.created_at));
        assert_eq!((&one.claim, &one.token), (&other.claim, &other.token));
        assert_eq!(one.lazy_spec.references(), other.lazy_spec.references());
        assert_eq!(one.lazy_spec.stored().unwrap(), other.lazy_spec.stored().unwrap());
        assert_eq!(one.lazy_spec.secrets().unwrap(), other.lazy_spec.secrets().unwrap());
    }

    #[test]
    fn a_record_is_the_same_from_its_end_and_from_its_start() {
        let (keyring, mut last) = (keyring(), LastRecord::default());
        let awkward = r#"a[1]","references":[],"created_at":"2026-01-01T00:00:00Z","order":1}"#;
        let claim = |name: &str| Some(Arc::new(Claim { source: "shop".into(), name: name.into(), ..Claim::default() }));
        let returned = claim("cart")
            .map(|claim| Arc::new(Claim { transfer_to: Some("[".into()), returned: true, ..Claim::clone(&claim) }));
        for text in ["", "ä [1]", awkward] {
            for claim in [None, claim("cart"), claim(awkward), returned.clone()] {
                let plain = route(text, claim);
                let value = Bytes::from(encode(&plain, Some(&keyring)).unwrap());
                assert!(PlainRecord::of(&value).is_some(), "{text}");
                let with_token = Entry { token: Some(Secret::new("a-hash")), ..plain.clone() };
                let sealed = Bytes::from(encode(&with_token, Some(&keyring)).unwrap());
                assert!(PlainRecord::of(&sealed).is_none(), "{text}");
                let name = encode_key(RECORD, &plain.key);
                for value in [value, sealed] {
                    let whole = decode(name.as_bytes(), &value, Some(&keyring), Lost::Refused).unwrap();
                    let read = in_place(&name, &value, &keyring, &mut last).unwrap();
                    assert_same(&read, &whole);
                }
            }
        }
    }

    #[test]
    fn a_record_of_another_form_is_read_from_its_start() {
        for other in [
            "",
            "[",
            "{}",
            r#"{"spec":{},"created_at":"2026-01-01T00:00:00Z","order":1}"#,
            r#"{"spec":{},"references":["IpRestriction//ipx_1"],"created_at":"2026-01-01T00:00:00Z","order":1}"#,
            r#"{"spec":{},"references":[],"created_at":"2026-01-01T00:00:00Z","order":1}}"#,
            r#"{"spec":{},"references":[],"created_at":"2026-01-01T00:00:00Z","order":-1}"#,
            r#"{"spec":{},"references":[],"created_at":"2026-01-01T00:00:00Z","order":1,"claim":{"source":"a"}}"#,
            r#"{"spec":{"a":{},"references":[],"created_at":"2026-01-01T00:00:00Z","order":1},"order":2}"#,
            r#"{"spec":7,"references":[],"created_at":"2026-01-01T00:00:00Z","order":1}"#,
            r#"{"spec":{},"references":[],"created_at":"","order":1,"claim":{"source":"a","name":"b"},"token":"c"}"#,
        ] {
            assert!(PlainRecord::of(other.as_bytes()).is_none(), "{other}");
        }
    }

    #[test]
    fn a_claim_is_read_as_the_parser_reads_it() {
        for json in [
            r#"{"source":"a","name":"b"}"#,
            r#"{"source":"","name":"ä"}"#,
            r#"{"source":"a","name":"b\"c"}"#,
            r#"{"source":"a\\","name":"b"}"#,
            r#"{"name":"b","source":"a"}"#,
            r#"{"source":"a","name":"b","prevent_destroy":true}"#,
            r#"{"source":"a","name":"b"} "#,
            r#"{"source":"a","name":"b"}}"#,
            r#"{"source":"a","name":"b""#,
            r#"{"source":"a"}"#,
            "{\"source\":\"a\",\"name\":\"b\n\"}",
            "",
        ] {
            assert_eq!(claim_of(json.as_bytes()), serde_json::from_slice::<Claim>(json.as_bytes()).ok(), "{json}");
        }
    }

    #[test]
    fn a_spec_that_is_not_json_is_found_when_it_is_used() {
        let (keyring, key) = (keyring(), "r/IpRestriction//ipx_1");
        let value = br#"{"spec":{"a":},"references":[],"created_at":"2026-01-01T00:00:00Z","order":1}"#;
        let value = Bytes::from_static(value);
        let read = in_place(key, &value, &keyring, &mut LastRecord::default()).unwrap();
        let mut faults = Faults::new();
        read.spec().check(&mut faults);
        assert_eq!(faults.into_vec().first().map(|fault| fault.code), Some(Code::StoreCorrupt));
        assert!(decode(key.as_bytes(), &value, Some(&keyring), Lost::Refused).is_err());
    }
}
