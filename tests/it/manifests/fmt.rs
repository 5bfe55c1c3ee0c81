//! `edgewright fmt`: one form for manifests, comments kept.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::support::program::{Folder, Run};

const MESSY: &str = "\u{feff}# On top.\r\nkind: HttpsEdge   \r\n# The name's own comment.\r\nmetadata:\r\n        # above the name\r\n        name: messy # behind it\r\napiVersion: edgewright/v1\r\n\r\n\r\n\r\nspec:\r\n    description: |-\r\n      two\r\n\r\n\r\n        lines\r\n    hostports:\r\n    # of the hostport\r\n    -   \"messy.example.com:443\"\r\n    routes:\r\n    -   match_type: exact_path\r\n        match: /\r\n        backend: {backend_id:\r\n            bkd_1} # in brackets\r\n# the end\r\n\r\n";

const TIDY: &str = "# On top.\napiVersion: edgewright/v1\n\nkind: HttpsEdge\n# The name's own comment.\nmetadata:\n  # above the name\n  name: messy # behind it\nspec:\n  description: |-\n    two\n\n\n      lines\n  hostports:\n    # of the hostport\n    - \"messy.example.com:443\"\n  routes:\n    - match_type: exact_path\n      match: /\n      backend: {backend_id:\n          bkd_1} # in brackets\n# the end\n";

#[test]
fn a_messy_file_becomes_tidy_and_keeps_its_comments() {
    let folder = Folder::new();
    folder.write("m/messy.yaml", MESSY);
    fs::set_permissions(folder.path("m/messy.yaml"), fs::Permissions::from_mode(0o640)).unwrap();
    let plan = folder.ok("plan m").out;

    let check = folder.run("fmt --check m");
    assert_eq!((check.code, check.out.as_str()), (1, "m/messy.yaml\n"), "{}", check.all());
    assert_eq!(folder.read("m/messy.yaml"), MESSY, "a check changes nothing");

    assert_eq!(folder.ok("fmt m").out, "m/messy.yaml\n");
    assert_eq!(folder.read("m/messy.yaml"), TIDY);
    assert_eq!(folder.mode("m/messy.yaml"), 0o640);
    assert_eq!(fs::read_dir(folder.path("m")).unwrap().count(), 1, "no file is left over");
    assert_eq!(folder.ok("plan m").out, plan, "it says the same");

    assert_eq!(folder.ok("fmt --check m m/messy.yaml").out, "");
    assert_eq!(folder.ok("fmt m").out, "", "once is enough");
}

#[test]
fn the_example_keeps_its_words_and_its_plan() {
    let folder = Folder::with_storefront();
    let plan = folder.ok("plan storefront").out;
    let yaml = |folder: &Folder| {
        let files =
            walkdir::WalkDir::new(folder.path("storefront")).sort_by_file_name().into_iter().map(Result::unwrap);
        let files = files.filter(|it| it.path().extension().is_some_and(|extension| extension == "yaml"));
        files.map(|it| fs::read_to_string(it.path()).unwrap()).collect::<Vec<_>>()
    };
    let before = yaml(&folder);
    assert!(before.len() >= 7);
    let run = folder.ok("fmt storefront");
    assert!(run.out.lines().all(|name| name.ends_with(".json")), "the example is formatted:\n{}", run.out);
    assert_eq!(yaml(&folder), before);
    assert_eq!(folder.ok("fmt --check storefront").out, "");
    assert_eq!(folder.ok("plan storefront").out, plan);
    // From four columns a level it finds back.
    let shop = folder.read("storefront/shop/storefront.yaml");
    let wide: Vec<String> = shop
        .lines()
        .map(|line| {
            let text = line.trim_start();
            let indent = "  ".repeat(line.len() - text.len());
            text.strip_prefix("- ").map_or_else(|| format!("{indent}{text}"), |item| format!("{indent}-   {item}"))
        })
        .collect();
    folder.write("storefront/shop/storefront.yaml", &wide.join("\r\n"));
    assert_eq!(folder.ok("fmt storefront").out, "storefront/shop/storefront.yaml\n");
    assert_eq!(folder.read("storefront/shop/storefront.yaml"), shop);
}

#[test]
fn json_is_indented_too() {
    let folder = Folder::new();
    folder.write("m/a.json", "{\"kind\": \"K\", \"apiVersion\": \"v\", \"spec\": {\"n\": [1, 0.5]}}");
    folder.ok("fmt m");
    let expected = "{\n  \"apiVersion\": \"v\",\n  \"kind\": \"K\",\n  \"spec\": {\n    \"n\": [\n      1,\n      0.5\n    ]\n  }\n}\n";
    assert_eq!(folder.read("m/a.json"), expected);
    assert_eq!(folder.ok("fmt --check m").out, "");
}

#[test]
fn what_cannot_be_read_is_reported_and_stays_while_the_others_are_formatted() {
    let folder = Folder::new();
    let good = "a:   # kept\n    - 1\n";
    let faulty = ["a: [\n", "a: !x 1\n", "a:\n\t- b\n", "a: 1\n b: 2\n"];
    for (index, text) in faulty.iter().enumerate() {
        folder.write(&format!("m/faulty-{index}.yaml"), text);
    }
    folder.write("m/twice.json", "{\"a\": 1, \"a\": 2}");
    folder.write("m/zz-good.yml", good);
    folder.write("m/.git/config.yaml", good);
    folder.write("m/notes.txt", good);
    let assert_reported = |run: &Run| {
        assert_eq!((run.code, run.out.as_str()), (3, "m/zz-good.yml\n"), "{}", run.all());
        assert_eq!(run.err.matches("cannot format").count(), faulty.len() + 1, "{}", run.err);
    };
    assert_reported(&folder.run("fmt --check m"));
    assert_reported(&folder.run("fmt m"));
    for (index, text) in faulty.iter().enumerate() {
        assert_eq!(folder.read(&format!("m/faulty-{index}.yaml")), *text);
    }
    assert_eq!(folder.read("m/zz-good.yml"), "a:   # kept\n  - 1\n");
    assert_eq!(folder.read("m/.git/config.yaml"), good);
    assert_eq!(folder.read("m/notes.txt"), good);
    assert_eq!(folder.run("fmt nowhere").code, 3);
}

#[test]
fn a_link_stays_a_link_and_standard_input_is_a_file_too() {
    let folder = Folder::new();
    folder.write("real/a.yaml", "a:  \n    b: 1\n");
    fs::create_dir_all(folder.path("m")).unwrap();
    std::os::unix::fs::symlink("../real/a.yaml", folder.path("m/a.yaml")).unwrap();
    assert_eq!(folder.ok("fmt m real").out, "m/a.yaml\n", "one file, once");
    assert!(fs::symlink_metadata(folder.path("m/a.yaml")).unwrap().is_symlink());
    assert_eq!(folder.read("real/a.yaml"), "a:\n  b: 1\n");

    let piped = folder.run_with("fmt -", "a:\n    b: 1\n");
    assert_eq!((piped.code, piped.out.as_str()), (0, "a:\n  b: 1\n"));
    assert_eq!(folder.run_with("fmt --check -", "a:\n    b: 1\n").code, 1);
}

#[test]
fn a_lone_carriage_return_is_gone_after_one_run() {
    let folder = Folder::new();
    folder.write("m/a.yaml", "a: 1 # c\rb:\r    - 2\r\n\r");
    assert_eq!(folder.ok("fmt m").out, "m/a.yaml\n");
    assert_eq!(folder.read("m/a.yaml"), "a: 1 # c\nb:\n  - 2\n");
    assert_eq!(folder.ok("fmt --check m").out, "");
}
