//! The sessions of the dashboard, sealed in a cookie (D116).
//!
//! A session names the API key that somebody has signed in with, and proves that the token was known: it has a digest of the
//! token's hash, so that it ends with the key, and with a token that replaces it. No server keeps it. It is sealed with a key
//! that is derived from the newest data key of the store, so that every server of the store opens it, and none any more once the
//! data key is destroyed.
//!
//! The session of a person who has signed in through a provider has the person instead: it ends with the claims that give
//! the person a role.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;

use super::oidc::person::SignedInPerson;
use crate::model::Secret;
use crate::server::prelude::*;
use crate::store::ids;
use crate::store::seal::cipher;

/// After how many seconds without a page a session ends.
const IDLE: i64 = 30 * 60;
/// After how many seconds a session ends in any case.
const LONGEST: i64 = 8 * 3600;
/// How many seconds the clock of the server that has sealed something may be ahead. What is later is from a clock that was wrong, and
/// would otherwise last until that time.
pub(in crate::server::auth) const SKEW: i64 = 3600;
/// After how many seconds a session is sealed again with the time of its last use.
const RENEWAL: i64 = 60;
/// The purpose of the derived key.
const PURPOSE: &str = "edgewright 2026 dashboard sessions";

/// The session of a signed-in user.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct DashboardSession {
    /// The API key, or what stands in its place for a person.
    pub key: Id,
    /// A digest of the hash of its token.
    proof: String,
    /// The person, if one has signed in through a provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub person: Option<SignedInPerson>,
    /// The Unix time of the sign-in.
    began: i64,
    /// The Unix time of the last page.
    seen: i64,
    /// The text that proves that a form is from a page of this session.
    pub form_token: String,
    /// Whether the browser sends the cookie only over TLS.
    pub is_secure: bool,
}

impl DashboardSession {
    /// Creates the session of a key with this token's hash.
    pub(super) fn new(key: Id, kept: &Secret) -> Self {
        Self::begin(key, proof_of(kept), None)
    }

    /// Creates the session of a person.
    pub(in crate::server) fn of_person(person: SignedInPerson) -> Self {
        Self::begin(person.key(), String::new(), Some(person))
    }

    fn begin(key: Id, proof: String, person: Option<SignedInPerson>) -> Self {
        let (now, form_token) = (clock::now().as_second(), ids::salt());
        Self { key, proof, person, began: now, seen: now, form_token, is_secure: true }
    }

    /// Whether a key with this token's hash has begun the session.
    pub(super) fn was_begun_by(&self, kept: &Secret) -> bool {
        self.proof == proof_of(kept)
    }

    /// Whether a form has the token of this session.
    pub(in crate::server) fn has_form_token(&self, sent: &str) -> bool {
        use subtle::ConstantTimeEq;
        self.form_token.as_bytes().ct_eq(sent.as_bytes()).into()
    }

    /// The session with a page at this time, if it is to be sealed again.
    pub(in crate::server) fn renewed(&self, now: Timestamp) -> Option<Self> {
        let now = now.as_second();
        (now - self.seen >= RENEWAL).then(|| Self { seen: now, ..self.clone() })
    }

    fn is_over(&self, now: Timestamp) -> bool {
        let now = now.as_second();
        !(-SKEW..=IDLE).contains(&(now - self.seen)) || !(-SKEW..=LONGEST).contains(&(now - self.began))
    }
}

/// Nobody but the cookie needs it.
impl fmt::Debug for DashboardSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DashboardSession({})", self.key)
    }
}

fn proof_of(kept: &Secret) -> String {
    blake3::hash(kept.expose().as_bytes()).to_hex().to_string()
}

/// Seals and opens sessions.
pub(crate) struct SessionSealer {
    store: Arc<Store>,
}

impl SessionSealer {
    /// Creates the sealer of a store.
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self { store }
    }

    /// The keys, the one that seals first.
    fn keys(&self) -> impl Iterator<Item = [u8; 32]> {
        self.store.passing_secrets().into_iter().map(|secret| blake3::derive_key(PURPOSE, &secret))
    }

    /// Seals a session as the value of a cookie. Returns none only if the cipher fails.
    pub(in crate::server) fn seal(&self, session: &DashboardSession) -> Option<String> {
        Some(URL_SAFE_NO_PAD.encode(self.seal_for(PURPOSE, session)?))
    }

    /// Opens the value of a cookie. Returns none if it was not sealed with a key of the store, or if the session is over.
    pub(in crate::server) fn open(&self, value: &str, now: Timestamp) -> Option<DashboardSession> {
        let sealed = URL_SAFE_NO_PAD.decode(value).ok()?;
        let session: DashboardSession = self.open_for(PURPOSE, &sealed)?;
        (!session.is_over(now)).then_some(session)
    }

    /// Seals a value that only the same purpose opens. Returns none only if the cipher fails.
    pub(in crate::server) fn seal_for<T: Serialize>(&self, purpose: &str, value: &T) -> Option<Vec<u8>> {
        let text = serde_json::to_vec(value).ok()?;
        cipher::seal(&self.keys().next()?, &cipher::context(purpose, &[]), &text)
    }

    /// Opens what was sealed for a purpose.
    pub(in crate::server) fn open_for<T: DeserializeOwned>(&self, purpose: &str, sealed: &[u8]) -> Option<T> {
        let context = cipher::context(purpose, &[]);
        let text = self.keys().find_map(|key| cipher::open(&key, &context, sealed))?;
        serde_json::from_slice(&text).ok()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::store::MEMORY;

    #[test]
    fn only_the_same_store_opens_a_session_and_not_for_ever() {
        let [sealer, other] = [(); 2].map(|()| SessionSealer::new(Arc::new(Store::open(MEMORY).unwrap())));
        let kept = Secret::new("hash");
        let session = DashboardSession::new(Id::new("ak_1"), &kept);
        let (sealed, now) = (sealer.seal(&session).unwrap(), clock::now());
        let after = |seconds: i64| Timestamp::from_second(now.as_second() + seconds).unwrap();
        assert!(!sealed.contains("ak_1"));
        assert!(other.open(&sealed, now).is_none());
        assert!(sealer.open(sealed.get(1..).unwrap(), now).is_none() && sealer.open("", now).is_none());
        assert!(sealer.open(&sealed, after(IDLE)).is_some());
        assert!(sealer.open(&sealed, after(IDLE + 2)).is_none());
        assert!(sealer.open(&sealed, after(-SKEW)).is_some() && sealer.open(&sealed, after(-SKEW - 2)).is_none());
        assert!(session.renewed(after(RENEWAL - 2)).is_none());
        let mut renewed = session.clone();
        for step in 1..=LONGEST / 1000 {
            renewed = renewed.renewed(after(step * 1000)).unwrap();
            let is_open = sealer.open(&sealer.seal(&renewed).unwrap(), after(step * 1000)).is_some();
            assert_eq!(is_open, step * 1000 <= LONGEST, "{step}");
        }
        assert!(sealer.open(&sealer.seal(&renewed).unwrap(), after(LONGEST + 2)).is_none());
    }

    #[test]
    fn a_session_is_of_one_token() {
        let session = DashboardSession::new(Id::new("ak_1"), &Secret::new("one"));
        assert!(session.was_begun_by(&Secret::new("one")) && !session.was_begun_by(&Secret::new("two")));
        assert!(session.has_form_token(&session.form_token) && !session.has_form_token(""));
        assert!(!format!("{session:?}").contains(&session.form_token));
    }
}
