//! The rules of the modules that shape traffic: numbers, headers, webhooks, tokens, policies.

use edgewright::resources::modules::WEBHOOK_PROVIDERS;
use serde_json::{Value, json};

use crate::api::conformance::support::{
    row::{ROUTE, Row, row},
    run::hold,
};

#[test]
fn traffic_modules() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    [breaker_rows(), header_rows(), webhook_rows(), token_rows(), policy_rows(), reference_rows()].concat()
}

fn breaker_rows() -> Vec<Row> {
    let put = format!("PUT {ROUTE}/circuit_breaker");
    let mut rows = Vec::new();
    for field in ["tripped_duration", "rolling_window", "num_buckets", "volume_threshold"] {
        let pointer = format!("/{field}");
        let most = if field == "num_buckets" { 128 } else { u32::MAX };
        rows.push(
            row(format!("{field} is a whole number up to {most}"))
                .route()
                .send(&put, json!({field: most}))
                .succeeds(200)
                .shows(&pointer, json!(most))
                .send(&put, json!({field: 0}))
                .succeeds(200)
                .shows(&pointer, json!(0))
                .send(&put, json!({field: u64::from(most) + 1}))
                .fails(400, "OUT_OF_RANGE", &pointer)
                .send(&put, json!({field: 4_294_967_296_u64}))
                .fails(400, "OUT_OF_RANGE", &pointer)
                .send(&put, json!({field: -1}))
                .fails(400, "OUT_OF_RANGE", &pointer)
                .send(&put, json!({field: 0.5}))
                .fails(400, "WRONG_TYPE", &pointer)
                .send(&put, json!({field: "1"}))
                .fails(400, "WRONG_TYPE", &pointer)
                .call(&format!("GET {ROUTE}/circuit_breaker"))
                .succeeds(200)
                .shows(&pointer, json!(0)),
        );
    }
    let threshold = "/error_threshold_percentage";
    let of = |value: Value| json!({"error_threshold_percentage": value});
    let mut fraction = row("error_threshold_percentage is a fraction between 0 and 1.0 (rule 6)").route();
    for good in [json!(0), json!(0.0), json!(0.01), json!(1), json!(1.0)] {
        fraction = fraction.send(&put, of(good.clone())).succeeds(200).shows(threshold, good);
    }
    for bad in [json!(1.01), json!(1.0000001), json!(-0.1), json!(-1), json!(25), json!(1e308)] {
        fraction = fraction.send(&put, of(bad)).fails(400, "OUT_OF_RANGE", threshold);
    }
    rows.push(fraction.send(&put, of(json!("0.5"))).fails(400, "WRONG_TYPE", threshold));
    rows.push(
        row("rule 6 and the limit of num_buckets in a route's body")
            .route()
            .send(
                &format!("PATCH {ROUTE}"),
                json!({"circuit_breaker": {"num_buckets": 129, "error_threshold_percentage": 1.01}}),
            )
            .fails(400, "OUT_OF_RANGE", "/circuit_breaker/num_buckets")
            .also("OUT_OF_RANGE", "/circuit_breaker/error_threshold_percentage"),
    );
    rows
}

fn header_rows() -> Vec<Row> {
    let rows = ["request_headers", "response_headers"].map(|slot| {
        let put = format!("PUT {ROUTE}/{slot}");
        vec![
            row(format!("{slot}: names are tokens of RFC 9110, values are free (D17)"))
                .route()
                .send(&put, json!({"add": {"X-!#$%&'*+-.^_`|~9": "a \"b\" é \t{}"}, "remove": ["Via", "Age"]}))
                .answers(
                    200,
                    json!({"enabled": true, "add": {"X-!#$%&'*+-.^_`|~9": "a \"b\" é \t{}"}, "remove": ["Via", "Age"]}),
                ),
            row(format!("{slot}: a bad name is named by its place"))
                .route()
                .send(&put, json!({"add": {"a b": "x", "": "x", "a/b": "x", "ü": "x", "ok": "x"}}))
                .fails(400, "INVALID_FORMAT", "/add/a b")
                .also("INVALID_FORMAT", "/add/")
                .also("INVALID_FORMAT", "/add/a~1b")
                .also("INVALID_FORMAT", "/add/ü")
                .send(&put, json!({"remove": ["ok", "a:b", ""]}))
                .fails(400, "INVALID_FORMAT", "/remove/1")
                .also("INVALID_FORMAT", "/remove/2"),
            row(format!("{slot}: two spellings of one header are refused, and one is returned as it was given (D17)"))
                .route()
                .send(
                    &put,
                    json!({"add": {"X-Team": "a", "x-team": "b", "X-Note": "c"}, "remove": ["via", "Age", "Via"]}),
                )
                .fails(400, "DUPLICATE_KEY", "/add/x-team")
                .also("DUPLICATE_KEY", "/remove/2")
                .says("`x-team` and `X-Team` are the same header")
                .send(&put, json!({"add": {"x-TEAM": "a"}, "remove": ["X-team", "aGE", "aGE"]}))
                .answers(200, json!({"enabled": true, "add": {"x-TEAM": "a"}, "remove": ["X-team", "aGE", "aGE"]})),
            row(format!("{slot}: no value holds CR, LF or NUL"))
                .route()
                .send(&put, json!({"add": {"a": "x\r\nSet-Cookie: y", "b": "\n", "c": "\u{0}", "d": "x"}}))
                .fails(400, "INVALID_FORMAT", "/add/a")
                .also("INVALID_FORMAT", "/add/b")
                .also("INVALID_FORMAT", "/add/c"),
            row(format!("{slot}: values are text, and null ones are not given"))
                .route()
                .send(&put, json!({"add": {"a": 1}}))
                .fails(400, "WRONG_TYPE", "/add/a")
                .send(&put, json!({"add": {"a": null, "b": "x"}}))
                .answers(200, json!({"enabled": true, "add": {"b": "x"}, "remove": []})),
        ]
    });
    rows.concat()
}

