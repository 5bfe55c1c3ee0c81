//! What README.md says works: its commands are run in their order, and its manifests are valid.
//!
//! `<!-- test: skip -->` on the line before a block leaves it out; there are at most two.

use std::{fs, net::TcpListener, os::unix::fs::symlink, path::Path, process::Command};

use crate::support::program::{Folder, NO_CONFIG, PROGRAM, REPOSITORY, copy};

const SKIP: &str = "<!-- test: skip -->";
const MOST_SKIPS: usize = 2;
const CARGO_RUN: [&str; 2] = ["cargo run --release --", "cargo run --"];

struct Block {
    language: String,
    text: String,
    skip: bool,
}

fn readme() -> String {
    fs::read_to_string(format!("{REPOSITORY}/README.md")).unwrap()
}

/// The fenced blocks of a Markdown text.
fn blocks(markdown: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let (mut inside, mut skip) = (false, false);
    for line in markdown.lines() {
        match (line.trim_start().strip_prefix("```"), inside) {
            (Some(_), true) => inside = false,
            (Some(info), false) => {
                let language = info.split_whitespace().next().unwrap_or_default().to_owned();
                found.push(Block { language, text: String::new(), skip });
                inside = true;
            }
            (None, true) => {
                let text = &mut found.last_mut().unwrap().text;
                text.push_str(line);
                text.push('\n');
            }
            (None, false) => {}
        }
        // The marker may be followed by an empty line.
        skip = line.trim() == SKIP || (skip && line.trim().is_empty());
    }
    assert!(!inside, "a block is not closed");
    found
}

/// The commands of a block, each with its continuation lines. In a console only what stands behind a prompt is one.
fn commands(block: &Block) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open = false;
    for line in block.text.lines() {
        let line = match (block.language.as_str(), open) {
            ("console", false) => match line.strip_prefix("$ ") {
                Some(command) => command,
                None => continue,
            },
            _ => line,
        };
        if open {
            let last = found.last_mut().unwrap();
            last.push('\n');
            last.push_str(line);
        } else {
            found.push(line.to_owned());
        }
        open = line.ends_with('\\');
    }
    found
}

fn is_shell(block: &Block) -> bool {
    matches!(block.language.as_str(), "sh" | "bash" | "console" | "shell")
}

/// A command as the script runs it.
fn runnable(command: &str) -> String {
    let mut command = command.to_owned();
    for cargo in CARGO_RUN {
        command = command.replace(cargo, "edgewright");
    }
    let trimmed = command.trim();
    if ["cargo test", "cargo build", "cargo install"].iter().any(|cargo| trimmed.starts_with(cargo)) {
        return format!("# {}", trimmed.replace('\n', " "));
    }
    if trimmed.starts_with("edgewright serve") {
        let command = trimmed.trim_end_matches('&').trim_end();
        return format!("serve_in_background {}", command.trim_start_matches("edgewright "));
    }
    if trimmed.contains("--detailed-exitcode") && !trimmed.contains("||") {
        // 2 is an answer, not a failure.
        return format!("{{ {trimmed}; }} || [ $? = 2 ]");
    }
    command
}

/// What stands before the commands. A failure ends the script and names its line.
const PRELUDE: &str = r#"
set -Eeuo pipefail
trap 'echo "failed: $BASH_COMMAND" >&2' ERR
servers=()
trap 'for server in ${servers[@]+"${servers[@]}"}; do kill "$server" 2>/dev/null; wait "$server" 2>/dev/null; done || true' EXIT
serve_in_background() {
    local log="serve-${#servers[@]}.log"
    edgewright "$@" >"$log" 2>&1 &
    servers+=("$!")
    for _ in $(seq 200); do
        if grep -q 'Serving http' "$log"; then cat "$log" >&2; return; fi
        sleep 0.1
    done
    cat "$log" >&2
    echo "the server did not start" >&2
    return 1
}
"#;

