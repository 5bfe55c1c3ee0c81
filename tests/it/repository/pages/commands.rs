//! The commands of a page are run in their order, in a folder with the examples, and what the page shows is what they print.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::symlink,
    path::Path,
    process::Command,
    sync::atomic::{AtomicU16, Ordering},
};

use regex::Regex;

use super::{Block, Page, SKIP, STOP, WAIT, assert_none, pages};
use crate::support::program::{Folder, PROGRAM, REPOSITORY, copy, has_nginx};

const PRELUDE: &str = include_str!("prelude.sh");
/// How pages call the program.
const CARGO_RUN: &str = "cargo run --release --";
/// What takes minutes, or what nobody asks a test to do.
const NOT_RUN: [&str; 3] = ["cargo test", "cargo build", "cargo install"];
/// The data plane of the pages.
const GATEWAY: &str = "python3 examples/hello/gateway.py";
/// What goes on until Ctrl-C, and what it says when it is ready.
const BACKGROUND: [(&str, &str); 2] = [("edgewright serve", "Serving http"), (GATEWAY, "serving revision")];
/// The ports of the server and of the data plane on the pages. They may be in use.
const SERVER_PORT: &str = "8484";
const GATEWAY_PORT: &str = "8080";
/// The edge that listens on the port of the data plane.
const HELLO: &str = "examples/hello/hello.yaml";
/// How many pages are run at a time.
const AT_A_TIME: usize = 4;

/// The word that ends the here-document of a line.
fn here_document(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("<<")?;
    let word = rest.trim_start_matches(['-', ' ', '\'', '"']);
    let word: String = word.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    (!word.is_empty() && !rest.starts_with('<')).then_some(word)
}

/// The commands of a block, each with its continuation lines and its here-document. In a console, only what stands behind a prompt
/// is one.
fn commands(block: &Block) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut continues = false;
    let mut end: Option<String> = None;
    for line in block.text.lines() {
        let begins = !continues && end.is_none();
        let line = match line.strip_prefix("$ ") {
            Some(command) if begins && block.language == "console" => command,
            None if begins && block.language == "console" => continue,
            _ => line,
        };
        if begins {
            found.push(line.to_owned());
        } else {
            let last = found.last_mut().unwrap();
            last.push('\n');
            last.push_str(line);
        }
        if end.as_deref() == Some(line.trim()) {
            end = None;
        } else if end.is_none() {
            end = here_document(line);
            continues = end.is_none() && line.ends_with('\\');
        }
    }
    found
}

/// A command without the variables that it begins with.
fn without_variables(command: &str) -> &str {
    let mut rest = command;
    while let Some((word, more)) = rest.split_once(' ') {
        let name = word.split_once('=').map_or("", |(name, _)| name);
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_') {
            break;
        }
        rest = more;
    }
    rest
}

/// A command as the script runs it.
fn runnable(command: &str) -> String {
    let command = command.replace(CARGO_RUN, "edgewright");
    let trimmed = command.trim();
    if NOT_RUN.iter().any(|it| trimmed.starts_with(*it)) {
        return format!("# {}", trimmed.replace('\n', " "));
    }
    let called = without_variables(trimmed);
    if let Some((_, ready)) = BACKGROUND.iter().find(|(it, _)| called.starts_with(*it)) {
        let variables = trimmed.strip_suffix(called).unwrap_or_default();
        return format!("{variables}in_background '{ready}' {}", called.trim_end_matches(['&', ' ']));
    }
    if trimmed.contains("--detailed-exitcode") && !trimmed.contains("||") {
        // 2 is an answer, not a failure.
        return format!("{{ {trimmed}; }} || [ $? = 2 ]");
    }
    command
}

/// Whether a command needs nginx.
fn needs_gateway(command: &str) -> bool {
    command.contains(GATEWAY) || (command.trim().starts_with("curl ") && command.contains(GATEWAY_PORT))
}

