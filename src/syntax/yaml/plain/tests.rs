//! The plain reader's subset of YAML: it reads a document as serde_yaml does, or leaves it to serde_yaml.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::{Path, PathBuf};

use proptest::{collection::vec, prelude::*, sample::select};
use serde::de::DeserializeSeed;

use super::*;
use crate::syntax::yaml::read::{Allowance, TapeSeed};
use crate::syntax::yaml::tape::Tape;

/// Examples with a folded scalar, and with an alias.
const NOT_PLAIN: [&str; 3] = [
    "examples/monitoring/alerts.yaml",
    "examples/replicas/container/compose.yaml",
    "examples/storefront/platform/backoffice.yaml",
];

/// An edge as large sources have them.
const EDGE: &str = "\
# The edges of one team.
---
apiVersion: edgewright/v1
kind: HttpsEdge
metadata:
  name: shop
  labels:
    team: \"shop\"
spec:
  description: 'The shop''s edge, since 2026-01-01'
  hostports:
  - shop.example.com:443
  - \"*.shop.example.com:443\"
  tls_termination: {min_version: '1.2'}
  ca_pem: |
    -----BEGIN CERTIFICATE-----
    MIIBbjCCARSgAwIBAgIQB/OoixqFwI5R32gfHJbFXDAKBggqhkjOPQQDAjAWMRQw
    -----END CERTIFICATE-----
  routes:
    - name: home # the first
      match_type: exact_path
      match: /
      backend: {backend_id: bkd_1, ratio: 0.25}

    - name: cart
      match: /cart/~:@!$&'()*+,;=
      circuit_breaker:
        enabled: true
        error_threshold_percentage: 0.5
        rolling_window: 10
      headers:
        add: {X-Trace: \"a\\tb\\u00e9\", X-Empty: ''}
        remove: [Server, 'X-Powered-By']
      expressions:
        - \"req.Path.startsWith('/x')\"
---
";

fn files(folder: &str) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let entries = walkdir::WalkDir::new(root).sort_by_file_name().into_iter().map(Result::unwrap);
    let manifests = entries.filter(|entry| entry.path().extension().is_some_and(|found| found == "yaml"));
    // A few invalid manifests are not UTF-8.
    manifests.filter_map(|entry| Some((entry.path().to_owned(), std::fs::read_to_string(entry.path()).ok()?))).collect()
}

#[test]
fn plain_forms_are_read() {
    for text in [
        // Documents.
        "",
        "\n\n",
        "# only a comment",
        "---",
        "---\n",
        "--- # a comment\n",
        "---\n---\n",
        "---\na: 1\n---\n",
        "a: 1\n---\n\n--- \nb: 2\n",
        "# a comment\n---\na: 1\n",
        "a:\n---\n- x\n---\n{}\n",
        "a: b\n---",
        "  a: 1\n  b: 2\n",
        // Mappings and lists.
        "a: 1\nb:\n  c: 2\n  d:\n    e: 3\nf: 4\n",
        "a:\n- 1\n- 2\nb: 3\n",
        "a:\n  - 1\n  - 2\nb: 3\n",
        "- a: 1\n  b: 2\n- c: 3\n",
        "-   a: 1\n    b: 2\n",
        "- - a\n  - b\n- - - c\n",
        "- a:\n  - b\n  c:\n    - d\n- e\n",
        "a:\n- b:\n  - c: 1\n    d: 2\n  e:\n- f\ng:\n",
        "-\n  a: 1\n-\n  - b\n",
        "a:\n-\n b: 1\n",
        "a:\n\n  # a comment\n  b: 1\n # another\n  c: 2\n# the last\n",
        "a:\n  b\nc:\n  'd'\ne:\n  [f]\n",
        // Nulls.
        "a:\nb: ~\nc: null\nd: Null\ne: NULL\nf:",
        "a: # a comment\nb: #another\n",
        "-\n-\n- # a comment\n-",
        "a:\n-\n-\nb:\n",
        // Keys.
        "\"a b\": 1\n'c''d': 2\n'': 3\n",
        "a b: 1\nc#d: 2\ne:f: 3\n~g: 4\n-h: 5\né: 6\n\"\\u00e9\": 7\n",
        "a: 1\na: 2\n",
        "<<: {a: 1}\nb: 2\n",
        "k0: 0\nk1: 1\nk2: 2\nk3: 3\nk4: 4\nk5: 5\nk6: 6\nk7: 7\nk8: 8\nk9: 9\nka: 0\nkb: 1\nkc: 2\nkd: 3\nke: 4\nkf: 5\nkg: 6\nk1: 7\n",
        // Plain scalars.
        "a: b# c\nd: e #f\ng: h   \ni: j:k\nl: m, n [o] {p}\nq: http://x/y?z\n",
        "a: true\nb: False\nc: yes\nd: on\ne: n\nf: TRUE\n",
        "a: 0\nb: -1\nc: 999999999999999999\nd: -999999999999999999\ne: 1.0\nf: -0.5\ng: 1e3\nh: 1e999\ni: 00.5\n",
        "a: 1_000\nb: 10.0.0.1\nc: 2026-01-01\nd: 30s\ne: 1:30\nf: 5f0c\ng: =\nh: <<\ni: -x\nj: .well-known\nk: 0.\n",
        // Quoted scalars.
        "a: ''\nb: \"\"\nc: 'd ''e'' # f'\ng: \"h: # \\\" i\"  # j\n",
        "a: \"\\\\ \\/ \\n \\t \\r \\x41 \\u00e9 \\U0001F600\"\nb: \"c\td\"\ne: 'f\tg\t'\n",
        // Literals.
        "a: |\n  b\n   c\n\n  d\n\n\ne: f\n",
        "a: |-\n  b\n\nc: |+\n  d\n\n\n",
        "a: | # a comment\n  # a text\n # a comment\nb: 1\n",
        "a: |\n\n\n  b\n",
        "a: |\n \n  b\n",
        "a: |\n  b",
        "a: |+\n  b",
        "a: |\n  b\n     \n  \n",
        "a: |\nb: |+\n\nc: |-\nd: |",
        "a: |\n ---\n ...\n---\nb: |\n  c\td\n  \te\n",
        "- |\n a\n- |-\n  b\n",
        "a:\n- |\n b\n- c: |\n   d\n",
        // Flow collections.
        "a: []\nb: {}\nc: [ ]\nd: { }\n",
        "a: [b, 'c', \"d\", 1, ~, [e], {f: g}]\n",
        "a: {b: c, 'd': e, \"f\":g, \"h\": [i], j: {k: -1}}\n",
        "a: [b, c,]\nd: {e: f, }\n",
        "a: [b:c, d#e, f g, -h, http://i/j]\n",
        "{a: [b,\n    c], # a comment\n# another\nd: {\n  e: f\n  , g:\n  h}}\n",
        "{\n  \"a\": [\n    1\n  ]\n}\n",
        "[]",
        "a: [b\n]\n",
        "a: [b,\nc]\nd: e\n",
    ] {
        assert!(plain_reader_agrees(text), "not read: {text:?}");
    }
    assert!(plain_reader_agrees(EDGE));
}

