//! What has an entry, when it is used, and how entries are kept.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
    time::Duration,
};

use super::{
    entry::{decode, encode},
    *,
};
use crate::manifest::{self, tree::Disk, values::Taken};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Every form of a declaration, without an error, a warning or a secret.
const EVERYTHING: &str = r#"
apiVersion: edgewright/v1
kind: HttpsEdge
metadata:
  name: shop
  id: edghts_1
  renamed_from: store
  prevent_destroy: true
  labels: {team: shop, area: web}
  annotations: {edgewright/lint.unprotected-route: allow, edgewright/lint.weak-key: deny}
spec:
  description: "ß \" \\ 🦀"
  hostports: ['shop.example.com:443']
  tls_termination: {min_version: '1.3'}
  routes:
    - {name: cart, match_type: path_prefix, match: /cart, backend: {backend_id: bkd_1}, modules_from: [a, b]}
    - {match_type: exact_path, match: /, circuit_breaker: {error_threshold_percentage: 0.1}}
    - {name: shop, match_type: exact_path, match: /x, policies: {inbound: [{expressions: ['true'], actions: [{type: log, config: {b: [1, -2.5e-3, null], a: {c: 18446744073709551615}}}]}]}}
---
---
apiVersion: edgewright/v1
kind: ModuleSet
metadata: {name: a, labels: {team: shop}}
spec: {response_headers: {add: {X-B: '1', X-A: '2'}, remove: [Server]}, compression: {enabled: false}}
---
apiVersion: edgewright/v1
kind: HttpsEdgeRoute
metadata: {name: extra}
spec: {edge: shop, match_type: path_prefix, match: /extra, modules_from: [a]}
---
apiVersion: edgewright/v1
kind: EventSubscription
metadata: {name: audit, id: esb_1, prevent_destroy: true}
spec: {sources: [{type: ip_policy_created.v0}, {type: ip_policy_updated.v0}]}
---
apiVersion: edgewright/v1
kind: IpRestriction
metadata: {name: office}
spec: {type: api, ip_policy_ids: [ipp_1]}
"#;

/// A file that is long enough for an entry.
fn file(name: &str, text: &str) -> Arc<ManifestFile> {
    let text = format!("{}{text}", "# A comment.\n".repeat(FEWEST_BYTES / 13 + 1));
    Arc::new(ManifestFile::new(name.into(), text, PathBuf::new(), PathBuf::new()))
}

fn parse(file: &Arc<ManifestFile>) -> FileRead {
    manifest::read(&Disk::default(), file)
}

fn shown(read: &FileRead) -> String {
    format!("{:?}", read.declared)
}

fn edge(name: &str) -> String {
    format!("apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {{name: {name}}}\nspec: {{description: one}}\n")
}

fn open(folder: &Path, program: &str) -> ParsedFiles {
    ParsedFiles::within(folder, program).unwrap()
}

/// Whether a file is read without being parsed.
fn is_kept(parsed: &ParsedFiles, file: &Arc<ManifestFile>) -> bool {
    let mut is_parsed = false;
    parsed.read(file, || {
        is_parsed = true;
        FileRead { taken: vec![Taken::Nothing], ..FileRead::default() }
    });
    !is_parsed
}

#[test]
fn everything_that_a_file_declares_is_read_back() {
    let file = file("all.yaml", EVERYTHING);
    let read = parse(&file);
    assert!(read.diagnostics.is_empty(), "{:?}", read.diagnostics.iter().map(|it| &it.message).collect::<Vec<_>>());
    assert_eq!((read.declared.resources.len(), read.declared.sets.len()), (8, 1));
    let payload = encode(&read).unwrap();
    let declared = decode(&payload, &file).unwrap();
    for (one, other) in read.declared.resources.iter().zip(&declared.resources) {
        assert!(one.spec.same(other.spec.as_ref()), "{:?} is not {:?}", other.spec, one.spec);
    }
    let parents: Vec<_> = declared.resources.iter().filter_map(|it| it.parent.as_ref()).collect();
    assert!(Arc::ptr_eq(parents[0], parents[1]), "names are shared");
    let again = FileRead { declared, ..FileRead::default() };
    assert_eq!(shown(&again), shown(&read));
    assert_eq!(encode(&again).unwrap(), payload);
}