fn webhook_rows() -> Vec<Row> {
    let put = format!("PUT {ROUTE}/webhook_verification");
    let mut all = row("every provider of the list is supported, and all but sns need a secret (D16)").route();
    for provider in WEBHOOK_PROVIDERS {
        all = all
            .send(&put, json!({"provider": provider, "secret": "s"}))
            .answers(200, json!({"enabled": true, "provider": provider, "secret": "s"}));
        if *provider != "sns" {
            all = all.send(&put, json!({"provider": provider})).fails(400, "REQUIRED", "/secret");
        }
    }
    vec![
        all,
        row("a provider is compared without case, and returned as it was written")
            .route()
            .send(&put, json!({"provider": "GitHub", "secret": "s"}))
            .answers(200, json!({"enabled": true, "provider": "GitHub", "secret": "s"}))
            .send(&put, json!({"provider": "SNS"}))
            .answers(200, json!({"enabled": true, "provider": "SNS", "secret": ""}))
            .send(&put, json!({"provider": "GITLAB", "secret": ""}))
            .fails(400, "REQUIRED", "/secret"),
        row("an unknown provider is refused, and the nearest suggested")
            .route()
            .send(&put, json!({"provider": "guthub", "secret": "hush"}))
            .fails(400, "UNKNOWN_VALUE", "/provider")
            .says("did you mean `github`?")
            .hides("hush"),
        row("a provider is needed")
            .route()
            .send(&put, json!({}))
            .fails(400, "REQUIRED", "/provider")
            .send(&put, json!({"provider": "", "secret": "s"}))
            .fails(400, "REQUIRED", "/provider"),
    ]
}

fn token_rows() -> Vec<Row> {
    let put = format!("PUT {ROUTE}/jwt_validation");
    let token = |kind: Value, method: Value| json!({"http": {"tokens": [{"type": kind, "method": method}]}});
    let mut rows = vec![
        row("a token's type and method are words of a list (rule 5)")
            .route()
            .send(&put, token(json!("JWT"), json!("cookie")))
            .fails(400, "UNKNOWN_VALUE", "/http/tokens/0/type")
            .also("UNKNOWN_VALUE", "/http/tokens/0/method")
            .send(&put, token(json!("id+jwt"), json!("header")))
            .fails(400, "UNKNOWN_VALUE", "/http/tokens/0/type")
            .says("`jwt`, `at+jwt`, `it+jwt`"),
        row("a token's type and method are needed")
            .route()
            .send(&put, json!({"http": {"tokens": [{"type": "jwt", "method": "body"}, {}]}}))
            .fails(400, "REQUIRED", "/http/tokens/1/type")
            .also("REQUIRED", "/http/tokens/1/method"),
        row("allow lists hold objects with a value")
            .route()
            .send(&put, json!({"issuer": {"allow_list": ["https://idp.example.com"]}}))
            .fails(400, "WRONG_TYPE", "/issuer/allow_list/0")
            .send(&put, json!({"audience": {"allow_list": [{"values": "x"}]}}))
            .fails(400, "UNKNOWN_FIELD", "/audience/allow_list/0/values")
            .says("did you mean `value`?"),
        row("an entry of an allow list has a value")
            .route()
            .send(
                &put,
                json!({"enabled": false, "issuer": {"allow_list": [{}, {"value": null}]},
                    "audience": {"allow_list": [{"value": "shop"}, {"value": ""}]}}),
            )
            .fails(400, "REQUIRED", "/issuer/allow_list/0/value")
            .also("REQUIRED", "/issuer/allow_list/1/value")
            .also("REQUIRED", "/audience/allow_list/1/value")
            .send(&format!("PATCH {ROUTE}"), json!({"jwt_validation": {"audience": {"allow_list": [{}]}}}))
            .fails(400, "REQUIRED", "/jwt_validation/audience/allow_list/0/value"),
        row("an unknown field is refused however deep it stands")
            .route()
            .send(&put, json!({"jws": {"keys": {"sources": {"additional_jkuss": []}}}}))
            .fails(400, "UNKNOWN_FIELD", "/jws/keys/sources/additional_jkuss")
            .says("did you mean `additional_jkus`?"),
        row("null objects of the module have their defaults inside")
            .route()
            .send(&put, json!({"issuer": null, "http": {"tokens": null}, "jws": {"keys": null}}))
            .answers(
                200,
                json!({"enabled": true, "issuer": {"allow_list": []}, "audience": {"allow_list": []},
                    "http": {"tokens": []},
                    "jws": {"allowed_algorithms": [], "keys": {"sources": {"additional_jkus": []}}}}),
            ),
    ];
    for kind in ["jwt", "at+jwt", "it+jwt"] {
        for method in ["header", "body"] {
            rows.push(
                row(format!("a token of type {kind} in the {method}"))
                    .route()
                    .send(&put, token(json!(kind), json!(method)))
                    .succeeds(200)
                    .shows("/http/tokens/0", json!({"type": kind, "method": method, "name": "", "prefix": ""})),
            );
        }
    }
    rows
}

