//! A server judges a changed file by the levels that hold now, whatever it knows of the last run (D74).

use std::path::Path;

use crate::support::{
    manifests::edge_with,
    program::{Folder, Serve, copy, until},
    sources::in_state,
};

const BREAKER: &str = "\n  circuit_breaker: {tripped_duration: 0, rolling_window: 60, num_buckets: 12, volume_threshold: 1, \
                       error_threshold_percentage: 0.5}\n";

/// Serves the folder, and changes the edge once, so that the server has the findings of an earlier run.
fn served(folder: &Folder) -> Serve {
    let serve = folder.serve("--manifests m");
    in_state(&serve, "default", "Synced");
    folder.edit("m/edge.yaml", "description: x", "description: y");
    until("the change", || serve.get("/edges/https").body.contains(r#""description":"y""#).then_some(()));
    serve
}

fn code(serve: &Serve) -> String {
    in_state(serve, "default", "Invalid")["diagnostics"][0]["code"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_module_that_moves_to_its_set_is_judged_by_the_levels_of_the_set() {
    let folder = Folder::new();
    folder.write(
        "m/set.yaml",
        &format!("apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {{name: m}}\nspec:{BREAKER}"),
    );
    folder.write("m/edge.yaml", &edge_with("e", "{description: x, hostports: ['h.example.com:443']}"));
    let route = "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {name: r, annotations: \
                 {edgewright/lint.circuit-breaker-zero: allow}}\nspec:\n  edge: e\n  match_type: path_prefix\n  match: /a\n  \
                 backend: {backend_id: bkd_1}\n  modules_from: [m]";
    folder.write("m/route.yaml", &format!("{route}{BREAKER}"));
    let serve = served(&folder);
    folder.write("m/route.yaml", &format!("{route}\n"));
    assert_eq!(code(&serve), "circuit-breaker-zero");
}

#[test]
fn a_level_of_an_edge_holds_for_lints_of_the_whole_estate() {
    let folder = Folder::new();
    copy(Path::new("examples/storefront/certs"), &folder.path("m/certs"));
    folder.write(
        "m/certificate.yaml",
        "apiVersion: edgewright/v1\nkind: TlsCertificate\nmetadata: {name: w}\nspec: {certificate_pem: {from_file: \
         certs/wildcard.chain.pem}, private_key_pem: {from_file: certs/wildcard.key.pem}}\n",
    );
    folder.write(
        "m/edge.yaml",
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: e, annotations: \
         {edgewright/lint.certificate-does-not-cover-hostport: allow}}\nspec: {description: x, hostports: ['h.other.org:443']}\n",
    );
    let serve = served(&folder);
    folder.edit("m/edge.yaml", "hostport: allow", "hostport: deny");
    assert_eq!(code(&serve), "certificate-does-not-cover-hostport");
}
