//! What holds for the code as a whole: purity, sizes, names, and words that explain what they cite.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use edgewright::report::CODES;

use super::source_files::{Source, assert_none, rust, sources};
use crate::support::program::REPOSITORY;

const MOST_LINES: usize = 500;
/// The most lines of a function whose documentation does not say why it is longer.
const MOST_LINES_OF_A_FUNCTION: usize = 60;
/// The most files in a folder, but for its subfolders.
const MOST_FILES: usize = 25;
/// Lints are one file each.
const LINTS: &str = "src/lint/rules";
/// What a pure layer has no use for.
const IO: [&str; 13] = [
    "std::fs",
    "std::io",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "std::time::SystemTime",
    "std::time::Instant",
    "rand",
    "tokio",
    "sled",
    "axum",
    "tracing",
];
/// Codes that only a broken machine brings about.
const NEED_A_BROKEN_MACHINE: [&str; 3] = ["STORE_CORRUPT", "STORE_FAILED", "INTERNAL"];

/// Who may name a module outside its own file and its hosts, and why. Lints have a rule of their own.
const NAMES_MODULES: [(&str, &[&str]); 22] = [
    // The API specification has the endpoints of these modules; those of all others are extensions.
    (
        "src/server/resources/endpoint.rs",
        &["backend", "ip_restriction", "oauth", "policies", "saml", "websocket_tcp_converter"],
    ),
    // Identity providers read a route's SAML metadata.
    ("src/server/operations/saml.rs", &["saml"]),
    // A gateway needs certificates, authorities and keys instead of references to them.
    ("src/server/gateway_feed/edges.rs", &["mutual_tls", "saml", "tls_termination"]),
    ("src/server/gateway_feed/view.rs", &["tls_termination"]),
    // Other products have other names for these.
    ("src/model/diagnostics/suggestions.rs", &["backend", "mutual_tls", "tls_termination"]),
    // Several lints look at the apps of all `oauth` modules.
    ("src/lint/view.rs", &["oauth"]),
    // Where TLS terminates decides what an edge can read.
    ("src/model/snapshot/rules.rs", &["tls_termination"]),
    ("src/routing/selector.rs", &["tls_termination"]),
    ("src/routing/missing_tls.rs", &["tls_termination"]),
    // Invariants are also about where TLS terminates, and the oldest version of it.
    ("src/model/kind/invariant.rs", &["tls_termination"]),
    ("src/routing/invariant/flaw.rs", &["tls_termination"]),
    ("src/routing/invariant/kept_modules.rs", &["tls_termination"]),
    ("src/routing/invariant/requirement.rs", &["policies", "tls_termination"]),
    // A request without a backend ends in a refusal.
    ("src/routing/module_pipeline.rs", &["backend"]),
    // The way of a request that breaks an invariant ends at its backend.
    ("src/routing/invariant/standing.rs", &["backend"]),
    // People read "backend A → B", and a class of requests has its TLS and its backend.
    ("src/plan/behaviour/unrouted.rs", &["backend"]),
    ("src/plan/behaviour/wording.rs", &["backend"]),
    ("src/routing/behaviour/fate.rs", &["backend", "tls_termination"]),
    // An IP restriction restricts as the module does.
    ("src/plan/exposure/opened_unrouted.rs", &["ip_restriction"]),
    // A replay shows both as sides of a change, and not as changed modules.
    ("src/routing/replay/tally.rs", &["backend", "tls_termination"]),
    // What a route test expects of backends and headers has the names of modules.
    ("src/routing/route_test.rs", &["backend", "request_headers", "response_headers"]),
    ("src/cli/manifests/test/live.rs", &["backend", "request_headers", "response_headers"]),
];
/// How many modules a lint is about at most. One that knows more of them should ask their slots.
const MOST_MODULES_OF_A_LINT: usize = 3;
/// It exports every module.
const FACADE: &str = "src/facade.rs";
/// They generate every module.
const LAWS: &str = "src/reconcile/properties/";

#[test]
fn every_file_says_what_it_is_for() {
    let silent = rust().into_iter().filter(|file| !file.text.starts_with("//! ")).map(|file| file.name);
    assert_none("files that do not start with `//! `", &silent.collect::<Vec<_>>());
}

