//! Clients that send more than they were given: path parameters, and null or blanks for unset fields (D62, D65).

use serde_json::{Value, json};

use crate::api::conformance::support::{
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
        // A private key is refused whatever it is.
        let mut repeated = body.clone();
        repeated.as_object_mut().unwrap().remove("private_key_pem");
        row(format!("a PATCH below {path} repeats the id of its path, and every fixed field as it is"))
            .given("it", &format!("POST {path}"), body)
            .send(&format!("PATCH {path}/{{it}}"), with(repeated, json!({"id": "{it}", "description": "d"})))
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

/// The warning about a blank that is not given, and how to clear the field.
fn left(field: &str, advice: &str) -> String {
    format!("`{field}` is blank and was left unchanged; to clear it, {advice}")
}

const WITHOUT_MATCH: &str = "omit a blank `match_type`, `match`";

fn cleared(field: &str) -> String {
    format!("`{field}` is empty now")
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
    [route_blank_rows(), restriction_blank_rows(), text_blank_rows()].concat()
}

fn route_blank_rows() -> Vec<Row> {
    let patch = format!("PATCH {ROUTE}");
    let described = || row("").route().send(&patch, json!({"description": "d", "metadata": "m"})).succeeds(200);
    let mut rows = Vec::new();
    let beside = [
        ("a blank match", json!({"match_type": "", "match": ""})),
        ("a blank match and one path parameter", json!({"match": "", "id": "{route}"})),
        ("a match and a blank match type", json!({"match_type": "", "match": "/p2"})),
    ];
    rows.extend(beside.map(|(what, body)| {
        Row { name: format!("blank texts of a route beside {what} are not given"), ..described() }
            .send(&patch, with(body.clone(), json!({"description": "", "metadata": "", "compression": {}})))
            .succeeds(200)
            .shows("/description", json!("d"))
            .shows("/metadata", json!("m"))
            .shows("/compression", json!({"enabled": true}))
            .carries(WARNING, &left("description", WITHOUT_MATCH))
            .carries(WARNING, &left("metadata", WITHOUT_MATCH))
            .send(&patch, with(body, json!({"description": "", "metadata": "n"})))
            .succeeds(200)
            .shows("/description", json!("d"))
            .shows("/metadata", json!("n"))
            .carries(WARNING, &left("description", WITHOUT_MATCH))
    }));
    let given = [
        ("a new match", json!({"match_type": "exact_path", "match": "/p2"})),
        ("a match alone", json!({"match": "/p2"})),
        ("a match type alone", json!({"match_type": "exact_path"})),
    ];
    rows.extend(given.map(|(what, body)| {
        Row { name: format!("blank texts of a route beside {what} clear them"), ..described() }
            .send(&patch, with(body, json!({"description": "", "metadata": ""})))
            .succeeds(200)
            .shows("/description", json!(""))
            .shows("/metadata", json!(""))
            .carries(WARNING, &cleared("description"))
    }));
    let blanks = json!({"match_type": "", "match": "", "description": "", "metadata": ""});
    rows.push(
        Row { name: "four blank texts of a route change nothing, and each of them is named".into(), ..described() }
            .send(&patch, blanks.clone())
            .succeeds(200)
            .shows("/description", json!("d"))
            .carries(WARNING, &left("description", WITHOUT_MATCH))
            .carries(WARNING, &left("metadata", WITHOUT_MATCH))
            .carries(WARNING, "`match_type` is blank and was left unchanged")
            .carries(WARNING, "`match` is blank and was left unchanged")
            .send(&patch, json!({"edge_id": "{edge}", "id": "{route}", "description": "", "match": null}))
            .succeeds(200)
            .shows("/description", json!(""))
            .shows("/metadata", json!("m"))
            .lacks(WARNING)
            .send(&patch, json!({"metadata": "", "compression": {}}))
            .succeeds(200)
            .shows("/metadata", json!(""))
            .carries(WARNING, &cleared("metadata"))
            .send(&patch, with(blanks, json!({"match_type": null, "match": null})))
            .succeeds(200)
            .lacks(WARNING),
    );
    rows
}

fn restriction_blank_rows() -> Vec<Row> {
    let patch = "PATCH /ip_restrictions/{ipx}";
    let only = "send only this field";
    let kept = |body: Value| {
        row(format!("an empty list of IP policies is not given in {body}"))
            .given("ipx", "POST /ip_restrictions", restriction())
            .send(patch, with(body, json!({"ip_policy_ids": []})))
            .succeeds(200)
            .shows("/ip_policies/0/id", json!("ipp_1"))
            .carries(WARNING, &left("ip_policy_ids", only))
    };
    vec![
        kept(json!({"description": "new"})).shows("/description", json!("new")).shows("/metadata", json!("m")),
        kept(json!({"id": "{ipx}", "description": "new", "metadata": null, "enforced": null})),
        kept(json!({"enforced": false})).shows("/enforced", json!(false)),
        kept(json!({"type": "api"})),
        kept(json!({"description": "", "metadata": ""}))
            .shows("/description", json!(""))
            .shows("/metadata", json!(""))
            .carries(WARNING, &cleared("description"))
            .carries(WARNING, &cleared("metadata")),
        row("an empty list of IP policies alone removes them, whatever is null and repeats the path")
            .given("ipx", "POST /ip_restrictions", with(restriction(), json!({"enforced": false})))
            .send(patch, json!({"id": "{ipx}", "description": null, "enforced": null, "ip_policy_ids": []}))
            .succeeds(200)
            .shows("/ip_policies", json!([]))
            .lacks(WARNING)
            .send(patch, json!({"description": "new", "ip_policy_ids": []}))
            .succeeds(200)
            .lacks(WARNING),
        row("a blank in a fixed field is another value")
            .given("ipx", "POST /ip_restrictions", restriction())
            .send(patch, json!({"id": "{ipx}", "type": "", "description": "new"}))
            .fails(400, "IMMUTABLE", "/type")
            .also("UNKNOWN_VALUE", "/type"),
        row("a blank field that does not exist, or has another type, is a fault even if it is not given")
            .given("ipx", "POST /ip_restrictions", restriction())
            .send(patch, json!({"id": "{ipx}", "descripton": "", "enforced": "", "ip_policy_ids": ""}))
            .fails(400, "UNKNOWN_FIELD", "/descripton")
            .also("WRONG_TYPE", "/enforced")
            .also("WRONG_TYPE", "/ip_policy_ids")
            .send(patch, json!({"descripton": "", "metadata": []}))
            .fails(400, "UNKNOWN_FIELD", "/descripton")
            .also("WRONG_TYPE", "/metadata"),
    ]
}

fn text_blank_rows() -> Vec<Row> {
    let pair = json!({"certificate_pem": samples::SHOP_CHAIN, "private_key_pem": samples::SHOP_KEY});
    let kinds = [
        ("/api_keys", json!({})),
        ("/ip_restrictions", json!({"type": "agent"})),
        ("/certificate_authorities", json!({"ca_pem": samples::STAFF_CA})),
        ("/tls_certificates", pair),
        ("/edges/https", json!({})),
    ];
    let rows = kinds.map(|(path, body)| {
        let patch = format!("PATCH {path}/{{it}}");
        row(format!("a blank text of {path} clears it, also beside a path parameter and other fields"))
            .given("it", &format!("POST {path}"), with(body, json!({"description": "d", "metadata": "m"})))
            .send(&patch, json!({"id": "{it}", "description": ""}))
            .succeeds(200)
            .shows("/description", json!(""))
            .shows("/metadata", json!("m"))
            .lacks(WARNING)
            .send(&patch, json!({"id": "{it}", "description": "", "metadata": ""}))
            .succeeds(200)
            .shows("/metadata", json!(""))
            .carries(WARNING, &cleared("metadata"))
    });
    let mut rows = Vec::from(rows);
    rows.push(
        row("an empty list of hostports removes them, also beside other fields")
            .given("edge", "POST /edges/https", json!({"hostports": ["a.example:443"]}))
            .send("PATCH /edges/https/{edge}", json!({"id": "{edge}", "description": null, "hostports": []}))
            .succeeds(200)
            .shows("/hostports", json!([]))
            .lacks(WARNING)
            .given("edge", "POST /edges/https", json!({"hostports": ["b.example:443"]}))
            .send("PATCH /edges/https/{edge}", json!({"description": "", "hostports": []}))
            .succeeds(200)
            .shows("/hostports", json!([]))
            .carries(WARNING, &cleared("hostports")),
    );
    rows
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
        row("a PATCH that takes the authorities from mutual_tls warns")
            .ca()
            .given("edge", "POST /edges/https", json!({"mutual_tls": {"certificate_authority_ids": ["{ca}"]}}))
            .send("PATCH /edges/https/{edge}", json!({"mutual_tls": {"certificate_authority_ids": []}}))
            .succeeds(200)
            .carries(WARNING, &emptied("mutual_tls.certificate_authority_ids")),
        row("a PATCH to another login provider that has a list does not warn")
            .route()
            .send(&route, json!({"oauth": {"provider": {"github": {"organizations": ["shop"]}}}}))
            .succeeds(200)
            .send(&route, json!({"oauth": {"provider": {"google": {"email_domains": ["example.com"]}}}}))
            .succeeds(200)
            .lacks(WARNING),
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
        // The lists of a login go with its provider.
        (
            "oauth",
            "provider.github.organizations",
            json!({"provider": {"github": {"organizations": ["shop"]}}}),
            json!({"provider": {"google": {}}}),
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
