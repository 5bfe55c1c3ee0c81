//! The record of a resource: JSON, with its secrets encrypted (D96).
//!
//! ```text
//! the Spec   {"private_key_pem":"-----BEGIN…","certificate_pem":"…"}
//! stored     {"spec":{"private_key_pem":"","certificate_pem":"…"}, …,
//!             "sealed":{"at":[19],"digests":["c2f9…"],"value":"09368a19ab386639.i/2O6F…"}}
//! ```
//!
//! The places of the secrets are noted as offsets while the Spec is written, once. So a record without a secret is written as
//! if there were no encryption, and a Spec comes back byte by byte, which comparisons by digest rely on. The encrypted value
//! names its data key. It is bound to the store, the key of the record, the rest of the Spec and everything else in `sealed`:
//! moved elsewhere, or with another public text, it does not open.
//!
//! A digest of each secret, whose key comes from the root secret, outlives the data key. If an earlier state has lost a
//! secret, and the current one has one with the same digest, it is the same one and takes its place ([`LostSecrets`]). The
//! history reads nothing but digests ([`decode_digested`]), so it tells the same before and after the data key is destroyed.
//!
//! A Spec without a secret is parsed on first use: most of a large configuration is never looked at between two starts.

pub(in crate::store) mod scrub;
mod secrets;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use super::record_key::{RECORD, decode_key, encode_key};
use crate::model::secrets::secret::MASK;
use crate::model::secrets::unknown_value::is_unknown;
use crate::model::snapshot::lazy_spec::{LazySpec, SpecForm, StoredSecrets};
use crate::model::{Claim, Code, Entry, JsonError, Key, Secret, Secrets, json};
use crate::store::error::StoreError;
use crate::store::seal::{KeyId, Keyring, NotOpened, Sealed};
use secrets::{EMPTY, append, digest_of, digests_of, places_of, secrets_in, split};

/// How many bytes most records have besides their spec.
const OTHER_FIELDS: usize = 256;

/// The fields of a record besides its spec.
#[derive(Serialize)]
struct RecordFields<'a> {
    references: Vec<String>,
    created_at: Timestamp,
    order: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    claim: &'a Option<Arc<Claim>>,
    /// Only in a store that encrypts nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a Secret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed: Option<SealedSecrets>,
}

/// A record as it is read.
#[derive(Deserialize)]
struct StoredRecord<'a> {
    #[serde(borrow)]
    spec: &'a RawValue,
    references: Vec<String>,
    created_at: Timestamp,
    order: u64,
    claim: Option<Arc<Claim>>,
    token: Option<Secret>,
    sealed: Option<SealedSecrets>,
}

/// The secrets of a record. They are bound to its key and to everything else in its Spec.
#[derive(Serialize, Deserialize)]
struct SealedSecrets {
    /// Where the secrets are in the Spec: each place has an empty text instead.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    at: Vec<usize>,
    /// Whether the last secret is the hash of the resource's token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    token: bool,
    /// A digest of each secret, in the same order.
    digests: Vec<String>,
    /// Each secret with its length before it.
    value: Sealed,
}

/// The treatment of secrets whose data key is destroyed.
#[derive(Clone, Copy)]
pub(crate) enum LostSecrets<'a> {
    /// An error, because the current state must have all of its secrets.
    Refused,
    /// Masks take their places, in an earlier state.
    Masked,
    /// Secrets of another state of the resource take their places if they are the same, and otherwise masks.
    SameAs(&'a Entry),
}

/// A Spec with its secrets, and the hash of a token.
struct OpenedRecord {
    text: Zeroizing<String>,
    token: Option<Secret>,
    secrets: StoredSecrets,
}