/// Whether code names the module of a slot: by the path of its file, as a text, or as a field.
fn names_module(code: &str, paths: &BTreeSet<String>, slot: &str, file: &str) -> bool {
    let field = format!(".{slot}");
    let is_field = |(at, _): (usize, &str)| {
        let next = code[at + field.len()..].chars().next();
        next.is_none_or(|next| !next.is_alphanumeric() && next != '_' && next != '(')
    };
    let path = format!("::module::{file}");
    let is_path = |found: &String| {
        found.split_once(path.as_str()).is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with("::"))
    };
    code.contains(&format!("\"{slot}\"")) || code.match_indices(&field).any(is_field) || paths.iter().any(is_path)
}

#[test]
fn a_module_is_known_to_its_own_file_and_its_hosts_alone() {
    let own = |name: &str| name.strip_prefix("src/model/module/").map(str::to_owned);
    let all = sources("src", "rs");
    let slots: BTreeSet<&str> =
        edgewright::resources::Kind::all().flat_map(|info| info.slots).map(|slot| slot.name).collect();
    assert!(slots.len() >= 16, "{slots:?}");
    // The file of a module is the only one that names its slot.
    let file_of = |slot: &str| {
        let names = |file: &&Source| file.code().contains(&format!("\"{slot}\""));
        let files = all.iter().filter(|file| own(&file.name).is_some()).filter(names);
        let files: Vec<String> =
            files.filter_map(|file| own(&file.name)?.strip_suffix(".rs").map(str::to_owned)).collect();
        assert_eq!(files.len(), 1, "{slot}: {files:?}");
        files.concat()
    };
    let modules: Vec<(&str, String)> = slots.iter().map(|slot| (*slot, file_of(slot))).collect();
    let mut offenders = Vec::new();
    for file in all {
        let is_test = file.is_test() || file.name.starts_with(LAWS);
        if own(&file.name).is_some() || is_test || file.code().contains("\nslots! {") {
            continue;
        }
        let text = file.text.split("\nmod tests {").next().unwrap_or_default().to_owned();
        let file = Source { name: file.name, text };
        let (code, paths) = (file.code(), file.paths());
        let named: Vec<&str> = modules
            .iter()
            .filter(|(slot, file)| names_module(&code, &paths, slot, file))
            .map(|(slot, _)| *slot)
            .collect();
        let expected: Vec<&str> = match file.name.as_str() {
            FACADE => modules.iter().map(|(slot, _)| *slot).collect(),
            name => NAMES_MODULES.iter().find(|(it, _)| *it == name).map_or_else(Vec::new, |(_, of)| of.to_vec()),
        };
        let is_lint = file.name.starts_with("src/lint/rules/") && named.len() <= MOST_MODULES_OF_A_LINT;
        if !is_lint && named != expected {
            offenders.push(format!("{}: {named:?}, expected {expected:?}", file.name));
        }
    }
    assert_none("files that name modules", &offenders);
}

#[test]
fn the_pure_rooms_do_no_io() {
    let clocks = ["SystemTime::now", "Instant::now", "Timestamp::now", "Zoned::now"];
    // These are numbers with dots, not sockets, and a serializer that writes to bytes in memory.
    let harmless = [
        "std::net::IpAddr",
        "std::net::Ipv4Addr",
        "std::net::Ipv6Addr",
        "std::net",
        "std::io::Write",
        "std::io::Result",
    ];
    let mut offenders = Vec::new();
    for file in ["syntax", "model", "filter", "lint", "tenancy", "routing", "plan"]
        .iter()
        .flat_map(|room| sources(&format!("src/{room}"), "rs"))
        // A test may measure time.
        .filter(|file| !file.is_test())
    {
        let code = file.code();
        for path in file.paths() {
            let within =
                |name: &str| path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
            let io = IO.into_iter().any(within) || clocks.iter().any(|clock| path.ends_with(clock));
            if io && !harmless.contains(&path.as_str()) {
                offenders.push(format!("{}: {path}", file.name));
            }
        }
        for printed in ["println!", "print!(", "dbg!("].into_iter().filter(|printed| code.contains(printed)) {
            offenders.push(format!("{}: {printed}", file.name));
        }
    }
    assert_none("IO, a clock or randomness in a pure layer", &offenders);
}

