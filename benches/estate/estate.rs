//! A corpus with its reference points, and a store that it is applied to.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    corpus::{Corpus, Shape},
    http::Client,
    process::{self, Finished, Server},
    reference,
    table::median,
};

/// Turns the answers of remembered runs off.
pub(crate) const UNCACHED: [(&str, &str); 1] = [("EDGEWRIGHT_NO_CACHE", "true")];
/// The folder of the manifests, in the scratch folder.
const MANIFESTS: &str = "manifests";
/// The store that the manifests are applied to.
const STORE: &str = "state/store";
/// The fewest measurements of a reference point: they are short.
const FEWEST_REFERENCES: usize = 3;

/// A corpus, its reference points and its store.
pub(crate) struct Estate {
    /// The manifests.
    pub corpus: Corpus,
    /// The time to read and hash the files, in seconds.
    pub read: f64,
    /// The time to parse the files into types, in seconds.
    pub parse: f64,
    /// The token of an admin.
    pub token: String,
    scratch: PathBuf,
}

impl Estate {
    /// Writes a corpus into a folder of its own, measures its reference points, and applies it.
    pub(crate) fn new(scratch: &Path, shape: Shape, rounds: usize) -> Self {
        fs::create_dir_all(scratch).unwrap();
        let corpus = Corpus::write(&scratch.join(MANIFESTS), shape);
        let rounds = rounds.max(FEWEST_REFERENCES);
        let read = (0..rounds).map(|_| reference::read_and_hash(&corpus.files).as_secs_f64());
        let read = median(read.collect());
        let parse = (0..rounds).map(|_| {
            let (time, routes) = reference::parse(&corpus.files);
            assert_eq!(routes, corpus.routes, "routes in the corpus");
            time.as_secs_f64()
        });
        let parse = median(parse.collect());
        let mut estate = Self { corpus, read, parse, token: String::new(), scratch: scratch.to_owned() };
        estate.apply("state");
        let created = estate.run(&["keys", "create", "--store", STORE, "--role", "admin"], &[]);
        estate.token = created.output().trim().to_owned();
        estate
    }

    /// Runs the program.
    pub(crate) fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Finished {
        process::run(&self.scratch, arguments, environment)
    }

    /// Applies the manifests to a new store in this folder, as for the first time.
    pub(crate) fn apply(&self, folder: &str) -> Finished {
        fs::create_dir_all(self.scratch.join(folder)).unwrap();
        let store = format!("{folder}/store");
        let applied = self.run(&["reconcile", MANIFESTS, "--full", "--store", &store], &UNCACHED);
        applied.assert_says(" to create, 0 to change, 0 to replace, 0 to delete, 0 unchanged");
        applied
    }

    /// Removes a folder that [`Estate::apply`] or [`Estate::copy`] made.
    pub(crate) fn remove(&self, folder: &str) {
        fs::remove_dir_all(self.scratch.join(folder)).unwrap();
    }

    /// Plans, which must say this in its last line.
    pub(crate) fn plan(&self, environment: &[(&str, &str)], expected: &str) -> Finished {
        let planned = self.run(&["reconcile", "--dry-run", MANIFESTS, "--store", STORE], environment);
        planned.assert_says(expected);
        planned
    }

    /// Validates the manifests.
    pub(crate) fn validate(&self) -> Finished {
        self.run(&["validate", MANIFESTS], &[])
    }

    /// Checks that the manifests have neither errors nor warnings.
    pub(crate) fn assert_clean(&self) {
        let report = self.run(&["validate", MANIFESTS, "--format", "json"], &[]).output();
        let report: Value = serde_json::from_str(&report).unwrap();
        let summary = &report["summary"];
        let found = ["errors", "warnings", "files"].map(|name| summary[name].as_u64());
        assert_eq!(found, [Some(0), Some(0), Some(self.corpus.files.len() as u64)], "errors, warnings and files");
    }

    /// Copies the store into this folder.
    pub(crate) fn copy(&self, folder: &str) {
        copy(&self.scratch.join(STORE), &self.scratch.join(folder).join("store"));
        // The master key is beside the store.
        fs::copy(self.scratch.join(format!("{STORE}.master.key")), self.scratch.join(folder).join("store.master.key"))
            .unwrap();
    }

    /// Serves the store in this folder (`state` has the one without changes), with or without the manifests.
    pub(crate) fn serve(&self, folder: &str, with_manifests: bool) -> Server {
        let store = format!("{folder}/store");
        let mut arguments = vec!["--store", store.as_str()];
        if with_manifests {
            arguments.extend(["--manifests", MANIFESTS]);
        }
        Server::start(&self.scratch, &arguments)
    }

    /// Connects to a server as an admin.
    pub(crate) fn client(&self, server: &Server) -> Client {
        Client::connect(server.address, &self.token)
    }

    /// Returns the paths of many routes.
    pub(crate) fn routes(&self, server: &Server) -> Vec<String> {
        let page: Value = serde_json::from_slice(&self.client(server).get("/edges/https?limit=1000")).unwrap();
        let edges = page["https_edges"].as_array().unwrap();
        let routes = edges.iter().flat_map(|edge| edge["routes"].as_array().unwrap());
        let paths = routes.map(|route| {
            let (edge, id) = (route["edge_id"].as_str().unwrap(), route["id"].as_str().unwrap());
            format!("/edges/https/{edge}/routes/{id}")
        });
        let paths: Vec<String> = paths.collect();
        assert!(paths.len() >= self.corpus.routes.min(1000), "{} routes", paths.len());
        paths
    }

    /// Returns the folder for the files of a measurement.
    pub(crate) fn scratch(&self) -> &Path {
        &self.scratch
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
