//! The values and faults of documents in each format.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use serde::de::DeserializeSeed;
use serde_json::{Value, json};
use serde_yaml::Value as YamlValue;

use crate::model::diagnostics::{Code, Fault, MOST_FAULTS};
use crate::syntax::yaml::{Allowance, Tape, TapeItem, TapeSeed};

fn tape(text: &str) -> Tape {
    serde_yaml::from_str(text).unwrap()
}

fn places(faults: Vec<Fault>) -> Vec<(Code, String)> {
    faults.into_iter().map(|fault| (fault.code, fault.path.to_string())).collect()
}

/// Returns the JSON of a document after both passes, with its keys in order, and the places of all faults.
fn merged(text: &str) -> (String, Vec<String>) {
    let mut tape = tape(text);
    let mut faults = tape.take_faults();
    faults.extend(tape.merge());
    (tape.root().to_json().to_string(), faults.iter().map(|fault| fault.path.to_string()).collect())
}

/// Returns what another reader understood.
fn to_json(value: &YamlValue) -> Value {
    match value {
        YamlValue::Null | YamlValue::Tagged(_) => Value::Null,
        YamlValue::Bool(value) => json!(value),
        YamlValue::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(number), ..) => json!(number),
            (_, Some(number), _) => json!(number),
            (.., number) => json!(number),
        },
        YamlValue::String(text) => json!(text),
        YamlValue::Sequence(items) => items.iter().map(to_json).collect(),
        YamlValue::Mapping(entries) => {
            let key = |key: &YamlValue| match to_json(key) {
                Value::String(text) => text,
                other => other.to_string(),
            };
            Value::Object(entries.iter().map(|(name, value)| (key(name), to_json(value))).collect())
        }
    }
}

#[test]
fn every_form_of_yaml_is_read() {
    for text in [
        "",
        "~",
        "a:\nb: ''\nc: \"\"\nd: ~\ne: null\n",
        "[]",
        "{}",
        "[[], {}, [[]], [{}], {a: []}, {a: {}}, {a: {b: [{}, []]}}]",
        "a: &a {x: 1, y: [2]}\nb: *a\nc: [*a, *a]\nd: {e: *a}\n",
        "? &k key\n: 1\nother: *k\n",
        "a: |\n  one\n   two\n\n  three\nb: >\n  one\n  two\nc: |-\n  x\nd: >+\n  y\n\n",
        "[0, 1, -1, 18446744073709551615, -9223372036854775808, 1.5, -1.5e-7, 1e22, 0x1f, 0o17, 0b11, +3, 1_000]",
        "[1., .5, -0.0, 0.1, 4.9e-324, 1.7976931348623157e308, 18446744073709551616.0, 1e400x]",
        "[true, false, True, yes, no, on, 'true', 2026-01-01, 1:30]",
        "1: a\n-2: b\n2.5: c\ntrue: d\nnull: e\n",
        "a: é\nb: \"\\u00e9\\U0001F600\\0\\n\"\nc: '😀'\nü: {ö: ä}\n",
        "'': 1\n' ': {'': ''}\n",
        "a: 1 # comment\n# another\nb: [1, # inside\n  2]\n",
        "- - - 1\n  - 2\n- 3\n",
    ] {
        let expected = to_json(&serde_yaml::from_str(text).unwrap());
        let read = tape(text);
        assert_eq!(read.root().to_json().to_string(), expected.to_string(), "{text}");
        assert!(tape(text).take_faults().is_empty(), "{text}");
    }
}

#[test]
fn a_value_takes_12_bytes() {
    assert_eq!(std::mem::size_of::<TapeItem>(), 12);
}

#[test]
fn every_form_of_json_is_read() {
    for text in [
        "null",
        "\"\"",
        r#"{"a": {"b": [null, true, false, "", [], {}]}, "": "\u00e9\ud83d\ude00\u0000\\\"/"}"#,
        r#"[0, -0, 1, -1, 18446744073709551615, -9223372036854775808, 1.0, 1e22, 1E-7, 5e-324, 18446744073709551616]"#,
        r#"{"<<": {"a": 1}, "b": {"<<": 2}}"#,
    ] {
        let read: Tape = serde_json::from_str(text).unwrap();
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(read.root().to_json().to_string(), expected.to_string(), "{text}");
        assert_eq!(serde_json::from_value::<Tape>(expected).unwrap().root(), read.root());
    }
    for text in ["{\"a\": [1, 2", "[1, 2] 3", "{\"a\" 1}"] {
        let told = serde_json::from_str::<Tape>(text).unwrap_err().to_string();
        assert_eq!(told, serde_json::from_str::<Value>(text).unwrap_err().to_string());
    }
}

