//! Routes that move to other requests, or get another name: what this changes beside the routing.

use crate::support::program::Folder;

const RESTRICTED: &str = "      ip_restriction: {enabled: true, ip_policy_ids: [ipp_office]}\n";

/// The manifest of an edge with routes: name, match and modules.
fn edge(routes: &[(&str, &str, &str)]) -> String {
    let head = "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\nspec:\n  \
                hostports: ['shop.example.com:443']\n  routes:\n";
    let route = |(name, matched, modules): &(&str, &str, &str)| {
        format!(
            "    - name: {name}\n      match_type: path_prefix\n      match: {matched}\n      \
             backend: {{backend_id: bkd_shop}}\n{modules}"
        )
    };
    head.to_owned() + &routes.iter().map(route).collect::<String>()
}

#[test]
fn a_route_that_moves_and_loses_its_restriction_opens_access() {
    let folder = Folder::new();
    folder.write("old/shop.yaml", &edge(&[("admin", "/admin/", RESTRICTED)]));
    let moved = |modules: &'static str| {
        folder.write("new/shop.yaml", &edge(&[("admin", "/intern/", modules)]));
        let run = folder.run("diff old new --behaviour --deny access-opened");
        (run.code, run.all().split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (code, told) = moved("");
    let line = "! `https://shop.example.com/intern/*`: opens access: new: open, to backend bkd_shop; this route: \
                `ip_restriction` required → open";
    assert!(code == 4 && told.contains(line), "{told}");
    assert!(told.contains("HttpsEdgeRoute shop/admin loses `ip_restriction`, and nothing else"), "{told}");
    let (code, told) = moved(RESTRICTED);
    assert!(code == 0 && told.contains("/intern/*`: new: `ip_restriction` required, to"), "{told}");
}

#[test]
fn a_renamed_route_with_saml_is_no_safe_refactoring() {
    let folder = Folder::new();
    let metadata = "<EntityDescriptor xmlns=\"urn:oasis:names:tc:SAML:2.0:metadata\" entityID=\"https://idp\"/>";
    let saml = format!("      saml: {{idp_metadata: '{metadata}'}}\n");
    let (all, sso) = (("all", "/", ""), "/sso/");
    folder.write("m/shop.yaml", &edge(&[all, ("sso", sso, saml.as_str())]));
    folder.ok("reconcile m");
    folder.write("m/shop.yaml", &edge(&[all, ("login", sso, saml.as_str())]));
    let told = folder.ok("plan m --behaviour").out;
    assert!(told.contains("  `https://shop.example.com/sso/*`: SAML entity ID and ACS URL change: "), "{told}");
    assert!(told.contains("`renamed_from`") && !told.contains("refactoring"), "{told}");
    let renamed = format!(
        "---\napiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: login, renamed_from: sso}}\nspec:\n  edge: shop\n  \
         match_type: path_prefix\n  match: {sso}\n  backend: {{backend_id: bkd_shop}}\n  saml: {{idp_metadata: '{metadata}'}}\n"
    );
    folder.write("m/shop.yaml", &(edge(&[all]) + &renamed));
    let told = folder.ok("plan m --behaviour").out;
    assert!(told.contains("The plan is a safe refactoring."), "{told}");
}

#[test]
fn requests_that_move_to_a_route_whose_login_is_set_up_need_no_other_one() {
    let folder = Folder::new();
    let metadata = "<EntityDescriptor xmlns=\"urn:oasis:names:tc:SAML:2.0:metadata\" entityID=\"https://idp\"/>";
    let saml = format!("      saml: {{idp_metadata: '{metadata}'}}\n");
    let all = ("all", "/", saml.as_str());
    folder.write("m/shop.yaml", &edge(&[all, ("docs", "/docs/", saml.as_str())]));
    folder.ok("reconcile m");
    folder.write("m/shop.yaml", &edge(&[all]));
    let told = folder.ok("plan m --behaviour").out;
    assert!(told.contains("SAML entity ID and ACS URL are those of another route"), "{told}");
    assert!(!told.contains("set up the identity provider") && !told.contains("refactoring"), "{told}");
}