/// A line that a page shows, for any run: words with digits differ, and `[…]` stands for anything. grep reads it, too.
fn pattern(line: &str) -> String {
    let literal = |part: &str| -> String {
        let parts = part.chars().map(|c| match c {
            c if c.is_ascii_alphanumeric() => c.to_string(),
            c if c.is_ascii() => ".".to_owned(),
            // It may be several bytes.
            _ => ".+".to_owned(),
        });
        parts.collect()
    };
    let word = |word: &str| -> String {
        let differs = |part: &str| part.bytes().any(|byte| byte.is_ascii_digit());
        let parts = word.split("[…]").map(|part| if differs(part) { "[^ ]+".to_owned() } else { literal(part) });
        parts.collect::<Vec<_>>().join(".*")
    };
    format!("^ *{}[[:space:]]*$", line.split_whitespace().map(word).collect::<Vec<_>>().join(" +"))
}

/// The lines of an output that a page shows.
fn shown(block: &Block) -> Vec<&str> {
    block.text.lines().filter(|line| !["", "[…]"].contains(&line.trim())).collect()
}

/// The commands of a page.
#[derive(Default)]
struct Script {
    text: String,
    commands: usize,
    /// The lines that the page shows as their output.
    shown: Vec<String>,
}

impl Script {
    fn from_page(page: &Page, has_gateway: bool) -> Self {
        let mut script = Self { text: PRELUDE.to_owned(), ..Self::default() };
        let blocks = page.blocks();
        for (at, block) in blocks.iter().enumerate() {
            if block.has(STOP) {
                script.text += "stop\n";
            }
            if !block.is_shell() || block.has(SKIP) {
                continue;
            }
            let all = commands(block);
            let (kept, left_out): (Vec<&String>, Vec<&String>) =
                all.iter().partition(|command| has_gateway || !needs_gateway(command));
            let is_output =
                |next: &&Block| next.language == "text" && next.is_next && !next.has(SKIP) && left_out.is_empty();
            let lines = blocks.get(at + 1).filter(is_output).map(shown).unwrap_or_default();
            let commands: Vec<String> = kept.into_iter().map(|command| runnable(command)).collect();
            script.commands += commands.len();
            let commands = commands.join("\n");
            if block.has(WAIT) && left_out.is_empty() {
                assert!(!lines.is_empty(), "{}: nothing says what to wait for: {commands}", page.name);
                let patterns: Vec<String> = lines.iter().map(|line| format!("'{}'", pattern(line))).collect();
                let patterns = patterns.join(" ");
                script.text += &format!("repeat_until {patterns} <<'END OF THE BLOCK'\n{commands}\nEND OF THE BLOCK\n");
            } else if !block.has(WAIT) {
                script.text += &format!("{commands}\n");
            }
            script.shown.extend(lines.into_iter().map(str::to_owned));
        }
        script
    }
}

