//! Hides API tokens in the public texts of a former record, and binds its secrets to the new texts (D23).

use super::secrets::{EMPTY, places_of};
use super::{RecordFields, SealedSecrets, StoredRecord, written};
use crate::model::Code;
use crate::store::error::StoreError;
use crate::store::seal::{Keyring, NotOpened};
use crate::syntax::text::{has_token, without_tokens};

/// Returns a record without the secret parts of the API tokens in it, or none if it has none. Its secrets stay, encrypted with
/// the same data key.
pub(crate) fn scrubbed(name: &str, value: &[u8], keyring: Option<&Keyring>) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(text) = std::str::from_utf8(value).ok().filter(|text| has_token(text)) else { return Ok(None) };
    let damaged =
        || StoreError::new(Code::StoreCorrupt, format!("an earlier value of the record {name} cannot be read"));
    // Tokens have no character that JSON escapes.
    let hidden = without_tokens(text);
    let former: StoredRecord<'_> = serde_json::from_str(text).map_err(|_| damaged())?;
    let Some(sealed) = former.sealed else { return Ok(Some(hidden.into_owned().into_bytes())) };
    let StoredRecord { spec, references, created_at, order, claim, .. } =
        serde_json::from_str(&hidden).map_err(|_| damaged())?;
    let (before, after) = (former.spec.get(), spec.get());
    // No token reaches across a secret, so each place moves by what is hidden before it.
    let moved = |place: &usize| {
        let place = without_tokens(before.get(..*place)?).len();
        after.get(place..)?.starts_with(EMPTY).then_some(place)
    };
    let at: Vec<usize> = sealed.at.iter().map(moved).collect::<Option<_>>().ok_or_else(damaged)?;
    let places = |at: &[usize]| places_of(at, sealed.token, &sealed.digests);
    let keyring = keyring.ok_or_else(damaged)?;
    let (former_places, new_places) = (places(&sealed.at), places(&at));
    let opened = keyring.open(&sealed.value, &[b"record", name.as_bytes(), before.as_bytes(), &former_places]);
    let value = match opened {
        Ok(secrets) => {
            keyring.seal_again(&sealed.value, &secrets, &[b"record", name.as_bytes(), after.as_bytes(), &new_places])?
        }
        // Nobody can open them any more. Earlier states have masks in their places.
        Err(NotOpened::Destroyed) => sealed.value,
        Err(_) => return Err(damaged()),
    };
    let sealed = Some(SealedSecrets { at, value, token: sealed.token, digests: sealed.digests });
    let fields = RecordFields { references, created_at, order, claim: &claim, token: None, sealed };
    written(after, &fields).map(Some).map_err(|_| damaged())
}