#[test]
fn what_is_no_entry_is_not_read_as_one() {
    let file = file("all.yaml", EVERYTHING);
    let payload = encode(&parse(&file)).unwrap();
    for end in 0..payload.len() {
        assert!(decode(&payload[..end], &file).is_none(), "the first {end} bytes");
    }
    assert!(decode(&[payload.as_slice(), &[0]].concat(), &file).is_none());
    // Without the checksum, any other byte gives something or nothing, but neither a panic nor endless work.
    for at in 0..payload.len() {
        for bit in [1, 0x80] {
            let mut flipped = payload.clone();
            flipped[at] ^= bit;
            let _ = decode(&flipped, &file);
        }
    }
}

#[test]
fn a_file_is_parsed_once_for_its_text_its_form_and_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let parsed = open(folder.path(), "one");
    let shop = file("shop.yaml", &edge("shop"));
    let first = parsed.read(&shop, || parse(&shop));
    assert_eq!(first.declared.resources.len(), 1);
    let again = open(folder.path(), "one").read(&shop, || panic!("it is parsed again"));
    assert_eq!(shown(&again), shown(&first));
    assert!(is_kept(&parsed, &file("other/name.yml", &edge("shop"))));
    assert!(!is_kept(&parsed, &file("shop.json", &edge("shop"))));
    assert!(!is_kept(&parsed, &file("shop.yaml", &edge("shops"))));
    assert!(!is_kept(&open(folder.path(), "two"), &shop));
}

#[test]
fn only_what_depends_on_the_text_alone_has_an_entry() {
    let folder = tempfile::tempdir().unwrap();
    let parsed = open(folder.path(), "one");
    let hook = |secret: &str| {
        format!(
            "{}  routes: [{{match_type: path_prefix, match: /, webhook_verification: {{provider: github, secret: {secret}}}}}]\n",
            edge("shop").replace(" {description: one}", "")
        )
    };
    let set = |secret: &str| {
        format!(
            "apiVersion: edgewright/v1\nkind: ModuleSet\nmetadata: {{name: a}}\nspec: {{webhook_verification: {{provider: github, secret: {secret}}}}}\n"
        )
    };
    // Without value sources, the decoder tells nobody of a secret; the Spec itself is asked.
    let untold = |text: &str| {
        let mut read = parse(&file("a.yaml", text));
        for declaration in &mut read.declared.resources {
            Arc::make_mut(declaration).facts.plain_secrets.clear();
        }
        for set in read.declared.sets.values_mut() {
            Arc::make_mut(set).facts.plain_secrets.clear();
        }
        assert!(read.diagnostics.is_empty());
        encode(&read).is_some()
    };
    assert!(!untold(&hook("hunter2")) && !untold(&set("hunter2")));
    let unusual = [
        hook("hunter2"),
        hook("{from_env: PATH}"),
        set("hunter2"),
        "kind: [".to_owned(),
        edge("shop").replace("{description: one}", "{compression: null, hostprots: []}"),
        edge("shop").replace("{description: one}", "{tls_termination: null}"),
    ];
    for text in &unusual {
        let file = file("a.yaml", text);
        parsed.read(&file, || parse(&file));
        assert!(!is_kept(&parsed, &file), "{text}");
    }
    let short = Arc::new(ManifestFile::new("a.yaml".into(), edge("shop"), PathBuf::new(), PathBuf::new()));
    parsed.read(&short, || parse(&short));
    assert!(!is_kept(&parsed, &short));
    let usual = file("a.yaml", &edge("shop"));
    parsed.read(&usual, || parse(&usual));
    assert!(is_kept(&parsed, &usual));
}

