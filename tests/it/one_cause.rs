//! A fault with one cause is reported once, not again wherever something depends on it.

use serde_json::Value;

use crate::cli::Folder;

/// The code, message and number of related places of each diagnostic.
fn told(folder: &Folder) -> Vec<(String, String, usize)> {
    let run = folder.run("validate m --format json");
    let report: Value = serde_json::from_str(&run.out).unwrap_or_else(|error| panic!("{error}: {}", run.all()));
    let text = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
    let diagnostics = report["diagnostics"].as_array().unwrap();
    let of = |it: &Value| (text(it, "code"), text(it, "message"), it["related"].as_array().unwrap().len());
    diagnostics.iter().map(of).collect()
}

fn routes(edge: &str, sets: &str, count: usize) -> String {
    let route = |at: usize| {
        format!(
            "---\napiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: r-{at}}}\nspec: {{edge: {edge}, \
             match_type: exact_path, match: /{at}, backend: {{backend_id: bkd_1}}, modules_from: [{sets}]}}\n"
        )
    };
    (0..count).map(route).collect()
}

fn edge(name: &str, hostport: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec: {{hostports: [\"{hostport}\"]}}\n"
    )
}

#[test]
fn an_unknown_name_is_one_error_with_its_places() {
    let folder = Folder::new();
    folder.write("m/edge.yaml", &edge("shop", "shop.example.com:443"));
    folder.write("m/routes.yaml", &routes("shop", "sharred", 50));
    let expected =
        |message: &str, related| ("ERR_EDGEWRIGHT_UNKNOWN_REFERENCE".to_owned(), message.to_owned(), related);
    assert_eq!(told(&folder), [expected("unknown ModuleSet `sharred` (in 50 places)", 10)]);
    folder.write("m/routes.yaml", &routes("shp", "", 3));
    assert_eq!(told(&folder), [expected("unknown HttpsEdge `shp` (in 3 places)", 2)]);
    folder.write("m/routes.yaml", &routes("shp", "", 1));
    assert_eq!(told(&folder), [expected("unknown HttpsEdge `shp`", 0)]);
}

#[test]
fn a_faulty_edge_is_not_unknown_to_its_routes() {
    for (edge_text, name, code) in [
        (edge("shop", "shop.example.com"), "shop", "INVALID_FORMAT"),
        (edge("Shop", "shop.example.com:443"), "Shop", "INVALID_NAME"),
        (edge("shop", "shop.example.com:443") + "  - x\n", "shop", "SYNTAX"),
        (edge("shop", "shop.example.com:443").replace("spec: {", "spec: {x: {{{"), "shop", "SYNTAX"),
        (
            "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {name: shop}\nspec: x\n".to_owned(),
            "shop",
            "WRONG_TYPE",
        ),
    ] {
        let folder = Folder::new();
        folder.write("m/edge.yaml", &edge_text);
        folder.write("m/routes.yaml", &routes(name, "", 20));
        let codes: Vec<String> = told(&folder).into_iter().map(|(code, ..)| code).collect();
        assert_eq!(codes, [format!("ERR_EDGEWRIGHT_{code}")], "{edge_text}");
    }
}

#[test]
fn metadata_of_the_wrong_type_does_not_also_lack_a_name() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge("a", "a.example.com:443").replace("{name: a}", "a"));
    let told = told(&folder);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].1.starts_with("`metadata` must be a mapping"), "{told:?}");
}
