//! What the errors about edges of other sources advise: each change that a help line names is made, and then the plan succeeds
//! (D103).

use super::delegation::{head, route, storefront};
use crate::support::program::{Folder, rounds};

/// The text between two others.
fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(start)?;
    rest.split_once(end).map(|(inner, _)| inner)
}

/// The field with entries, if there are any.
fn delegates_to(entries: &[&str]) -> String {
    if entries.is_empty() { String::new() } else { format!("  delegates_to: [{}]\n", entries.join(", ")) }
}

/// The entries of an edge once its owner has done what a help line asks for.
fn asked_for<'a>(said: &'a str, before: &[&'a str]) -> Vec<&'a str> {
    let entry = between(said, "`delegates_to: [", "]`").map(|entry| vec![entry]);
    entry.unwrap_or_else(|| {
        let inner = between(said, "ask for `", "` in `delegates_to` of").unwrap_or_else(|| panic!("{said}"));
        before.iter().copied().chain([inner]).collect()
    })
}

#[test]
fn what_the_help_says_makes_a_route_possible() {
    let matches = [
        ("/search", Some("/search/")),
        ("/search/", None),
        ("/a/b", Some("/a/b/")),
        ("/a,b", Some("/a,b/")),
        ("shop.example.com/search", Some("shop.example.com/search/")),
        ("/", None),
        ("/sea;x", None),
        ("/search?x=1", None),
        ("/a%2fb/", None),
    ];
    let cases =
        matches.iter().flat_map(|(text, instead)| [("path_prefix", *text, *instead), ("exact_path", *text, None)]);
    let consents: [&[&str]; 3] =
        [&[], &["{source: docs, path_prefix: /docs/}"], &["{source: other, path_prefix: /other/}"]];
    for (number, (match_type, text, instead)) in cases.enumerate() {
        // A usual run has one of them for each route, and another one for the next.
        for before in consents.into_iter().cycle().skip(number % 3).take(rounds(1, 3)) {
            let folder = Folder::new();
            folder.write("shop/edge.yaml", &storefront(&delegates_to(before)));
            folder.ok("reconcile --source shop shop");
            let of = |text: &str| route(&format!("'{text}'"), "").replace("path_prefix", match_type);
            folder.write("docs/route.yaml", &of(text));
            let refused = folder.run("reconcile --source docs docs");
            let said = refused.err.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(refused.code == 3 && said.contains("NOT_DELEGATED"), "{}", refused.all());
            assert_eq!(between(&said, "help: match `", "`"), instead, "{said}");
            assert_eq!(said.contains("`?`, `#` and `;`"), text.contains([';', '?', '%']), "{said}");
            let entries = asked_for(&said, before);
            assert!(before.iter().all(|entry| entries.contains(entry)), "{said}");
            folder.write("shop/edge.yaml", &storefront(&delegates_to(&entries)));
            folder.ok("reconcile --source shop shop");
            folder.write("docs/route.yaml", &of(instead.unwrap_or(text)));
            let made = folder.run("reconcile --source docs docs");
            assert_eq!(made.code, 0, "{match_type} {text}: {said}\n{}", made.all());
        }
    }
}

#[test]
fn what_the_help_says_serves_the_hostport_of_another_source() {
    let own = |name: &str, host: &str| head("HttpsEdge", name) + &format!("spec: {{hostports: ['{host}:443']}}\n");
    let first = |hosts: &str, entries: &[&str]| {
        head("HttpsEdge", "storefront") + &format!("spec:\n  hostports: [{hosts}]\n{}", delegates_to(entries))
    };
    let other: &[&str] = &["{source: other, path_prefix: /other/}"];
    for (name, before) in [("docs", &[] as &[&str]), ("storefront", other), ("docs", other)] {
        let folder = Folder::new();
        let theirs = "'shop.example.com:443', '*.shop.example.com:443'";
        folder.write("shop/edge.yaml", &first(theirs, before));
        folder.ok("reconcile --source shop shop");
        let refused = |host: &str| {
            folder.write("docs/edge.yaml", &own(name, host));
            let run = folder.run("reconcile --source docs docs");
            assert!(run.code == 3 && run.err.contains("NOT_DELEGATED"), "{}", run.all());
            run.err.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        // The same hostport: routes on that edge.
        let said = refused("shop.example.com");
        let edge = between(&said, "routes with `edge: ", "`").unwrap().to_owned();
        let entries = asked_for(&said, before);
        assert!(before.iter().all(|entry| entries.contains(entry)), "{said}");
        folder.write("shop/edge.yaml", &first(theirs, &entries));
        folder.ok("reconcile --source shop shop");
        assert!(!refused("shop.example.com").contains("ask for"), "it is delegated already");
        folder.write("docs/edge.yaml", &route("/docs/", "").replace("edge: storefront", &format!("edge: {edge}")));
        assert_eq!(folder.ok("reconcile --source docs docs").calls().len(), 1, "{said}");
        folder.write("docs/edge.yaml", "# nothing is left\n");
        folder.ok("reconcile --source docs --max-deletes 100% docs");
        // Its removal there.
        folder.write("shop/edge.yaml", &first(theirs, before));
        folder.ok("reconcile --source shop shop");
        assert!(refused("shop.example.com").contains("or ask its owner to remove the hostport"), "{said}");
        folder.write("shop/edge.yaml", &first("'www.example.com:443'", before));
        folder.ok("reconcile --source shop shop");
        folder.ok("reconcile --source docs docs");
        folder.write("docs/edge.yaml", "# nothing is left\n");
        folder.ok("reconcile --source docs --max-deletes 100% docs");
        // Below a wildcard: consent is enough.
        folder.write("shop/edge.yaml", &first(theirs, before));
        folder.ok("reconcile --source shop shop");
        let said = refused("docs.shop.example.com");
        folder.write("shop/edge.yaml", &first(theirs, &asked_for(&said, before)));
        folder.ok("reconcile --source shop shop");
        folder.ok("reconcile --source docs docs");
    }
}
