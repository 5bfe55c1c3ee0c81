//! Text from elsewhere cannot steer a terminal, a log or a review.

use edgewright::{Disk, Options, Store, apply, plan};

use crate::support::manifests::edge_with;
use crate::support::program::{Folder, Run};

/// What no output has raw: escape, bell, marks of direction, and line breaks that are none of YAML's or a terminal's.
const STEERING: [char; 6] = ['\u{1b}', '\u{7}', '\u{202e}', '\u{2066}', '\u{2028}', '\u{e0041}'];
/// As a YAML text between quotes.
const NASTY: &str = r"x\e]0;y\a\nz\u202e\u2066\u2028\U000e0041";

fn edge(name: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec:\n  description: \"{NASTY}\"\n  \
         metadata: \"{NASTY}\"\n  hostports: [\"a.example.com:443\"]\n  routes:\n    - match_type: path_prefix\n      \
         match: \"/\\u202e\\u2066\"\n      backend: {{backend_id: bkd_1}}\n      \
         request_headers: {{add: {{x-note: \"\\u202e\\u2066\"}}}}\n"
    )
}

fn is_tame(what: &str, text: &str) {
    let found: Vec<char> = STEERING.into_iter().filter(|c| text.contains(*c)).collect();
    assert!(found.is_empty(), "{what} has {found:?}: {text:?}");
}

fn tame(folder: &Folder, line: &str) -> Run {
    let run = folder.run(line);
    is_tame(line, &run.out);
    is_tame(line, &run.err);
    run
}

#[test]
fn plans_and_everything_that_is_told_of_them_are_tame() {
    let folder = Folder::new();
    folder.write("m/a.yaml", &edge("a"));
    let text = tame(&folder, "plan m");
    assert!(text.out.contains("\\u{202e}") && text.out.contains("\\n"), "{}", text.all());
    for format in ["text", "markdown", "github", "junit", "sarif"] {
        let run = tame(&folder, &format!("plan --format {format} m"));
        assert_eq!(run.code, 0, "{}", run.all());
    }
    // For programs the text is exact.
    let json: serde_json::Value = serde_json::from_str(&folder.ok("plan --format json m").out).unwrap();
    let told = json["plan"]["changes"][0]["calls"][0]["body"]["description"].as_str().unwrap();
    assert_eq!(told, "x\u{1b}]0;y\u{7}\nz\u{202e}\u{2066}\u{2028}\u{e0041}");

    assert_eq!(tame(&folder, "reconcile m").code, 0);
    assert_eq!(tame(&folder, "trace https://a.example.com/x").code, 1);
    let exported = tame(&folder, "export");
    assert_eq!(exported.code, 0, "{}", exported.all());
    folder.write("exported/all.yaml", &exported.out);
    assert!(folder.ok("plan exported").out.starts_with("No changes: 2 unchanged."), "{}", exported.out);
}

#[test]
fn usage_errors_are_tame() {
    let folder = Folder::new();
    for line in [
        "plan --\u{202e}\u{2066}x m",
        "pl\u{202e}\u{2066}an",
        "plan --format js\u{202e}\u{2066}on m",
        "keys create --role \u{1b}]0;x\u{7}\u{202e}",
        "history --limit 1\u{202e}",
    ] {
        let run = tame(&folder, line);
        assert_eq!((run.code, run.err.contains("\\u{202e}")), (1, true), "{line:?}: {}", run.all());
    }
}

#[test]
fn faults_are_tame_in_every_format() {
    let folder = Folder::new();
    // A file's own text is shown at its lines.
    let raw = edge("a").replace("routes:", "wrong: \u{202e}\u{2066}\u{e0041}\n  routes:");
    folder.write("m/\u{202e}\u{1b}[31m.yaml", &raw);
    folder.write("m/b.yaml", &edge("b").replace("name: b", "name: \"b\\e\\u202e\""));
    folder.write("m/c.yaml", "a: \u{1b}[31m\n");
    for format in ["text", "markdown", "github", "junit", "sarif"] {
        for verb in ["validate", "plan"] {
            let run = tame(&folder, &format!("{verb} --format {format} m"));
            assert_eq!(run.code, 3, "{}", run.all());
        }
    }
    tame(&folder, "fmt --check m");
}

#[test]
fn lists_of_keys_and_names_of_sources_are_tame() {
    let folder = Folder::new();
    let text = "x\u{1b}[31m\nak_spoofed\u{202e}\u{2028}";
    let made = folder.command("keys create --role admin").args(["--description", text]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let listed = tame(&folder, "keys list");
    assert_eq!((listed.code, listed.out.lines().count()), (0, 2), "{}", listed.out);
    assert!(listed.out.contains("\nx\\u{1b}[31m\\nak_spoofed\\u{202e}\\u{2028}  "), "{}", listed.out);
    tame(&folder, "owners list");

    folder.write("m/a.yaml", &edge_with("a", "{hostports: ['a.example.com:443']}"));
    // An earlier version took such a name.
    let options = Options { source: "team\u{202e}\u{2066}".into(), ..Options::new(Disk::new([folder.path("m")])) };
    {
        let store = Store::open(folder.path("store")).unwrap();
        let planned = plan(&options, &store.snapshot());
        apply(&store, &options, &planned).unwrap();
    }
    for line in ["plan m", "plan --format github m", "export"] {
        let run = tame(&folder, line);
        assert!(run.all().contains("team\\u{202e}"), "{line}: {}", run.all());
    }
}
