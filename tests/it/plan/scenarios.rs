//! The stories in `tests/scenarios/`: each tells one promise, and its commands print exactly what it shows.
//!
//! In a `console` block a line `$ command` is run, in a copy of the story's folder; a backslash at its end continues it. The
//! lines behind it are what it prints, on both outputs, and `[exit N]` when it ends with another code than 0. A block
//! ends with the fence that it begins with, so a longer fence takes output that has fences itself. One bash runs all
//! commands of a story: variables last. A command that ends with ` &` is a server: it is waited for, and what it says is
//! not shown. `$PWD` stands for the folder, `127.0.0.1:$PORT` for the server's address, `$PLAN` for the random ID of a plan in
//! the dashboard, and `$ID` for what the story has set that variable to, such as an identifier that the API has made.
//!
//! Two laws hold in every story. Behind a reconcile that succeeds, a plan of the same has no changes. And nothing else that
//! edgewright is asked to do makes a revision, apart from `keys`, `owners`, `transfer` and `serve`.
//!
//! `EDGEWRIGHT_BLESS=1 cargo test --test it scenarios` writes the stories anew, with what their commands print.

use std::{
    fs,
    net::TcpListener,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use similar::TextDiff;

use crate::support::program::{Folder, NO_CONFIG, PROGRAM, REPOSITORY, SMALL_PAGES, copy};

/// Options of a reconcile that are about one run or its report. All have a value.
const OF_ONE_RUN: [&str; 5] = ["--plan", "--out", "--output", "--format", "--max-deletes"];
/// Whatever happens, no server outlives its story.
const PRELUDE: &str = "trap '{ kill $(jobs -p); wait; } >/dev/null 2>&1' EXIT\n";
/// Starts the server in `{at}.sh`, and waits for it.
const SERVE: &str = r#". '{at}.sh' >'{at}.out' 2>&1 </dev/null
for _ in $(seq 400); do curl -fs "http://127.0.0.1:$PORT/healthz" >/dev/null && break; sleep 0.05; done
curl -fs "http://127.0.0.1:$PORT/healthz" >/dev/null || { echo "the server did not start"; cat '{at}.out'; }
"#;
/// Runs the command in `{at}.sh`, in this shell, so that variables last.
const RUN: &str = r#". '{at}.sh' >'{at}.out' 2>&1 </dev/null; echo $? >'{at}.code'; printf %s "${ID-}" >'{at}.id'
"#;
/// Plans again behind a reconcile that has succeeded.
const AGAIN: &str = r#"if [ "$(cat '{at}.code')" = 0 ]; then { {plan}; echo "exit $?"; } >'{at}.again' 2>&1 </dev/null; fi
"#;
/// Lets that plan note the revision of the store.
const NOTED: &str = " --format json --output '{at}.base'";
/// Notes the revision of the store behind a command of edgewright, unless a plan has.
const BASE: &str = r#"[ -s '{at}.base' ] ||
    edgewright plan --prune=false --format json '{aside}/nothing.yaml' >'{at}.base' 2>/dev/null </dev/null
"#;

/// A command of a story.
#[derive(Debug, PartialEq)]
struct Step {
    command: String,
    /// What it prints.
    shown: String,
}

impl Step {
    fn is_server(&self) -> bool {
        self.command.ends_with(" &")
    }

    fn words(&self) -> Vec<&str> {
        self.command.split_whitespace().filter(|word| *word != "\\").collect()
    }

    /// The plan that must have no changes behind a reconcile.
    fn plan_again(&self) -> Option<String> {
        let words = self.words();
        if !words.starts_with(&["edgewright", "reconcile"]) {
            assert!(!self.command.contains("edgewright reconcile"), "a reconcile stands alone: {}", self.command);
            return None;
        }
        let mut plan = vec!["edgewright", "plan"];
        let mut words = words.into_iter().skip(2);
        while let Some(word) = words.next() {
            let name = word.split('=').next().unwrap_or(word);
            if word == "--dry-run" {
                return None;
            }
            if word.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with('>') {
                break;
            }
            if !OF_ONE_RUN.contains(&name) {
                assert!(!word.contains(['|', ';', '&']), "a reconcile stands alone: {}", self.command);
                plan.push(word);
            } else if name == word {
                words.next();
            }
        }
        Some(plan.join(" "))
    }

    /// Whether a new revision is no surprise behind it.
    fn may_write(&self, code: &str) -> bool {
        let words = self.words();
        match words.as_slice() {
            ["edgewright", "keys" | "owners" | "transfer", ..] => true,
            ["edgewright", ..] => self.plan_again().is_some() && (code == "0" || words.contains(&"--isolate")),
            _ => true,
        }
    }
}

/// A part of a story.
enum Part {
    /// A line that is no command, and not printed by one.
    Text(String),
    Step(Step),
}

/// A folder of `tests/scenarios/`.
struct Story {
    name: String,
    folder: PathBuf,
    parts: Vec<Part>,
}

impl Story {
    fn read(folder: &Path) -> Self {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(folder.join("story.md"));
        let text = text.unwrap_or_else(|error| panic!("{name}/story.md: {error}"));
        let mut parts: Vec<Part> = Vec::new();
        let mut fence: Option<&str> = None;
        for line in text.lines() {
            let continued = matches!(parts.last(), Some(Part::Step(step)) if step.command.ends_with('\\'));
            if fence.is_none() || fence == Some(line) {
                let begins = line.strip_suffix("console").filter(|it| it.len() >= 3 && it.trim_matches('`').is_empty());
                fence = if fence.is_none() { begins } else { None };
                parts.push(Part::Text(line.to_owned()));
            } else if let Some(command) = line.strip_prefix("$ ").filter(|_| !continued) {
                parts.push(Part::Step(Step { command: command.to_owned(), shown: String::new() }));
            } else if let Some(Part::Step(step)) = parts.last_mut() {
                if continued {
                    step.command += &format!("\n{line}");
                } else {
                    step.shown += &format!("{line}\n");
                }
            } else {
                panic!("{name}: no command prints this: {line}");
            }
        }
        assert!(fence.is_none(), "{name}: a block is not closed");
        Self { name, folder: folder.to_owned(), parts }
    }

    fn steps(&self) -> Vec<&Step> {
        self.parts.iter().filter_map(|part| if let Part::Step(step) = part { Some(step) } else { None }).collect()
    }

    /// What bash runs. What comes of a command stands in the folder `aside`.
    fn script(&self, folder: &Folder) -> String {
        let aside = folder.path("aside").display().to_string();
        let mut script = PRELUDE.to_owned();
        for (n, step) in self.steps().into_iter().enumerate() {
            folder.write(&format!("aside/{n}.sh"), &format!("{}\n", step.command));
            let mut run = if step.is_server() { SERVE } else { RUN }.to_owned();
            if let Some(plan) = step.plan_again() {
                let is_of_this_store = !step.words().contains(&"--store");
                run += &AGAIN.replace("{plan}", &(plan + if is_of_this_store { NOTED } else { "" }));
            }
            if !step.is_server() && step.words().starts_with(&["edgewright"]) {
                run += BASE;
            }
            script += &run.replace("{at}", &format!("{aside}/{n}")).replace("{aside}", &aside);
        }
        script
    }

    /// Runs the story and tells what is wrong with it. To bless is to take what was printed for what is shown.
    fn tell(&mut self, bless: bool) -> Vec<String> {
        let folder = Folder::new();
        copy(&self.folder, &folder.path("work"));
        fs::remove_file(folder.path("work/story.md")).unwrap();
        folder.write("aside/nothing.yaml", "# nothing\n");
        folder.write("aside/story.sh", &self.script(&folder));
        fs::create_dir(folder.path("aside/bin")).unwrap();
        symlink(PROGRAM, folder.path("aside/bin/edgewright")).unwrap();
        // For a moment nobody else takes a free port.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let said = run(&folder, port);

        let fault = |step: &Step, what: &str| format!("{}: `{}`: {what}", self.name, step.command);
        let mut faults = Vec::new();
        if !said.is_empty() {
            faults.push(format!("{}: the shell says\n{said}", self.name));
        }
        let work = folder.path("work").canonicalize().unwrap().display().to_string();
        let address = format!("127.0.0.1:{port}");
        let (mut id, mut revision, mut printed) = (String::new(), None, Vec::new());
        for (n, step) in self.steps().into_iter().enumerate() {
            let read = |what: &str| fs::read_to_string(folder.path(&format!("aside/{n}.{what}")));
            if step.is_server() {
                revision = None;
                printed.push(String::new());
                continue;
            }
            let Ok(code) = read("code") else {
                faults.push(fault(step, "it has ended the shell, or takes too long"));
                break;
            };
            let code = code.trim();
            id = read("id").ok().filter(|id| !id.is_empty()).unwrap_or(id);
            // On a busy machine, a command says what it does after a second.
            let is_progress = |line: &&str| line.contains(" … ") && line.ends_with(" s\n");
            let told: String = read("out").unwrap().split_inclusive('\n').filter(|line| !is_progress(line)).collect();
            let mut text = without_plan_ids(&told.replace(&work, "$PWD").replace(&address, "127.0.0.1:$PORT"));
            if !id.is_empty() {
                text = text.replace(&id, "$ID");
            }
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            if code != "0" {
                text += &format!("[exit {code}]\n");
            }
            if step.plan_again().is_some() && code == "0" {
                let again = read("again").unwrap();
                let nothing = again.lines().any(|line| line.starts_with("No changes"));
                if !nothing || !again.ends_with("exit 0\n") {
                    faults.push(fault(step, &format!("a plan behind it must have no changes\n{again}")));
                }
            }
            let now = read("base").ok().and_then(|report| base(&report));
            if now.is_some() && revision.is_some() && now != revision && !step.may_write(code) {
                faults.push(fault(step, "it must not make a revision"));
            }
            revision = now.or(revision);
            if text != step.shown && !bless {
                let diff =
                    TextDiff::from_lines(&step.shown, &text).unified_diff().header("shown", "printed").to_string();
                faults.push(fault(step, &format!("it prints something else\n{diff}")));
            }
            printed.push(text);
        }
        if bless {
            faults.extend(self.bless(printed));
        }
        faults
    }

    /// Writes the story anew. Not everything can be shown in it.
    fn bless(&mut self, printed: Vec<String>) -> Option<String> {
        let mut printed = printed.into_iter();
        let mut text = String::new();
        for part in &mut self.parts {
            match part {
                Part::Text(line) => text += &format!("{line}\n"),
                Part::Step(step) => {
                    step.shown = printed.next().unwrap_or_else(|| std::mem::take(&mut step.shown));
                    text += &format!("$ {}\n{}", step.command, step.shown);
                }
            }
        }
        fs::write(self.folder.join("story.md"), text).unwrap();
        let same = Self::read(&self.folder).steps() == self.steps();
        (!same).then(|| format!("{}: something that is printed reads as a command or a fence", self.name))
    }
}

/// Runs the script of a story to its end, or stops it with all that it has started. Returns what the shell itself says.
fn run(folder: &Folder, port: u16) -> String {
    let path = format!("{}:{}", folder.path("aside/bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "120", "bash"]).arg(folder.path("aside/story.sh")).current_dir(folder.path("work"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("EDGEWRIGHT_") {
            command.env_remove(name);
        }
    }
    command.env("PATH", path).env("HOME", folder.path("work")).env("PORT", port.to_string()).env_remove("ID");
    command
        .env("XDG_CONFIG_HOME", NO_CONFIG)
        .env("LC_ALL", "C")
        .env(SMALL_PAGES.0, SMALL_PAGES.1)
        .env("NO_PROXY", "127.0.0.1")
        .env("no_proxy", "127.0.0.1");
    let output = command.output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Replaces the random IDs in the addresses of plans.
fn without_plan_ids(text: &str) -> String {
    let mut parts = text.split("/ui/plans/");
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        replaced += &format!("/ui/plans/$PLAN{rest}");
    }
    replaced
}

/// The revision that a plan was made from.
fn base(report: &str) -> Option<u64> {
    let report: serde_json::Value = serde_json::from_str(report).ok()?;
    report["plan"]["base"].as_u64()
}

/// All stories, in their order.
fn stories() -> Vec<Story> {
    let entries = fs::read_dir(Path::new(REPOSITORY).join("tests/scenarios")).unwrap();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.iter().map(|folder| Story::read(folder)).collect()
}

#[test]
fn every_story_is_true() {
    let bless = std::env::var_os("EDGEWRIGHT_BLESS").is_some();
    let mut stories = stories();
    let mut faults = Vec::new();
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for story in &mut stories {
            threads.push((story.name.clone(), scope.spawn(move || story.tell(bless))));
        }
        for (name, thread) in threads {
            faults.extend(thread.join().unwrap_or_else(|_| vec![format!("{name}: it has panicked")]));
        }
    });
    let how = "EDGEWRIGHT_BLESS=1 cargo test --test it scenarios writes the stories anew: review what that changes";
    assert!(faults.is_empty(), "{}\n\n{how}", faults.join("\n\n"));
}

#[test]
fn every_folder_has_a_story_with_a_title_and_commands() {
    let stories = stories();
    assert!(stories.len() >= 16, "{} stories", stories.len());
    for story in stories {
        let number = story.name.split('-').next().unwrap_or_default();
        assert!(number.len() == 3 && number.parse::<u16>().is_ok(), "{}: it has no number", story.name);
        let title = matches!(story.parts.first(), Some(Part::Text(line)) if line.starts_with("# "));
        assert!(title, "{}: it has no title", story.name);
        assert!(story.steps().len() >= 2, "{}: it has too few commands", story.name);
    }
}
