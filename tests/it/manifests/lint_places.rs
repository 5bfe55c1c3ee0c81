//! Lints with several members: each is found at its exact place, and what is sound beside it is not.

use serde_json::Value;

use crate::support::program::Folder;

const EDGE: &str = "\
apiVersion: edgewright/v1
kind: HttpsEdge
metadata: {name: shop}
spec:
  hostports: ['shop.example.com:443']
  routes:
    - name: all
      match_type: path_prefix
      match: /
";

/// A mark in front of each value that a lint is to find; it is no part of the manifest.
const MARK: char = '§';

/// The text without marks, and their lines and columns.
fn unmarked(marked: &str) -> (String, Vec<(u64, u64)>) {
    let (mut text, mut places, mut line, mut column) = (String::new(), Vec::new(), 1, 1);
    for c in marked.chars() {
        match c {
            MARK => {
                places.push((line, column));
                continue;
            }
            '\n' => (line, column) = (line + 1, 1),
            _ => column += 1,
        }
        text.push(c);
    }
    (text, places)
}

fn check(lint: &str, marked: &str) {
    let folder = Folder::new();
    let (text, expected) = unmarked(marked);
    folder.write("m/a.yaml", &text);
    let run = folder.run("validate m --format json");
    let report: Value = serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}", run.all()));
    let diagnostics = report["diagnostics"].as_array().unwrap();
    let errors: Vec<&Value> =
        diagnostics.iter().filter(|it| it["code"].as_str().unwrap().starts_with("ERR_EDGEWRIGHT_")).collect();
    assert!(errors.is_empty(), "{lint}: {errors:?}");
    let mut found: Vec<(u64, u64)> = diagnostics
        .iter()
        .filter(|it| it["code"] == lint)
        .map(|it| (it["line"].as_u64().unwrap(), it["column"].as_u64().unwrap()))
        .collect();
    found.sort_unstable();
    assert_eq!(found, expected, "{lint}\n{text}\n{}", run.err);
}

fn check_route(lint: &str, module: &str) {
    check(lint, &format!("{EDGE}      {module}\n"));
}

#[test]
fn entries_that_stand_twice_in_a_list() {
    let edge = EDGE.replace(
        "'shop.example.com:443'",
        "'shop.example.com:443', §'Shop.Example.COM:443', 'shop.example.com:8443', '[2001:db8::1]:443', \
         §'[2001:DB8:0::1]:443'",
    );
    check("duplicate-entry", &edge);
    let trusting =
        EDGE.replace("  routes:", "  mutual_tls: {certificate_authority_ids: [ca_1, ca_2, §ca_1]}\n  routes:");
    check("duplicate-entry", &trusting);
    for module in [
        "ip_restriction: {ip_policy_ids: [ipp_1, ipp_2, §ipp_1, §ipp_1]}",
        "oauth: {provider: {github: {teams: [a/b, §A/b, a/c], organizations: [a, b, §a]}}}",
        "oidc: {issuer: 'https://id.example.com', client_id: a, client_secret: b, scopes: [openid, email, §openid]}",
    ] {
        check_route("duplicate-entry", module);
    }
    let restriction = "apiVersion: edgewright/v1\nkind: IpRestriction\nmetadata: {name: a}\n\
                       spec: {type: api, ip_policy_ids: [ipp_1, §ipp_1]}\n";
    check("duplicate-entry", restriction);
}

#[test]
fn restrictions_of_one_type() {
    let restriction = |name: &str, spec: &str| {
        format!(
            "---\napiVersion: edgewright/v1\nkind: IpRestriction\nmetadata: {{name: {name}}}\nspec: {{{spec}, ip_policy_ids: [ipp_1]}}\n"
        )
    };
    let one = restriction("a", "type: api, enforced: true");
    check("duplicate-restriction", &format!("{one}{}", restriction("b", "type: agent, enforced: true")));
    check("duplicate-restriction", &format!("{one}{}", restriction("b", "type: api, enforced: false")));

    // Which of the two is reported depends on their ids.
    let folder = Folder::new();
    folder.write("m/a.yaml", &format!("{one}{}", restriction("b", "type: api, enforced: true")));
    let run = folder.ok("validate m");
    assert_eq!(run.err.matches("another IpRestriction already restricts `api`").count(), 1, "{}", run.err);

    let folder = Folder::new();
    folder.write("a/a.yaml", &one);
    folder.write("b/b.yaml", &restriction("b", "type: api, enforced: true"));
    folder.ok("reconcile --source a a");
    let run = folder.ok("reconcile --source b b");
    assert!(run.err.contains("of source `a` already restricts `api`"), "{}", run.err);
}

