//! Time and memory grow with the size of an input, and not faster, whatever is in it: each family of hostile inputs has two
//! sizes, of which one is four times the other. Processor time counts, which other programs on the machine change little.
//!
//! `EDGEWRIGHT_GROWTH_BYTES` is the smaller size, and `EDGEWRIGHT_GROWTH` the start of the names of families to run. Without
//! it, a usual run has each fourth family, and a long one all of them.

use std::{
    fs,
    process::Stdio,
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::support::program::{Folder, REPOSITORY, number_in, rounds};

/// The smaller size of the inputs.
const USUAL_BYTES: u64 = 16 << 10;
/// How many times as large the other one is, and how many times as long it may take: what is quadratic takes 16 times as long.
const LARGER: usize = 4;
const MOST_TIMES: f64 = 8.0;
/// What may come on top, in seconds: the start of a process, and a machine that is busy.
const SPARE_SECONDS: f64 = 0.5;
/// The most memory for each byte of an input, and for anything.
const BYTES_PER_BYTE: u64 = 512;
const SPARE_BYTES: u64 = 160 << 20;
/// Ticks of the kernel in a second, as `/proc` counts them on every architecture that matters.
const TICKS: f64 = 100.0;
const PATIENCE: Duration = Duration::from_secs(240);

/// Where an input goes.
#[derive(Debug, Clone, Copy)]
enum Input {
    Yaml,
    Json,
    SavedPlan,
    Configuration,
}

/// Makes an input of about so many bytes.
type Generator = fn(usize) -> String;
/// A family of inputs: its name, and its member of about some size.
type Family = (&'static str, Input, Generator);

fn head(kind: &str) -> String {
    format!("apiVersion: edgewright/v1\nkind: {kind}\nmetadata: {{name: a}}\nspec:\n")
}

/// A field of an edge.
fn field(text: &str) -> String {
    format!("{}  {text}\n", head("HttpsEdge"))
}

/// The module of a route.
fn module(text: &str) -> String {
    let route = "routes:\n  - name: r\n    match_type: exact_path\n    match: /\n    backend: {backend_id: bkd_1}";
    format!("{}  hostports: ['a.example.com:443']\n  {route}\n    {text}\n", head("HttpsEdge"))
}

fn policy(expression: &str) -> String {
    module(&format!(
        "policies:\n      inbound:\n      - expressions:\n        - '{expression}'\n        actions: [{{type: deny}}]"
    ))
}

/// A block scalar with lines.
fn block(indentation: usize, text: &str) -> String {
    let blank = " ".repeat(indentation);
    text.lines().map(|line| format!("\n{blank}{line}")).collect()
}

fn saml(metadata: &str) -> String {
    module(&format!("saml:\n      idp_metadata: |{}", block(8, metadata)))
}

fn authority(pem: &str) -> String {
    format!("{}  ca_pem: |{}\n", head("CertificateAuthority"), block(4, pem))
}

/// Parts with different numbers, of so many bytes each.
fn numbered(size: usize, bytes: usize, part: impl Fn(usize) -> String) -> String {
    (0..size / bytes).map(part).collect()
}

fn edge(number: usize) -> String {
    format!(
        "---\n{}",
        field(&format!("hostports: ['h{number}.example.com:443']")).replacen("a}", &format!("e{number}}}"), 1)
    )
}

fn routes(size: usize, path: fn(usize) -> String) -> String {
    let route = |number: usize| {
        format!(
            "  - {{name: r{number}, match_type: path_prefix, match: {}, backend: {{backend_id: bkd_1}}}}\n",
            path(number)
        )
    };
    format!("{}  hostports: ['a.example.com:443']\n  routes:\n{}", head("HttpsEdge"), numbered(size, 86, route))
}

fn json(spec: &str) -> String {
    format!(r#"{{"apiVersion":"edgewright/v1","kind":"HttpsEdge","metadata":{{"name":"a"}},"spec":{{{spec}}}}}"#)
}

/// A saved plan of many edges, as the program writes it.
fn saved_plan(size: usize) -> String {
    let folder = Folder::new();
    folder.write("m/m.yaml", &numbered(size, 600, edge));
    folder.run("plan --out plan.json m");
    folder.read("plan.json")
}

const FAMILIES: [Family; 53] = [
    ("flow nesting", Input::Yaml, |size| field(&format!("description: {}", "[".repeat(size)))),
    ("map nesting", Input::Yaml, |size| field(&format!("description: {}", "{a: ".repeat(size / 4)))),
    ("aliases", Input::Yaml, |size| format!("x: &a [{}]\ny: [{}]\n", "1,".repeat(100), "*a, ".repeat(size / 4))),
    ("anchors", Input::Yaml, |size| numbered(size, 14, |number| format!("- &a{number} {number}\n"))),
    ("alias chain", Input::Yaml, |size| {
        let next = |number: usize| format!("a{}: &a{0} [*a{1}, *a{1}]\n", number + 1, number);
        format!("a0: &a0 [x, x]\n{}", numbered(size, 28, next))
    }),
    ("merges", Input::Yaml, |size| format!("a: &a {{k: 1}}\nb:\n{}", "- {<<: *a}\n".repeat(size / 11))),
    ("unknown fields", Input::Yaml, |size| {
        head("HttpsEdge") + &numbered(size, 14, |number| format!("  field{number}: 1\n"))
    }),
    ("duplicate keys", Input::Yaml, |size| head("HttpsEdge") + &"  description: x\n".repeat(size / 17)),
    ("long key", Input::Yaml, |size| field(&format!("{}: 1", "hostports".repeat(size / 9)))),
    ("long scalar", Input::Yaml, |size| field(&format!("description: {}", "x".repeat(size)))),
    ("escapes", Input::Yaml, |size| field(&format!("description: \"{}\"", "\\u00e4".repeat(size / 6)))),
    ("folded lines", Input::Yaml, |size| field(&format!("description: >\n{}", "    a b\n\n".repeat(size / 9)))),
    ("documents", Input::Yaml, |size| numbered(size, 110, edge)),
    ("same documents", Input::Yaml, |size| edge(1).repeat(size / 110)),
    ("empty documents", Input::Yaml, |size| "# empty\n".to_owned() + &"---\n".repeat(size / 4)),
    ("unknown kinds", Input::Yaml, |size| "---\nkind: Nothing\n".repeat(size / 18)),
    ("wide list", Input::Yaml, |size| {
        let hostports = numbered(size, 24, |number| format!("h{number}.example.com:443, "));
        field(&format!("hostports: [{hostports}]"))
    }),
    ("list of a wrong type", Input::Yaml, |size| field(&format!("hostports: [{}]", "1, ".repeat(size / 3)))),
    ("routes", Input::Yaml, |size| routes(size, |number| format!("/a{number}"))),
    ("equal routes", Input::Yaml, |size| routes(size, |_| "/a".to_owned())),
    ("nested paths", Input::Yaml, |size| routes(size, |number| "/a".repeat(number % 60 + 1))),
    ("missing references", Input::Yaml, |size| {
        let route = |number: usize| {
            let spec = "match_type: exact_path, match: /a, backend: {backend_id: bkd_1}";
            format!(
                "---\napiVersion: edgewright/v1\nkind: HttpsEdgeRoute\nmetadata: {{name: r{number}}}\nspec: {{edge: none{number}, {spec}}}\n"
            )
        };
        numbered(size, 150, route)
    }),
    ("comments", Input::Yaml, |size| "# comment\n".repeat(size / 10)),
    ("open quotes", Input::Yaml, |size| field(&format!("description: x{}", "\n  \"".repeat(size / 4)))),
    ("carriage returns", Input::Yaml, |size| head("HttpsEdge") + &"  description: x\r".repeat(size / 17)),
    ("secrets of a wrong type", Input::Yaml, |size| {
        head("HttpsEdge") + &"  client_secret: [hunter2]\n".repeat(size / 27)
    }),
    ("user agents", Input::Yaml, |size| {
        module(&format!("user_agent_filter: {{deny: [{}]}}", "\"(a+)+b\", ".repeat(size / 10)))
    }),
    ("JSON depth", Input::Json, |size| "{\"a\":".repeat(size / 5)),
    ("JSON list depth", Input::Json, |size| "[".repeat(size)),
    ("JSON width", Input::Json, |size| {
        json(&format!("{}\"z\":1", numbered(size, 10, |number| format!("\"f{number}\":1,"))))
    }),
    ("JSON escapes", Input::Json, |size| json(&format!("\"description\":\"{}\"", "\\ud83d\\ude00".repeat(size / 12)))),
    ("JSON numbers", Input::Json, |size| json(&format!("\"description\":{}", "9".repeat(size)))),
    ("certificates", Input::Yaml, |size| {
        let chain = fs::read_to_string(format!("{REPOSITORY}/examples/storefront/certs/shop.chain.pem")).unwrap();
        authority(&chain.repeat(size / chain.len() + 1))
    }),
    ("empty PEM blocks", Input::Yaml, |size| {
        authority(&"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n".repeat(size / 60))
    }),
    ("open PEM blocks", Input::Yaml, |size| authority(&"-----BEGIN CERTIFICATE-----\n".repeat(size / 32))),
    ("long PEM block", Input::Yaml, |size| {
        let line = format!("{}\n", "MIIB".repeat(16));
        authority(&format!("-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----\n", line.repeat(size / 69)))
    }),
    ("XML attributes", Input::Yaml, |size| {
        saml(&format!("<a {}/>", numbered(size, 9, |number| format!("a{number}=\"x\" "))))
    }),
    ("XML namespaces", Input::Yaml, |size| {
        let spaces = numbered(size, 20, |number| format!("xmlns:a{number}=\"urn:{number}\" "));
        saml(&format!("<a {spaces}>{}</a>", "<b/>".repeat(10)))
    }),
    ("XML depth", Input::Yaml, |size| saml(&"<a>".repeat(size / 3))),
    ("XML elements", Input::Yaml, |size| saml(&format!("<a>{}</a>", "<b xmlns:c=\"d\"/>".repeat(size / 17)))),
    ("XML references", Input::Yaml, |size| saml(&format!("<a>{}</a>", "&#65;".repeat(size / 5)))),
    ("CEL conjunction", Input::Yaml, |size| policy(&format!("{}a", "a && ".repeat(size / 5)))),
    ("CEL parentheses", Input::Yaml, |size| policy(&"(".repeat(size))),
    ("CEL members", Input::Yaml, |size| policy(&format!("a{}", ".b".repeat(size / 2)))),
    ("CEL negation", Input::Yaml, |size| policy(&format!("{}a", "!".repeat(size)))),
    ("CEL conditions", Input::Yaml, |size| policy(&format!("{}c", "a ? b : ".repeat(size / 8)))),
    ("CEL list", Input::Yaml, |size| policy(&format!("a in [{}1]", "1, ".repeat(size / 3)))),
    ("plan depth", Input::SavedPlan, |size| "{\"a\":".repeat(size / 5)),
    ("plan width", Input::SavedPlan, |size| format!("{{\"calls\":[{}1]}}", "1,".repeat(size / 2))),
    ("plan of edges", Input::SavedPlan, saved_plan),
    ("lint levels", Input::Configuration, |size| {
        format!("lints:\n{}", numbered(size, 16, |number| format!("  lint-{number}: warn\n")))
    }),
    ("sources", Input::Configuration, |size| {
        format!("sources:\n{}", numbered(size, 24, |number| format!("- {{name: s{number}, path: m}}\n")))
    }),
    ("configuration nesting", Input::Configuration, |size| format!("options: {}", "[".repeat(size))),
];

/// What a run took: processor time in seconds, and the most memory in bytes.
#[derive(Debug, Clone, Copy)]
struct Cost {
    seconds: f64,
    memory: u64,
}

/// The processor time of a process, also after its end until its status is taken.
fn seconds_of(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // What comes before can have spaces.
    let (_, rest) = stat.rsplit_once(')').unwrap();
    let ticks: f64 = rest.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap()).sum();
    ticks / TICKS
}

/// The most memory that a running process has had.
fn memory_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

/// Runs the program on an input.
fn cost(name: &str, input: Input, text: &str) -> Cost {
    let folder = Folder::new();
    let (file, line) = match input {
        Input::Yaml => ("m/m.yaml", "validate m"),
        Input::Json => ("m/m.json", "validate m"),
        Input::SavedPlan => ("plan.json", "reconcile --plan plan.json m"),
        Input::Configuration => ("config.yaml", "validate m"),
    };
    folder.write("m/one.yaml", &field("hostports: ['one.example.com:443']").replacen("name: a", "name: one", 1));
    folder.write(file, text);
    let mut command = folder.command(line);
    if matches!(input, Input::Configuration) {
        command.env("EDGEWRIGHT_CONFIG", file);
    }
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let (began, mut memory) = (Instant::now(), 0);
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    while waitid(WaitId::Pid(Pid::from_child(&child)), ended).unwrap().is_none() {
        // Before it runs the program, it has the memory of this process. Of the program, the last reading is the highest.
        memory = memory_of(child.id()).unwrap_or(memory);
        if began.elapsed() > PATIENCE {
            child.kill().unwrap();
        }
        sleep(Duration::from_millis(1));
    }
    let seconds = seconds_of(child.id());
    let code = child.wait().unwrap().code();
    assert!(code.is_some_and(|code| code != 101), "{name}, {} bytes: {code:?} after {seconds} s", text.len());
    Cost { seconds, memory }
}

#[test]
fn time_and_memory_grow_with_the_input_and_not_faster() {
    let size = usize::try_from(number_in("EDGEWRIGHT_GROWTH_BYTES", USUAL_BYTES)).unwrap();
    let only = std::env::var("EDGEWRIGHT_GROWTH").unwrap_or_default();
    let mut offenders = Vec::new();
    // The first of each four: there is one of every kind of input among them.
    let step = if only.is_empty() { rounds(4, 1) } else { 1 };
    let families = FAMILIES.into_iter().filter(|(name, ..)| name.starts_with(only.as_str())).step_by(step);
    for (name, input, make) in families {
        let (small, large) = (make(size), make(LARGER * size));
        assert!(large.len() > 2 * small.len(), "{name}: {} and {} bytes", small.len(), large.len());
        let most = |small: Cost| MOST_TIMES * small.seconds + SPARE_SECONDS;
        let (mut short, mut long) = (cost(name, input, &small), cost(name, input, &large));
        if long.seconds > most(short) {
            // Once more, in case something else has slowed down the second one.
            short.seconds = cost(name, input, &small).seconds.max(short.seconds);
            long.seconds = cost(name, input, &large).seconds.min(long.seconds);
        }
        println!(
            "{name}: {} bytes {:.2} s {} MB, {} bytes {:.2} s {} MB",
            small.len(),
            short.seconds,
            short.memory >> 20,
            large.len(),
            long.seconds,
            long.memory >> 20
        );
        if long.seconds > most(short) {
            offenders.push(format!("{name}: {:.2} s, and {:.2} s for 4 times as much", short.seconds, long.seconds));
        }
        for (bytes, cost) in [(small.len(), short), (large.len(), long)] {
            if cost.memory > SPARE_BYTES + BYTES_PER_BYTE * bytes as u64 {
                offenders.push(format!("{name}: {} MB for {bytes} bytes", cost.memory >> 20));
            }
        }
    }
    assert!(offenders.is_empty(), "{}", offenders.join("\n"));
}

/// Bodies of requests, of about some size.
const BODIES: [(&str, Generator); 5] = [
    ("depth", |size| "{\"a\":".repeat(size / 5)),
    ("width", |size| format!("{{{}\"z\":1}}", numbered(size, 10, |number| format!("\"f{number}\":1,")))),
    ("duplicate keys", |size| format!("{{{}\"a\":1}}", "\"a\":1,".repeat(size / 6))),
    ("escapes", |size| format!("{{\"description\":\"{}\"}}", "\\ud83d\\ude00".repeat(size / 12))),
    ("list", |size| format!("{{\"hostports\":[{}1]}}", "1,".repeat(size / 2))),
];

#[test]
fn the_time_for_a_body_grows_with_its_size_and_not_faster() {
    let folder = Folder::new();
    let serve = folder.serve("");
    let seconds = |body: &str| {
        let before = seconds_of(serve.pid());
        let answer = serve.call("POST", "/edges/https", body);
        assert_eq!(answer.status / 100, 4, "{:.200}", answer.body);
        assert!(answer.body.len() < 64 << 10, "{} bytes", answer.body.len());
        seconds_of(serve.pid()) - before
    };
    let mut offenders = Vec::new();
    for (name, make) in BODIES {
        let (small, large) = (make(256 << 10), make(1 << 20));
        let most = |small: f64| MOST_TIMES * small + SPARE_SECONDS;
        let (mut short, mut long) = (seconds(&small), seconds(&large));
        if long > most(short) {
            short = seconds(&small).max(short);
            long = seconds(&large).min(long);
        }
        println!("{name}: {} bytes {short:.2} s, {} bytes {long:.2} s", small.len(), large.len());
        if long > most(short) {
            offenders.push(format!("{name}: {short:.2} s, and {long:.2} s for 4 times as much"));
        }
    }
    let memory = memory_of(serve.pid()).unwrap();
    assert!(memory < SPARE_BYTES + (BYTES_PER_BYTE << 20), "{} MB", memory >> 20);
    assert!(offenders.is_empty(), "{}", offenders.join("\n"));
}