#[test]
fn everything_else_is_left_to_serde_yaml() {
    let deep_flow = format!("a: {}{}", "[".repeat(70), "]".repeat(70));
    let deep_block = format!("{}x", "- ".repeat(70));
    let long_key = format!("{}: 1", "k".repeat(1001));
    let long_quoted_key = format!("{{\"{}\": 1}}", "k".repeat(1001));
    for text in [
        deep_flow.as_str(),
        deep_block.as_str(),
        long_key.as_str(),
        long_quoted_key.as_str(),
        // Documents.
        "--- a\n",
        "--- |\n a\n",
        "---\ta\n",
        "---#a\n",
        "a: 1\n...\n",
        "...\n",
        "%YAML 1.1\n---\na: 1\n",
        "\u{feff}a: 1\n",
        "a\n",
        "'a'\n",
        "|\n a\n",
        "a: 1\n{}\n",
        "{}\na: 1\n",
        "  a: 1\nb: 2\n",
        // Indentation.
        "a: 1\n b: 2\n",
        "a:\n    b: 1\n  c: 2\n",
        "a:\n  - b\n c: d\n",
        "a: 1\n- b\n",
        "- a\nb: 1\n",
        "- a\n  - b\n",
        "- a: 1\n b: 2\n",
        "\ta: 1\n",
        "a:\n\tb: 1\n",
        "a:\t1\n",
        "a: b\tc\n",
        "a: b \t\n",
        "-\ta\n",
        // Scalars of several lines.
        "a: b\n  c\n",
        "a:\n  b\n  c\n",
        "a: 'b\n  c'\n",
        "a: \"b\n  c\"\n",
        "a: \"b\\\n  c\"\n",
        "a: b # c\n  d\n",
        "a: >\n  b\n  c\n",
        "a: [b\n  c]\n",
        // Keys.
        "? a\n: b\n",
        "a : b\n",
        "\"a\" : b\n",
        "\"a\":b\n",
        "a:b\n",
        ": a\n",
        "1: a\n",
        "~: a\n",
        "true: a\n",
        "0.5: a\n",
        "[a, b]: c\n",
        "{a: b}: c\n",
        "a\n: b\n",
        // Values.
        "a: b: c\n",
        "a: b:\n",
        "a: 'x' y\n",
        "a: 'x'# y\n",
        "a: - b\n",
        "a: -\n",
        "a: &b c\n",
        "a: *b\n",
        "a: !b c\n",
        "a: @b\n",
        "a: `b`\n",
        "a: %b\n",
        "a: ,b\n",
        "a: ]\n",
        "a: 'b\n",
        "a: \"b\n",
        "a: \"\\0\"\n",
        "a: \"\\q\"\n",
        "a: \"\\ud800\"\n",
        "a: \"\\u+123\"\n",
        "a: \"\\x4\"\n",
        // Numbers.
        "a: +1\n",
        "a: -0\n",
        "a: 012\n",
        "a: 0x1F\n",
        "a: 0o17\n",
        "a: 0b1\n",
        "a: 1234567890123456789\n",
        "a: 18446744073709551616\n",
        "a: .inf\n",
        "a: -.inf\n",
        "a: .nan\n",
        "a: .5\n",
        // Literals.
        "a: |2\n   b\n",
        "a: |-2\n   b\n",
        "a: |b\n",
        "a: |#b\n",
        "a: |\n    \n  b\n",
        "a: |\n  b\n c\n",
        "a: |\n\tb\n",
        "a: |\n  b\n\tc\n",
        "a: |\n  b\n ",
        // Flow collections.
        "a: [b, c]#d\n",
        "a: [b]c\n",
        "a: [b: c]\n",
        "a: [\"b\":c]\n",
        "a: {b, c: d}\n",
        "a: {b: c, d}\n",
        "a: {b: }\n",
        "a: {b:}\n",
        "a: {b:c}\n",
        "a: {b: c: d}\n",
        "a: [,]\n",
        "a: [b,,c]\n",
        "a: [b\n",
        "a: [?, b]\n",
        "a: [- b]\n",
        "a: [-]\n",
        "a: [b:, c]\n",
        "a: [b\tc]\n",
        "a: {b\n: c}\n",
        "a: {1: b}\n",
        "a: [\n--- \n]\n",
        "a: [b, #c\n,#d\n]\n",
        // Characters.
        "a: b\r\n",
        "a: b\u{85}c\n",
        "a: b\u{2028}c\n",
        "a: 'b\u{2029}c'\n",
        "a: b\u{feff}\n",
        "a: b\u{ffff}\n",
        "a: b\u{1}\n",
        "a: b\u{7f}\n",
        "a: b\u{9f}\n",
        "# \u{0}\n",
    ] {
        assert!(!plain_reader_agrees(text), "read: {text:?}");
    }
}

