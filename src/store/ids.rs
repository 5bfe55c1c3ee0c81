//! New identifiers and random secrets, which the pure model cannot make.

use jiff::Timestamp;
use rand::RngCore;
use svix_ksuid::{KsuidLike, KsuidMs};

use crate::model::{Id, Kind};

/// Returns a time-ordered, random identifier (D11).
pub fn fresh_id(kind: Kind) -> Id {
    fresh(kind.info().prefix)
}

/// Returns a time-ordered, random identifier with a prefix, such as `op_` for a request.
pub(crate) fn fresh(prefix: &str) -> Id {
    // By default the crate asks the operating system for each payload, which is a system call per request.
    let mut payload = [0; KsuidMs::PAYLOAD_BYTES];
    rand::rng().fill_bytes(&mut payload);
    Id::from_bytes(prefix, *KsuidMs::new::<Timestamp>(None, Some(&payload)).bytes())
}

/// Returns 256 random bits.
pub(crate) fn random_secret() -> [u8; 32] {
    let mut bytes = [0; 32];
    rand::rng().fill_bytes(&mut bytes);
    bytes
}

/// A random salt, as text.
pub(crate) fn salt() -> String {
    Id::derived("", [random_secret().as_slice()]).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_made_later_sort_later() {
        let ids: Vec<Id> = (0..5)
            .map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(6));
                fresh("x_")
            })
            .collect();
        assert!(ids.is_sorted(), "{ids:?}");
    }
}
