//! Lines are compared with those of serde_yaml.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::plan::redacted_plan::yaml;

/// The lines that serde_yaml makes, each after a prefix.
fn expected(value: &Value) -> Option<String> {
    let text = yaml(Some(value.clone())).ok()?;
    Some(text.lines().map(|line| format!("+ {line}\n")).collect())
}

fn written(value: &Value) -> Option<String> {
    let mut out = "before\n".to_owned();
    let is_written = append(&value.to_string(), "+ ", &mut out);
    let lines = out.strip_prefix("before\n").map(str::to_owned);
    assert!(is_written || lines.as_deref() == Some(""), "{out}");
    lines.filter(|_| is_written)
}

#[test]
fn texts_are_quoted_as_serde_yaml_quotes_them() {
    let texts = [
        "",
        "a",
        "-",
        "--",
        "---",
        "--- a",
        "...",
        "...a b",
        "- a",
        "-a",
        "-a b",
        "?",
        "? a",
        "?a",
        ":",
        ": a",
        ":a",
        "a:",
        "a: b",
        "a:b",
        "a #b",
        "a#b",
        "#a",
        "a ",
        " a",
        "[a",
        "]",
        "{",
        "}",
        "a, b",
        ",a",
        "&a",
        "*",
        "*a",
        "!",
        "!a",
        "|",
        ">",
        "'",
        "it's",
        "\"",
        "a\"b",
        "%a",
        "@a",
        "`a",
        "null",
        "Null",
        "nUll",
        "~",
        "~a",
        "true",
        "TRUE",
        "tRue",
        "false",
        "y",
        "no",
        "on",
        "inf",
        "nan",
        ".inf",
        ".nan",
        "-.inf",
        "infinity",
        "1",
        "-1",
        "+1",
        "1.5",
        "1e3",
        ".5",
        "5.",
        "0x1f",
        "0o7",
        "0b1",
        "007",
        "1_000",
        "10.0.0.1",
        "10.0.0.0/8",
        "1 a",
        "1:2",
        "1,2",
        "2026-01-01",
        "example.com:443",
        "^curl/[0-9]+\\.",
        "\\",
        "a\\\"b",
        "(secret)",
        "<a>",
        "$a",
        "=",
        "<<",
        "a\tb",
        "é",
        "a\nb",
        "\u{7f}",
    ];
    let rare = ["a\tb", "é", "a\nb", "\u{7f}"];
    for text in texts {
        for value in [json!({"a": text}), json!({"a": [text, text]}), json!({"a": [{"b": text}]})] {
            let lines = written(&value);
            assert_eq!(lines.is_none(), rare.contains(&text), "{value}");
            assert!(lines.is_none() || lines == expected(&value), "{value}: {lines:?}, {:?}", expected(&value));
        }
    }
}

#[test]
fn numbers_and_keys_with_other_forms_are_left_to_serde_yaml() {
    for number in ["1", "-1", "18446744073709551615", "0.25", "1.5", "-0.0001", "12345.678", "100.0"] {
        let value = json!({"a": serde_json::from_str::<Value>(number).unwrap_or_default()});
        assert!(written(&value).is_some() && written(&value) == expected(&value), "{value}");
    }
    for number in ["1e300", "1.5e-7", "0.000012", "123456789012345.125"] {
        assert_eq!(written(&json!({"a": serde_json::from_str::<Value>(number).unwrap_or_default()})), None);
    }
    let long = "a".repeat(200);
    for key in ["!a", "a b", "true", "1", "", "é", long.as_str()] {
        assert_eq!(written(&json!({(key): 1})), None, "{key}");
    }
    for broken in ["", "[]", "1", "{", r#"{"a":1"#, r#"{"a":1}}"#, r#"{"a" :1}"#, r#"{"a":tru}"#] {
        assert!(!append(broken, "", &mut String::new()), "{broken}");
    }
    let deep = (0..200).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(written(&json!({"a": deep})), None);
}

fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[ -~]{0,6}", "[a-z]{1,8}", "[0-9.:/-]{1,5}"];
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..1000).prop_map(Value::from),
        (-8_i32..8).prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        text.prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            object(inner).prop_map(Value::Object),
        ]
    })
}

fn object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    proptest::collection::vec(("[a-zA-Z_][a-z0-9_-]{0,5}", value), 0..5)
        .prop_map(|fields| fields.into_iter().collect::<Map<String, Value>>())
}

proptest! {
    #[test]
    fn lines_are_those_of_serde_yaml(fields in object(value())) {
        let value = Value::Object(fields);
        let lines = written(&value);
        prop_assert!(lines.is_none() || lines == expected(&value), "{value}: {lines:?}");
    }
}