#[test]
fn data_goes_to_stdout_through_one_file() {
    // Whoever writes to it in another way forgets that it may be full, or closed.
    let prints = |file: &Source| ["stdout()", "println!(", "print!("].iter().any(|way| file.code().contains(way));
    // A build script talks to Cargo.
    let may_print = ["src/cli/output/stdout.rs", "src/build.rs"];
    let others =
        sources("src", "rs").into_iter().filter(|file| !may_print.contains(&file.name.as_str()) && prints(file));
    assert_none("files that write to stdout by themselves", &others.map(|file| file.name).collect::<Vec<_>>());
}

#[test]
fn nothing_is_unsafe() {
    // A keyword of content security policies is no code.
    let code_of = |code: &str| code.replace("'unsafe-inline'", "");
    let word =
        |code: &str| code_of(code).split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe");
    let unsafe_files = sources("src", "rs").into_iter().filter(|file| word(&file.code())).map(|file| file.name);
    assert_none("unsafe code", &unsafe_files.collect::<Vec<_>>());
    let manifest = fs::read_to_string(format!("{REPOSITORY}/Cargo.toml")).unwrap();
    assert!(manifest.contains("unsafe_code = \"forbid\""));
}

#[test]
fn no_file_is_too_long_to_read() {
    let mut offenders = Vec::new();
    for file in sources("src", "rs") {
        let lines = file.text.lines().count();
        if lines > MOST_LINES {
            offenders.push(format!("{}: {lines} lines", file.name));
        }
    }
    assert_none(&format!("files over {MOST_LINES} lines"), &offenders);
}

#[test]
fn no_folder_has_too_many_files_to_find_one() {
    let mut files = BTreeMap::<String, usize>::new();
    for file in sources("src", "rs") {
        let (folder, _) = file.name.rsplit_once('/').unwrap();
        *files.entry(folder.to_owned()).or_default() += 1;
    }
    files.remove(LINTS);
    let large = files.into_iter().filter(|(_, count)| *count > MOST_FILES);
    let large: Vec<String> = large.map(|(folder, count)| format!("{folder}: {count} files")).collect();
    assert_none(&format!("folders with over {MOST_FILES} files"), &large);
}

/// The name of the function that starts in a line.
fn function_in(line: &str) -> Option<&str> {
    let item = line.trim_start();
    let item = match item.strip_prefix("pub(") {
        Some(within) => within.split_once(") ")?.1,
        None => item.strip_prefix("pub ").unwrap_or(item),
    };
    let item = ["fn ", "async fn ", "const fn "].iter().find_map(|start| item.strip_prefix(start))?;
    item.split(['(', '<']).next()
}

#[test]
fn a_long_function_says_why_it_is_long() {
    let mut offenders = Vec::new();
    for file in sources("src", "rs") {
        if file.is_test() || file.name.starts_with(LAWS) {
            continue;
        }
        let lines: Vec<&str> = file.text.lines().take_while(|line| *line != "mod tests {").collect();
        for (start, line) in lines.iter().enumerate() {
            let Some(name) = function_in(line) else { continue };
            let rest = &lines[start..];
            // A signature ends with its body, or with a semicolon in a trait.
            let has_body = rest.iter().find(|line| line.ends_with(['{', ';', '}'])).is_some_and(|it| it.ends_with('{'));
            let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
            let length = rest.iter().position(|line| *line == end).map_or(0, |at| at + 1);
            let documentation = lines[..start].iter().rev().map(|line| line.trim_start());
            let mut documentation = documentation.take_while(|line| line.starts_with("///") || line.starts_with("#["));
            let is_explained = documentation.any(|line| line.contains("long because"));
            if has_body && length > MOST_LINES_OF_A_FUNCTION && !is_explained {
                offenders.push(format!("{}: {name} has {length} lines", file.name));
            }
        }
    }
    assert_none(&format!("functions over {MOST_LINES_OF_A_FUNCTION} lines"), &offenders);
}

#[test]
fn every_decision_that_is_cited_is_explained() {
    let decisions = fs::read_to_string(format!("{REPOSITORY}/docs/decisions.md")).unwrap();
    let explained = |number: &str| decisions.lines().any(|line| line.starts_with(&format!("## D{number} ")));
    let mut offenders = BTreeSet::new();
    for file in sources("src", "rs") {
        for comment in file.text.lines().filter_map(|line| line.split_once("//")).map(|(_, comment)| comment) {
            for word in comment.split(|c: char| !c.is_ascii_alphanumeric()) {
                let number =
                    word.strip_prefix('D').filter(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()));
                if let Some(number) = number.filter(|number| !explained(number)) {
                    offenders.insert(format!("{}: D{number}", file.name));
                }
            }
        }
    }
    assert_none("decisions that docs/decisions.md does not have", &offenders.into_iter().collect::<Vec<_>>());
}

