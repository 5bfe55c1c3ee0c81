//! Tests that need a loaded manifest or the schemas of all kinds: the day a certificate expires, and hidden secrets.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::load::schema::fields;
use super::resolve::{ResolveOptions, resolve};
use super::tree::{Disk, NotedFile, Tree};
use super::{ManifestFile, load};
use crate::lint::{self, World};
use crate::model::secrets::redact::RedactedText;
use crate::model::{Code, Diagnostic, Fault, Kind, Name, Snapshot};

/// Days before the end of the example's certificate, and whether something is said of it then.
#[test]
fn a_certificate_is_said_to_expire_in_its_last_thirty_days() {
    let lint = lint::find("expiring-certificate").unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("example.yaml"), lint.example()).unwrap();
    let tree = Disk::new([folder.path()]);
    let options = ResolveOptions { source: "test", prune: true, recreate_ids: true };
    let resolved = resolve(&load(&tree), &Snapshot::default(), options);
    let judged = resolved.sound_resources();
    let end: jiff::Timestamp = "2030-01-15T00:00:00Z".parse().unwrap();
    for (days, said) in [(365, false), (31, false), (29, true), (1, true), (-1, false)] {
        let now = end - jiff::SignedDuration::from_hours(days * 24);
        let world = World {
            judged: &judged,
            is_whole: true,
            others: &[],
            manifests: &resolved.facts,
            now,
            expiry_days: lint::EXPIRY_DAYS,
            allowed_labels: None,
        };
        let found = |world: &World<'_>, lint: &str| {
            lint::run(world, &[], None).in_order().iter().any(|finding| finding.lint == lint)
        };
        assert_eq!(found(&world, lint.name), said, "{days} days before");
        let world = World { expiry_days: 400, ..world };
        assert_eq!(found(&world, lint.name), days >= 0, "{days} days before, with a notice of 400 days");
        assert_eq!(found(&world, "expired-certificate"), days < 0, "{days} days before");
    }
}

#[test]
fn an_exemption_is_said_to_expire_in_its_last_thirty_days() {
    let lint = lint::find("expiring-exemption").unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("example.yaml"), lint.example()).unwrap();
    let options = ResolveOptions { source: "test", prune: true, recreate_ids: true };
    let resolved = resolve(&load(&Disk::new([folder.path()])), &Snapshot::default(), options);
    let judged = resolved.sound_resources();
    let end: jiff::Timestamp = "2099-01-11T00:00:00Z".parse().unwrap();
    for (hours, expected) in [
        (31 * 24, None),
        (30 * 24, Some("expiring-exemption")),
        (1, Some("expiring-exemption")),
        (0, Some("expired-exemption")),
    ] {
        let world = World {
            judged: &judged,
            is_whole: true,
            others: &[],
            manifests: &resolved.facts,
            now: end - jiff::SignedDuration::from_hours(hours),
            expiry_days: lint::EXPIRY_DAYS,
            allowed_labels: None,
        };
        let found: Vec<&str> = lint::run(&world, &[], None).in_order().iter().map(|finding| finding.lint).collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{hours} hours before");
    }
}