#[test]
fn logins_that_admit_nobody() {
    check_route(
        "email-format",
        "oauth: {provider: {google: {email_addresses: [jo@example.com, §jo, §'@example.com'], email_domains: \
         [example.com, §'@example.com', §jo@example.com, §example.com.]}}}",
    );
    check_route("team-format", "oauth: {provider: {github: {teams: [a/b], organizations: [a, §'', §a/b, §'@a']}}}");
    for (issuer, mark) in [
        ("https://id.example.com/realms/a", ""),
        ("https://id.example.com/?a=b", "§"),
        ("https://id.example.com/#a", "§"),
        ("https://id.example.com/.well-known/openid-configuration", "§"),
    ] {
        check_route("oidc-incomplete", &format!("oidc: {{issuer: {mark}'{issuer}', client_id: a, client_secret: b}}"));
    }
    const NS: &str = "xmlns=\"urn:oasis:names:tc:SAML:2.0:metadata\"";
    for (metadata, mark) in [
        (
            format!(
                "<EntityDescriptor {NS} entityID=\"a\"><IDPSSODescriptor><KeyDescriptor/><SingleSignOnService/>\
                 </IDPSSODescriptor></EntityDescriptor>"
            ),
            "",
        ),
        (format!("<EntityDescriptor {NS} entityID=\"a\"><IDPSSODescriptor/></EntityDescriptor>"), "§"),
        (format!("<EntityDescriptor {NS} entityID=\"a\"/>"), "§"),
        (format!("<EntityDescriptor {NS}><IDPSSODescriptor/></EntityDescriptor>"), "§"),
        ("<EntityDescriptor entityID=\"a\"><IDPSSODescriptor/></EntityDescriptor>".to_owned(), "§"),
    ] {
        check_route("saml-metadata", &format!("saml: {{idp_metadata: {mark}'{metadata}'}}"));
    }
}

#[test]
fn secrets_that_verify_nothing() {
    for module in [
        "webhook_verification: {provider: SNS, secret: §abc}",
        "webhook_verification: {provider: sns}",
        "webhook_verification: {provider: sendgrid, secret: §SG.abc}",
        "webhook_verification: {provider: sendgrid, secret: MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAER3yVFfo5Tpwu8YF6Dis1hR\
         yWFp41wampYCSVX+OopfbNDwMAs2Smk6gT7VPLD516JY6lwTDfznCoXtbofmsV4w==}",
        "webhook_verification: {provider: github, secret: abc}",
    ] {
        check_route("webhook-secret", module);
    }
    for module in [
        "webhook_verification: {provider: github, secret: §' abc'}",
        "webhook_verification: {provider: github, secret: 'a b c'}",
        "oidc: {issuer: 'https://id.example.com', client_id: §'a ', client_secret: §\"b\\t\"}",
        "oauth: {provider: {google: {client_id: a, client_secret: §' b'}}}",
    ] {
        check_route("secret-with-white-space", module);
    }
}

#[test]
fn ids_of_other_kinds() {
    check_route("wrong-id-prefix", "backend: {backend_id: §ipp_1}");
    check_route("wrong-id-prefix", "backend: {backend_id: §BKD_1}");
    check_route("wrong-id-prefix", "backend: {backend_id: §$BACKEND}");
    check_route("wrong-id-prefix", "backend: {backend_id: pool_1}");
    check_route("wrong-id-prefix", "ip_restriction: {ip_policy_ids: [ipp_1, §bkd_1, office, net_1]}");
    for id in ["§bkd_1", "§ipp_1", "edgtls_1", "port_1", "ok"] {
        let edge = "apiVersion: edgewright/v1\nkind: TlsEdge\nmetadata: {name: a, id: ID}\n\
                    spec: {backend: {backend_id: bkd_1}}\n";
        check("wrong-id-prefix", &edge.replace("ID", id));
    }
    for id in ["§ipp_1", "esb_1", "feed_1"] {
        let subscription = "apiVersion: edgewright/v1\nkind: EventSubscription\nmetadata: {name: a, id: ID}\n\
                            spec: {sources: [{type: ip_policy_created.v0}, {type: ip_policy_deleted.v0}]}\n";
        check("wrong-id-prefix", &subscription.replace("ID", id));
    }
}

