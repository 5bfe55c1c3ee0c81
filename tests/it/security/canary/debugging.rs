//! What a panic, a failed assertion or the log of an embedding program could print: `{:?}` of a value has no secret.

use edgewright::{
    Options, Sent, SentFile, SentValue, Store, TracedRequest, apply, load, plan,
    resources::Secret,
    storage::{MEMORY, Query},
    trace,
};

use super::{
    server::server,
    world::{manifests, needles, sourced},
};
use crate::support::server::BASE_URL;

/// Manifests with every secret field, and with the values that they take from elsewhere.
fn sent(number: usize) -> Sent {
    let [from_env, from_file] = sourced().map(Secret::new);
    let values = vec![
        SentValue { from_file: String::new(), from_env: "CANARY_VALUE".into(), value: from_env },
        SentValue { from_file: "value.txt".into(), from_env: String::new(), value: from_file },
    ];
    Sent::new(vec![SentFile { values, ..SentFile::new("all.yaml", manifests(number)) }], None)
}

#[test]
fn no_value_prints_a_secret() {
    let needles = needles();
    let store = Store::open(MEMORY).unwrap();
    let revisions = store.subscribe();
    let mut printed = Vec::new();
    for number in [0, 1] {
        let tree = sent(number);
        let loaded = load(&tree);
        printed.push(("loaded manifests", format!("{tree:?} {loaded:?}")));
        let options = Options { source: "all".into(), ..Options::new(tree) };
        let planned = plan(&options, &store.snapshot());
        assert!(!planned.has_errors(), "{:?}", planned.diagnostics);
        printed.push(("a plan", format!("{options:?} {planned:?} {:?}", planned.report("plan"))));
        apply(&store, &options, &planned).unwrap();
        printed.push(("a revision", format!("{:?}", revisions.recv().unwrap())));
    }
    printed.push(("the history", format!("{:?}", store.history(&Query::All, u64::MAX, 9).unwrap())));
    let request = TracedRequest::new("GET", "https://shop.example.com/r0").unwrap();
    printed.push(("a trace", format!("{:?}", trace(&store.snapshot(), &request))));
    // Errors keep the positions of the whole file.
    let broken = load(&Sent::new(
        vec![SentFile::new("all.yaml", manifests(2).replace("client_secret: ", "client_secrt: &anchor "))],
        None,
    ));
    assert!(!broken.diagnostics.is_empty());
    printed.push(("broken manifests", format!("{broken:?}")));
    for (what, text) in printed {
        assert!(text.len() > 100, "{what}: {text}");
        assert_eq!(needles.find_in(&text), None, "{what}");
    }
}

#[test]
fn a_state_whose_answers_are_cached_prints_no_secret() {
    let (server, needles) = (server(), needles());
    let list = server.call_as(&server.editor, "GET", "/edges/https", None);
    let edge = list.str("/https_edges/0/uri").strip_prefix(BASE_URL).unwrap().to_owned();
    let answer = server.call_as(&server.editor, "GET", &edge, None);
    assert!(needles.find_in(&answer.text).is_some(), "an editor sees secrets: {}", answer.text);
    let printed = format!("{:?}", server.store().snapshot());
    assert!(printed.contains("hostports") && printed.contains("Rendered("), "{printed:.2000}");
    assert_eq!(needles.find_in(&printed), None);
}