#[test]
fn an_entry_is_as_it_was_written_or_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = Shelf::open(&folder.path().join("parsed")).unwrap();
    let [one, two] = ["one", "two"].map(|text| blake3::hash(text.as_bytes()));
    let path = |key: &blake3::Hash| {
        let name = key.to_hex().to_string();
        folder.path().join("parsed").join(&name[..2]).join(name)
    };
    assert!(shelf.read(&one).is_none());
    shelf.write(&one, b"a payload").unwrap();
    shelf.write(&two, b"").unwrap();
    assert_eq!((shelf.read(&one).unwrap(), shelf.read(&two).unwrap()), (b"a payload".to_vec(), Vec::new()));
    assert_eq!(fs::metadata(path(&one)).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(path(&one).parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    let whole = fs::read(path(&one)).unwrap();
    for at in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        for damaged in [flipped.as_slice(), &whole[..at]] {
            fs::write(path(&one), damaged).unwrap();
            assert!(shelf.read(&one).is_none(), "byte {at}");
        }
    }
    fs::write(path(&two), &whole).unwrap();
    assert!(shelf.read(&two).is_none(), "it has another key");
    // A link is replaced, and what it points to stays.
    let elsewhere = folder.path().join("elsewhere");
    fs::write(&elsewhere, &whole).unwrap();
    fs::remove_file(path(&one)).unwrap();
    symlink(&elsewhere, path(&one)).unwrap();
    assert!(shelf.read(&one).is_none());
    shelf.write(&one, b"new").unwrap();
    assert_eq!((shelf.read(&one).unwrap(), fs::read(&elsewhere).unwrap()), (b"new".to_vec(), whole));
    fs::remove_file(path(&one)).unwrap();
    fs::create_dir(path(&one)).unwrap();
    assert!(shelf.read(&one).is_none() && shelf.write(&one, b"new").is_err());
    let left = fs::read_dir(path(&one).parent().unwrap()).unwrap().count();
    assert_eq!(left, 1, "a temporary file is left");
}

#[test]
fn a_folder_that_others_can_write_or_a_link_is_no_cache() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir_all(at("shared/parsed")).unwrap();
    fs::set_permissions(at("shared/parsed"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::create_dir(at("linked")).unwrap();
    symlink(at("shared"), at("linked/parsed")).unwrap();
    fs::write(at("file"), "").unwrap();
    for name in ["shared", "linked", "file", "file/below"] {
        assert!(ParsedFiles::within(&at(name), "one").is_none(), "{name}");
    }
    let (parsed, file) = (open(&at("new/folder"), "one"), file("a.yaml", &edge("shop")));
    assert!(!at("new").exists(), "there is no entry yet");
    parsed.read(&file, || parse(&file));
    assert!(is_kept(&parsed, &file));
    assert_eq!(fs::metadata(at("new")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn entries_that_are_not_used_are_removed_and_then_the_oldest() {
    let folder = tempfile::tempdir().unwrap();
    let shelf = Shelf::open(&folder.path().join("parsed")).unwrap();
    let keys: Vec<_> = (0..4u8).map(|number| blake3::hash(&[number])).collect();
    let now = SystemTime::now();
    let path = |key: &blake3::Hash| {
        let name = key.to_hex().to_string();
        folder.path().join("parsed").join(&name[..2]).join(name)
    };
    let date = |path: &Path, days: u32| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(now - DAY * days).unwrap();
    };
    let left = || keys.iter().map(|key| path(key).exists()).collect::<Vec<_>>();
    for (key, days) in keys.iter().zip([40, 29, 2, 31]) {
        shelf.write(key, &[0; 1000]).unwrap();
        date(&path(key), days);
    }
    // Reading is use.
    assert!(shelf.read(&keys[3]).is_some());
    let torn = path(&keys[1]).with_extension("1.tmp");
    fs::write(&torn, "torn").unwrap();
    date(&torn, 2);
    shelf.sweep(now, MOST_BYTES);
    assert_eq!((left(), torn.exists()), (vec![false, true, true, true], false));
    shelf.sweep(now, 2500);
    assert_eq!(left(), [false, false, true, true]);
    // Once a day, and again if the clock was set back.
    assert!(shelf.is_due(now) && !shelf.is_due(now + DAY / 2));
    assert!(shelf.is_due(now + DAY * 2) && shelf.is_due(now));
}