/// Writes a record's value. Without a keyring, secrets are written as they are.
pub(super) fn encode(entry: &Entry, keyring: Option<&Keyring>) -> Result<Vec<u8>, StoreError> {
    let unstorable =
        |reason: &str| StoreError::new(Code::Internal, format!("{} cannot be stored: {reason}", entry.key));
    let failed = |error: JsonError| unstorable(&error.to_string());
    let with = |spec: &str, token: Option<&Secret>, sealed: Option<SealedSecrets>| {
        let Entry { created_at, order, claim, .. } = entry;
        let references = entry.lazy_spec.references().iter().map(|key| encode_key("", key)).collect();
        written(spec, &RecordFields { references, created_at: *created_at, order: *order, claim, token, sealed })
    };
    let spec = if keyring.is_some() { entry.lazy_spec.with_known_secrets() } else { entry.lazy_spec.clone() };
    let form = spec.form_once().map_err(failed)?;
    let Some(keyring) = keyring else { return with(form.text(), entry.token.as_ref(), None).map_err(failed) };
    let places = form.secrets().ok_or_else(|| unstorable("its secrets are lost"))?;
    if !is_sealed(entry, || Ok(Cow::Borrowed(&*form))) {
        return with(form.text(), None, None).map_err(failed);
    }
    let split = split(form.text(), places, entry.token.as_ref());
    let (public, at, secrets) = split.ok_or_else(|| unstorable("its secrets are at unexpected positions"))?;
    let (name, token) = (encode_key(RECORD, &entry.key), entry.token.is_some());
    let digests = digests_of(&name, &secrets, keyring);
    let places = places_of(&at, token, &digests);
    let value = keyring.seal(&secrets, &[b"record", name.as_bytes(), public.as_bytes(), &places])?;
    with(&public, None, Some(SealedSecrets { at, token, digests, value })).map_err(failed)
}

/// Whether a record has something to encrypt: the hash of a token, or secrets in its Spec, whose form is needed only then.
pub(crate) fn is_sealed<'f>(entry: &Entry, form: impl FnOnce() -> Result<Cow<'f, SpecForm>, JsonError>) -> bool {
    let in_spec = |form: Cow<'_, SpecForm>| form.secrets().is_some_and(|places| !places.is_empty());
    entry.token.is_some() || form().is_ok_and(in_spec)
}

