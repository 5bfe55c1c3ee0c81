//! Clients that send more than they were given: path parameters, and null or blanks for unset fields (D62, D65).

use serde_json::{Value, json};

use super::{
    row::{ROUTE, Row, row},
    run::hold,
    samples::{self, Sample, with},
};

#[test]
fn clients_that_send_their_whole_argument() {
    hold(rows());
}

pub(super) fn rows() -> Vec<Row> {
    [resource_rows(), module_rows(), null_rows(), blank_rows(), emptied_rows()].concat()
}

const SOURCES: &str = "/event_subscriptions/esb_{n}/sources";

fn resource_rows() -> Vec<Row> {
    let restriction = json!({"type": "agent"});
    let pem = json!({"ca_pem": samples::STAFF_CA});
    let pair = json!({"certificate_pem": samples::SHOP_CHAIN, "private_key_pem": samples::SHOP_KEY});
    let mut rows = vec![
        row("a new route repeats the edge of its path")
            .edge()
            .send(
                "POST /edges/https/{edge}/routes",
                json!({"edge_id": "{edge}", "match_type": "path_prefix", "match": "/"}),
            )
            .answers(201, samples::route(json!({})))
            .send(
                "POST /edges/https/{edge}/routes",
                json!({"edge_id": "edghts_other", "match_type": "path_prefix", "match": "/", "descripton": ""}),
            )
            .fails(400, "UNKNOWN_VALUE", "/edge_id")
            .also("UNKNOWN_FIELD", "/descripton"),
        row("a PATCH of a route repeats its whole path")
            .route()
            .send(&format!("PATCH {ROUTE}"), json!({"edge_id": "{edge}", "id": "{route}", "description": "d"}))
            .succeeds(200)
            .shows("/description", json!("d"))
            .send(&format!("PATCH {ROUTE}"), json!({"edge_id": "{route}", "id": 1}))
            .fails(400, "UNKNOWN_VALUE", "/edge_id")
            .also("UNKNOWN_VALUE", "/id"),
        row("an event source repeats its subscription and its type")
            .send(&format!("POST {SOURCES}"), json!({"subscription_id": "esb_{n}", "type": "a.v0"}))
            .succeeds(201)
            .send(&format!("PATCH {SOURCES}/a.v0"), json!({"subscription_id": "esb_{n}", "type": "a.v0"}))
            .succeeds(200)
            .send(&format!("PATCH {SOURCES}/a.v0"), json!({"subscription_id": "esb_other", "type": "b.v0"}))
            .fails(400, "UNKNOWN_VALUE", "/subscription_id")
            .also("IMMUTABLE", "/type")
            .send(&format!("PATCH {SOURCES}/b.v0"), json!({"type": "b.v0"}))
            .fails(404, "NOT_FOUND", ""),
        row("only parameters of the path are repeated")
            .send("POST /edges/https", json!({"id": "edghts_1"}))
            .fails(400, "UNKNOWN_FIELD", "/id")
            .send("POST /ip_restrictions", json!({"id": "ipx_1", "type": "api"}))
            .fails(400, "UNKNOWN_FIELD", "/id"),
    ];
    let kinds = [
        ("/api_keys", json!({})),
        ("/ip_restrictions", restriction),
        ("/certificate_authorities", pem),
        ("/tls_certificates", pair),
        ("/edges/https", json!({})),
    ];
    rows.extend(kinds.map(|(path, body)| {
        row(format!("a PATCH below {path} repeats the id of its path, and every fixed field as it is"))
            .given("it", &format!("POST {path}"), body.clone())
            .send(&format!("PATCH {path}/{{it}}"), with(body, json!({"id": "{it}", "description": "d"})))
            .succeeds(200)
            .shows("/description", json!("d"))
            .send(&format!("PATCH {path}/{{it}}"), json!({"id": "other", "description": "e"}))
            .fails(400, "UNKNOWN_VALUE", "/id")
            .says("remove `id`")
            .call(&format!("GET {path}/{{it}}"))
            .succeeds(200)
            .shows("/description", json!("d"))
    }));
    rows
}

fn module_rows() -> Vec<Row> {
    let whole = |host: &str, path: &str, given: fn(Row) -> Row, ids: Value, sample: &Sample| {
        let put = format!("PUT {path}/{}", sample.slot);
        let body = with(sample.full.clone(), ids);
        given(row(format!("{} of {host}: a PUT repeats the parameters of its path", sample.slot)))
            .send(&put, body.clone())
            .answers(200, sample.full_answer.clone())
            .send(&put, with(body, json!({"id": "other"})))
            .fails(400, "UNKNOWN_VALUE", "/id")
    };
    let route_ids = json!({"edge_id": "{edge}", "id": "{route}"});
    let routes = samples::route_modules();
    let routes = routes.iter().map(|sample| whole("a route", ROUTE, Row::route, route_ids.clone(), sample));
    let edges = samples::edge_modules();
    let edges = edges.iter().map(|sample| {
        whole("an HTTPS edge", "/edges/https/{edge}", |row| row.ca().edge(), json!({"id": "{edge}"}), sample)
    });
    let tls_edges = samples::tls_edge_modules();
    let tls_edges = tls_edges
        .iter()
        .map(|sample| whole("a TLS edge", "/edges/tls/edgtls_{n}", |row| row, json!({"id": "edgtls_{n}"}), sample));
    routes.chain(edges).chain(tls_edges).collect()
}

