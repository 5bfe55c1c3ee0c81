//! YAML output that readers of YAML 1.1 and 1.2 understand in the same way.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::syntax::text::alters_display;

/// The plain scalars that are no strings in YAML 1.1, in its type repository or its common readers. YAML 1.2 reads most
/// of them as strings, so serde_yaml does not quote them.
const AMBIGUOUS: &str = r"(?x)^(?:
    (?i: y | n | yes | no | on | off | true | false | null ) | ~ | = | <<
    | [-+]?0b[01_]+ | [-+]?0x[0-9a-fA-F_]+
    | [-+]?[0-9][0-9_,]*(?::[0-5]?[0-9])*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?
    | [-+]?\.[0-9_]+(?:[eE][-+]?[0-9]+)? | [-+]?\.(?i:inf) | \.(?i:nan)
    | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}
      (?:(?:[Tt]|[\x20\t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?(?:[\x20\t]*(?:Z|[-+][0-9]{1,2}(?::?[0-9]{2})?))?)?
    )$";

/// Forces serde_yaml to quote a scalar, because a plain one cannot contain a colon and a space. Removed from the output.
const MARK: &str = "\u{e000}: ";

/// Writes a document as YAML. If YAML would not preserve the text, or the text contains terminal control characters, it
/// is written as JSON, which is also YAML.
pub(crate) fn to_yaml(document: &Value) -> String {
    let text = serde_yaml::to_string(&marked(document)).unwrap_or_default().replace(MARK, "");
    let is_plain = !text.contains(|c: char| alters_display(c) && !matches!(c, '\n' | '\t'));
    if is_plain && serde_yaml::from_str::<Value>(&text).is_ok_and(|read| read == *document) {
        return text;
    }
    let escape = |c: char| match u32::from(c) {
        _ if c == '\n' || !alters_display(c) => c.to_string(),
        code @ ..=0xffff => format!("\\u{code:04x}"),
        // Unlike JSON, YAML has no surrogate pairs.
        code => format!("\\U{code:08x}"),
    };
    format!("{document:#}\n").chars().map(escape).collect()
}

/// Whether a YAML 1.1 reader takes a plain scalar for something other than a string.
fn is_ambiguous(text: &str) -> bool {
    static PATTERN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(AMBIGUOUS).ok());
    PATTERN.as_ref().is_none_or(|pattern| pattern.is_match(text))
}

/// Marks every ambiguous string and key.
fn marked(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(quoted(text)),
        Value::Array(items) => Value::Array(items.iter().map(marked).collect()),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (quoted(name), marked(value))).collect())
        }
        other => other.clone(),
    }
}

fn quoted(text: &str) -> String {
    if is_ambiguous(text) { format!("{MARK}{text}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_yaml_1_1_reads_as_another_type_is_quoted() {
        for text in [
            "y",
            "N",
            "yes",
            "No",
            "on",
            "OFF",
            "=",
            "<<",
            "1_000",
            "-1_0.5",
            "1,000",
            "0b1_0",
            "0x_f",
            "0_7",
            "+.5_0",
            "12:30:00",
            "-190:20:30.15",
            "2026-01-01",
            "2026-11-21T19:09:51Z",
            "2001-12-14 21:59:43.10 -5",
            "2001-1-1t1:00:00+01:00",
        ] {
            assert_eq!(to_yaml(&json!({"a": text})), format!("a: '{text}'\n"));
            assert_eq!(to_yaml(&json!({(text): [text]})), format!("'{text}':\n- '{text}'\n"));
        }
        for text in ["shop", "10.0.0.1", "10.0.0.0/8", "example.com:443", "yes please", "2026-01", "<<x", "12:30:00x"] {
            assert_eq!(to_yaml(&json!({"a": text})), format!("a: {text}\n"));
        }
        let typed = json!({"a": true, "b": 1, "c": 0.25, "d": null});
        assert_eq!(to_yaml(&typed), "a: true\nb: 1\nc: 0.25\nd: null\n");
    }

    #[test]
    fn every_text_survives() {
        for text in [
            "",
            "yes",
            "1.3",
            "~",
            "a\r\nb\r\n",
            " lead\n",
            "trail \n\n",
            "\u{2028}x",
            "\u{85}",
            "\t",
            "#x",
            "a: b",
            "\u{1f600}",
            "\u{1b}[31m",
            "a\u{202e}b\u{2066}",
            "\u{e0041}",
            MARK,
            "\u{e000}: yes",
        ] {
            let document = json!({"text": text});
            let written = to_yaml(&document);
            assert!(!written.contains(|c: char| alters_display(c) && !matches!(c, '\n' | '\t')), "{written:?}");
            assert_eq!(serde_yaml::from_str::<Value>(&written).ok(), Some(document), "{text:?}");
        }
    }
}
