//! Decoding of documents to typed values, and the faults that it reports.

use serde::Deserialize;

use super::*;
use crate::model::diagnostics::Faults;
use crate::model::diagnostics::fault::{add_faults_beside_fields, add_new_faults};
use crate::syntax::yaml::Tape;

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
struct Sample {
    name: String,
    size: Option<u32>,
    tags: Vec<String>,
}

fn tape(json: &str) -> Tape {
    serde_json::from_str(json).unwrap_or_default()
}

fn sample(json: &str) -> (Option<Sample>, Vec<(Code, String)>) {
    let document = tape(json);
    let (value, faults) = decode(document.root(), None);
    (value, faults.into_iter().map(|f| (f.code, f.path.to_string())).collect())
}

#[test]
fn every_fault_is_reported_at_its_own_field_and_the_rest_is_kept() {
    let (value, faults) = sample(r#"{"nam": 1, "name": "x", "size": -1, "tags": ["a", 2, "b", null]}"#);
    assert_eq!(value, Some(Sample { name: "x".into(), size: None, tags: vec!["a".into(), "b".into()] }));
    assert_eq!(
        faults,
        [
            (Code::UnknownField, "/nam".to_owned()),
            (Code::OutOfRange, "/size".to_owned()),
            (Code::WrongType, "/tags/1".to_owned()),
            (Code::WrongType, "/tags/3".to_owned())
        ]
    );
}

#[test]
fn faults_behind_an_entry_that_was_left_out_have_the_index_of_the_document() {
    let document = tape(r#"{"tags": [1, "bad", null, "good", "bad"]}"#);
    let (value, mut faults) = decode::<Sample>(document.root(), None);
    let (tags, mut found) = (value.unwrap_or_default().tags, Faults::new());
    found.within("tags", |found| {
        found.each(&tags, |found, tag| {
            if tag == "bad" {
                found.report(Fault::new(Code::InvalidFormat, "bad"));
            }
        });
    });
    add_new_faults(&mut faults, found.into_vec());
    let paths: Vec<String> = faults.iter().map(|fault| fault.path.to_string()).collect();
    assert_eq!(paths, ["/tags/0", "/tags/2", "/tags/1", "/tags/4"]);
}

#[test]
fn an_entry_that_already_has_a_fault_is_counted_among_those_left_out() {
    // A number that JSON cannot represent is a fault of the body, and null from then on.
    let mut faults = vec![Fault::new(Code::OutOfRange, "long").at(("tags", 0))];
    let (_, found) = decode::<Sample>(tape(r#"{"tags": [null, "bad"]}"#).root(), None);
    add_new_faults(&mut faults, found);
    add_faults_beside_fields(&mut faults, [Fault::new(Code::InvalidFormat, "bad").at(("tags", 0))]);
    let paths: Vec<String> = faults.iter().map(|fault| fault.path.to_string()).collect();
    assert_eq!(paths, ["/tags/0", "/tags/1"]);
}

#[test]
fn a_value_of_the_wrong_shape_names_its_field_and_shows_the_form() {
    #[derive(Debug, Default, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    #[allow(dead_code)]
    struct Outer {
        inner: Option<Sample>,
        several: Vec<Sample>,
        enabled: bool,
        share: f64,
        labels: std::collections::BTreeMap<String, String>,
    }
    let told = |json: &str| {
        let document = tape(json);
        let (_, faults) = decode::<Outer>(document.root(), None);
        let told = faults.into_iter().map(|it| (it.code, it.message, it.help.unwrap_or_default()));
        told.collect::<Vec<_>>()
    };
    let fields = "with any of the fields `name`, `size`, `tags`";
    for (json, message, help) in [
        (
            r#"{"inner": "x"}"#,
            "`inner` must be a mapping (found a string)",
            format!("write `inner: {{name: …}}`, {fields}"),
        ),
        (
            r#"{"several": ["x"]}"#,
            "each entry of `several` must be a mapping (found a string)",
            format!("write `- {{name: …}}`, {fields}"),
        ),
        (
            r#"{"several": {}}"#,
            "`several` must be a list (found a mapping)",
            "start each entry below `several:` with `- `".into(),
        ),
        (
            r#"{"several": "x"}"#,
            "`several` must be a list (found a string)",
            "write a list of mappings, such as `several: [{name: …}]`".into(),
        ),
        (
            r#"{"enabled": "yes"}"#,
            "`enabled` must be true or false (found a string)",
            "write `enabled: true` or `enabled: false`".into(),
        ),
        (r#"{"share": []}"#, "`share` must be a number (found a list)", "write a number, such as `share: 0.5`".into()),
        (r#"{"inner": {"name": []}}"#, "`name` must be a string (found a list)", "write `name: text`".into()),
        (r#"{"inner": {"name": 5}}"#, "`name` must be a string (found the number 5)", "quote it".into()),
        (r#"{"inner": {"name": 4412884128}}"#, "`name` must be a string (found a number)", "quote it".into()),
        (
            r#"{"inner": {"tags": [{}]}}"#,
            "each entry of `tags` must be a string (found a mapping)",
            "write `- text`".into(),
        ),
        (
            r#"{"inner": {"tags": [{"a.example": 443}]}}"#,
            "each entry of `tags` must be a string (found a mapping)",
            "write `- text`, in quotes if the text contains a colon and a space".into(),
        ),
        (
            r#"{"inner": {"tags": "-a"}}"#,
            "`tags` must be a list (found a string)",
            "put a space after the `-` of each entry".into(),
        ),
        (
            r#"{"inner": {"name": {"from_env": "A"}}}"#,
            "`name` must be a string (found a mapping)",
            "write the text itself: only secrets and long texts can come from a variable or a file".into(),
        ),
        (
            r#"{"inner": {"size": "5m"}}"#,
            "`size` must be a whole number (found a string)",
            "write the number of seconds, such as `size: 300`".into(),
        ),
        (
            r#"{"inner": {"size": "5"}}"#,
            "`size` must be a whole number (found a string)",
            "write `size: 5` without quotes".into(),
        ),
        (
            r#"{"inner": {"tags": 1}}"#,
            "`tags` must be a list (found the number 1)",
            "write a list, such as `tags: [first, second]`".into(),
        ),
        (r#"{"labels": [1]}"#, "`labels` must be a mapping (found a list)", "write `labels: {key: value}`".into()),
    ] {
        assert_eq!(told(json), [(Code::WrongType, message.to_owned(), help)], "{json}");
    }
    let message = "`size` must be a whole number from 0 to 4294967295 (found the number -1)";
    let help = "set a number in this range, without a fraction";
    assert_eq!(told(r#"{"inner": {"size": -1}}"#), [(Code::OutOfRange, message.to_owned(), help.to_owned())]);
    let (_, faults) = decode_field::<Sample>(tape("true").root(), "sample", None);
    let messages: Vec<&str> = faults.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(messages, ["`sample` must be a mapping (found the boolean true)"]);
}

#[test]
fn a_value_that_is_no_word_shows_the_known_words() {
    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Word {
        One,
        Two,
    }
    let (word, faults) = decode_field::<Word>(tape("[]").root(), "word", None);
    assert!(word.is_none(), "not {:?} or {:?}", Word::One, Word::Two);
    let told: Vec<_> = faults.into_iter().map(|it| (it.message, it.help.unwrap_or_default())).collect();
    assert_eq!(told, [("`word` must be a string (found a list)".to_owned(), "use one of `one`, `two`".to_owned())]);
}

#[test]
fn a_fixed_field_is_never_suggested_for_a_misspelt_one() {
    let help = |json: &str, elsewhere: &[&str], fixed: &[&str]| {
        let document = tape(json);
        let (_, faults) = decode_request::<Sample>(document.root(), elsewhere, fixed);
        faults.into_iter().find_map(|fault| fault.help).unwrap_or_default()
    };
    assert_eq!(help(r#"{"nam": 1}"#, &[], &[]), "did you mean `name`?");
    assert!(!help(r#"{"nam": 1}"#, &[], &["name"]).contains("`name`"));
    let all = help(r#"{"color": 1}"#, &["tags"], &["name"]);
    assert!(all.ends_with("`size`, `tags`"), "{all}");
    assert_eq!(help(r#"{"color": 1}"#, &[], &["name", "size", "tags"]), "remove it; no fields are allowed");
    assert_eq!(help(r#"{"name": "x"}"#, &[], &["name"]), "", "a fixed field is a known one");
}

#[test]
fn a_field_that_is_set_is_not_suggested_for_another_one() {
    let help = |json: &str| {
        let (_, faults) = decode::<Sample>(tape(json).root(), None);
        faults.into_iter().find_map(|fault| fault.help).unwrap_or_default()
    };
    assert_eq!(help(r#"{"nam": "x", "name": null}"#), "did you mean `name`?");
    assert_eq!(help(r#"{"nam": "x", "name": "y"}"#), "remove it, or correct its name: `name` is already set");
}

#[test]
fn null_means_not_given_but_does_not_hide_an_unknown_field() {
    assert_eq!(sample(r#"{"name": null, "tags": null}"#), (Some(Sample::default()), vec![]));
    assert_eq!(sample(r#"{"nam": null}"#).1, [(Code::UnknownField, "/nam".to_owned())]);
}

#[test]
fn a_request_can_have_unknown_fields_that_are_null() {
    let request = |json: &str| {
        let document = tape(json);
        let (value, faults) = decode_request::<Vec<Sample>>(document.root(), &[], &[]);
        (value, faults.into_iter().map(|f| (f.code, f.path.to_string())).collect::<Vec<_>>())
    };
    let named = Sample { name: "x".into(), ..Sample::default() };
    assert_eq!(request(r#"[{"nam": null, "name": "x"}]"#), (Some(vec![named]), vec![]));
    assert_eq!(request(r#"[{"nam": []}]"#).1, [(Code::UnknownField, "/0/nam".to_owned())]);
}

#[test]
fn many_good_values_before_many_faulty_ones_cost_little() {
    let key = "k".repeat(100_000);
    let list = format!("[{}{}1]", "\"a\",".repeat(20_000), "1,".repeat(200));
    let document = tape(&format!(r#"{{"{key}": {list}}}"#));
    let (_, faults) = decode::<std::collections::BTreeMap<String, Vec<String>>>(document.root(), None);
    assert_eq!(faults.len(), MOST_FAULTS);
    let (_, faults) = decode::<Sample>(document.root(), None);
    assert!(faults.iter().all(|fault| fault.message.len() < 100), "an echo of the key");
}

#[test]
fn the_mask_is_no_secret_whatever_it_comes_from() {
    struct Masked;
    impl ValueSource for Masked {
        fn resolve(&self, _: &str, _: &str) -> Result<String, Fault> {
            Ok("********\n".into())
        }
    }
    let text = r#"{"a": "********", "b": {"from_env": "MASKED"}, "c": "*********"}"#;
    let document = tape(text);
    let (_, faults) = decode::<std::collections::BTreeMap<String, crate::model::secrets::secret::Secret>>(
        document.root(),
        Some(&Masked),
    );
    let faults: Vec<_> = faults.into_iter().map(|fault| (fault.code, fault.path.to_string())).collect();
    assert_eq!(faults, [(Code::InvalidFormat, "/a".to_owned()), (Code::InvalidFormat, "/b".to_owned())]);
}

#[test]
fn what_may_be_a_secret_is_not_quoted() {
    #[derive(Debug, Default, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    #[allow(dead_code)]
    struct Login {
        client_secret: crate::model::secrets::secret::Secret,
    }
    struct Nowhere;
    impl ValueSource for Nowhere {
        fn resolve(&self, _: &str, _: &str) -> Result<String, Fault> {
            Ok("value".into())
        }
    }
    for text in [
        r#"{"client_secret": 4711}"#,
        r#"{"client_secret": -4711}"#,
        r#"{"client_secret": 4711.5}"#,
        r#"{"client_secret": [4711]}"#,
        r#"{"client_secret": {"4711": null}}"#,
        r#"{"client_secret": {"from_env": 4711}}"#,
        r#"{"client_secert": 4711}"#,
    ] {
        let document = tape(text);
        for sources in [None, Some(&Nowhere as &dyn ValueSource)] {
            let (_, faults) = decode::<Login>(document.root(), sources);
            assert_eq!(faults.len(), 1, "{text}");
            assert!(!format!("{faults:?}").contains("4711"), "{text}: {faults:?}");
        }
    }
    let document = tape(r#"{"client_secret": true}"#);
    let messages: Vec<String> =
        decode::<Login>(document.root(), None).1.into_iter().map(|fault| fault.message).collect();
    assert_eq!(messages, ["`client_secret` must be a string (found a boolean)"]);
}

#[test]
fn a_blank_variant_is_unset_in_a_request_only() {
    #[derive(Debug, Default, Deserialize, PartialEq)]
    enum Size {
        Small,
        #[default]
        Large,
    }
    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(default)]
    struct Shirt {
        #[serde(deserialize_with = "variant_or_blank")]
        size: Size,
        #[serde(deserialize_with = "variant_or_blank")]
        sleeves: Option<Size>,
    }
    let paths = |faults: Vec<Fault>| faults.into_iter().map(|fault| fault.path.to_string()).collect::<Vec<_>>();
    let blank = tape(r#"{"size": "", "sleeves": ""}"#);
    assert_eq!(decode_request::<Shirt>(blank.root(), &[], &[]), (Some(Shirt::default()), vec![]));
    assert_eq!(paths(decode::<Shirt>(blank.root(), None).1), ["/size", "/sleeves"]);
    let given = tape(r#"{"size": "Small", "sleeves": "Large"}"#);
    let shirt = Shirt { size: Size::Small, sleeves: Some(Size::Large) };
    assert_eq!(decode_request::<Shirt>(given.root(), &[], &[]), (Some(shirt), vec![]));
    let wrong = tape(r#"{"size": "Medium", "sleeves": 1}"#);
    assert_eq!(paths(decode_request::<Shirt>(wrong.root(), &[], &[]).1), ["/size", "/sleeves"]);
    let stored = serde_json::from_str::<Shirt>(r#"{"size": "Small", "sleeves": null}"#);
    assert_eq!(stored.ok(), Some(Shirt { size: Size::Small, sleeves: None }));
}
