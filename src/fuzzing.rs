//! Fuzz targets: what holds for any bytes that an attacker can send. Not a part of the API.
//!
//! Each function takes arbitrary bytes, panics only if a property does not hold, and limits what comes of an input by its
//! size. `fuzz/` runs them with cargo-fuzz, which also limits time and memory; the tests below run them with the seeds,
//! mutations of them, and every former finding.

use std::io::Read as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::files::gzip::GzipReader;
use crate::filter::{self, Filter};
use crate::manifest::format;
use crate::manifest::load::schema;
use crate::model::secrets::redact::RedactedText;
use crate::model::{Faults, Kind, Secrets};
use crate::plan::format::{Format, render};
use crate::plan::saved_plan::SavedPlan;
use crate::server::http::body::{self, Limits};
use crate::server::operations::hooks;
use crate::store::fuzzed_frame;
use crate::syntax::access_log::AccessLogFormat;
use crate::syntax::{cel, x509, xml, yaml};
use crate::{LintLevels, Sent, SentFile, cli, validate};

/// A property of any bytes.
pub type FuzzTarget = fn(&[u8]);

/// Every target, with the name of its program in `fuzz/` and of its folder in `fuzz/regressions/`.
pub const TARGETS: [(&str, FuzzTarget); 11] = [
    ("manifests", manifests),
    ("certificates", certificates),
    ("bodies", bodies),
    ("metadata", metadata),
    ("records", records),
    ("plans", plans),
    ("configuration", configuration),
    ("filters", filters),
    ("hooks", hook_payloads),
    ("yaml", plain_yaml),
    ("access_logs", access_logs),
];

/// The bytes of a report that do not depend on its input: the 100 errors of a file with their helps, and the rules of
/// SARIF.
const REPORT_BYTES: usize = 2 << 20;
/// The bytes of a report for each byte of its input.
const REPORT_FACTOR: usize = 64;
/// Each byte of compressed data makes at most this many.
const DEFLATE_FACTOR: u64 = 1032;
/// The longest error about a single text.
const ERROR_BYTES: usize = 4096;

/// The bytes as text; what is not UTF-8 is refused before it is parsed.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// YAML and JSON manifests: every report, the redaction of excerpts, and the formatter.
pub fn manifests(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let redacted = RedactedText::new(text, schema::fields());
    assert_eq!(redacted.text.len(), text.len(), "the redacted text has other positions");
    for name in ["fuzzed.yaml", "fuzzed.json"] {
        let file = SentFile::new(name, text);
        let report = validate(&Sent::new(vec![file], None), &LintLevels::default()).report("validate");
        for kind in Format::ALL {
            let length = render(kind, &report).map_or(0, |rendered| rendered.len());
            assert!(length <= REPORT_BYTES + REPORT_FACTOR * text.len(), "{} has {length} bytes", kind.as_str());
        }
        if let Ok(formatted) = format::format(name, text) {
            assert!(format::format(name, &formatted).is_ok(), "a formatted file cannot be formatted");
        }
    }
}

/// PEM, certificates, and private keys, as text and as the content of a block.
pub fn certificates(bytes: &[u8]) {
    let block = |label: &str| format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(bytes));
    let certificate = block("CERTIFICATE");
    let keys = ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"].map(block);
    let given = text(bytes).unwrap_or_default();
    for chain in [given, certificate.as_str()] {
        let is_block = chain.contains("-----BEGIN");
        assert!(is_block || (x509::certificate(chain).is_err() && x509::authority(chain).is_err()));
        if is_block {
            // Only the absence of a panic is a property of these.
            let _ = (x509::certificate(chain), x509::authority(chain));
        }
        for key in keys.iter().map(String::as_str).chain([given]) {
            let _ = x509::check_key(chain, key);
        }
    }
}

/// The bodies of requests for every kind: what is accepted is what is stored.
pub fn bodies(bytes: &[u8]) {
    let Ok((content, faults)) = body::parse(bytes, Limits::RESOURCE) else { return };
    for info in Kind::all() {
        let (spec, found) = (info.decode_request)(content.root(), &[], &[]);
        let Some(spec) = spec else { continue };
        let mut broken = Faults::new();
        spec.check(&mut broken);
        if !faults.is_empty() || !found.is_empty() {
            continue;
        }
        let stored = spec.to_bytes(Secrets::Revealed).unwrap_or_default();
        let restored = text(&stored).and_then(|stored| (info.restore)(stored).ok());
        assert!(restored.is_some_and(|again| again.same(spec.as_ref())), "{:?} changes when it is stored", info.kind);
    }
}

/// The metadata of SAML identity providers.
pub fn metadata(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    if let Err(error) = xml::check_entity_descriptor(text) {
        assert!(error.len() <= ERROR_BYTES, "an error of {} bytes", error.len());
    }
}

