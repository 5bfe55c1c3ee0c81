//! The cipher: ChaCha20-Poly1305 with a random nonce of 24 bytes.
//!
//! The 12 bytes of the cipher are too few for random nonces: after some billions of messages two would be equal. As in
//! XChaCha20, 16 of the 24 bytes derive a key for the message, here with keyed BLAKE3, and the other 8 are its nonce.
//! A data key needs no counter that would have to survive crashes.

use rand::RngCore;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, MAX_TAG_LEN, NONCE_LEN, Nonce, UnboundKey};
use zeroize::Zeroizing;

/// The length of a key.
pub(crate) const KEY: usize = 32;
/// The length of a nonce.
const NONCE: usize = 24;
/// How many of its bytes derive the key of a message.
const DERIVING: usize = 16;

/// The context that a message is bound to: a purpose and parts. Other parts never give the same context.
pub(crate) fn context(purpose: &str, parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(purpose);
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// Encrypts a message: a nonce, the encrypted bytes and their tag. Returns none only if the cipher fails.
pub(crate) fn seal(key: &[u8; KEY], context: &[u8; 32], message: &[u8]) -> Option<Vec<u8>> {
    let mut nonce = [0; NONCE];
    rand::rng().fill_bytes(&mut nonce);
    seal_at(nonce, key, context, message)
}

/// Encrypts the message of `sealed` for another context: always to the same bytes. The nonce comes from these two, so another
/// message has another one.
pub(super) fn seal_again(key: &[u8; KEY], context: &[u8; 32], message: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(b"edgewright 2026 nonce of a message that is sealed again").update(context).update(sealed);
    let nonce = hasher.finalize().as_bytes().first_chunk().copied()?;
    seal_at(nonce, key, context, message)
}

fn seal_at(nonce: [u8; NONCE], key: &[u8; KEY], context: &[u8; 32], message: &[u8]) -> Option<Vec<u8>> {
    let (cipher, short) = message_cipher(key, &nonce)?;
    // Without room for the tag, the vector would grow and leave the message in freed memory.
    let mut bytes = Vec::with_capacity(NONCE + message.len() + MAX_TAG_LEN);
    bytes.extend_from_slice(&nonce);
    bytes.extend_from_slice(message);
    let tag = cipher.seal_in_place_separate_tag(short, Aad::from(context), bytes.get_mut(NONCE..)?).ok()?;
    bytes.extend_from_slice(tag.as_ref());
    Some(bytes)
}

/// Decrypts what [`seal`] returned. Returns none if the key or the context differs, or if any byte has changed.
pub(crate) fn open(key: &[u8; KEY], context: &[u8; 32], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE>()?;
    let (cipher, short) = message_cipher(key, nonce)?;
    let mut message = Zeroizing::new(sealed.to_vec());
    let length = cipher.open_in_place(short, Aad::from(context), message.as_mut_slice()).ok()?.len();
    message.truncate(length);
    Some(message)
}

fn message_cipher(key: &[u8; KEY], nonce: &[u8; NONCE]) -> Option<(LessSafeKey, Nonce)> {
    let (deriving, rest) = nonce.split_at_checked(DERIVING)?;
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(b"edgewright 2026 message key");
    hasher.update(deriving);
    let derived = Zeroizing::new(*hasher.finalize().as_bytes());
    let cipher = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, derived.as_slice()).ok()?);
    let mut short = [0; NONCE_LEN];
    short.get_mut(NONCE_LEN - rest.len()..)?.copy_from_slice(rest);
    Some((cipher, Nonce::assume_unique_for_key(short)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_context_and_bytes_open_a_message() {
        let (key, bound) = ([7; KEY], context("test", &[b"a", b"bc"]));
        for message in [b"".as_slice(), b"a secret", &[0; 5000]] {
            let sealed = seal(&key, &bound, message).unwrap();
            assert_eq!(open(&key, &bound, &sealed).unwrap().as_slice(), message);
            assert_ne!(seal(&key, &bound, message).unwrap(), sealed, "each message has its own nonce");
            assert!(open(&[8; KEY], &bound, &sealed).is_none());
            for other in [context("test", &[b"ab", b"c"]), context("other", &[b"a", b"bc"]), context("test", &[])] {
                assert!(open(&key, &other, &sealed).is_none());
            }
            for at in 0..sealed.len().min(100) {
                let mut changed = sealed.clone();
                *changed.get_mut(at).unwrap() ^= 1;
                assert!(open(&key, &bound, &changed).is_none(), "byte {at}");
                assert!(open(&key, &bound, sealed.get(..at).unwrap()).is_none(), "cut at {at}");
            }
        }
    }
}
