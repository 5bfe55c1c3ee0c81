//! Tests of how secrets and long texts are written.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Deserialize;
use serde_json::{json, value::RawValue};

use super::*;
use crate::model::secrets::{MASK, Reading, Secret, Text, secret_spans::SecretSpans, serialization_mode::Review};

#[test]
fn what_cannot_be_written_is_an_error_and_not_empty() {
    // JSON has no keys but texts.
    let unwritable = BTreeMap::from([(vec![1], 2)]);
    assert!(value(&unwritable, Secrets::Masked).is_err());
    assert!(object(&unwritable, Secrets::Masked).is_err());
    assert!(object(&[1], Secrets::Masked).is_err(), "a list has no fields");
    assert!(bytes(&unwritable, Secrets::Masked).is_err());
    let told = text(&unwritable, Secrets::Masked).err().map(|error| Diagnostic::from(error).message);
    assert!(told.is_some_and(|told| told.starts_with("cannot serialize a value: ")));
}

struct Unread;

impl Reading for Unread {
    fn read(_: &str) -> Self {
        Self
    }
}

#[derive(Serialize)]
enum SecretPlace {
    Nowhere,
    Newtype(Secret),
    Tuple(u8, Secret),
    Struct { secret: Secret },
}

#[derive(Serialize)]
struct Wrapped(Secret);

#[derive(Serialize)]
struct Pair(u8, Secret);

#[derive(Serialize)]
struct Flat {
    flat: Secret,
}

/// A secret wherever serde can have one.
#[derive(Serialize)]
struct Everywhere {
    plain: Secret,
    empty: Secret,
    some: Option<Secret>,
    none: Option<Secret>,
    list: Vec<Secret>,
    tuple: (u8, Secret),
    map: BTreeMap<String, Option<Secret>>,
    keys: BTreeMap<&'static str, f64>,
    wrapped: Wrapped,
    pair: Pair,
    places: Vec<SecretPlace>,
    #[serde(flatten)]
    flat: Flat,
}

fn secret() -> Secret {
    Secret::new("hunt\"er\n2")
}

fn everywhere() -> Everywhere {
    Everywhere {
        plain: secret(),
        empty: Secret::default(),
        some: Some(secret()),
        none: None,
        list: vec![secret(), secret()],
        tuple: (1, secret()),
        map: BTreeMap::from([("a".to_owned(), Some(secret())), ("b".to_owned(), None)]),
        keys: BTreeMap::from([("a", 0.1)]),
        wrapped: Wrapped(secret()),
        pair: Pair(1, secret()),
        places: vec![
            SecretPlace::Nowhere,
            SecretPlace::Newtype(secret()),
            SecretPlace::Tuple(1, secret()),
            SecretPlace::Struct { secret: secret() },
        ],
        flat: Flat { flat: secret() },
    }
}

/// Returns [`everywhere`] with each secret as `shown`.
fn shown(shown: &str) -> Value {
    json!({
        "plain": shown,
        "empty": "",
        "some": shown,
        "none": null,
        "list": [shown, shown],
        "tuple": [1, shown],
        "map": {"a": shown, "b": null},
        "keys": {"a": 0.1},
        "wrapped": shown,
        "pair": [1, shown],
        "places": ["Nowhere", {"Newtype": shown}, {"Tuple": [1, shown]}, {"Struct": {"secret": shown}}],
        "flat": shown,
    })
}

/// Returns the common result of all functions of this module for a value.
fn written(whole: &impl Serialize, secrets: Secrets<'_>) -> Option<Value> {
    let whole_value = value(whole, secrets).ok()?;
    let line = String::from_utf8(bytes(whole, secrets).ok()?).ok()?;
    assert_eq!(line, whole_value.to_string());
    assert_eq!(serde_json::from_str::<Value>(&text(whole, secrets).ok()?).ok().as_ref(), Some(&whole_value));
    Some(whole_value)
}

#[test]
fn secrets_are_masked_or_revealed_wherever_they_are() {
    assert_eq!(written(&everywhere(), Secrets::Masked), Some(shown(MASK)));
    assert_eq!(written(&everywhere(), Secrets::Revealed), Some(shown("hunt\"er\n2")));
}