#[test]
fn its_commands_do_what_it_says() {
    let markdown = readme();
    let folder = Folder::new();
    for part in ["examples", "schemas", "docs"] {
        copy(&Path::new(REPOSITORY).join(part), &folder.path(part));
    }
    fs::create_dir(folder.path("bin")).unwrap();
    symlink(PROGRAM, folder.path("bin/edgewright")).unwrap();
    let mut script = PRELUDE.to_owned();
    let mut count = 0;
    for block in blocks(&markdown).iter().filter(|block| is_shell(block) && !block.skip) {
        for command in commands(block) {
            script += &runnable(&command);
            script.push('\n');
            count += 1;
        }
    }
    assert!(count > 5, "README.md has {count} lines of commands");
    // The usual port may be in use; for a moment nobody else takes a free one.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let script = script.replace("8484", &port.to_string());
    let path = format!("{}:{}", folder.path("bin").display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder.path(""))
        .env("PATH", path)
        .env("HOME", folder.path(""))
        .env("XDG_CONFIG_HOME", NO_CONFIG)
        .env("EDGEWRIGHT_LISTEN", format!("127.0.0.1:{port}"))
        .env_remove("EDGEWRIGHT_STORE")
        .env("NO_PROXY", "127.0.0.1,localhost")
        .env("no_proxy", "127.0.0.1,localhost")
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n--- the script\n{script}\n--- said\n{said}", output.status);
    // A call without `--fail` may be refused, but only as the README says that it is.
    for word in said.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
        assert!(!word.starts_with("ERR_EDGEWRIGHT_") || markdown.contains(word), "{word} is a surprise:\n{said}");
    }
}

#[test]
fn secrets_that_its_commands_write_are_not_committed() {
    let ignored = fs::read_to_string(format!("{REPOSITORY}/.gitignore")).unwrap();
    let shell = blocks(&readme()).into_iter().filter(|block| block.language == "sh");
    let text: String = shell.map(|block| block.text).collect();
    for kind in ["db", "backup", "token"] {
        let ending = format!(".{kind}");
        assert!(text.split_whitespace().any(|word| word.ends_with(&ending)), "{kind} is written");
        assert!(ignored.lines().any(|line| line == format!("/*{ending}")), "{kind} is ignored");
    }
}

#[test]
fn its_test_command_is_the_one_of_the_pipeline() {
    let pipeline = fs::read_to_string(format!("{REPOSITORY}/.ci/run")).unwrap();
    let all = blocks(&readme());
    let tests: Vec<&str> = all
        .iter()
        .filter(|block| is_shell(block))
        .flat_map(|block| block.text.lines())
        .map(|line| line.trim_start_matches("$ ").trim())
        .filter(|line| line.starts_with("cargo test"))
        .collect();
    assert!(!tests.is_empty(), "README.md does not say how to run the tests");
    for command in tests {
        assert!(pipeline.lines().any(|line| line.trim() == command), "`{command}` is no line of .ci/run");
    }
}

#[test]
fn its_manifests_are_valid() {
    let folder = Folder::new();
    for part in ["certs", "secrets", "saml"] {
        let from = Path::new(REPOSITORY).join("examples/storefront").join(part);
        copy(&from, &folder.path(&format!("each/{part}")));
        copy(&from, &folder.path(&format!("all/{part}")));
    }
    let (mut all, mut refused, mut count) = (String::new(), Vec::new(), 0);
    for block in blocks(&readme()).iter().filter(|block| ["yaml", "yml"].contains(&block.language.as_str())) {
        if !block.text.contains("apiVersion: edgewright/") {
            let parsed: Result<serde_yaml::Value, _> = serde_yaml::from_str(&block.text);
            assert!(parsed.is_ok() || block.skip, "{parsed:?}\n{}", block.text);
            continue;
        }
        count += 1;
        if block.skip {
            continue;
        }
        folder.write("each/readme.yaml", &block.text);
        let run = folder.run("validate each");
        if run.code != 0 {
            refused.push(run.err);
        }
        all += &format!("---\n{}", block.text);
    }
    assert!(count > 0, "README.md shows no manifest");
    // A block may name what another one declares.
    if !refused.is_empty() {
        folder.write("all/readme.yaml", &all);
        let run = folder.run("validate all");
        assert_eq!(run.code, 0, "each:\n{}\nall:\n{}", refused.join("\n"), run.err);
    }
}

#[test]
fn hardly_anything_is_skipped() {
    let markdown = readme();
    let skipped = blocks(&markdown).iter().filter(|block| block.skip).count();
    assert_eq!(skipped, markdown.matches(SKIP).count(), "a marker stands before no block");
    assert!(skipped <= MOST_SKIPS, "{skipped} blocks are skipped");
}