#[test]
fn every_code_has_a_case() {
    let mut text = fs::read_to_string(format!("{REPOSITORY}/tests/invalid/expected.txt")).unwrap();
    for file in sources("tests", "rs").iter().filter(|file| file.name != "tests/it/repository/conventions.rs") {
        text += &file.text;
    }
    let words: BTreeSet<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    let mut offenders = Vec::new();
    for info in CODES {
        let (wire, variant) = (info.code.to_string(), format!("Code::{:?}", info.code));
        let has_case = words.contains(wire.as_str()) || words.contains(info.name) || text.contains(&variant);
        if !has_case && !NEED_A_BROKEN_MACHINE.contains(&info.name) {
            offenders.push(wire);
        }
    }
    assert_none("codes that no test names", &offenders);
}

#[test]
fn the_repository_stands_by_itself() {
    // Put together here, so that this file does not name what it looks for.
    let foreign = [["..", "shared"].join("/"), ["", "work", "shared"].join("/"), ["api", "spec.md"].join("-")];
    let root = Path::new(REPOSITORY);
    let kept = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() != 1 || !matches!(name.as_ref(), "target" | ".git" | "edgewright.db")
    };
    let mut offenders = Vec::new();
    for entry in walkdir::WalkDir::new(root).into_iter().filter_entry(kept) {
        let entry = entry.unwrap();
        let Ok(text) = fs::read_to_string(entry.path()) else { continue };
        for word in foreign.iter().filter(|word| text.contains(word.as_str())) {
            offenders.push(format!("{}: {word}", entry.path().display()));
        }
    }
    assert_none("files that point outside of the repository", &offenders);
}

#[test]
fn the_changelog_begins_with_this_version() {
    let text = fs::read_to_string(format!("{REPOSITORY}/CHANGELOG.md")).unwrap();
    let newest = text.lines().find_map(|line| line.strip_prefix("## ")).unwrap();
    assert!(text.starts_with("# Changelog\n") && newest.starts_with(env!("CARGO_PKG_VERSION")), "{newest}");
}

#[test]
fn documentation_says_what_a_thing_is() {
    // Such a beginning leans on the item before, which whoever reads this one may not see.
    let leaning = ["That ", "That, ", "Those ", "These ", "It ", "The same ", "Whether it "];
    let mut offenders = Vec::new();
    for file in sources("src", "rs") {
        let mut is_begun = false;
        for line in file.text.lines().map(str::trim_start) {
            let documentation = line.strip_prefix("/// ");
            if let Some(text) = documentation.filter(|text| !is_begun && leaning.iter().any(|it| text.starts_with(it)))
            {
                offenders.push(format!("{}: {text}", file.name));
            }
            is_begun = line.starts_with("///");
        }
    }
    assert_none("documentation that begins with a pronoun", &offenders);
}

/// Names that mean one thing in each place: the arguments of a command, its subcommands, and a visitor inside a function.
const REPEATED_NAMES: [&str; 3] = ["Args", "Command", "Visitor"];

#[test]
fn one_name_means_one_type() {
    let mut declared = BTreeMap::<String, Vec<String>>::new();
    for file in sources("src", "rs") {
        for line in file.code().lines() {
            let item = line.trim_start();
            let inside = item.len() < line.len();
            let visibilities = ["pub ", "pub(crate) ", "pub(super) "];
            let item = visibilities.iter().find_map(|it| item.strip_prefix(it)).unwrap_or(item);
            let words = ["struct ", "enum ", "trait ", "type "];
            // An indented `type` is an associated one.
            let mut words = words.iter().filter(|word| !inside || **word != "type ");
            let Some(name) = words.find_map(|word| item.strip_prefix(word)) else { continue };
            let name = name.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
            if name.starts_with(|c: char| c.is_ascii_uppercase()) {
                declared.entry(name.to_owned()).or_default().push(file.name.clone());
            }
        }
    }
    assert!(declared.len() > 200, "only {} types", declared.len());
    let repeated = declared.iter().filter(|(name, files)| files.len() > 1 && !REPEATED_NAMES.contains(&name.as_str()));
    let offenders: Vec<String> = repeated.map(|(name, files)| format!("{name}: {}", files.join(", "))).collect();
    assert_none("names of several types", &offenders);
}