#[test]
fn documents_have_the_numbers_that_serde_yaml_gives_them() {
    for text in ["", "---\n", "a: 1", "---\n---\na: 1\n", "a: 1\n---\n# b\n---\n\n---\nc: 1\n---"] {
        let expected: Vec<String> = serde_yaml::Deserializer::from_str(text)
            .map(|document| format!("{:?}", TapeSeed(&Allowance::new(usize::MAX)).deserialize(document).unwrap()))
            .collect();
        let documents: Vec<String> =
            plain_documents(text, usize::MAX).unwrap().iter().map(|document| format!("{document:?}")).collect();
        assert_eq!(documents, expected, "{text:?}");
    }
}

#[test]
fn values_are_counted_as_for_serde_yaml() {
    let long = format!("a: [b, {{c: 1}}, ~]\n---\n{}: |\n  {}\n---\n", "k".repeat(40), "x".repeat(100));
    for text in ["", "a: 1\n", "- - a\n", long.as_str(), EDGE] {
        let is_enough = |most: usize| {
            let allowance = Allowance::new(most);
            let mut documents = serde_yaml::Deserializer::from_str(text);
            documents.all(|document| TapeSeed(&allowance).deserialize(document).is_ok())
        };
        let needed = (0..10_000).find(|most| is_enough(*most)).unwrap();
        assert!(plain_documents(text, needed).is_some(), "{text:?}");
        assert!(plain_documents(text, needed - 1).is_none(), "{text:?}");
    }
}

#[test]
fn the_manifests_of_examples_and_estates_are_plain() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut others = Vec::new();
    for (path, text) in files("examples").into_iter().chain(files("tests/clean")) {
        if !plain_reader_agrees(&text) {
            others.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
        }
    }
    others.sort_unstable();
    assert_eq!(others, NOT_PLAIN);
}

#[test]
fn serde_yaml_agrees_on_every_manifest_of_the_tests() {
    let all = files("tests");
    let plain = all.iter().filter(|(_, text)| plain_reader_agrees(text)).count();
    assert!(plain > 100, "{plain} of {}", all.len());
}

