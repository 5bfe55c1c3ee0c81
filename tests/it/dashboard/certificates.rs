//! The page of certificates: which host:ports present them, and why others do not.

use serde_json::{Value, json};

use super::Browser;
use crate::support::server::Server;

/// The certificate of `*.example.com`, and its key.
fn wildcard() -> Value {
    json!({
        "certificate_pem": include_str!("../data/wildcard.pem"),
        "private_key_pem": include_str!("../data/wildcard.key.pem"),
    })
}

#[test]
fn a_certificate_names_the_hostports_that_present_it() {
    let server = Server::start();
    let browser = Browser::signed_in(&server, &server.viewer);
    let hostports = json!(["shop.example.com:443", "shop.example.com:80", "shop.test:443"]);
    assert_eq!(server.call("POST", "/edges/https", Some(json!({"hostports": hostports}))).status, 201);
    assert!(browser.page("/ui/").contains("2 host:ports terminate TLS and have no certificate"));
    let certificate = server.call("POST", "/tls_certificates", Some(wildcard()));
    assert_eq!(certificate.status, 201, "{}", certificate.text);
    let page = browser.page("/ui/certificates");
    assert!(page.contains(">shop.example.com:443</a>") && !page.contains("shop.example.com:80"), "{page}");
    assert!(page.contains("1 host:port terminates TLS and has no certificate"), "{page}");
    assert!(page.contains(">2126-10-27</time>"), "a date that is far away is no count of days: {page}");
    let edge = server.call("GET", "/edges/https", None).str("/https_edges/0/id").to_owned();
    let edge = browser.page(&format!("/ui/edges/{edge}"));
    let presented = "<code>shop.example.com:443</code> presents the certificate <a ";
    assert!(edge.contains(presented) && edge.contains("<h3>TLS 1.2 or newer</h3>"), "{edge}");
    assert!(edge.contains("<code>shop.test:443</code> <span class=\"badge warning\">no certificate</span>"), "{edge}");
    let overview = browser.page("/ui/");
    // A trace shows which certificate clients get.
    let traced = |url: &str| browser.page(&format!("/ui/trace?url={url}"));
    let shown = |page: &str| {
        (page.contains("presents the certificate"), page.contains("no certificate</span> covers the host"))
    };
    assert_eq!(shown(&traced("shop.example.com")), (true, false));
    assert!(traced("shop.example.com").contains(certificate.str("/id")));
    assert_eq!(shown(&traced("shop.test")), (false, true));
    assert_eq!(shown(&traced("http://shop.example.com")), (false, false));
    assert!(
        traced("shop.example.com").contains("TLS 1.2 or newer") && traced("shop.example.com").contains(">2126-10-27<")
    );
    assert!(traced("http://shop.example.com").contains("<p>no TLS</p>"));
    let told = "<a href=\"./certificates#without\">1 host:port terminates TLS and has no certificate</a>";
    assert!(overview.contains(told), "{overview}");
    assert!(overview.contains("<a href=\"./certificates\">All certificates</a>"), "{overview}");
}

#[test]
fn a_certificate_of_another_source_says_why_nobody_presents_it() {
    let server = Server::start();
    let apply = |source: &str, kind: &str, spec: Value| {
        let manifest = json!({"apiVersion": "edgewright/v1", "kind": kind, "metadata": {"name": "it"}, "spec": spec});
        let files = json!([{"name": "it.json", "text": manifest.to_string()}]);
        let applied = server.call("POST", "/reconciliations", Some(json!({"source": source, "files": files})));
        assert!(applied.json["applied"].is_u64(), "{}", applied.text);
    };
    let browser = Browser::signed_in(&server, &server.viewer);
    let page = || browser.page("/ui/certificates");
    apply("pki", "TlsCertificate", wildcard());
    assert!(page().contains("no host:port</td>"), "{}", page());
    let edge = |from: &[&str]| json!({"hostports": ["shop.example.com:443"], "certificates_from": from});
    apply("shop", "HttpsEdge", edge(&[]));
    let advice = "its edge is of source shop: add <code>certificates_from: [pki]</code> to the edge";
    assert!(page().contains(advice), "{}", page());
    apply("shop", "HttpsEdge", edge(&["pki"]));
    assert!(page().contains("shop.example.com:443</a>") && !page().contains("certificates_from"), "{}", page());
    // The owner of the certificate decides, too.
    apply("shop", "HttpsEdge", edge(&[]));
    let mut closed = wildcard();
    closed["shared_with"] = json!(["docs"]);
    apply("pki", "TlsCertificate", closed);
    apply("shop", "HttpsEdge", edge(&["pki"]));
    let advice = "its edge is of source shop: add that to <code>shared_with</code> of the certificate";
    assert!(page().contains(advice), "{}", page());
}