#[test]
fn every_secret_field_is_hidden_in_excerpts() {
    let mut generator = schemars::SchemaGenerator::default();
    for info in Kind::all() {
        (info.spec_schema)(&mut generator);
    }
    let definitions = generator.take_definitions(true);
    let mut named = BTreeSet::new();
    for definition in definitions.values() {
        let properties = definition.get("properties").and_then(|it| it.as_object()).into_iter().flatten();
        let secret = |it: &serde_json::Value| it.get("$ref").is_some_and(|to| to == "#/$defs/Secret");
        named.extend(properties.filter(|(_, it)| secret(it)).map(|(name, _)| name.clone()));
    }
    let fields = fields();
    assert_eq!(fields.secrets().collect::<Vec<_>>(), named.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(named.len() >= 3, "{named:?}");
    for field in named {
        let shown = RedactedText::new(&format!("{field}: hunter2\n"), fields).text;
        assert_eq!(shown, format!("{field}: *******\n"));
    }
}

#[test]
fn what_people_misspell_is_seen_in_excerpts() {
    let shown = |text: &str| RedactedText::new(text, fields()).text;
    let edge = |metadata: &str, spec: &str| {
        format!("apiVersion: edgewright/v1\nkind: HttpsEdge\nmetadata: {metadata}\nspec:\n  {spec}\n")
    };
    let misspelt = edge("{name: shop}", "host_ports: ['shop.example.com:443']");
    assert_eq!(shown(&misspelt), misspelt);
}

/// The keys of free-form maps in the example.
const FREE_KEYS: [&str; 9] = [
    "team",
    "Metadata",
    "Strict-Transport-Security",
    "Content-Security-Policy",
    "X-Content-Type-Options",
    "Referrer-Policy",
    "Cache-Control",
    "X-Edge",
    "X-Checkout-Flow",
];

#[test]
fn only_comments_anchors_and_free_form_values_of_the_example_are_hidden() {
    let manifests = walkdir::WalkDir::new(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront"))
        .into_iter()
        .map(Result::unwrap);
    let mut read = 0;
    for entry in manifests.filter(|it| it.path().extension().is_some_and(|it| it == "yaml" || it == "json")) {
        let text = fs::read_to_string(entry.path()).unwrap();
        let redacted = RedactedText::new(&text, fields());
        for part in redacted.hidden {
            let before = text[..part.start].rsplit('\n').next().unwrap();
            let key = before.trim_end_matches([':', ' ', '"']).rsplit([' ', '{', '"']).next().unwrap();
            let shown = &text[part];
            let is_expected = before.contains('#') || before.ends_with(['&', '*']) || FREE_KEYS.contains(&key);
            assert!(is_expected, "{}: {before}{shown}", entry.path().display());
        }
        read += 1;
    }
    assert!(read >= 7, "{read} manifests");
}

#[test]
fn hiding_takes_time_in_proportion_to_the_text() {
    let long = |part: &str| part.repeat(20_000);
    for text in [
        long("- "),
        long("{a: "),
        long("a."),
        format!("secret: a{}", long(",")),
        format!("{{secret: a{}", long(",")),
        long("-----BEGIN CERTIFICATE-----\n"),
        long("secret: &a *a\n"),
        long("\"secret\",\""),
        long("[secret\n"),
        long("\\u"),
        long("# secret a b "),
        long("a://"),
        long("Bearer "),
        long("from_env:"),
        long("{hunter2,"),
        long("? "),
        long("a: &a b\n"),
        long("a: [secret, b]\n"),
        format!("{{a{}b: 1}}", long(" ")),
        (0..5_000).map(|at| format!("secret: &a{at} *a{}\n", at + 1)).collect(),
    ] {
        let began = Instant::now();
        assert_eq!(RedactedText::new(&text, fields()).text.len(), text.len());

        assert!(began.elapsed().as_secs() < 5, "{:?}: {text:.40}", began.elapsed());
    }
}

/// A folder with a file that grows whenever it was read, so many times.
#[derive(Debug)]
struct BusyTree {
    disk: Disk,
    file: PathBuf,
    left: AtomicUsize,
}

impl Tree for BusyTree {
    fn manifests(&self) -> (Vec<Arc<ManifestFile>>, Vec<Diagnostic>) {
        let read = self.disk.manifests();
        if self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            let longer = fs::read_to_string(&self.file).unwrap() + "# more\n";
            fs::write(&self.file, longer).unwrap();
        }
        read
    }

    fn commit(&self) -> Option<String> {
        None
    }

    fn file(&self, manifest: &ManifestFile, name: &str) -> Result<String, Fault> {
        self.disk.file(manifest, name)
    }

    fn files_read(&self) -> Vec<NotedFile> {
        self.disk.files_read()
    }
}

#[test]
fn a_file_that_changes_while_the_manifests_are_read_is_read_again_and_then_reported() {
    for (writes, is_reported) in [(0, false), (2, false), (3, true)] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.yaml");
        fs::write(&file, "# one\n").unwrap();
        let tree = BusyTree { disk: Disk::new([folder.path()]), file, left: AtomicUsize::new(writes) };
        let loaded = load(&tree);
        let reported = loaded.diagnostics.iter().any(|it| it.code == Name::Code(Code::Unreadable));
        assert_eq!(reported, is_reported, "{writes} writes: {:?}", loaded.diagnostics);
        let text = loaded.files.iter().map(|file| file.source.text.as_str()).collect::<String>();
        let last = fs::read_to_string(folder.path().join("a.yaml")).unwrap();
        assert_eq!(text == last, !is_reported, "{writes} writes: {text}");
    }
}