#[test]
fn a_value_of_a_tag_is_not_read() {
    let read = tape("a: !secret hunter2\nb: [!x {c: 1}, 2]\nd: !y [1, 2]\ne: 3\n");
    assert_eq!(read.root().to_json(), json!({"a": null, "b": [null, 2], "d": null, "e": 3}));
    assert_eq!(
        format!("{read:?}"),
        r#"{"a": a value with a tag, "b": [a value with a tag, the number 2], "d": a value with a tag, "e": the number 3}"#
    );
}

#[test]
fn texts_are_not_shown() {
    let shown = format!("{:?}", tape("a: hunter2\nb: [hunter2, 1, true, ~]\n"));
    assert_eq!(shown, r#"{"a": a string, "b": [a string, the number 1, the boolean true, nothing (null)]}"#);
}

#[test]
fn keys_of_other_types_are_not_read() {
    for (text, reason) in [
        ("a: {[x]: 1}", "a key must be a string, not a list"),
        ("a: {{x: y}: 1}", "a key must be a string, not a mapping"),
        ("a: {!t x: 1}", "a key must be a string, not a value with a tag"),
        ("a: {.inf: 1}", "a key must be a string, not a number"),
        ("a: {18446744073709551616: 1}", "a key must be a string, not a number"),
        // The value is read first.
        ("{[x]: !!int y}", "invalid value"),
    ] {
        let told = serde_yaml::from_str::<Tape>(text).unwrap_err().to_string();
        assert!(told.contains(reason), "{text}: {told}");
    }
}

#[test]
fn documents_are_compared_by_value_and_order() {
    let is_same = |one: &str, other: &str| tape(one).root() == tape(other).root();
    assert!(is_same("a: [1, {b: ~}]\nc: .inf\n", "{a: [0x1, {b: }], c: .nan}"));
    for other in
        ["a: 1", "{a: 1, b: '2'}", "{b: 2, a: 1}", "{a: 1, b: 2, c: 3}", "{a: 1, b: 2.0}", "{a: 1, b: 2, b: 2}"]
    {
        assert!(!is_same("{a: 1, b: 2}", other), "{other}");
    }
}

#[test]
fn repeated_keys_are_reported_once_each_and_the_first_values_stay() {
    let mut read = tape("a: 1\na: 2\nb: {c: 1, c: 2, c: 3}\na: 4\n");
    assert_eq!(
        places(read.take_faults()),
        [(Code::DuplicateKey, "/a".to_owned()), (Code::DuplicateKey, "/b/c".to_owned())]
    );
    assert_eq!(read.root().to_json(), json!({"a": 1, "b": {"c": 1}}));
    assert_eq!(read.root().entries().unwrap().count(), 2);
    assert!(read.take_faults().is_empty());
}

#[test]
fn a_duplicate_is_found_in_mappings_of_any_size() {
    for size in [1, 2, 15, 16, 17, 18, 33, 1000] {
        let keys: String = (0..size).map(|at| format!("k{at}: {at}\n")).collect();
        assert!(tape(&keys).take_faults().is_empty());
        for repeated in [0, size / 2, size - 1] {
            let mut read = tape(&format!("{keys}k{repeated}: again\n"));
            let path = format!("/k{repeated}");
            assert_eq!(places(read.take_faults()), [(Code::DuplicateKey, path)], "{size} keys");
            assert_eq!(read.root().to_json(), tape(&keys).root().to_json());
        }
    }
}

#[test]
fn faults_come_in_the_order_of_the_document() {
    let long = "k".repeat(5000);
    let mut read = tape(&format!(
        "a: {{x: .inf, x: 1, y: {{z: .nan, z: 2}}}}\n? {long}\n: {{lost: .inf}}\nb: [.inf, {{c: 1, c: .inf}}]\na: [.inf]\n"
    ));
    let expected = [
        (Code::TooLong, ""),
        (Code::DuplicateKey, "/a"),
        (Code::DuplicateKey, "/a/x"),
        (Code::WrongType, "/a/x"),
        (Code::DuplicateKey, "/a/y/z"),
        (Code::WrongType, "/a/y/z"),
        (Code::WrongType, "/b/0"),
        (Code::DuplicateKey, "/b/1/c"),
    ];
    assert_eq!(places(read.take_faults()), expected.map(|(code, path)| (code, path.to_owned())));
    assert_eq!(read.root().to_json(), json!({"a": {"x": null, "y": {"z": null}}, "b": [null, {"c": 1}]}));
}

#[test]
fn very_many_faults_are_counted_in_little_time() {
    let text: String = (0..50_000).map(|at| format!("k{at}: 1\nk{at}: 2\n")).collect();
    let found = tape(&text).take_faults();
    assert_eq!(found.len(), MOST_FAULTS);
    let last = found.last().map(|fault| fault.message.as_str()).unwrap_or_default();
    assert_eq!(last, "duplicate key `k99` (and 49900 more faults in this document)");
}

#[test]
fn numbers_without_a_form_in_json_are_faults_at_their_places() {
    let found = places(tape("a: .inf\nb: [1, -.INF, {c: .nan}]\nd: '.nan'\n").take_faults());
    assert_eq!(found, ["/a", "/b/1", "/b/2/c"].map(|path| (Code::WrongType, path.to_owned())));
    let mut infinite = tape(".inf");
    assert!(!infinite.root().is_null());
    assert_eq!(places(infinite.take_faults()), [(Code::WrongType, String::new())]);
    assert!(infinite.root().is_null());
}

#[test]
fn integers_of_more_than_64_bits_are_faults_at_their_places() {
    let found = places(
        tape(
            "a: 18446744073709551616\nb: [1, -9223372036854775809, {c: 0x10000000000000000}]\nd: '18446744073709551616'\n\
             e: [18446744073709551615, -9223372036854775808, 1e22, 18446744073709551616.0]\n",
        )
        .take_faults(),
    );
    assert_eq!(found, ["/a", "/b/1", "/b/2/c"].map(|path| (Code::OutOfRange, path.to_owned())));
}

#[test]
fn a_long_key_is_neither_kept_nor_repeated() {
    let mut read = tape(&format!("a:\n  ? {}\n  : 1\n", "k".repeat(100_000)));
    let found = read.take_faults();
    assert!(found.iter().all(|fault| fault.message.len() < 200));
    assert_eq!(places(found), [(Code::TooLong, "/a".to_owned())]);
    assert_eq!(read.root().to_json(), json!({"a": {}}));
}

#[test]
fn merge_keys_add_the_missing_entries() {
    for (text, expected) in [
        ("{a: 1, <<: {a: 2, b: 3}, c: 4}", r#"{"a":1,"c":4,"b":3}"#),
        ("{<<: [{a: 1, b: 1}, {b: 2, c: 2}], a: 0}", r#"{"a":0,"b":1,"c":2}"#),
        ("{<<: {<<: {a: 1, b: [2]}, c: 3}}", r#"{"c":3,"a":1,"b":[2]}"#),
        ("{<<: [{<<: [{a: 1}], b: {<<: {c: 2}}}]}", r#"{"b":{"c":2},"a":1}"#),
        ("[{<<: {a: 1}}, 2, {b: {<<: {}}}]", r#"[{"a":1},2,{"b":{}}]"#),
        ("a: &a {x: {<<: {y: 1}}, z: 2}\nb: {<<: *a, z: 3}\n", r#"{"a":{"x":{"y":1},"z":2},"b":{"z":3,"x":{"y":1}}}"#),
        ("{'<<': {a: 1}, b: '<<'}", r#"{"b":"<<","a":1}"#),
    ] {
        assert_eq!(merged(text), (expected.to_owned(), vec![]), "{text}");
    }
}

#[test]
fn invalid_merge_keys_are_faults_and_add_nothing() {
    let text = "a: {<<: 1, b: 2}\nc: {<<: [{d: 3}, [4], ~, {<<: x}]}\n<<: .inf\ne: {<<: {f: 1}, <<: {g: 1}}\n";
    let (json, paths) = merged(text);
    assert_eq!(json, r#"{"a":{"b":2},"c":{"d":3},"e":{"f":1}}"#);
    assert_eq!(paths, ["/<<", "/e/<<", "/a/<<", "/c/<</3/<<", "/c/<</1", "/c/<</2", "/<<"]);
    let many = format!("[{}]", "{<<: 1},".repeat(2 * MOST_FAULTS));
    assert_eq!(tape(&many).merge().len(), MOST_FAULTS);
}

#[test]
fn a_merge_key_is_a_key_for_those_who_do_not_merge() {
    let mut read: Tape = serde_json::from_str(r#"{"<<": {"a": 1}, "b": 2}"#).unwrap();
    assert!(read.take_faults().is_empty());
    assert_eq!(read.root().to_json(), json!({"<<": {"a": 1}, "b": 2}));
}

#[test]
fn a_removed_entry_is_gone() {
    let mut read = tape("a: {x: 1}\nb: [2]\nc: 3\n");
    for absent in ["x", "d", ""] {
        read.remove(absent);
    }
    read.remove("b");
    assert_eq!(read.root().to_json(), json!({"a": {"x": 1}, "c": 3}));
    assert!(read.root().get("b").is_none() && read.root().get("c").is_some());
    let others = [(tape("[a]"), json!(["a"])), (Tape::default(), Value::Null), (Tape::empty_mapping(), json!({}))];
    for (mut other, expected) in others {
        other.remove("a");
        assert_eq!(other.root().to_json(), expected);
    }
}

#[test]
fn an_allowance_ends_the_reading() {
    let read = |text: &str, most: usize| {
        let allowance = Allowance::new(most);
        let read = TapeSeed(&allowance).deserialize(serde_yaml::Deserializer::from_str(text));
        (read.map(|_| ()).map_err(|error| error.to_string()), allowance.is_exceeded())
    };
    let aliases = "a: &a [1, 2]\nb: *a\n";
    assert_eq!(read(aliases, 9), (Ok(()), false));
    let (told, exceeded) = read(aliases, 8);
    assert!(told.unwrap_err().contains("aliases expand to too many values") && exceeded);
    // Texts count as one value more for each 16 bytes.
    let texts = format!("a: &a {}\nb: *a\n", "x".repeat(47));
    assert_eq!(read(&texts, 9), (Ok(()), false));
    let (told, exceeded) = read(&texts, 8);
    assert!(told.unwrap_err().contains("aliases expand to too much text") && exceeded);
}

fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(|number| json!(number)),
        "[ -~é😀\n]{0,12}".prop_map(Value::from),
        Just(json!("true")),
        Just(json!("12")),
    ];
    scalar.prop_recursive(5, 64, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("[a-z]{0,3}|[ -~]{0,3}", inner), 0..20)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn a_document_is_what_other_readers_understand(value in any_value()) {
        let json: Tape = serde_json::from_str(&value.to_string()).unwrap();
        prop_assert_eq!(json.root().to_json().to_string(), value.to_string());
        let text = serde_yaml::to_string(&value).unwrap();
        if let Ok(other) = serde_yaml::from_str::<YamlValue>(&text) {
            let expected = to_json(&other).to_string();
            prop_assert_eq!(tape(&text).root().to_json().to_string(), expected, "{}", text);
        }
    }

    #[test]
    fn merging_is_what_other_readers_understand(
        sources in prop::collection::vec("[a-f]{0,6}", 1..4),
        own in prop::collection::hash_set("[a-f]", 0..6),
    ) {
        let mapping = |keys: &str, tag: &str| {
            let keys: std::collections::BTreeSet<char> = keys.chars().collect();
            let entries: Vec<String> = keys.iter().map(|key| format!("{key}: {tag}{key}")).collect();
            format!("{{{}}}", entries.join(", "))
        };
        let anchor = |(at, keys): (usize, &String)| format!("- &s{at} {}\n", mapping(keys, &format!("s{at}")));
        let anchors: Vec<String> = sources.iter().enumerate().map(anchor).collect();
        let aliases: Vec<String> = (0..sources.len()).map(|at| format!("*s{at} ")).collect();
        let own: String = own.into_iter().collect();
        let target = mapping(&own, "own").replace('}', "");
        let comma = if own.is_empty() { "" } else { ", " };
        let text = format!("{}- {target}{comma}<<: [{}]}}\n", anchors.concat(), aliases.join(", "));
        let mut read = tape(&text);
        prop_assert!(read.take_faults().is_empty() && read.merge().is_empty());
        let mut other: YamlValue = serde_yaml::from_str(&text).unwrap();
        other.apply_merge().unwrap();
        prop_assert_eq!(read.root().to_json(), to_json(&other), "{}", text);
    }
}
