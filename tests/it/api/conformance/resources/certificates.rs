//! Certificate authorities and TLS certificates: what is derived from the PEM (D19), what is fixed, what stays secret.

use serde_json::{Value, json};

use crate::api::conformance::support::{
    row::{Row, row},
    run::hold,
    samples::{
        self, EXPIRED, EXPIRED_KEY, PARTNER_CA, SHOP_CHAIN, SHOP_KEY, STAFF_CA, WEB_CA, WILDCARD_CHAIN, WILDCARD_KEY,
    },
};

#[test]
fn certificate_authorities() {
    hold(authority_rows());
}

#[test]
fn tls_certificates() {
    hold(certificate_rows());
}

pub(super) fn rows() -> Vec<Row> {
    [authority_rows(), certificate_rows()].concat()
}

/// What openssl prints of `examples/storefront/certs/staff-devices.pem`.
fn staff_ca(changes: Value) -> Value {
    let base = json!({
        "id": "{ca_}", "uri": "{base}/certificate_authorities/{ca_}", "created_at": "{time}", "description": "",
        "metadata": "", "ca_pem": STAFF_CA, "subject_common_name": "Example Shop Demo Staff Devices CA",
        "not_before": "2025-01-01T00:00:00Z", "not_after": "2125-01-01T00:00:00Z",
        "key_usages": ["cert-sign", "crl-sign"], "extended_key_usages": ["client-auth"]
    });
    samples::with(base, changes)
}

fn authority_rows() -> Vec<Row> {
    let post = "POST /certificate_authorities";
    let described = json!({"description": "staff", "metadata": "m"});
    vec![
        row("an authority shows what its certificate says")
            .send(post, samples::with(described.clone(), json!({"ca_pem": STAFF_CA})))
            .answers(201, staff_ca(described.clone()))
            .keep_etag("etag")
            .call("GET /certificate_authorities/{ca_}")
            .answers(200, staff_ca(described.clone()))
            .carries("ETag", "{etag}")
            .call("GET /certificate_authorities")
            .succeeds(200)
            .shows("/certificate_authorities/0", staff_ca(described.clone()))
            .send("PATCH /certificate_authorities/{ca_}", json!({"description": "all staff", "metadata": null}))
            .answers(200, staff_ca(json!({"description": "all staff", "metadata": "m"})))
            .call("DELETE /certificate_authorities/{ca_}")
            .succeeds(204)
            .call("GET /certificate_authorities/{ca_}")
            .fails(404, "NOT_FOUND", ""),
        row("unset texts of an authority are empty")
            .send(post, json!({"ca_pem": STAFF_CA}))
            .answers(201, staff_ca(json!({}))),
        row("an RSA authority, and one without extended usages")
            .send(post, json!({"ca_pem": PARTNER_CA}))
            .succeeds(201)
            .shows("/subject_common_name", json!("Parcel Partners Demo Devices CA"))
            .send(post, json!({"ca_pem": WEB_CA}))
            .succeeds(201)
            .shows("/key_usages", json!(["cert-sign", "crl-sign"]))
            .shows("/extended_key_usages", json!([])),
        row("the PEM of an authority is fixed")
            .ca()
            .send("PATCH /certificate_authorities/{ca}", json!({"ca_pem": PARTNER_CA}))
            .fails(400, "IMMUTABLE", "/ca_pem")
            .send("PATCH /certificate_authorities/{ca}", json!({"ca_pem": STAFF_CA.trim_end()}))
            .succeeds(200)
            .call("GET /certificate_authorities/{ca}")
            .succeeds(200)
            .shows("/ca_pem", json!(STAFF_CA)),
        row("an authority needs a PEM").send(post, json!({})).fails(400, "REQUIRED", "/ca_pem"),
        row("an empty PEM is none").send(post, json!({"ca_pem": ""})).fails(400, "REQUIRED", "/ca_pem"),
        row("what is no PEM, or a damaged one, or a key, is refused")
            .send(post, json!({"ca_pem": "MIIB"}))
            .fails(400, "INVALID_PEM", "/ca_pem")
            .send(post, json!({"ca_pem": STAFF_CA[..300]}))
            .fails(400, "INVALID_PEM", "/ca_pem")
            .send(post, json!({"ca_pem": WILDCARD_KEY}))
            .fails(400, "INVALID_PEM", "/ca_pem"),
        row("a PEM comes from the body, not from a file (D28 is for manifests)")
            .send(post, json!({"ca_pem": {"from_file": "/etc/passwd"}}))
            .fails(400, "WRONG_TYPE", "/ca_pem"),
        row("derived fields cannot be written")
            .send(post, json!({"ca_pem": STAFF_CA, "not_after": "2030-01-01T00:00:00Z"}))
            .fails(400, "UNKNOWN_FIELD", "/not_after"),
        row("an unknown authority is 404")
            .call("GET /certificate_authorities/ca_unknown")
            .fails(404, "NOT_FOUND", "")
            .send("PATCH /certificate_authorities/ca_unknown", json!({}))
            .fails(404, "NOT_FOUND", "")
            .call("DELETE /certificate_authorities/ca_unknown")
            .fails(404, "NOT_FOUND", "")
            .refuses_query("GET /certificate_authorities?before_id=ca_unknown", "/before_id"),
        row("an authority in use cannot be deleted, and its users are named (D20)")
            .ca()
            .given("first", "POST /edges/https", json!({"mutual_tls": {"certificate_authority_ids": ["{ca}"]}}))
            .given(
                "second",
                "POST /edges/https",
                json!({"mutual_tls": {"certificate_authority_ids": ["{ca}", "{ca}"]}}),
            )
            .call("DELETE /certificate_authorities/{ca}")
            .fails(409, "IN_USE", "")
            .says("{first}")
            .says("{second}")
            .call("DELETE /edges/https/{first}")
            .succeeds(204)
            .call("DELETE /certificate_authorities/{ca}")
            .fails(409, "IN_USE", "")
            .says("{second}")
            .hides("{first}")
            .call("DELETE /edges/https/{second}/mutual_tls")
            .succeeds(204)
            .call("DELETE /certificate_authorities/{ca}")
            .succeeds(204),
    ]
}

