//! The files of the forges that call the scripts.

use std::{collections::BTreeSet, fs, os::unix::fs::PermissionsExt, path::Path};

use super::RECIPES;
use crate::support::program::REPOSITORY;

/// The YAML files of the recipes.
fn yaml_files() -> Vec<(String, String)> {
    let walk = walkdir::WalkDir::new(Path::new(REPOSITORY).join(RECIPES)).sort_by_file_name();
    let files = walk.into_iter().map(Result::unwrap).filter(|entry| {
        let extension = entry.path().extension().and_then(|it| it.to_str());
        matches!(extension, Some("yaml" | "yml"))
    });
    files.map(|entry| (entry.path().display().to_string(), fs::read_to_string(entry.path()).unwrap())).collect()
}

/// A secret of an environment reaches only the jobs that name one. As a secret of the repository, every branch could read it.
#[test]
fn each_job_with_the_token_that_applies_has_an_environment() {
    let (_, text) = yaml_files().into_iter().find(|(name, _)| name.ends_with("github/apply.yaml")).unwrap();
    let workflow: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
    let mut count = 0;
    for (name, job) in workflow["jobs"].as_mapping().unwrap() {
        if serde_yaml::to_string(job).unwrap().contains("secrets.EDGEWRIGHT_APPLY_TOKEN") {
            assert!(job["environment"].is_string(), "{name:?}");
            count += 1;
        }
    }
    assert_eq!(count, 2);
}

#[test]
fn the_files_of_the_forges_call_scripts_that_exist() {
    let scripts = Path::new(REPOSITORY).join(RECIPES).join("scripts");
    let mut called = BTreeSet::new();
    let files = yaml_files();
    assert!(files.len() >= 5, "{files:?}");
    for (name, text) in files {
        let parsed: Result<serde_yaml::Value, _> = serde_yaml::from_str(&text);
        assert!(parsed.is_ok(), "{name}: {parsed:?}");
        for (at, _) in text.match_indices("ci/scripts/") {
            let script = &text[at + "ci/scripts/".len()..];
            let script = script.split(|c: char| c.is_whitespace() || c == '"' || c == '\'').next().unwrap();
            assert!(scripts.join(script).is_file(), "{name} calls {script}");
            called.insert(script.to_owned());
        }
        // What somebody writes into the title of a request must not become a command.
        let is_command = |line: &&str| line.trim_start().trim_start_matches("- ").starts_with("run:");
        for line in text.lines().filter(is_command) {
            assert!(!line.contains("${{"), "{name}: {line}");
        }
    }
    for entry in fs::read_dir(&scripts).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let is_library = name == "common.sh";
        assert!(is_library || called.contains(&name), "nothing calls {name}");
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o111 == 0, is_library, "{name}: {mode:o}");
        let text = fs::read_to_string(entry.path()).unwrap();
        assert!(is_library || (text.starts_with("#!/bin/sh\n") && text.contains("\nset -eu\n")), "{name}");
    }
}