/// Frames of the log, and the records of the state.
pub fn records(bytes: &[u8]) {
    fuzzed_frame(bytes);
    let Some(text) = text(bytes) else { return };
    for info in Kind::all() {
        if let Ok(spec) = (info.restore)(text) {
            let stored = spec.to_bytes(Secrets::Revealed).unwrap_or_default();
            let again = self::text(&stored).and_then(|stored| (info.restore)(stored).ok());
            assert!(again.is_some_and(|again| again.same(spec.as_ref())), "a record of {:?} changes", info.kind);
        }
    }
}

/// Saved plans.
pub fn plans(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let Ok(plan) = SavedPlan::read(text) else { return };
    let written = plan.text().unwrap_or_default();
    let again = SavedPlan::read(&written).ok();
    assert_eq!(again.as_ref().and_then(|again| again.text().ok()), Some(written), "a plan changes when it is saved");
    if let Some(again) = again {
        let _ = (plan.differences(&again), plan.diff(&again), plan.outcome());
    }
}

/// The configuration file.
pub fn configuration(bytes: &[u8]) {
    if let Some(text) = text(bytes) {
        cli::fuzzed_configuration(text);
    }
}

/// The filters of lists, as a query and as an expression, and the expressions of policies.
pub fn filters(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let _ = cel::parse_whole(text);
    for info in Kind::all() {
        let query = filter::read_parameters(info.kind, text);
        let expression = vec![("filter", text.to_owned())];
        for given in [query, expression] {
            let Err(faults) = Filter::new(info.kind, &given) else { continue };
            let length: usize = faults.iter().map(|fault| fault.message.len()).sum();
            assert!(length <= ERROR_BYTES * given.len() + REPORT_FACTOR * bytes.len(), "errors of {length} bytes");
        }
    }
}

/// The payloads of webhooks of Git forges, and their signatures.
pub fn hook_payloads(bytes: &[u8]) {
    hooks::fuzzed(bytes);
}

/// Plain YAML: whatever its own reader reads, serde_yaml reads as the same documents.
pub fn plain_yaml(bytes: &[u8]) {
    if let Some(text) = text(bytes) {
        let _ = yaml::plain_reader_agrees(text);
    }
}

