//! Hides the digests of secrets in the values of history records, for readers over the API.
//!
//! A digest shows that a secret has changed, but also in which revisions the resource has the same one.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model::secrets::secret::MASK;

/// Hides the secrets of a value.
pub(crate) fn hide(value: &mut Value) {
    each_digest(value, &mut |text| *text = MASK.to_owned());
}

/// Hides the secrets of a resource before and after a change, and tells which ones changed, as plans do.
pub(crate) fn hide_change(before: Option<&mut Value>, after: Option<&mut Value>) {
    let mut known = before.is_some().then(BTreeSet::new);
    if let Some(before) = before {
        each_digest(before, &mut |text| {
            known.get_or_insert_default().insert(std::mem::replace(text, "(secret)".to_owned()));
        });
    }
    if let Some(after) = after {
        each_digest(after, &mut |text| {
            let changed = known.as_ref().is_some_and(|known| !known.contains(text.as_str()));
            let shown = if changed { "(secret, changed)" } else { "(secret)" };
            *text = shown.to_owned();
        });
    }
}

/// Visits the digests of secrets in a value.
pub(super) fn each_digest(value: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) if is_digest(text) => visit(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_digest(item, visit)),
        Value::Object(fields) => fields.values_mut().for_each(|field| each_digest(field, visit)),
        _ => {}
    }
}

/// Whether a text is the digest of a secret: `(secret 0123456789abcdef)`.
fn is_digest(text: &str) -> bool {
    let digest = text.strip_prefix("(secret ").and_then(|rest| rest.strip_suffix(')'));
    digest.is_some_and(|digest| digest.len() == 16 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn digests_are_hidden_and_changes_are_told() {
        let digest = |digit: &str| format!("(secret {})", digit.repeat(16));
        let mut before = json!({"one": digest("a"), "list": [{"two": digest("b")}], "text": "(secret)"});
        let mut after = json!({"one": digest("a"), "list": [{"two": digest("c")}], "text": "(secret x)"});
        let mut whole = after.clone();
        hide_change(Some(&mut before), Some(&mut after));
        assert_eq!(before, json!({"one": "(secret)", "list": [{"two": "(secret)"}], "text": "(secret)"}));
        assert_eq!(after, json!({"one": "(secret)", "list": [{"two": "(secret, changed)"}], "text": "(secret x)"}));
        let mut created = whole.clone();
        hide_change(None, Some(&mut created));
        assert_eq!(created.pointer("/list/0/two"), Some(&json!("(secret)")), "nothing was there before");
        hide(&mut whole);
        assert_eq!(whole, json!({"one": MASK, "list": [{"two": MASK}], "text": "(secret x)"}));
    }
}
