//! Keys and encrypted bytes as text.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

use super::cipher::KEY;

/// Writes bytes in base64.
pub(super) fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Reads what [`encoded`] wrote.
pub(super) fn decoded(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Reads a key in hexadecimal or base64, or, if `raw` is set, as 32 bytes. The error completes "the master key is …".
pub(super) fn key_from(bytes: &[u8], raw: bool) -> Result<Zeroizing<[u8; KEY]>, &'static str> {
    const FORMS: &str = "not 32 bytes in base64 or hexadecimal";
    let key = match <&[u8; KEY]>::try_from(bytes) {
        // Digits of half a key, for example.
        Ok(_) if bytes.iter().all(|byte| (b' '..=b'~').contains(byte)) => return Err("32 characters, not 32 bytes"),
        Ok(key) if raw => Zeroizing::new(*key),
        _ => {
            let text = std::str::from_utf8(bytes).map_err(|_| FORMS)?.trim();
            key_of_text(text).ok_or(FORMS)?
        }
    };
    let first = key.first().copied().unwrap_or_default();
    if key.iter().all(|byte| *byte == first) { Err("32 equal bytes, not random") } else { Ok(key) }
}

fn key_of_text(text: &str) -> Option<Zeroizing<[u8; KEY]>> {
    if text.len() == 2 * KEY {
        return blake3::Hash::from_hex(text).ok().map(|key| Zeroizing::new(*key.as_bytes()));
    }
    for form in [&STANDARD, &STANDARD_NO_PAD, &URL_SAFE, &URL_SAFE_NO_PAD] {
        let decoded = form.decode(text).map(Zeroizing::new);
        if let Ok(decoded) = decoded
            && let Ok(key) = <&[u8; KEY]>::try_from(decoded.as_slice())
        {
            return Some(Zeroizing::new(*key));
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_in_every_form() {
        let mut key = [251; KEY];
        *key.last_mut().unwrap() = 1;
        let hex: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        let texts = [
            hex.to_uppercase(),
            format!("  {hex}\n"),
            STANDARD.encode(key),
            STANDARD_NO_PAD.encode(key),
            format!("{}\r\n", URL_SAFE.encode(key)),
            URL_SAFE_NO_PAD.encode(key),
        ];
        for text in texts {
            assert_eq!(*key_from(text.as_bytes(), true).unwrap(), key, "{text}");
            assert_eq!(*key_from(text.as_bytes(), false).unwrap(), key, "{text}");
        }
        assert_eq!(*key_from(&key, true).unwrap(), key);
        assert!(key_from(&key, false).is_err(), "a text is not raw bytes");
    }

    #[test]
    fn what_is_no_good_key_is_refused() {
        let bad: [&[u8]; 7] =
            [b"", b"password", &[0; KEY], &[7; 31], b"0123456789abcdef0123456789abcdef", &[b'0'; 64], b"\xff\xfe"];
        for bytes in bad {
            assert!(key_from(bytes, true).is_err(), "{bytes:?}");
        }
    }
}