/// A free port. Ports below those of outgoing connections are taken by nobody else meanwhile.
fn free_port() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let first = 12_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    loop {
        let port = first + TAKEN.fetch_add(1, Ordering::Relaxed) % 10_000;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// What the background said.
fn logs(folder: &Folder) -> String {
    let files = (0..).map(|number| fs::read_to_string(folder.path(&format!(".logs/{number}.log"))));
    files.map_while(Result::ok).collect()
}

/// Runs the commands of a page, if it has any. An error says what differs from the page.
fn run(page: &Page, has_gateway: bool) -> Result<(), String> {
    let script = Script::from_page(page, has_gateway);
    if script.commands == 0 {
        return Ok(());
    }
    let folder = Folder::new();
    for part in ["examples", "schemas", "docs"] {
        copy(&Path::new(REPOSITORY).join(part), &folder.path(part));
    }
    fs::create_dir(folder.path("bin")).unwrap();
    symlink(PROGRAM, folder.path("bin/edgewright")).unwrap();
    folder.write(".gitconfig", "[user]\nname = Alex Doe\nemail = alex@example.com\n");
    let (server_port, gateway_port) = (free_port().to_string(), free_port().to_string());
    folder.write(HELLO, &folder.read(HELLO).replace(GATEWAY_PORT, &gateway_port));
    let text = script.text.replace(SERVER_PORT, &server_port).replace(GATEWAY_PORT, &gateway_port);
    let path = format!("{}:{}", folder.path("bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut bash = Command::new("bash");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("EDGEWRIGHT_")) {
        bash.env_remove(name);
    }
    bash.args(["-c", &text])
        .current_dir(folder.path(""))
        .env("PATH", path)
        // Contexts are below it, too.
        .env("HOME", folder.path(""))
        .env_remove("XDG_CONFIG_HOME")
        .env("EDGEWRIGHT_LISTEN", format!("127.0.0.1:{server_port}"))
        .env("NO_PROXY", "127.0.0.1,localhost")
        .env("no_proxy", "127.0.0.1,localhost");
    let output = bash.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let everything = format!("{said}{}", logs(&folder));
    let failed = |why: String| Err(format!("{}: {why}\n--- the script\n{text}\n--- said\n{everything}", page.name));
    if !output.status.success() {
        return failed(output.status.to_string());
    }
    // A command may fail, but only as the page says that it does.
    let mut words = said.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    if let Some(word) = words.find(|word| word.starts_with("ERR_EDGEWRIGHT_") && !page.text.contains(*word)) {
        return failed(format!("{word} is a surprise"));
    }
    let is_said = |line: &&String| {
        let pattern = Regex::new(&pattern(line)).unwrap();
        everything.lines().any(|it| pattern.is_match(it))
    };
    match script.shown.iter().find(|line| !is_said(line)) {
        Some(line) => failed(format!("nothing has said this line: {line}")),
        None => Ok(()),
    }
}

fn run_all(pages: &[Page]) {
    let has_gateway = has_nginx("requests through nginx");
    let mut failures = Vec::new();
    for some in pages.chunks(AT_A_TIME) {
        std::thread::scope(|scope| {
            let runs: Vec<_> = some.iter().map(|page| scope.spawn(move || run(page, has_gateway))).collect();
            failures.extend(runs.into_iter().filter_map(|run| run.join().unwrap().err()));
        });
    }
    assert!(failures.is_empty(), "{}", failures.join("\n=====\n"));
}

/// The commands of all pages that are run, with the names of their pages.
fn all_commands() -> Vec<(String, String)> {
    let all = [vec![Page::read("README.md")], pages("docs/tutorial"), pages("docs/how-to")];
    let of_page = |page: &Page| -> Vec<(String, String)> {
        let blocks = page.blocks().into_iter().filter(Block::is_shell);
        blocks.flat_map(|block| commands(&block)).map(|command| (page.name.clone(), command)).collect()
    };
    all.iter().flatten().flat_map(of_page).collect()
}

#[test]
fn the_readme_works() {
    let page = Page::read("README.md");
    assert!(Script::from_page(&page, true).commands > 5);
    run_all(&[page]);
}

#[test]
fn tutorials_work() {
    let tutorials = pages("docs/tutorial");
    assert!(tutorials.iter().all(|page| Script::from_page(page, true).commands > 5), "a tutorial without commands");
    run_all(&tutorials);
}

#[test]
fn how_to_guides_work() {
    run_all(&pages("docs/how-to"));
}

#[test]
fn nobody_types_scaffolding() {
    let is_scaffolding = |word: &str| ["sleep", "sed"].contains(&word);
    let typed = all_commands().into_iter().filter(|(_, command)| command.split_whitespace().any(is_scaffolding));
    let typed: Vec<String> = typed.map(|(page, command)| format!("{page}: {command}")).collect();
    assert_none("commands that wait a fixed time, or edit files with a script", &typed);
}

#[test]
fn the_test_command_is_the_one_of_the_pipeline() {
    let pipeline = fs::read_to_string(format!("{REPOSITORY}/.ci/run")).unwrap();
    let all = all_commands();
    let tests: Vec<&str> =
        all.iter().map(|(_, command)| command.trim()).filter(|it| it.starts_with("cargo test")).collect();
    assert!(!tests.is_empty(), "README.md does not say how to run the tests");
    for command in tests {
        assert!(pipeline.lines().any(|line| line.trim() == command), "`{command}` is no line of .ci/run");
    }
}

#[test]
fn secrets_that_commands_write_are_not_committed() {
    let ignored = fs::read_to_string(format!("{REPOSITORY}/.gitignore")).unwrap();
    let all = all_commands();
    for kind in ["db", "backup", "token"] {
        let ending = format!(".{kind}");
        let is_written =
            |(_, command): &(String, String)| command.split_whitespace().any(|word| word.ends_with(&ending));
        assert!(all.iter().any(is_written), "{kind} is written");
        assert!(ignored.lines().any(|line| line == format!("/*{ending}")), "{kind} is ignored");
    }
}