/// Parts of lines that are plain, nearly plain, or an error, depending on where they stand.
const VALUES: [&str; 56] = [
    "a",
    "b c",
    "x#y",
    "x #c",
    "1",
    "-1",
    "0.5",
    "012",
    "1e3",
    ".5",
    "~",
    "null",
    "true",
    "-x",
    "-",
    "- a",
    "x: y",
    "a:b",
    "http://x/y",
    "é",
    "\"q\"",
    "'s'",
    "'it''s'",
    "\"a\\nb\"",
    "\"\\u00e9\\x41\"",
    "'x' y",
    "'x'# y",
    "\"x\" # y",
    "'open",
    "[]",
    "{}",
    "[a, b]",
    "[a, b]# c",
    "[a: b]",
    "[a,\n b]",
    "[a\n b]",
    "[a #c\n]",
    "[ # c\n a,]",
    "{a: 1, \"b\":2}",
    "{a: b,\n c: [d]}",
    "{a}",
    "{a: }",
    "{a:b: c}",
    "{\n\"a\"\n: b}",
    "[-1, .5, a?, b:c]",
    "|\n",
    "|-\n",
    "|+\n",
    "| # c\n",
    "|2\n",
    ">\n",
    "*a",
    "&a b",
    "!t b",
    "a\n  b",
    "",
];
const PREFIXES: [&str; 24] = [
    "a: ", "b: ", "c:", "\"q\": ", "'s':  ", "a b: ", "1: ", "<<: ", "'': ", "é: ", "-k: ", "a : ", "? ", "- ", "-",
    "- - ", "-   ", "- a: ", "- b:", "", "", "# ", "---", "--- ",
];
const ENDS: [&str; 12] = ["\n", "\n", "\n", "\n", "\n", " # c\n", "  \n", "\n\n", "\n \n", "\n# c\n", "\n  # c\n", ""];
/// The texts that a mutation inserts.
const PIECES: [&str; 26] = [
    " ", "  ", "\n", "\n\n", "- ", ": ", ":", "#", " #", "\"", "'", "|", "[", "]", "{", "}", ",", "\n---\n", "\t", "-",
    "?", "\\", "0", ".", "~", "\u{2028}",
];

/// Lines with indentations that often fit each other.
fn lines() -> impl Strategy<Value = String> {
    let step = select(vec![0_usize, 0, 0, 0, 2, 2, 2, 1, 3, 4, 6, 8]);
    let line = (step, any::<bool>(), select(PREFIXES.to_vec()), select(VALUES.to_vec()), select(ENDS.to_vec()));
    vec(line, 1..9).prop_map(|lines| {
        let mut text = String::new();
        let mut last = 0;
        for (step, is_deeper, prefix, value, end) in lines {
            last = if is_deeper && step <= 2 { last + step } else { step };
            text.push_str(&" ".repeat(last));
            text.push_str(prefix);
            text.push_str(value);
            text.push_str(end);
        }
        text
    })
}

fn fixtures() -> Vec<String> {
    let mut fixtures: Vec<String> = files("tests").into_iter().chain(files("examples")).map(|(_, text)| text).collect();
    fixtures.retain(|text| text.len() < 8192 && text.is_ascii());
    fixtures.push(EDGE.to_owned());
    fixtures
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2048) })]

    #[test]
    fn serde_yaml_agrees_on_texts_near_the_border(text in lines()) {
        plain_reader_agrees(&text);
    }

    #[test]
    fn serde_yaml_agrees_on_mutations_of_manifests(
        text in select(fixtures()),
        window in (any::<prop::sample::Index>(), 1_usize..25),
        edits in vec((any::<prop::sample::Index>(), select(PIECES.to_vec()), 0_usize..3), 0..4),
    ) {
        let all: Vec<&str> = text.split_inclusive('\n').collect();
        let start = if all.is_empty() { 0 } else { window.0.index(all.len()) };
        let mut mutated = all[start..(start + window.1).min(all.len())].concat();
        for (at, piece, removed) in edits {
            let mut at = at.index(mutated.len() + 1);
            while !mutated.is_char_boundary(at) {
                at -= 1;
            }
            let mut end = (at + removed).min(mutated.len());
            while !mutated.is_char_boundary(end) {
                end += 1;
            }
            mutated.replace_range(at..end, piece);
        }
        plain_reader_agrees(&mutated);
    }
}

/// The agreement of tapes is more than that of their documents, so that nothing after the readers can tell them apart.
#[test]
fn tapes_are_compared_item_by_item() {
    let read = |text: &str| -> Tape { serde_yaml::from_str(text).unwrap() };
    let plain = |text: &str| plain_documents(text, usize::MAX).unwrap().remove(0);
    assert_eq!(plain("a: [1, x]\n"), read("{a: [1, 'x']}"));
    for other in ["a: [1, y]", "a: [2, x]", "a: {b: x}", "a: [1, x]\na: 1", "a: [1, x]\n<<: {}", "b: [1, x]"] {
        assert_ne!(plain("a: [1, x]\n"), read(other), "{other}");
    }
}