/// Lines of access logs in every format, and compressed logs: what a line has comes from it.
pub fn access_logs(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        let _ = AccessLogFormat::recognize(line);
        for format in AccessLogFormat::ALL {
            let Ok(read) = format.read(line) else { continue };
            let longest = 3 * line.len() + 1;
            assert!(read.path.starts_with('/') && read.path.len() <= longest, "the path {:?}", read.path);
            assert!(!read.path.contains('?') && !read.method.is_empty(), "{:?} has a query", read.path);
        }
    }
    let most = DEFLATE_FACTOR * (bytes.len() as u64 + 1);
    let mut decompressed = 0_u64;
    let mut reader = GzipReader::new(bytes);
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = reader.read(&mut buffer) {
        decompressed += count as u64;
        assert!(decompressed <= most, "more than {most} bytes");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use std::{collections::BTreeSet, fs, io::Write as _, path::Path, sync::LazyLock};

    use proptest::{collection::vec, prelude::*, test_runner::TestRunner};

    use super::*;

    /// Texts that have a meaning for some parser.
    const WORDS: [&str; 24] = [
        "{",
        "}",
        "[",
        "]",
        "\"",
        ":",
        ": ",
        "\n",
        "\n---\n",
        "- ",
        "&a ",
        "*a",
        "<<: ",
        "!!int ",
        "|\n",
        "# ",
        "\0",
        "\u{feff}",
        "-----BEGIN CERTIFICATE-----\n",
        "<!DOCTYPE a [",
        "&#x0;",
        "1e999",
        "-9223372036854775809",
        "\\ud800",
    ];
    /// The longest file that is a seed: a larger one takes long and shows nothing new.
    const LARGEST_SEED: u64 = 16 << 10;

    fn files(folder: &str, extensions: &[&str]) -> Vec<Vec<u8>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let entries = walkdir::WalkDir::new(root).sort_by_file_name().into_iter().map(Result::unwrap);
        let wanted = entries.filter(|entry| {
            let path = entry.path();
            let known = path.extension().is_some_and(|found| extensions.iter().any(|it| found == *it));
            entry.file_type().is_file() && (extensions.is_empty() || known)
        });
        let small = wanted.filter(|entry| entry.metadata().unwrap().len() <= LARGEST_SEED);
        small.map(|entry| fs::read(entry.path()).unwrap()).collect()
    }

    /// The seeds of each target, in the order of the targets.
    static SEEDS: LazyLock<Vec<Vec<Vec<u8>>>> = LazyLock::new(|| TARGETS.iter().map(|(name, _)| seeds(name)).collect());

    /// The seeds of a target: its former findings, and examples.
    fn seeds(name: &str) -> Vec<Vec<u8>> {
        let mut seeds = files(&format!("fuzz/regressions/{name}"), &[]);
        assert!(!seeds.is_empty(), "fuzz/regressions/{name} is empty");
        match name {
            "manifests" => {
                seeds.extend(files("tests/invalid", &["yaml", "json"]));
                seeds.extend(files("examples/storefront", &["yaml", "json"]));
            }
            "yaml" => {
                seeds.extend(files("tests/invalid", &["yaml"]));
                seeds.extend(files("examples/storefront", &["yaml"]));
            }
            "certificates" => seeds.extend(files("examples/storefront/certs", &["pem"])),
            "metadata" => seeds.extend(files("examples/storefront/saml", &["xml"])),
            "bodies" | "records" => {
                let examples = Kind::all().filter_map(|info| (info.example)());
                seeds.extend(examples.map(|example| example.to_string().into_bytes()));
            }
            _ => {}
        }
        seeds
    }

    /// Applies edits: each is what to do, where, and with which byte.
    fn mutated(seed: &[u8], edits: &[(u8, u16, u8)]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for (action, at, byte) in edits {
            let at = usize::from(*at) % (bytes.len() + 1);
            let end = (at + usize::from(*byte)).min(bytes.len());
            match action % 6 {
                0 => bytes.insert(at, *byte),
                1 => drop(bytes.drain(at..end)),
                2 => {
                    if let Some(other) = bytes.get_mut(at) {
                        *other = *byte;
                    }
                }
                3 => {
                    let copy = bytes[at..end].to_vec();
                    drop(bytes.splice(at..at, copy));
                }
                4 => {
                    let word = WORDS[usize::from(*byte) % WORDS.len()];
                    drop(bytes.splice(at..at, word.bytes()));
                }
                _ => bytes.truncate(at),
            }
        }
        bytes
    }

    /// `EDGEWRIGHT_FUZZ_CORPUS` is the folder that gets the seeds of each target, for cargo-fuzz.
    #[test]
    fn the_seeds_of_each_target_can_be_written() {
        let temporary = tempfile::tempdir().unwrap();
        let named = std::env::var_os("EDGEWRIGHT_FUZZ_CORPUS").map(std::path::PathBuf::from);
        // Tests run in the root of the repository.
        let corpus = named.unwrap_or_else(|| temporary.path().to_owned());
        for ((name, _), seeds) in TARGETS.iter().zip(SEEDS.iter()) {
            let folder = corpus.join(name);
            fs::create_dir_all(&folder).unwrap();
            let names: BTreeSet<String> = seeds.iter().map(|seed| blake3::hash(seed).to_hex().to_string()).collect();
            for seed in seeds {
                fs::write(folder.join(blake3::hash(seed).to_hex().as_str()), seed).unwrap();
            }
            assert!(!names.is_empty() && names.iter().all(|name| folder.join(name).is_file()), "{name}");
        }
    }

    #[test]
    fn every_target_has_a_program_and_holds_for_its_seeds() {
        let manifest = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/Cargo.toml")).unwrap();
        for (name, _) in TARGETS {
            let entry = format!("[[bin]]\nname = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n");
            assert!(manifest.contains(&entry), "fuzz/Cargo.toml has no program {name}");
        }
        for ((name, target), seeds) in TARGETS.iter().zip(SEEDS.iter()) {
            let program = format!("{}/fuzz/fuzz_targets/{name}.rs", env!("CARGO_MANIFEST_DIR"));
            let code = fs::read_to_string(&program).unwrap();
            assert!(code.contains("edgewright::fuzzing::"), "{program}");
            for seed in seeds {
                target(seed);
            }
        }
        let names = |folder: &str| {
            let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap();
            let names = entries.map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned());
            names.collect::<BTreeSet<_>>()
        };
        let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(names("fuzz/fuzz_targets"), targets);
        assert_eq!(names("fuzz/regressions"), targets);
    }

    /// `EDGEWRIGHT_HOSTILE_CASES` is how many mutations each target gets, and how many texts of random bytes.
    #[test]
    fn every_target_holds_for_mutations_of_its_seeds_and_for_any_bytes() {
        let cases = std::env::var("EDGEWRIGHT_HOSTILE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(96);
        let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
        let mut runner = TestRunner::new(config);
        let edits = vec(any::<(u8, u16, u8)>(), 1..8);
        let mutations = runner.run(&(any::<prop::sample::Index>(), edits), |(which, edits)| {
            for ((_, target), seeds) in TARGETS.iter().zip(SEEDS.iter()) {
                target(&mutated(which.get::<Vec<u8>>(seeds), &edits));
            }
            Ok(())
        });
        mutations.unwrap();
        let bytes = runner.run(&vec(any::<u8>(), 0..512), |bytes| {
            TARGETS.iter().for_each(|(_, target)| target(&bytes));
            Ok(())
        });
        bytes.unwrap();
        let inputs = 2 * cases as usize * TARGETS.len();
        writeln!(std::io::stderr(), "hostile inputs: {inputs} without a panic").unwrap();
    }
}
