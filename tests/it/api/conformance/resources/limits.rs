//! Lengths are bytes of UTF-8 (D7): every resource at its limits, and one past them.

use serde_json::{Value, json};

use crate::api::conformance::support::{
    row::{ROUTE, Row, row},
    run::hold,
    samples::{SHOP_CHAIN, SHOP_KEY, STAFF_CA, with},
};

#[test]
fn limits_of_texts() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    let resources = [
        ("/api_keys", "/api_keys/{id}", json!({})),
        ("/ip_restrictions", "/ip_restrictions/{id}", json!({"type": "api"})),
        ("/certificate_authorities", "/certificate_authorities/{id}", json!({"ca_pem": STAFF_CA})),
        (
            "/tls_certificates",
            "/tls_certificates/{id}",
            json!({"certificate_pem": SHOP_CHAIN, "private_key_pem": SHOP_KEY}),
        ),
        ("/edges/https", "/edges/https/{id}", json!({})),
        ("/edges/https/{edge}/routes", ROUTE, json!({"match_type": "exact_path", "match": "/"})),
    ];
    let limits = [("description", 255), ("metadata", 4096)];
    let rows = resources.into_iter().flat_map(|(collection, item, least)| {
        limits.map(|(field, most)| text_row(collection, &item.replace("{route}", "{id}"), field, most, &least))
    });
    rows.collect()
}

fn text_row(collection: &str, item: &str, field: &str, most: usize, least: &Value) -> Row {
    let (post, patch) = (format!("POST {collection}"), format!("PATCH {item}"));
    let pointer = format!("/{field}");
    let body = |text: &str| json!({field: text});
    // `most` bytes each: of one byte, two bytes and four bytes a character.
    let good = ["x".repeat(most), fill("é", most), fill("🦀", most)];
    // One byte more, and as many characters as bytes are allowed.
    let bad = ["x".repeat(most + 1), fill("é", most + 1), fill("🦀", most + 1), "é".repeat(most)];
    let mut row =
        row(format!("{collection}: {field} has at most {most} bytes")).edge().given("id", &post, least.clone());
    for text in &good {
        row = row
            .send(&patch, body(text))
            .succeeds(200)
            .shows(&pointer, json!(text))
            .send(&post, with(least.clone(), body(text)))
            .succeeds(201)
            .shows(&pointer, json!(text));
    }
    for text in &bad {
        row = row
            .send(&patch, body(text))
            .fails(400, "TOO_LONG", &pointer)
            .send(&post, with(least.clone(), body(text)))
            .fails(400, "TOO_LONG", &pointer);
    }
    row.call(&format!("GET {item}")).succeeds(200).shows(&pointer, json!(good[2]))
}

/// A text of exactly so many bytes, most of them in copies of one character.
fn fill(character: &str, bytes: usize) -> String {
    format!("{}{}", character.repeat(bytes / character.len()), "x".repeat(bytes % character.len()))
}
