//! A run of the program to its end, and what came of it.

use std::{
    collections::BTreeMap,
    io::Write,
    process::{Command, Stdio},
};

/// Runs a command to its end, with something on standard input.
pub(crate) fn finish(mut command: Command, input: &str) -> Run {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // Who reads nothing may be gone already.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs a command to its end on a terminal, where somebody types. None if the machine has no `script`.
pub(crate) fn on_terminal(command: &Command, typed: &str) -> Option<Run> {
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let line: Vec<&str> = words.map(|word| word.to_str().unwrap()).collect();
    let mut script = Command::new("script");
    script.args(["-qec", &line.join(" "), "/dev/null"]).current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    Command::new("script").arg("--version").output().ok().map(|_| finish(script, typed))
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Run {
    /// The exit code; -1 after a signal.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Run {
    /// Both outputs, for messages.
    pub(crate) fn all(&self) -> String {
        format!("exit {}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.out, self.err)
    }

    /// The calls of a plan, as `METHOD path`, in their order.
    pub(crate) fn calls(&self) -> Vec<String> {
        let is_call = |line: &&str| {
            let methods = ["POST", "PATCH", "PUT", "DELETE"];
            line.split_once(" /").is_some_and(|(method, path)| methods.contains(&method) && !path.contains(' '))
        };
        self.out.lines().filter_map(|line| line.strip_prefix("    ")).filter(is_call).map(str::to_owned).collect()
    }

    /// The ids of a plan's resources, by kind and name.
    pub(crate) fn ids(&self) -> BTreeMap<String, String> {
        let title = |line: &str| {
            let (sign, rest) = line.split_once(' ')?;
            let (name, id) = rest.split_once("  ")?;
            let id = id.split(' ').next()?;
            ["+", "±", "~", "=", "-"].contains(&sign).then(|| (name.to_owned(), id.to_owned()))
        };
        self.out.lines().filter_map(title).collect()
    }

    /// The last line of standard output.
    pub(crate) fn summary(&self) -> &str {
        self.out.lines().last().unwrap_or_default()
    }
}

/// Checks that a run has printed all of these.
pub(crate) fn has(run: &Run, parts: &[&str]) {
    for part in parts {
        assert!(run.all().contains(part), "{part:?}\n{}", run.all());
    }
}