fn written(spec: &str, fields: &RecordFields<'_>) -> Result<Vec<u8>, JsonError> {
    // The spec is JSON already: only the object around it is new.
    let mut out = Vec::with_capacity(spec.len() + OTHER_FIELDS);
    out.extend_from_slice(br#"{"spec":"#);
    out.extend_from_slice(spec.as_bytes());
    let others = out.len();
    json::append(fields, Secrets::Revealed, &mut out)?;
    if let Some(bracket) = out.get_mut(others) {
        *bracket = b',';
    }
    Ok(out)
}

/// Reads a record. The error says what is wrong with it, without its content.
pub(crate) fn decode(
    key: &[u8],
    value: &[u8],
    keyring: Option<&Keyring>,
    lost: LostSecrets<'_>,
) -> Result<Entry, String> {
    let in_clear = if keyring.is_some() { StoredSecrets::At(Box::default()) } else { StoredSecrets::Unknown };
    decode_with(key, value, in_clear, |sealed, name, public| sealed.open(name, public, keyring, lost))
}

/// Reads a record without its data key: digests take the places of its encrypted secrets, which tell whether another state of
/// the resource has the same ones.
pub(crate) fn decode_digested(key: &[u8], value: &[u8]) -> Result<Entry, String> {
    decode_with(key, value, StoredSecrets::Unknown, |sealed, name, public| {
        sealed.digested(public).ok_or_else(|| unknown_form(name))
    })
}

/// Reads a record. `in_clear` is the state of the secrets if none is encrypted, and `open` puts encrypted ones into a Spec,
/// given the name of its record.
fn decode_with(
    key: &[u8],
    value: &[u8],
    in_clear: StoredSecrets,
    open: impl FnOnce(&SealedSecrets, &str, &str) -> Result<OpenedRecord, String>,
) -> Result<Entry, String> {
    let name = || String::from_utf8_lossy(key);
    let key = decode_key(RECORD, key)?;
    let unreadable = |error: serde_json::Error| {
        let name = name();
        format!("the record {name} cannot be read (line {}, column {})", error.line(), error.column())
    };
    let read: StoredRecord<'_> = serde_json::from_slice(value).map_err(unreadable)?;
    let opened = read.sealed.as_ref().map(|sealed| open(sealed, &name(), read.spec.get())).transpose()?;
    let references = read.references.iter().map(|reference| decode_key("", reference.as_bytes()));
    let references = references.collect::<Result<Vec<_>, String>>()?;
    let (lazy_spec, token) = match opened {
        Some(OpenedRecord { text, token, secrets }) => {
            (LazySpec::from_stored(key.kind, references, &text, secrets), token)
        }
        None => (LazySpec::from_stored(key.kind, references, read.spec.get(), in_clear), read.token),
    };
    Ok(Entry {
        key,
        lazy_spec,
        created_at: read.created_at,
        order: read.order,
        claim: read.claim,
        token,
        rendered: Arc::default(),
    })
}

fn unknown_form(name: &str) -> String {
    format!("the secrets of the record {name} have an unknown form")
}

/// Returns a Spec as [`decode_digested`] would read it from the record of a resource, or none if it has no secrets.
pub(crate) fn digested(key: &Key, spec: &LazySpec, keyring: &Keyring) -> Option<LazySpec> {
    let known = spec.with_known_secrets();
    let form = known.form_once().ok()?;
    let places = form.secrets().filter(|places| !places.is_empty())?;
    let (name, mut text, mut from) = (encode_key(RECORD, key), String::new(), 0);
    for place in places {
        text.push_str(form.text().get(from..place.start)?);
        let secret = form.text().get(place.clone())?;
        // No record has an unknown value: it stays one.
        match is_unknown(secret.trim_start_matches('"')) {
            true => text.push_str(secret),
            false => text.push_str(&format!("\"{}\"", digest_of(&name, secret, keyring))),
        }
        from = place.end;
    }
    text.push_str(form.text().get(from..)?);
    Some(LazySpec::from_stored(key.kind, spec.references().to_vec(), &text, StoredSecrets::Lost))
}

impl SealedSecrets {
    fn open(
        &self,
        name: &str,
        public: &str,
        keyring: Option<&Keyring>,
        lost: LostSecrets<'_>,
    ) -> Result<OpenedRecord, String> {
        let Some(keyring) = keyring else {
            return Err(format!("the record {name} has encrypted secrets, and the store has no data keys"));
        };
        let places = places_of(&self.at, self.token, &self.digests);
        let bound_to: [&[u8]; 4] = [b"record", name.as_bytes(), public.as_bytes(), &places];
        let opened = match keyring.open(&self.value, &bound_to) {
            Ok(secrets) => self.with(public, &secrets),
            Err(NotOpened::Destroyed) => match lost {
                LostSecrets::Refused => {
                    return Err(format!("the data key {} of the record {name} was destroyed", self.value.key));
                }
                LostSecrets::Masked => self.masked(public),
                LostSecrets::SameAs(other) => {
                    self.same_as(other, name, public, keyring).or_else(|| self.masked(public))
                }
            },
            Err(NotOpened::UnknownKey(id)) => {
                return Err(format!("the data key {id} of the record {name} is missing in `keys`"));
            }
            Err(NotOpened::Changed) => {
                return Err(format!("the encrypted secrets of the record {name} were changed or moved"));
            }
        };
        opened.ok_or_else(|| unknown_form(name))
    }

    /// The Spec with its secrets.
    fn with(&self, public: &str, secrets: &[u8]) -> Option<OpenedRecord> {
        let mut secrets_in_order = secrets_in(secrets);
        let (text, places) = self.joined(public, secrets.len(), &mut secrets_in_order)?;
        let token = if self.token { Some(Secret::new(secrets_in_order.next()?)) } else { None };
        Some(OpenedRecord { text, token, secrets: StoredSecrets::At(places.into_boxed_slice()) })
    }

    /// The Spec with secrets of another state, if it has all of them.
    fn same_as(&self, other: &Entry, name: &str, public: &str, keyring: &Keyring) -> Option<OpenedRecord> {
        let spec = other.lazy_spec.with_known_secrets();
        let StoredSecrets::At(places) = spec.secrets().ok()? else { return None };
        let (_, _, secrets) = split(spec.stored().ok()?, places, other.token.as_ref())?;
        let digests = digests_of(name, &secrets, keyring);
        let known: HashMap<String, &str> = digests.into_iter().zip(secrets_in(&secrets)).collect();
        let found = self.digests.iter().map(|digest| known.get(digest).copied());
        let found = found.collect::<Option<Vec<&str>>>()?;
        let size = found.iter().map(|secret| secret.len() + 4).sum::<usize>();
        let mut same = Zeroizing::new(Vec::<u8>::with_capacity(size));
        found.into_iter().try_for_each(|secret| append(&mut same, secret))?;
        self.with(public, &same)
    }

    /// The Spec with masks in the places of its secrets.
    fn masked(&self, public: &str) -> Option<OpenedRecord> {
        let mask = format!("\"{MASK}\"");
        self.without(public, &mut std::iter::repeat(mask.as_str()))
    }

    /// The Spec with digests in the places of its secrets.
    fn digested(&self, public: &str) -> Option<OpenedRecord> {
        let digests: Vec<String> = self.digests.iter().map(|digest| format!("\"{digest}\"")).collect();
        self.without(public, &mut digests.iter().map(String::as_str))
    }

    /// The Spec with other texts in the places of its secrets.
    fn without(&self, public: &str, texts: &mut dyn Iterator<Item = &str>) -> Option<OpenedRecord> {
        let (text, _) = self.joined(public, 0, texts)?;
        Some(OpenedRecord { text, token: None, secrets: StoredSecrets::Lost })
    }

    /// Puts secrets of a total size into a Spec. Returns their places in the result.
    fn joined(
        &self,
        public: &str,
        size: usize,
        secrets: &mut dyn Iterator<Item = &str>,
    ) -> Option<(Zeroizing<String>, Vec<Range<usize>>)> {
        let mut text = Zeroizing::new(String::with_capacity(public.len() + size));
        let (mut places, mut from) = (Vec::with_capacity(self.at.len()), 0);
        for at in &self.at {
            let end = at.checked_add(EMPTY.len())?;
            if public.get(*at..end)? != EMPTY {
                return None;
            }
            text.push_str(public.get(from..*at)?);
            let start = text.len();
            text.push_str(secrets.next()?);
            places.push(start..text.len());
            from = end;
        }
        text.push_str(public.get(from..)?);
        Some((text, places))
    }
}

/// The data key that the secrets of a record are sealed with, if it has any.
pub(crate) fn key_of(value: &[u8]) -> Option<KeyId> {
    #[derive(Deserialize)]
    struct RecordSeal {
        sealed: SealedSecrets,
    }
    serde_json::from_slice::<RecordSeal>(value).ok().map(|record| record.sealed.value.key)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::{HttpsEdge, Id, Kind};
    use crate::store::seal::MasterKey;

    fn keyring() -> Keyring {
        let master = MasterKey::random("a test".into());
        Keyring::create([5; 32], master, None, Box::new(|_: &[u8]| Ok(()))).unwrap()
    }

    fn route(id: &str, token: Option<Secret>) -> Entry {
        let key = Key::child(Kind::HttpsEdgeRoute, Id::new("edghts_1"), Id::new(id));
        let text =
            r#"{"match":"/ä","webhook_verification":{"provider":"github","secret":"hunt\"er2"},"description":"b"}"#;
        let spec = (key.kind.info().restore)(text).unwrap();
        Entry { token, ..Entry::new(key, spec, Timestamp::UNIX_EPOCH, 7) }
    }

    fn name(entry: &Entry) -> String {
        encode_key(RECORD, &entry.key)
    }

    fn read(of: &Entry, bytes: &[u8], keyring: &Keyring, lost: LostSecrets<'_>) -> Result<Entry, String> {
        decode(name(of).as_bytes(), bytes, Some(keyring), lost)
    }

    #[test]
    fn secrets_are_encrypted_and_come_back_exactly() {
        let keyring = keyring();
        for token in [None, Some(Secret::new("a-hash"))] {
            let entry = route("edghtsrt_1", token.clone());
            let bytes = encode(&entry, Some(&keyring)).unwrap();
            let text = String::from_utf8(bytes.clone()).unwrap();
            assert!(!text.contains("er2") && !text.contains("a-hash") && text.contains("\"secret\":\"\""), "{text}");
            let again = read(&entry, &bytes, &keyring, LostSecrets::Refused).unwrap();
            assert_eq!(again.lazy_spec.stored().unwrap(), entry.lazy_spec.stored().unwrap());
            assert_eq!(again.lazy_spec.secrets().unwrap(), entry.lazy_spec.secrets().unwrap());
            assert_eq!((again.token, again.order, key_of(&bytes)), (token, 7, Some(keyring.current())));
        }
        let edge = Entry {
            key: Key::new(Kind::HttpsEdge, Id::new("edghts_1")),
            lazy_spec: LazySpec::new(Arc::new(HttpsEdge::default())),
            ..route("edghtsrt_1", None)
        };
        let bytes = encode(&edge, Some(&keyring)).unwrap();
        assert_eq!(bytes, encode(&edge, None).unwrap(), "a record without a secret is as it was");
        let again = read(&edge, &bytes, &keyring, LostSecrets::Refused).unwrap();
        assert_eq!(again.lazy_spec.secrets().unwrap(), &StoredSecrets::At(Box::default()));
    }

    #[test]
    fn encrypted_secrets_open_in_their_own_record_only() {
        let keyring = keyring();
        let (one, other) = (route("edghtsrt_1", None), route("edghtsrt_2", None));
        let bytes = encode(&one, Some(&keyring)).unwrap();
        let error = read(&other, &bytes, &keyring, LostSecrets::Refused).unwrap_err();
        assert!(error.contains("changed or moved") && error.contains("edghtsrt_2"), "{error}");
        let text = String::from_utf8(bytes).unwrap();
        for (from, to) in [("\"b\"", "\"c\""), ("\"at\":[", "\"at\":[1,"), ("\"value\":", "\"token\":true,\"value\":")]
        {
            assert!(text.contains(from), "{text}");
            let error = read(&one, text.replacen(from, to, 1).as_bytes(), &keyring, LostSecrets::Refused).unwrap_err();
            assert!(error.contains("edghtsrt_1") && !error.contains("er2"), "{error}");
        }
        let foreign = self::keyring();
        let error = read(&one, text.as_bytes(), &foreign, LostSecrets::Masked).unwrap_err();
        assert!(error.contains(&format!("{} of the record", keyring.current())), "{error}");
        assert!(decode(name(&one).as_bytes(), text.as_bytes(), None, LostSecrets::Masked).is_err());
    }

    #[test]
    fn a_scrubbed_record_keeps_its_secrets_and_their_data_key() {
        const TOKEN: &str = "ew_ak_3MWmcLvtt0vjIX9kLlxuHz95QLB_Zirnp3rqEUFId13vm5Ms2LsUY6D";
        let keyring = keyring();
        let plain = route("edghtsrt_1", Some(Secret::new("a-hash")));
        assert_eq!(scrub::scrubbed(&name(&plain), &encode(&plain, Some(&keyring)).unwrap(), Some(&keyring)), Ok(None));
        let with = |token: &str| {
            let text = plain.lazy_spec.stored().unwrap().replace("/ä", &format!("/ä/{token}"));
            let spec = (plain.key.kind.info().restore)(&text.replace("\"b\"", &format!("\"{token}\""))).unwrap();
            Entry { lazy_spec: LazySpec::new(spec), ..plain.clone() }
        };
        let (entry, hidden) = (with(TOKEN), with("ew_ak_3MWmcLvtt0vjIX9kLlxuHz95QLB_***"));
        let bytes = encode(&entry, Some(&keyring)).unwrap();
        keyring.request_rotation(true);
        keyring.rotate(crate::store::clock::now()).unwrap();
        let scrub = |keyring: &Keyring| scrub::scrubbed(&name(&entry), &bytes, Some(keyring)).unwrap().unwrap();
        let kept = scrub(&keyring);
        assert!(!String::from_utf8(kept.clone()).unwrap().contains("Zirnp"));
        assert_eq!(key_of(&kept), key_of(&bytes), "the secrets do not outlive their data key");
        let again = read(&entry, &kept, &keyring, LostSecrets::Refused).unwrap();
        assert_eq!(again.lazy_spec.stored().unwrap(), hidden.lazy_spec.stored().unwrap());
        assert_eq!((again.token, again.order), (entry.token.clone(), 7));
        keyring.destroy_expired(crate::store::clock::now(), &|_| false).unwrap();
        let lost = read(&entry, &scrub(&keyring), &keyring, LostSecrets::Masked).unwrap();
        assert!(lost.lazy_spec.has_lost_secrets() && lost.lazy_spec.stored().unwrap().contains(MASK));
    }

    #[test]
    fn secrets_whose_data_key_is_destroyed_are_lost_in_earlier_states_only() {
        let keyring = keyring();
        let entry = route("edghtsrt_1", Some(Secret::new("a-hash")));
        let bytes = encode(&entry, Some(&keyring)).unwrap();
        keyring.request_rotation(true);
        keyring.rotate(crate::store::clock::now()).unwrap();
        assert!(read(&entry, &bytes, &keyring, LostSecrets::Refused).is_ok(), "the former key is still there");
        keyring.destroy_expired(crate::store::clock::now(), &|_| false).unwrap();
        assert!(read(&entry, &bytes, &keyring, LostSecrets::Refused).unwrap_err().contains("destroyed"));
        let lost = read(&entry, &bytes, &keyring, LostSecrets::Masked).unwrap();
        assert!(lost.lazy_spec.has_lost_secrets() && lost.token.is_none());
        let secret = format!("\"secret\":\"{MASK}\"");
        assert!(lost.lazy_spec.stored().unwrap().contains(&secret));
        assert!(encode(&lost, Some(&keyring)).is_err(), "masks never get into a store");
    }

    #[test]
    fn a_spec_and_its_record_have_the_same_digests_whether_the_data_key_is_there_or_not() {
        let keyring = keyring();
        let entry = route("edghtsrt_1", Some(Secret::new("a-hash")));
        let bytes = encode(&entry, Some(&keyring)).unwrap();
        let recorded = || decode_digested(name(&entry).as_bytes(), &bytes).unwrap().lazy_spec;
        let (known, wanted) = (recorded(), digested(&entry.key, &entry.lazy_spec, &keyring).unwrap());
        assert_eq!(known.stored().unwrap(), wanted.stored().unwrap());
        assert!(!wanted.stored().unwrap().contains("er2"));
        keyring.request_rotation(true);
        keyring.rotate(crate::store::clock::now()).unwrap();
        keyring.destroy_expired(crate::store::clock::now(), &|_| false).unwrap();
        assert_eq!(recorded().stored().unwrap(), wanted.stored().unwrap());
        let other = route("edghtsrt_2", None);
        let other = digested(&other.key, &other.lazy_spec, &keyring).unwrap();
        assert_ne!(other.stored().unwrap(), wanted.stored().unwrap(), "the digest is that of one resource");
        let plain = LazySpec::new(Arc::new(HttpsEdge::default()));
        assert!(digested(&Key::new(Kind::HttpsEdge, Id::new("edghts_1")), &plain, &keyring).is_none());
    }

    #[test]
    fn lost_secrets_come_back_from_a_state_that_has_the_same() {
        let keyring = keyring();
        let entry = route("edghtsrt_1", Some(Secret::new("a-hash")));
        let bytes = encode(&entry, Some(&keyring)).unwrap();
        keyring.request_rotation(true);
        keyring.rotate(crate::store::clock::now()).unwrap();
        keyring.destroy_expired(crate::store::clock::now(), &|_| false).unwrap();
        let spec = entry.lazy_spec.stored().unwrap().to_owned();
        let later = |from: &str, to: &str| {
            assert!(spec.contains(from), "{spec}");
            let spec = (entry.key.kind.info().restore)(&spec.replace(from, to)).unwrap();
            Entry { lazy_spec: LazySpec::new(spec), ..entry.clone() }
        };
        let same = later("\"b\"", "\"another description\"");
        let known = read(&entry, &bytes, &keyring, LostSecrets::SameAs(&same)).unwrap();
        assert_eq!((known.lazy_spec.stored().unwrap(), &known.token), (spec.as_str(), &entry.token));
        assert!(!known.lazy_spec.has_lost_secrets() && encode(&known, Some(&keyring)).is_ok());
        let others = [later("er2", "er3"), Entry { token: None, ..same.clone() }];
        for other in others {
            assert!(read(&entry, &bytes, &keyring, LostSecrets::SameAs(&other)).unwrap().lazy_spec.has_lost_secrets());
        }
    }
}