#[test]
fn ids_that_cannot_be_of_the_kind_are_unknown_without_a_store() {
    let folder = Folder::new();
    let edge = EDGE.replace("  routes:", "  mutual_tls: {certificate_authority_ids: [ca_1, edghts_1]}\n  routes:");
    folder.write("m/a.yaml", &edge);
    let route = "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {name: r}\n\
                 spec: {edge: ca_1, match_type: exact_path, match: /a}\n";
    folder.write("m/b.yaml", route);
    let run = folder.run("validate m");
    assert_eq!(run.code, 3, "{}", run.all());
    for part in
        ["m/a.yaml:6:50]", "unknown CertificateAuthority `edghts_1`", "m/b.yaml:4:14]", "unknown HttpsEdge `ca_1`"]
    {
        assert!(run.err.contains(part), "{part}: {}", run.err);
    }
    assert_eq!(run.err.matches("ERR_EDGEWRIGHT_UNKNOWN_REFERENCE").count(), 2, "{}", run.err);
}

#[test]
fn what_is_switched_off_may_be_incomplete() {
    check_route("empty-ip-restriction", "ip_restriction: {enabled: false}");
    check_route("empty-ip-restriction", "ip_restriction: {enabled: false, ip_policy_ids: []}");
    check_route("empty-ip-restriction", "ip_restriction: {ip_policy_ids: §[]}");
    for (enforced, mark) in [("false", ""), ("true", "§")] {
        let restriction = format!(
            "apiVersion: edgewright/v1\nkind: IpRestriction\nmetadata: {{name: a}}\n\
             spec: {{type: api, enforced: {enforced}, ip_policy_ids: {mark}[]}}\n"
        );
        check("empty-ip-restriction", &restriction);
    }
    check_route("oidc-incomplete", "oidc: {enabled: false}");
    check_route("circuit-breaker-zero", "circuit_breaker: {enabled: false, rolling_window: 0}");
    check_route("team-format", "oauth: {enabled: false, provider: {github: {organizations: ['@a']}}}");
    check_route("duplicate-header", "request_headers: {enabled: false, remove: [x-a, x-a]}");
    check_route("duplicate-header", "request_headers: {remove: [x-a, §x-a]}");
    for module in ["{enabled: false}", "{certificate_authority_ids: §[]}"] {
        check("empty-mutual-tls", &EDGE.replace("  routes:", &format!("  mutual_tls: {module}\n  routes:")));
    }
}

#[test]
fn every_fault_of_a_module_has_a_help() {
    for (module, help) in [
        ("oauth: {provider: {google: {client_id: a}}}", "or remove `client_id`"),
        ("saml: {idp_metadata: '<html/>'}", "download the metadata of the identity provider again"),
        (
            "jwt_validation: {http: {tokens: [{type: jwt, method: query, name: a, prefix: ''}]}}",
            "write one of the listed values",
        ),
        ("circuit_breaker: {rolling_window: -1}", "set a number in this range"),
        ("circuit_breaker: {num_buckets: 129}", "set a number from 1 to 128"),
    ] {
        let folder = Folder::new();
        folder.write("m/a.yaml", &format!("{EDGE}      {module}\n"));
        let run = folder.run("validate m --format json");
        let report: Value = serde_json::from_str(&run.out).unwrap();
        assert!(report["diagnostics"].to_string().contains(help), "{module}: {report:#}");
    }
}

#[test]
fn a_help_fits_its_finding() {
    let log = "The configuration of `log` has one key";
    let actions = |action: &str| format!("{EDGE}      policies: {{inbound: [{{name: a, actions: [{action}]}}]}}\n");
    let route = |module: &str| format!("{EDGE}      {module}\n");
    let matching = |text: &str| EDGE.replace("match: /\n", &format!("match: '{text}'\n"));
    for (text, help, other) in [
        (actions("{type: log, config: {Metdata: {}}}"), log, "Correct the key or value"),
        (actions("{type: deny, config: {status_code: 999}}"), "Correct the key or value", log),
        (
            route("oidc: {issuer: 'https://https://id.example.com', client_id: a, client_secret: b}"),
            "Remove the first `https://`",
            "in place of the placeholder",
        ),
        (matching("https://shop.example.com/x"), "Drop `https://`", "Start a path with"),
        (matching("^/api/.*$"), "Write the literal path", "unreachable-path"),
        (route("webhook_verification: {provider: sns, secret: abc}"), "Remove `secret`", "SendGrid"),
        (
            route("webhook_verification: {provider: sendgrid, secret: abc}"),
            "SendGrid's event webhook",
            "Remove `secret`",
        ),
    ] {
        let folder = Folder::new();
        folder.write("m/a.yaml", &text);
        let run = folder.run("validate m --format json");
        let report: Value = serde_json::from_str(&run.out).unwrap();
        let told = report["diagnostics"].to_string();
        assert!(told.contains(help) && !told.contains(other), "{told}");
    }
}
