//! The recipes of `examples/ci`: their scripts against a real server, and the files of the forges that call them (D109).

mod apply;
mod checks;
mod forge;
mod forks;
mod requests;
mod workflows;

use std::{collections::BTreeSet, fs, os::unix::fs::symlink, path::Path, process::Command, sync::LazyLock};

use crate::support::{
    manifests::edge,
    program::{Folder, MadeFolder, PROGRAM, REPOSITORY, Run, Serve, copy, finish},
};

const RECIPES: &str = "examples/ci";

fn has(tools: &[&str]) -> bool {
    let is_there = |tool: &&str| {
        let found = Command::new("sh").arg("-c").arg(format!("command -v {tool}")).output();
        found.is_ok_and(|output| output.status.success())
    };
    let missing: Vec<&str> = tools.iter().copied().filter(|tool| !is_there(tool)).collect();
    if !missing.is_empty() {
        eprintln!("skipped: not installed: {}", missing.join(", "));
    }
    missing.is_empty()
}

/// The checkouts of two teams, and the server that both use.
struct Estate {
    // It is dropped before the folder that it works in.
    serve: Serve,
    here: Folder,
    // The server's folder.
    _there: Folder,
}

impl Estate {
    /// Both teams have an applied edge.
    fn new() -> Self {
        static APPLIED: LazyLock<[MadeFolder; 2]> = LazyLock::new(|| {
            let Estate { serve, here, _there: there } = Estate::applied();
            assert_eq!(serve.stop().code, 0);
            [here.content(), there.content()]
        });
        let [here, there] = APPLIED.each_ref().map(Folder::like);
        symlink(PROGRAM, here.path("bin/edgewright")).unwrap();
        Self { serve: there.serve(""), here, _there: there }
    }

    fn applied() -> Self {
        let (here, there) = (Folder::new(), Folder::new());
        fs::create_dir(here.path("bin")).unwrap();
        symlink(PROGRAM, here.path("bin/edgewright")).unwrap();
        copy(&Path::new(REPOSITORY).join(RECIPES).join("scripts"), &here.path("ci/scripts"));
        let estate = Self { serve: there.serve(""), here, _there: there };
        for team in ["shop", "docs"] {
            estate.declare(team, "first");
            estate.ok(&format!("plan.sh {team} manifests/{team}"));
            estate.ok(&format!("apply.sh {team} manifests/{team}"));
        }
        estate
    }

    fn declare(&self, team: &str, description: &str) {
        self.here.write(&format!("manifests/{team}/edge.yaml"), &edge(team, description));
    }

    /// A script with arguments, with what CI sets.
    fn command(&self, line: &str, variables: &[(&str, &str)]) -> Command {
        let mut words = line.split_whitespace();
        let mut command = Command::new(self.here.path("ci/scripts").join(words.next().unwrap()));
        command.args(words).current_dir(self.here.path(""));
        // Variables of the CI that runs this test are not for the scripts.
        command.env_clear();
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.here.path("bin").display()));
        command.env("HOME", self.here.path(""));
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command.env("EDGEWRIGHT_SERVER", format!("http://{}", self.serve.address));
        command.env("EDGEWRIGHT_TOKEN", &self.serve.token);
        command.envs(variables.iter().copied());
        command
    }

    fn run_with(&self, line: &str, variables: &[(&str, &str)]) -> Run {
        finish(self.command(line, variables), "")
    }

    fn run(&self, line: &str) -> Run {
        self.run_with(line, &[])
    }

    fn ok(&self, line: &str) -> Run {
        self.ok_with(line, &[])
    }

    fn ok_with(&self, line: &str, variables: &[(&str, &str)]) -> Run {
        let run = self.run_with(line, variables);
        assert_eq!(run.code, 0, "{line}\n{}", run.all());
        run
    }

    /// The descriptions of the edges that the server has.
    fn shown(&self) -> BTreeSet<String> {
        let list = self.serve.get("/edges/https").json();
        let edges = list["https_edges"].as_array().unwrap().iter();
        edges.map(|edge| edge["description"].as_str().unwrap().to_owned()).collect()
    }

    /// Commits everything in the checkout, and returns the commit.
    fn commit(&self) -> String {
        let git = |line: &str| {
            let mut command = Command::new("git");
            command.args(line.split(' ')).current_dir(self.here.path("")).env_clear();
            command.env("PATH", std::env::var("PATH").unwrap_or_default()).env("HOME", self.here.path(""));
            for role in ["AUTHOR", "COMMITTER"] {
                command.env(format!("GIT_{role}_NAME"), "Jo").env(format!("GIT_{role}_EMAIL"), "jo@example.com");
            }
            let output = command.output().unwrap();
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        if !self.here.path(".git").exists() {
            git("init --quiet");
        }
        git("add manifests");
        git("commit --quiet --allow-empty --message change");
        git("rev-parse HEAD")
    }
}

fn set(of: &[&str]) -> BTreeSet<String> {
    of.iter().map(|it| (*it).to_owned()).collect()
}