fn null_rows() -> Vec<Row> {
    let get = format!("GET {ROUTE}");
    vec![
        row("a null field that the server does not know is not given, however deep it stands")
            .edge()
            .given(
                "route",
                "POST /edges/https/{edge}/routes",
                json!({
                    "match_type": "path_prefix", "match": "/", "traffic_policy": null,
                    "oauth": {"provider": {"google": {"hosted_domain": null}, "okta": null}, "maximum": null},
                }),
            )
            .send(&format!("PATCH {ROUTE}"), json!({"traffic_policy": null, "description": "d"}))
            .succeeds(200)
            .shows("/description", json!("d"))
            .send(&format!("PUT {ROUTE}/policies"), json!({"module": null, "inbound": [{"id": null, "name": "a"}]}))
            .succeeds(200)
            .send(&format!("PUT {ROUTE}/compression"), json!({"enabled": null, "id": null, "edge_id": null}))
            .answers(200, json!({"enabled": true}))
            .call(&get)
            .succeeds(200)
            .shows("/oauth/provider/google/email_domains", json!([])),
        row("an unknown field with any other value is refused, and a null in a list is no item")
            .route()
            .send(&format!("PATCH {ROUTE}"), json!({"traffic_policy": ""}))
            .fails(400, "UNKNOWN_FIELD", "/traffic_policy")
            .send(&format!("PATCH {ROUTE}"), json!({"policies": {"inbound": [null]}}))
            .fails(400, "WRONG_TYPE", "/policies/inbound/0"),
        row("the configuration of an action keeps its nulls")
            .route()
            .send(
                &format!("PUT {ROUTE}/policies"),
                json!({"inbound": [{"actions": [{"type": "log", "config": {"Metadata": null}}]}]}),
            )
            .succeeds(200)
            .shows("/inbound/0/actions/0/config", json!({"Metadata": null})),
    ]
}

const WARNING: &str = "Edgewright-Warning";

fn left(field: &str) -> String {
    format!("`{field}` is blank and was left unchanged; to clear it, send only this field")
}

fn emptied(field: &str) -> String {
    format!("`{field}` is empty now, and the restriction is enforced")
}

fn restriction() -> Value {
    json!({
        "type": "api", "enforced": true, "ip_policy_ids": ["ipp_1"], "description": "office", "metadata": "m"
    })
}

/// A blank that stands for nothing changes nothing; one that was meant clears the field (D65).
fn blank_rows() -> Vec<Row> {
    let patch = "PATCH /ip_restrictions/{ipx}";
    let blanks = json!({"description": "", "metadata": "", "ip_policy_ids": []});
    vec![
        row("blank texts beside a blank match are not given")
            .route()
            .send(&format!("PATCH {ROUTE}"), json!({"description": "d", "metadata": "m"}))
            .succeeds(200)
            .send(
                &format!("PATCH {ROUTE}"),
                json!({"match_type": "", "match": "", "description": "", "metadata": "n", "compression": {}}),
            )
            .succeeds(200)
            .shows("/description", json!("d"))
            .shows("/metadata", json!("n"))
            .shows("/compression", json!({"enabled": true}))
            .carries(WARNING, &left("description"))
            .carries(WARNING, "`match` is blank and was left unchanged")
            .send(&format!("PATCH {ROUTE}"), json!({"match_type": "exact_path", "match": "/x", "description": ""}))
            .succeeds(200)
            .shows("/description", json!(""))
            .shows("/metadata", json!("n"))
            .lacks(WARNING),
        row("blanks beside a repeated path parameter are not given")
            .given("ipx", "POST /ip_restrictions", restriction())
            .send(patch, with(blanks.clone(), json!({"id": "{ipx}", "enforced": true, "description": "new"})))
            .succeeds(200)
            .shows("/description", json!("new"))
            .shows("/metadata", json!("m"))
            .shows("/ip_policies/0/id", json!("ipp_1"))
            .carries(WARNING, &left("metadata"))
            .send(patch, json!({"id": "{ipx}", "type": "", "description": "newer"}))
            .succeeds(200)
            .shows("/description", json!("newer"))
            .carries(WARNING, "`type` is blank and was left unchanged")
            .given("edge", "POST /edges/https", json!({"hostports": ["a.example:443"]}))
            .send("PATCH /edges/https/{edge}", json!({"id": "{edge}", "description": "", "hostports": []}))
            .succeeds(200)
            .shows("/hostports", json!(["a.example:443"]))
            .carries(WARNING, &left("hostports"))
            .send("PATCH /edges/https/{edge}", json!({"id": "{edge}", "description": "", "metadata": ""}))
            .succeeds(200)
            .lacks(WARNING),
        row("any other blank clears its field")
            .given("ipx", "POST /ip_restrictions", restriction())
            .send(patch, with(blanks, json!({"enforced": false})))
            .succeeds(200)
            .shows("/description", json!(""))
            .shows("/metadata", json!(""))
            .shows("/ip_policies", json!([]))
            .lacks(WARNING)
            .given("edge", "POST /edges/https", json!({"hostports": ["a.example:443"]}))
            .send("PATCH /edges/https/{edge}", json!({"description": null, "hostports": []}))
            .succeeds(200)
            .shows("/hostports", json!([]))
            .lacks(WARNING),
        row("a blank field that does not exist, or has another type, is a fault even if it is not given")
            .given("ipx", "POST /ip_restrictions", restriction())
            .send(patch, json!({"id": "{ipx}", "descripton": "", "enforced": "", "metadata": []}))
            .fails(400, "UNKNOWN_FIELD", "/descripton")
            .also("WRONG_TYPE", "/enforced")
            .also("WRONG_TYPE", "/metadata"),
    ]
}