#[test]
fn the_places_of_secrets_are_noted_while_they_are_written() {
    let places = SecretSpans::default();
    let line = bytes(&everywhere(), Secrets::Located(&places)).ok().and_then(|line| String::from_utf8(line).ok());
    let line = line.unwrap_or_default();
    assert_eq!(serde_json::from_str::<Value>(&line).ok(), Some(shown("hunt\"er\n2")));
    let (mut masked, mut from) = (String::new(), 0);
    for place in places.into_inner() {
        assert_eq!(line.get(place.clone()), Some(r#""hunt\"er\n2""#));
        masked += line.get(from..place.start).unwrap_or_default();
        masked += "\"********\"";
        from = place.end;
    }
    masked += line.get(from..).unwrap_or_default();
    assert_eq!(masked, shown(MASK).to_string(), "every secret has a place, and nothing else has");
    let places = SecretSpans::default();
    assert!(bytes(&json!({"a": "b"}), Secrets::Located(&places)).is_ok() && places.into_inner().is_empty());
}

#[test]
fn a_secret_as_a_key_is_written_like_any_other() {
    struct Keyed;
    impl Serialize for Keyed {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([(secret(), 1)])
        }
    }
    assert_eq!(written(&Keyed, Secrets::Masked), Some(json!({"********": 1})));
    assert_eq!(written(&Keyed, Secrets::Revealed), Some(json!({"hunt\"er\n2": 1})));
}

#[test]
fn a_reviewer_learns_only_whether_a_secret_changes() {
    let review = Review::default();
    assert_eq!(written(&everywhere(), review.after()), Some(shown("(secret)")), "there is no state before");
    assert_eq!(written(&everywhere(), review.before()), Some(shown("(secret)")));
    assert_eq!(written(&everywhere(), review.after()), Some(shown("(secret)")));
    assert_eq!(written(&Secret::new("other"), review.after()), Some(json!("(secret, changed)")));
    let review = Review::default();
    assert_eq!(written(&Secret::default(), review.before()), Some(json!("")));
    assert_eq!(written(&everywhere(), review.after()), Some(shown("(secret, changed)")));
}

#[test]
fn a_reviewer_does_not_see_the_password_of_a_url() {
    let of = |password: &str, secrets: Secrets<'_>| {
        written(
            &[format!("https://user:{password}@id.example.com/a"), "https://id.example.com:443/a@b".into()],
            secrets,
        )
    };
    let shown = |password: &str| {
        Some(json!([format!("https://user:{password}@id.example.com/a"), "https://id.example.com:443/a@b"]))
    };
    let review = Review::default();
    assert_eq!(of("hunter2", review.before()), shown("(secret)"));
    assert_eq!(of("hunter2", review.after()), shown("(secret)"));
    assert_eq!(of("hunter3", review.after()), shown("(secret, changed)"));
    assert_eq!(of("hunter2", Secrets::Planned), shown(MASK));
    for secrets in [Secrets::Masked, Secrets::Revealed] {
        assert_eq!(of("hunter2", secrets), shown("hunter2"), "clients write back what they read");
    }
    let two = "https://a:x@one https://y@two https://three";
    assert_eq!(
        written(&[two], Secrets::Planned),
        Some(json!(["https://a:********@one https://********@two https://three"]))
    );
}

#[test]
fn the_history_gets_digests_that_depend_on_the_key() {
    let of = |key: &[u8; 32]| written(&everywhere(), Secrets::Digested(key));
    let digest = |key: &[u8; 32]| format!("(secret {:.16})", blake3::keyed_hash(key, b"hunt\"er\n2").to_hex());
    for key in [[1; 32], [2; 32]] {
        assert_eq!(of(&key), Some(shown(&digest(&key))));
    }
    assert_ne!(of(&[1; 32]), of(&[2; 32]));
}

#[test]
fn a_long_text_is_abridged_for_reviewers_and_the_history() {
    let (short, long) = ("a".repeat(80), "a".repeat(81));
    let of = |text: &str, secrets: Secrets<'_>| written(&[Text::<Unread>::new(text)], secrets);
    let (review, key) = (Review::default(), [0; 32]);
    let abridged = format!("(81 bytes, blake3 {:.12})", blake3::hash(long.as_bytes()).to_hex());
    for secrets in [review.before(), review.after(), Secrets::Digested(&key)] {
        assert_eq!(of(&short, secrets), Some(json!([short])));
        assert_eq!(of(&long, secrets), Some(json!([abridged])));
    }
    for secrets in [Secrets::Masked, Secrets::Revealed] {
        assert_eq!(of(&long, secrets), Some(json!([long])));
    }
    assert_eq!(serde_json::to_value(Text::<Unread>::new(&long)).ok(), Some(json!(long)));
}

#[test]
fn other_serializers_mask() {
    assert_eq!(serde_json::to_value(everywhere()).ok(), Some(shown(MASK)));
    assert_eq!(serde_json::to_string(&everywhere()).ok(), Some(shown(MASK).to_string()));
    assert_eq!(serde_yaml::to_string(&secret()).ok(), serde_yaml::to_string(MASK).ok());
    assert_eq!(format!("{:?} {:#?}", secret(), secret()), format!("{MASK} {MASK}"));
}

#[test]
fn secrets_are_revealed_on_every_thread() {
    let secrets = Secrets::Revealed;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().ok();
    let told: Option<Vec<bool>> = pool.map(|pool| {
        let one = |_: i32| bytes(&secret(), secrets).is_ok_and(|bytes| bytes == br#""hunt\"er\n2""#);
        pool.install(|| (0..1000_i32).into_par_iter().map(one).collect())
    });
    assert_eq!(told, Some(vec![true; 1000]));
}

#[test]
fn a_secret_that_serde_has_masked_before_is_an_error() {
    #[derive(Serialize)]
    enum Inner {
        Struct { secret: Secret },
    }
    // serde buffers the inner variant.
    #[derive(Serialize)]
    #[serde(tag = "type")]
    enum Tagged {
        One(Inner),
    }
    let tagged = Tagged::One(Inner::Struct { secret: secret() });
    let masked = json!({"type": "One", "Struct": {"secret": MASK}});
    assert_eq!(written(&tagged, Secrets::Masked), Some(masked));
    assert!(bytes(&tagged, Secrets::Revealed).is_err());
    assert!(value(&tagged, Secrets::Digested(&[0; 32])).is_err());
}

#[test]
fn other_values_are_written_as_serde_json_writes_them() {
    #[derive(Serialize, Deserialize)]
    struct Other<'a> {
        #[serde(borrow)]
        raw: &'a RawValue,
        wide: u128,
        narrow: f32,
        character: char,
        unit: (),
        nested: Value,
    }
    let line = concat!(
        r#"{"raw":{ "b" : 1.0e2, "a": 1 },"wide":18446744073709551616,"narrow":0.1,"#,
        r#""character":"ö","unit":null,"nested":{"z":[1.5,-2,null,true],"a":{}}}"#,
    );
    let other = serde_json::from_str::<Other<'_>>(line).ok();
    assert!(other.is_some());
    for secrets in [Secrets::Masked, Secrets::Revealed] {
        let written = other.as_ref().and_then(|other| bytes(other, secrets).ok());
        assert_eq!(written.as_deref(), Some(line.as_bytes()));
    }
}
