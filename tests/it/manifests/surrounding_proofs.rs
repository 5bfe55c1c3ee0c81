//! What surrounding manifests (`--with`) mean for proofs: their routes count, and what they leave out is told (D107, D120).

use super::invariants::{LOGIN, folder, platform, said, shop};

#[test]
fn surrounding_routes_on_edges_of_the_source_count_in_both_directions() {
    let folder = folder();
    folder.write(
        "shop/shop.yaml",
        &shop(LOGIN).replace("spec:\n", "spec:\n  delegates_to: [{source: other, path_prefix: /admin/x/}]\n"),
    );
    let route = |edge: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: open}}\nspec: {{edge: {edge}, match_type: \
             path_prefix, match: /admin/x/, backend: {{backend_id: bkd_other}}}}\n"
        )
    };
    for edge in ["shop/shop", "shop"] {
        folder.write("other/route.yaml", &route(edge));
        for of_shop in [true, false] {
            let (source, with) = if of_shop { ("shop", "other") } else { ("other", "shop") };
            let run = folder.run(&format!("prove {source} --source {source} --with platform --with {with}"));
            assert_eq!(run.code, 3, "{edge} {source}: {}", run.all());
            assert!(run.out.contains("refuted") && run.out.contains("/admin/x"), "{edge} {source}: {}", run.all());
        }
    }
    // Of which source a surrounding route is, its manifest does not tell.
    let of = |source: &str| platform("").replace("path_prefixes", &format!("sources: [{source}], path_prefixes"));
    folder.write("platform/invariants.yaml", &of("docs"));
    let run = folder.ok("prove shop --source shop --with platform --with other");
    let doubt =
        "depends on the source of the route in the surrounding manifests, which reaches the backend `bkd_other`";
    assert!(run.out.contains(doubt) && run.out.contains("1 depends"), "{}", run.all());
    assert!(!run.err.contains("NOT_DELEGATED"), "{}", run.all());
    // A route that is on no edge is told of.
    folder.write("other/route.yaml", &route("shop/mistyped"));
    let run = folder.ok("prove shop --source shop --with platform --with other");
    assert!(
        said(&run.err).contains("in the surrounding manifests: unknown HttpsEdge `shop/mistyped`"),
        "{}",
        run.all()
    );
    folder.write("platform/invariants.yaml", &platform(""));
    folder.write("other/route.yaml", &shop(LOGIN).replace("shop", "other"));
    folder.write("other/secret", "hidden-secret");
    let run = folder.ok("prove shop --source shop --with platform --with other");
    assert!(run.out.contains("1 proven"), "{}", run.all());
}

#[test]
fn surrounding_edges_with_one_name_are_told_of_where_requests_are_judged() {
    let folder = folder();
    for team in ["a", "b"] {
        folder.write(&format!("teams/{team}.yaml"), &shop(LOGIN).replace("shop.ex", &format!("{team}.ex")));
    }
    folder.write("teams/secret", "hidden-secret");
    let warning = "in the surrounding manifests: duplicate HttpsEdge `shop`";
    let run = folder.ok("prove platform --source platform --with teams");
    assert!(run.out.contains("1 proven") && said(&run.err).contains(warning), "{}", run.all());
    // Nothing is judged here.
    folder.write("plain/one.yaml", &shop("").replace("shop.ex", "plain.ex"));
    let run = folder.ok("validate plain --source plain --with teams");
    assert!(!said(&run.err).contains("duplicate"), "{}", run.all());
}