/// What openssl prints of `examples/storefront/certs/shop.chain.pem`.
fn shop(changes: Value) -> Value {
    let base = json!({
        "id": "{cert_}", "uri": "{base}/tls_certificates/{cert_}", "created_at": "{time}", "description": "",
        "metadata": "", "certificate_pem": SHOP_CHAIN, "subject_common_name": "shop.example.com",
        "subject_alternative_names": {"dns_names": ["shop.example.com", "www.shop.example.com"], "ips": ["192.0.2.10"]},
        "issued_at": null, "not_before": "2025-01-01T00:00:00Z", "not_after": "2125-01-01T00:00:00Z",
        "key_usages": ["digital-signature", "key-encipherment"], "extended_key_usages": ["server-auth"],
        "private_key_type": "rsa", "issuer_common_name": "Example Shop Demo Web CA",
        "serial_number": "2f3a46e2c3623dff919af8f04658e11b6ce6ebb9", "subject_organization": "Example Shop GmbH",
        "subject_organizational_unit": "Shop", "subject_locality": "Berlin", "subject_province": "Berlin",
        "subject_country": "DE"
    });
    samples::with(base, changes)
}

fn certificate_rows() -> Vec<Row> {
    let post = "POST /tls_certificates";
    let pair = json!({"certificate_pem": SHOP_CHAIN, "private_key_pem": SHOP_KEY});
    let pair_of = |chain: &str, key: &str| json!({"certificate_pem": chain, "private_key_pem": key});
    // A line of the key that no certificate has: none of it may ever come back.
    let secret = SHOP_KEY.lines().nth(10).unwrap();
    let turned = format!("{WEB_CA}{SHOP_CHAIN}");
    vec![
        row("a certificate shows what its leaf says, and never its key")
            .send(post, samples::with(pair.clone(), json!({"description": "shop", "metadata": "m"})))
            .answers(201, shop(json!({"description": "shop", "metadata": "m"})))
            .hides(secret)
            .keep_etag("etag")
            .call("GET /tls_certificates/{cert_}")
            .answers(200, shop(json!({"description": "shop", "metadata": "m"})))
            .carries("ETag", "{etag}")
            .hides(secret)
            .call("GET /tls_certificates")
            .succeeds(200)
            .shows("/tls_certificates/0", shop(json!({"description": "shop", "metadata": "m"})))
            .hides(secret)
            .send("PATCH /tls_certificates/{cert_}", json!({"description": "", "metadata": "n"}))
            .answers(200, shop(json!({"metadata": "n"})))
            .hides(secret)
            .call("DELETE /tls_certificates/{cert_}")
            .succeeds(204)
            .call("GET /tls_certificates/{cert_}")
            .fails(404, "NOT_FOUND", ""),
        row("unset texts of a certificate are empty").send(post, pair.clone()).answers(201, shop(json!({}))),
        row("an ECDSA certificate")
            .send(post, pair_of(WILDCARD_CHAIN, WILDCARD_KEY))
            .succeeds(201)
            .shows("/private_key_type", json!("ecdsa"))
            .shows("/serial_number", json!("2ebe001e3ce36d3278ce5e47444b9d26153194f3"))
            .shows("/subject_alternative_names", json!({"dns_names": ["*.example.com"], "ips": []}))
            .shows("/key_usages", json!(["digital-signature"]))
            .shows("/subject_organizational_unit", json!("Platform")),
        row("an expired certificate is accepted; what a subject lacks is empty; unknown usages are dotted")
            .send(post, pair_of(EXPIRED, EXPIRED_KEY))
            .answers(
                201,
                shop(json!({
                    "certificate_pem": EXPIRED, "subject_common_name": "old.example.com",
                    "subject_alternative_names": {"dns_names": [], "ips": ["2001:db8::7", "192.0.2.7"]},
                    "not_before": "2020-01-01T00:00:00Z", "not_after": "2021-01-01T00:00:00Z",
                    "key_usages": ["digital-signature"], "extended_key_usages": ["client-auth", "1.3.6.1.4.1.55555.7"],
                    "private_key_type": "ed25519", "issuer_common_name": "old.example.com", "serial_number": "ff01",
                    "subject_organization": "", "subject_organizational_unit": "", "subject_locality": "",
                    "subject_province": "", "subject_country": ""
                })),
            ),
        row("the key must be the leaf's")
            .send(post, pair_of(SHOP_CHAIN, WILDCARD_KEY))
            .fails(400, "KEY_MISMATCH", "/private_key_pem")
            .send(post, pair_of(&turned, SHOP_KEY))
            .fails(400, "KEY_MISMATCH", "/private_key_pem"),
        row("both parts are needed")
            .send(post, json!({}))
            .fails(400, "REQUIRED", "/certificate_pem")
            .also("REQUIRED", "/private_key_pem"),
        row("a damaged chain, and a key that is none")
            .send(post, pair_of(&SHOP_CHAIN[..500], SHOP_KEY))
            .fails(400, "INVALID_PEM", "/certificate_pem")
            .hides(secret)
            .send(post, pair_of(SHOP_CHAIN, "no key"))
            .fails(400, "INVALID_PEM", "/private_key_pem")
            .send(post, pair_of(SHOP_CHAIN, STAFF_CA))
            .fails(400, "INVALID_PEM", "/private_key_pem"),
        row("chain and key are fixed")
            .given("cert", post, pair.clone())
            .send("PATCH /tls_certificates/{cert}", json!({"certificate_pem": pair["certificate_pem"]}))
            .succeeds(200)
            .hides(secret)
            .send(
                "PATCH /tls_certificates/{cert}",
                json!({"certificate_pem": SHOP_CHAIN.trim_end().replace('\n', "\r\n")}),
            )
            .succeeds(200)
            .shows("/certificate_pem", json!(SHOP_CHAIN))
            .send("PATCH /tls_certificates/{cert}", pair.clone())
            .fails(400, "IMMUTABLE", "/private_key_pem")
            .send("PATCH /tls_certificates/{cert}", json!({"certificate_pem": WILDCARD_CHAIN}))
            .fails(400, "IMMUTABLE", "/certificate_pem")
            .send("PATCH /tls_certificates/{cert}", pair_of(WILDCARD_CHAIN, WILDCARD_KEY))
            .fails(400, "IMMUTABLE", "/certificate_pem")
            .also("IMMUTABLE", "/private_key_pem")
            .call("GET /tls_certificates/{cert}")
            .answers(200, shop(json!({"id": "{cert}", "uri": "{base}/tls_certificates/{cert}"}))),
        row("an unknown certificate is 404")
            .call("GET /tls_certificates/cert_unknown")
            .fails(404, "NOT_FOUND", "")
            .send("PATCH /tls_certificates/cert_unknown", json!({}))
            .fails(404, "NOT_FOUND", "")
            .call("DELETE /tls_certificates/cert_unknown")
            .fails(404, "NOT_FOUND", "")
            .refuses_query("GET /tls_certificates?limit=x", "/limit"),
    ]
}
