//! Reviews in CI: what a pull request shows of one team's folder, without the rest of the repository and without secrets.

use crate::cli::Folder;

/// An edge without routes.
fn edge(name: &str) -> String {
    format!(
        "apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\n\
         spec: {{hostports: ['{name}.example.com:443']}}\n"
    )
}

#[test]
fn the_comments_of_two_sources_do_not_replace_each_other() {
    let folder = Folder::new();
    folder.write("a/a.yaml", &edge("a"));
    folder.write("b/b.yaml", &edge("b"));
    let first = |line: &str| {
        let run = folder.run(&format!("{line} --format markdown"));
        run.out.lines().next().unwrap_or_default().to_owned()
    };
    for verb in ["plan", "validate", "reconcile --dry-run", "diff b"] {
        let marks = [format!("{verb} a"), format!("{verb} a --source team-a"), format!("{verb} a --source team-a--b")];
        let marks: Vec<String> = marks.iter().map(|line| first(line)).collect();
        assert_eq!(
            marks,
            ["<!-- edgewright -->", "<!-- edgewright:team-a -->", "<!-- edgewright:team-a%2D%2Db -->"],
            "{verb}"
        );
    }
    // What is remembered of a run is the same comment.
    folder.ok("reconcile a --source team-a");
    for _ in 0..2 {
        assert_eq!(first("plan a --source team-a"), "<!-- edgewright:team-a -->");
    }
    // So is a report that has nothing but an error in the configuration.
    folder.write("edgewright.config.yaml", "lints: {no-such-lint: deny}\n");
    assert_eq!(first("plan a --source team-a"), "<!-- edgewright:team-a -->");
}