/// Who empties a restriction hears of it (D65).
fn emptied_rows() -> Vec<Row> {
    let route = format!("PATCH {ROUTE}");
    let mut rows = vec![
        row("a PATCH that empties an enforced IP restriction warns")
            .given("ipx", "POST /ip_restrictions", restriction())
            .send("PATCH /ip_restrictions/{ipx}", json!({"description": "x"}))
            .succeeds(200)
            .lacks(WARNING)
            .send("PATCH /ip_restrictions/{ipx}", json!({"ip_policy_ids": []}))
            .succeeds(200)
            .shows("/ip_policies", json!([]))
            .carries(WARNING, &emptied("ip_policy_ids"))
            .send("PATCH /ip_restrictions/{ipx}", json!({"ip_policy_ids": []}))
            .succeeds(200)
            .lacks(WARNING),
        row("a PATCH that enforces an IP restriction and empties it warns")
            .given("ipx", "POST /ip_restrictions", with(restriction(), json!({"enforced": false})))
            .send("PATCH /ip_restrictions/{ipx}", json!({"enforced": true, "ip_policy_ids": []}))
            .succeeds(200)
            .carries(WARNING, &emptied("ip_policy_ids")),
        row("a PATCH that takes the authorities from mutual_tls warns")
            .ca()
            .given("edge", "POST /edges/https", json!({"mutual_tls": {"certificate_authority_ids": ["{ca}"]}}))
            .send("PATCH /edges/https/{edge}", json!({"mutual_tls": {"certificate_authority_ids": []}}))
            .succeeds(200)
            .carries(WARNING, &emptied("mutual_tls.certificate_authority_ids")),
    ];
    let deny = json!([{"actions": [{"type": "deny"}]}]);
    let metadata = samples::IDP_METADATA;
    let modules = [
        ("ip_restriction", "ip_policy_ids", json!({"ip_policy_ids": ["ipp_1"]}), json!({})),
        ("user_agent_filter", "deny", json!({"deny": ["bot"]}), json!({"deny": []})),
        (
            "jwt_validation",
            "audience.allow_list",
            json!({"audience": {"allow_list": [{"value": "shop"}]}}),
            json!({"audience": {"allow_list": []}}),
        ),
        ("policies", "inbound", json!({"inbound": deny}), json!({"outbound": deny})),
        (
            "saml",
            "authorized_groups",
            json!({"idp_metadata": metadata, "authorized_groups": ["staff"]}),
            json!({"idp_metadata": metadata}),
        ),
        (
            "oauth",
            "provider.google.email_domains",
            json!({"provider": {"google": {"email_domains": ["example.com"]}}}),
            json!({"provider": {"google": {}}}),
        ),
        (
            "oauth",
            "provider.github.teams",
            json!({"provider": {"github": {"teams": ["shop/edge"]}}}),
            json!({"provider": {"github": {"teams": []}}}),
        ),
    ];
    rows.extend(modules.map(|(slot, field, full, empty)| {
        row(format!("a PATCH that empties {field} of an enabled {slot} warns"))
            .route()
            .send(&route, json!({slot: full}))
            .succeeds(200)
            .lacks(WARNING)
            .send(&route, json!({"compression": {}}))
            .succeeds(200)
            .lacks(WARNING)
            .send(&route, json!({slot: empty}))
            .succeeds(200)
            .carries(WARNING, &emptied(&format!("{slot}.{field}")))
            .send(&route, json!({slot: full}))
            .succeeds(200)
            .send(&route, json!({slot: with(empty, json!({"enabled": false}))}))
            .succeeds(200)
            .lacks(WARNING)
    }));
    rows
}
