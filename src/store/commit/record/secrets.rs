//! The secrets of a record: how they are taken out of its Spec, and what they are bound to.

use std::ops::Range;

use zeroize::Zeroizing;

use crate::{model::Secret, store::seal::Keyring};

/// The placeholder of an encrypted secret in a Spec.
pub(super) const EMPTY: &str = r#""""#;

/// Takes the secrets out of a Spec. Returns the rest, the places of the secrets in it, and the secrets.
pub(super) fn split(
    text: &str,
    places: &[Range<usize>],
    token: Option<&Secret>,
) -> Option<(String, Vec<usize>, Zeroizing<Vec<u8>>)> {
    let token = token.map(Secret::expose);
    let size = places.iter().map(ExactSizeIterator::len).sum::<usize>() + token.map_or(0, str::len);
    // A vector that grows would leave secrets in freed memory.
    let mut secrets = Zeroizing::new(Vec::<u8>::with_capacity(size + 4 * (places.len() + 1)));
    let mut keep = |secret: &str| append(&mut secrets, secret);
    let (mut public, mut at, mut from) = (String::with_capacity(text.len()), Vec::with_capacity(places.len()), 0);
    for place in places {
        public.push_str(text.get(from..place.start)?);
        at.push(public.len());
        public.push_str(EMPTY);
        keep(text.get(place.clone())?)?;
        from = place.end;
    }
    public.push_str(text.get(from..)?);
    if let Some(token) = token {
        keep(token)?;
    }
    Some((public, at, secrets))
}

/// Adds a secret, with its length before it.
pub(super) fn append(secrets: &mut Vec<u8>, secret: &str) -> Option<()> {
    secrets.extend_from_slice(&u32::try_from(secret.len()).ok()?.to_le_bytes());
    secrets.extend_from_slice(secret.as_bytes());
    Some(())
}

/// The secrets that [`append`] has added.
pub(super) fn secrets_in(secrets: &[u8]) -> impl Iterator<Item = &str> {
    let mut rest = secrets;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (secret, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = after;
        std::str::from_utf8(secret).ok()
    })
}

/// The digest of a secret of a record, which is a JSON text or the hash of a token.
pub(super) fn digest_of(name: &str, secret: &str, keyring: &Keyring) -> String {
    format!("{:.32}", keyring.secret_digest(name, secret).to_hex())
}

/// The digest of each secret of a record.
pub(super) fn digests_of(name: &str, secrets: &[u8], keyring: &Keyring) -> Vec<String> {
    secrets_in(secrets).map(|secret| digest_of(name, secret, keyring)).collect()
}

/// The data that secrets are bound to besides the key and the Spec of their record.
pub(super) fn places_of(at: &[usize], token: bool, digests: &[String]) -> Vec<u8> {
    let places = at.iter().flat_map(|place| (*place as u64).to_le_bytes());
    places.chain([u8::from(token)]).chain(digests.iter().flat_map(|digest| digest.bytes())).collect()
}
