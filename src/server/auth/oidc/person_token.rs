//! Tokens of people: a person who has signed in, sealed for a limited time. No server keeps them.
//!
//! A token has the form of that of an API key with an ID that no key has, so that it is hidden wherever one would be.

use super::person::SignedInPerson;
use crate::model::Secret;
use crate::server::auth::session::{SKEW, SessionSealer};
use crate::server::prelude::*;

/// The ID in the place of a key's.
pub(in crate::server) const PERSON_KEY: &str = "ak_person";
/// The purpose of what is sealed.
const PURPOSE: &str = "edgewright 2026 tokens of people";
/// After how many seconds a token ends.
const LIFE: i64 = 8 * 3600;

/// The content of a token.
#[derive(Serialize, Deserialize)]
struct SealedPerson {
    person: SignedInPerson,
    /// The Unix time of its end.
    until: i64,
}

/// Creates a token for a person, and returns it with its end. Returns none only if the cipher fails.
pub(in crate::server) fn token_of(
    sealer: &SessionSealer,
    person: SignedInPerson,
    now: Timestamp,
) -> Option<(Secret, Timestamp)> {
    let until = now.as_second() + LIFE;
    let sealed = sealer.seal_for(PURPOSE, &SealedPerson { person, until })?;
    let digits: String = sealed.iter().map(|byte| format!("{byte:02x}")).collect();
    Some((Secret::new(format!("ew_{PERSON_KEY}_{digits}")), Timestamp::from_second(until).ok()?))
}

/// The person whose token has this secret part, unless it has ended.
pub(in crate::server) fn person_of(sealer: &SessionSealer, secret: &str, now: Timestamp) -> Option<SignedInPerson> {
    let pairs = secret.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    let sealed: Vec<u8> = pairs.collect::<Option<_>>()?;
    let SealedPerson { person, until } = sealer.open_for(PURPOSE, &sealed)?;
    (until - LIFE - SKEW..until).contains(&now.as_second()).then_some(person)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::MEMORY;
    use crate::store::tokens::split_token;
    use crate::syntax::text::without_tokens;

    #[test]
    fn a_token_is_of_one_person_for_some_hours_and_is_hidden() {
        let [sealer, other] = [(); 2].map(|()| SessionSealer::new(Arc::new(Store::open(MEMORY).unwrap())));
        let now = clock::now();
        let person = SignedInPerson::new("https://a", "1", Some("ada"), BTreeSet::from(["0f".to_owned()]));
        let (token, until) = token_of(&sealer, person.clone(), now).unwrap();
        let (key, secret) = split_token(token.expose()).unwrap();
        assert_eq!(key.as_str(), PERSON_KEY);
        assert_eq!(person_of(&sealer, secret, now), Some(person));
        assert_eq!(until.as_second(), now.as_second() + LIFE);
        assert_eq!(person_of(&sealer, secret, until), None);
        let before = |seconds: i64| Timestamp::from_second(now.as_second() - seconds).unwrap();
        assert!(person_of(&sealer, secret, before(SKEW)).is_some());
        assert_eq!(person_of(&sealer, secret, before(SKEW + 1)), None, "it is from a clock that was wrong");
        assert_eq!(person_of(&other, secret, now), None);
        for wrong in ["", "0", "zz", "+1", secret.get(2..).unwrap(), &format!("{secret}00")] {
            assert_eq!(person_of(&sealer, wrong, now), None, "{wrong}");
        }
        assert_eq!(without_tokens(&format!("a {} b", token.expose())), format!("a ew_{PERSON_KEY}_*** b"));
    }
}
