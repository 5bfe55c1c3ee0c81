//! Marks: texts that stand for secrets, and the search for them in any encoding.

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The start of a mark that looks like a word, which no heuristic about random text finds.
const WORD: &str = "kanarienvogel";
/// The start of a mark that is a number.
const NUMBER: &str = "90417730";
/// The start of a mark that looks like a token.
const TOKEN: &str = "CANARY-";

/// The form of a mark.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum MarkForm {
    Word,
    Number,
    Token,
}

/// The mark with a number.
pub(super) fn mark(form: MarkForm, field: &str, number: usize) -> String {
    match form {
        MarkForm::Word => {
            let letter = |power: u32| char::from(b'a' + u8::try_from(number / 26_usize.pow(power) % 26).unwrap());
            format!("{WORD}{}", (0..4).rev().map(letter).collect::<String>())
        }
        MarkForm::Number => format!("{NUMBER}{number:06}"),
        MarkForm::Token => format!("{TOKEN}{field}-{:016x}", (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
    }
}

/// The forms in which a secret can be written, in lower case.
pub(super) struct Needles(BTreeSet<String>);

impl Needles {
    /// Those of the start of every mark.
    pub(super) fn of_marks() -> Self {
        Self::from_secrets([WORD, NUMBER, TOKEN])
    }

    /// Those of some secrets.
    pub(super) fn from_secrets<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut needles = BTreeSet::new();
        for secret in secrets {
            assert!(secret.len() >= 6, "too short to search for: {secret}");
            needles.insert(secret.to_lowercase());
            let each = |form: fn(u8) -> String| secret.bytes().map(form).collect::<String>();
            needles.insert(each(|byte| format!("%{byte:02x}")));
            needles.insert(each(|byte| format!("\\u{byte:04x}")));
            needles.insert(each(|byte| format!("{byte:02x}")));
            // As Rust prints bytes.
            needles.insert(secret.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>().join(", "));
            // What is around a text moves its base64 by 0, 1 or 2 bytes; the ends depend on the neighbours.
            for before in 0..3 {
                let padded = [vec![0; before], secret.as_bytes().to_vec()].concat();
                let (start, end) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
                needles.insert(STANDARD.encode(&padded)[start..end].to_lowercase());
            }
        }
        Self(needles)
    }

    /// Both.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The first secret in a text, with a few characters around it.
    pub(super) fn find_in(&self, text: &str) -> Option<String> {
        let text = text.to_lowercase();
        let at = self.0.iter().find_map(|needle| text.find(needle.as_str()))?;
        let (from, to) = (text.floor_char_boundary(at.saturating_sub(120)), text.floor_char_boundary(at + 120));
        Some(text[from..to].to_owned())
    }

    /// The same in bytes, which need no encoding.
    pub(super) fn find_in_bytes(&self, bytes: &[u8]) -> Option<String> {
        self.find_in(&String::from_utf8_lossy(bytes))
    }
}

#[test]
fn a_mark_is_found_in_every_encoding() {
    let needles = Needles::of_marks();
    for form in [MarkForm::Word, MarkForm::Number, MarkForm::Token] {
        let mark = mark(form, "client_secret", 7);
        let percent: String = mark.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let escaped: String = mark.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
        let mut forms = vec![mark.clone(), mark.to_uppercase(), percent, escaped, format!("{:?}", mark.as_bytes())];
        for before in ["", "a", "ab"] {
            forms.push(STANDARD.encode(format!("{before}{mark}: behind")));
        }
        for form in forms {
            assert!(needles.find_in(&format!("before {form} behind")).is_some(), "{form}");
        }
    }
    assert_eq!(needles.find_in("a canary and 9041773"), None);
}
