//! One run of the reconciler, and the loop that repeats it. Returns data; the command line and the API print it.

pub mod watch;

use std::{
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use crate::{
    manifest::{self, LoadOptions, resolve::resolve},
    model::{
        Kind,
        code::Code,
        diagnostic::{Diagnostic, Severity, sort},
        fault::Path as FieldPath,
        operation::{Author, Operation},
        snapshot::{Refusal, Snapshot},
    },
    plan::{Plan, diff},
    store::{Commit, CommitError, Store, mint},
};

/// What a reconciliation is about.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the manifests are.
    pub load: LoadOptions,
    /// The name under which resources are owned (D40).
    pub source: String,
    /// Whether what is owned and no longer declared is deleted.
    pub prune: bool,
}

/// What came of planning.
#[derive(Debug)]
pub struct Planned {
    /// Faults and warnings of the manifests.
    pub diagnostics: Vec<Diagnostic>,
    /// The plan; none when the manifests have errors.
    pub plan: Option<Plan>,
    /// How many files were read.
    pub files: usize,
}

impl Planned {
    /// Whether the manifests are at fault.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|it| it.severity == Severity::Error)
    }
}

/// Reads the manifests and plans what turns `snapshot` into what they say. Changes nothing.
pub fn plan(options: &Options, snapshot: &Snapshot) -> Planned {
    let loaded = manifest::load(&options.load);
    let resolved = resolve(&loaded, snapshot, &options.source);
    let mut diagnostics = loaded.diagnostics;
    let files = loaded.files;
    diagnostics.extend(resolved.diagnostics);
    sort(&mut diagnostics);
    let mut planned = Planned { diagnostics, plan: None, files };
    if planned.has_errors() {
        return planned;
    }
    let plan = diff(snapshot, &resolved.desired, &options.source, options.prune);
    // The plan is tried on the Snapshot, so that whatever a commit would refuse is told now, at its line.
    if plan.refusals.is_empty()
        && let Err(refusal) = snapshot.apply(&plan.operations(), mint::now())
    {
        let Refusal { key, faults } = refusal;
        let origin = resolved.origins.get(&key);
        planned.diagnostics.extend(faults.into_iter().map(|fault| match origin {
            Some(origin) => origin.diagnostic(fault),
            None => {
                Diagnostic { help: fault.help, ..Diagnostic::error(fault.code, format!("{key}: {}", fault.message)) }
            }
        }));
        return planned;
    }
    planned.plan = Some(plan);
    planned
}

/// Commits a plan as one revision.
pub fn apply(store: &dyn Store, plan: &Plan, source: &str) -> Result<(), ApplyError> {
    let mut operations = Vec::new();
    let mut written = Vec::new();
    for change in &plan.changes {
        for operation in &change.operations {
            let mut operation = operation.clone();
            if let (Operation::Create { key, token, .. }, Some(file)) = (&mut operation, &change.token_file)
                && key.kind == Kind::ApiKey
            {
                let (secret, hash) = mint::token(&key.id);
                if let Err(error) = write_token(file, secret.expose()) {
                    remove(&written);
                    return Err(ApplyError::TokenFile(file.clone(), error));
                }
                written.push(file.clone());
                *token = Some(hash);
            }
            operations.push(operation);
        }
    }
    let author = Author::Source { source: source.to_owned() };
    let commit = Commit { base: Some(plan.base), operations, author, at: mint::now() };
    store.commit(commit).map(|_| ()).map_err(|error| {
        remove(&written);
        ApplyError::Commit(error)
    })
}

/// Why a plan was not applied; nothing has changed.
#[derive(Debug)]
pub enum ApplyError {
    /// The store refused it or failed.
    Commit(CommitError),
    /// A token could not be written where the manifest wants it.
    TokenFile(PathBuf, std::io::Error),
}

impl ApplyError {
    /// The error for a person.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            ApplyError::TokenFile(path, error) => Diagnostic::error(
                Code::Unreadable,
                format!("the token cannot be written to {}: {error}", path.display()),
            )
            .help("check the folder and its permissions; nothing was changed"),
            ApplyError::Commit(CommitError::Failed(error)) => {
                Diagnostic::error(error.code, error.message.clone()).help(error.code.info().cure)
            }
            ApplyError::Commit(CommitError::Stale { .. }) => {
                let ApplyError::Commit(error) = self else { return Diagnostic::error(Code::Stale, "") };
                Diagnostic::error(Code::Stale, error.to_string()).help("plan again and review the new plan")
            }
            ApplyError::Commit(CommitError::Refused(refusal)) => {
                let fault = refusal.faults.first();
                let code = fault.map_or(Code::Internal, |fault| fault.code);
                let place = fault.map(|fault| &fault.path).filter(|path| **path != FieldPath::root());
                let place = place.map(|path| format!(" at {path}")).unwrap_or_default();
                let message = fault.map(|fault| fault.message.clone()).unwrap_or_default();
                Diagnostic::error(code, format!("{}{place}: {message}", refusal.key))
            }
        }
    }
}

/// A token's file is for its user alone (D27).
pub fn write_token(path: &Path, token: &str) -> std::io::Result<()> {
    // A file that is there may be readable by others, so it is not written into but replaced.
    let _ = fs::remove_file(path);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(token.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()
}

fn remove(files: &[PathBuf]) {
    for file in files {
        let _ = fs::remove_file(file);
    }
}