fn policy_rows() -> Vec<Row> {
    let hosts = [(true, ROUTE), (false, "/edges/tls/edgtls_{n}")];
    let rows = hosts.map(|(route, path)| {
        let put = format!("PUT {path}/policies");
        let action = |action: Value| json!({"outbound": [{"actions": [action]}]});
        let named = |name: &str| row(format!("{path}: {name}"));
        let begin = |name: &str| if route { named(name).route() } else { named(name) };
        vec![
            begin("the config of an action is any object, and null without one")
                .send(&put, action(json!({"type": "log", "config": {"Metadata": {"a": [1, {"b": ""}], "c": "é"}}})))
                .succeeds(200)
                .shows("/outbound/0/actions/0/config", json!({"Metadata": {"a": [1, {"b": ""}], "c": "é"}}))
                .shows("/outbound/0/expressions", json!([]))
                .shows("/outbound/0/name", json!(""))
                .send(&put, action(json!({"type": "deny"})))
                .succeeds(200)
                .shows("/outbound/0/actions/0", json!({"type": "deny", "config": null}))
                .send(&put, action(json!({"type": "custom-response", "config": {}})))
                .succeeds(200)
                .shows("/outbound/0/actions/0", json!({"type": "custom-response", "config": {}})),
            begin("a config is an object").send(&put, action(json!({"type": "log", "config": "x"}))).fails(
                400,
                "WRONG_TYPE",
                "/outbound/0/actions/0/config",
            ),
            begin("an action has a type, and a policy no field beyond its own")
                .send(&put, action(json!({"type": ""})))
                .fails(400, "REQUIRED", "/outbound/0/actions/0/type")
                .send(&put, json!({"inbound": [{"expression": "true"}]}))
                .fails(400, "UNKNOWN_FIELD", "/inbound/0/expression")
                .says("did you mean `expressions`?"),
        ]
    });
    rows.concat()
}

/// Backends and policies are owned elsewhere: any opaque identifier will do (D20).
fn reference_rows() -> Vec<Row> {
    let hosts = [(true, ROUTE), (false, "/edges/tls/edgtls_{n}")];
    let rows = hosts.map(|(route, path)| {
        let put = format!("PUT {path}/backend");
        let named = |name: &str| row(format!("{path}: {name}"));
        let begin = |name: &str| if route { named(name).route() } else { named(name) };
        let (long, too_long) = ("b".repeat(255), "b".repeat(256));
        let mut bad = begin("a backend's identifier has no slash, space or control character, and 1 to 255 bytes")
            .send(&put, json!({"backend_id": ""}))
            .fails(400, "REQUIRED", "/backend_id")
            .send(&put, json!({"backend_id": null}))
            .fails(400, "REQUIRED", "/backend_id");
        for id in ["a/b", "a b", "a\nb", "a\u{7f}b", "\u{a0}", too_long.as_str()] {
            bad = bad.send(&put, json!({"backend_id": id})).fails(400, "INVALID_FORMAT", "/backend_id");
        }
        let good = begin("any opaque identifier is taken for a backend")
            .send(&put, json!({"backend_id": long}))
            .answers(200, json!({"enabled": true, "backend": {"id": long, "uri": format!("{{base}}/backends/{long}")}}))
            .send(&put, json!({"backend_id": "1"}))
            .answers(200, json!({"enabled": true, "backend": {"id": "1", "uri": "{base}/backends/1"}}));
        vec![bad, good]
    });
    rows.concat()
}
