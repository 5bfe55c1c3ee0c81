//! Random bodies: mostly valid, from pools so small that values clash and references meet what was deleted.

use rand::{Rng, rngs::StdRng, seq::IndexedRandom};
use serde_json::{Value, json};

use super::{
    specification::{Field, Form, HOSTPORTS, PARTNER_CA, STAFF_CA, module},
    state::State,
};

/// What a body can refer to.
pub(super) struct Pool<'a> {
    pub state: &'a State,
    /// The IDs of deleted authorities.
    pub gone: &'a [String],
}

/// One of some values.
pub(super) fn one<'a>(random: &mut StdRng, values: &[&'a str]) -> &'a str {
    values.choose(random).copied().unwrap_or_default()
}

/// One of some numbers.
fn number<T: Copy>(random: &mut StdRng, values: &[T]) -> T {
    values[random.random_range(0..values.len())]
}

/// An ID of a list: mostly of a resource that is there, sometimes of one that was, or of none.
pub(super) fn id(random: &mut StdRng, there: &[&str], gone: &[String], none: &str) -> String {
    let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
    let found = match random.random_range(0..100) {
        0..85 => there.choose(random),
        85..95 => gone.choose(random),
        _ => None,
    };
    found.copied().unwrap_or(none).to_owned()
}

/// A body with some of the fields, each with a probability; modules are rarer.
pub(super) fn body(random: &mut StdRng, pool: &Pool<'_>, fields: &[Field], probability: f64) -> Value {
    let mut body = json!({});
    for field in fields {
        let probability = match (&field.form, field.is_required) {
            (_, true) => 0.95,
            (Form::Module(_), _) => 0.2,
            _ => probability,
        };
        if random.random_bool(probability) {
            body[field.name] = value(random, pool, &field.form);
        }
    }
    if random.random_bool(0.03) {
        body["colour"] = json!(1);
    }
    body
}

/// A value of a form, or sometimes any other.
fn value(random: &mut StdRng, pool: &Pool<'_>, form: &Form) -> Value {
    if random.random_bool(0.03) {
        let any = [json!(null), json!(7), json!("x"), json!([]), json!({}), json!(true), json!(1.5), json!(-1)];
        return any[random.random_range(0..any.len())].clone();
    }
    let is_odd = random.random_bool(0.06);
    match form {
        Form::Flag => json!(random.random_bool(0.5)),
        Form::Text => json!(one(random, &["", "a", "b", "c d", "é"])),
        Form::Limited(most) if is_odd => json!("é".repeat(*most / 2 + usize::from(random.random_bool(0.5)))),
        Form::Limited(_) => json!(one(random, &["", "a", "b", "c d"])),
        Form::Word(_) if is_odd => json!("other"),
        Form::Word(words) => json!(one(random, words)),
        Form::Provider if is_odd => json!("nobody"),
        Form::Provider => json!(one(random, &["github", "Stripe", "SNS", "slack"])),
        Form::Whole(_) if is_odd => json!(number(random, &[i64::from(u32::MAX), 1 << 32, -1])),
        Form::Whole(_) => json!(number(random, &[0, 1, 128, 129, 3600])),
        Form::Fraction if is_odd => json!(number(random, &[1.01, -0.5])),
        Form::Fraction => json!(number(random, &[0.0, 0.25, 1.0])),
        Form::Reference("/certificate_authorities") => {
            let there: Vec<&str> =
                pool.state.resources_of("/certificate_authorities").map(|it| it.id.as_str()).collect();
            json!(id(random, &there, pool.gone, "ca_unknown"))
        }
        Form::Reference(_) if is_odd => json!(one(random, &["a b", "a/b", ""])),
        Form::Reference(_) => json!(one(random, &["ipp_1", "ipp_2", "bkd_1", "x"])),
        Form::Hostport if is_odd => json!(one(random, &["a:0", "", "*:1"])),
        Form::Hostport => json!(one(random, &HOSTPORTS)),
        Form::Token if is_odd => json!("a b"),
        Form::Token => json!(one(random, &["X-A", "X-B", "X-C"])),
        Form::Authority if is_odd => json!(one(random, &["MIIB", ""])),
        Form::Authority => json!(one(random, &[STAFF_CA, PARTNER_CA])),
        Form::List(entry) => {
            let length = random.random_range(0..3);
            Value::Array((0..length).map(|_| value(random, pool, entry)).collect())
        }
        Form::Texts => {
            let names = ["X-A", "X-B"].into_iter().filter(|_| is_odd || random.random_bool(0.5));
            let names: Vec<&str> = names.collect();
            names.into_iter().map(|name| (name.to_owned(), value(random, pool, &Form::Text))).collect()
        }
        Form::Module(name) => body(random, pool, &module(name), 0.7),
    }
}
