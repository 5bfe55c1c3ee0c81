//! The configuration file: defaults of options (D32), levels of lints (D2), and the sources to follow (D82).

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use clap::Command;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Failure,
    followed::{self, ConfiguredSource, SourceEntry, text_of},
};
use crate::{
    manifest::syntax,
    model::{
        code::Code,
        decode::decode,
        diagnostic::Diagnostic,
        fault::{Fault, Path as FieldPath},
        node::Tape,
    },
    reconcile::LintLevels,
};

/// The file that is read by default, if it exists.
pub(super) const DEFAULT: &str = "edgewright.config.yaml";
/// The environment variable with the path of another file.
pub(super) const VARIABLE: &str = "EDGEWRIGHT_CONFIG";

/// The contents of a configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct File {
    /// Values of options by their long names: `store: /var/lib/edgewright`.
    options: BTreeMap<String, Value>,
    /// Levels of lints by name.
    lints: BTreeMap<String, String>,
    /// The label keys that manifests may use.
    allowed_labels: Option<BTreeSet<String>>,
    /// How many days before a certificate expires it is reported.
    certificate_expiry_days: Option<u32>,
    /// The sources that `serve` follows.
    sources: Vec<SourceEntry>,
    /// The webhooks that `serve` accepts.
    hooks: HooksEntry,
}

/// The webhooks in the configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct HooksEntry {
    /// The webhook of forges (D90).
    git: Option<GitHookEntry>,
}

/// The webhook of forges.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GitHookEntry {
    /// The file with the secret that requests are signed with.
    secret_file: PathBuf,
}

/// A parsed configuration file.
#[derive(Debug, Default)]
pub(super) struct Config {
    options: BTreeMap<String, String>,
    /// The file's path.
    path: PathBuf,
    /// Whether the path was set, rather than found in the working folder.
    named: bool,
    /// The levels of lints.
    pub lints: LintLevels,
    /// The sources that `serve` follows.
    pub sources: Vec<ConfiguredSource>,
    /// The file with the secret of the webhook at `/hooks/git`, if the server accepts it.
    pub git_hook: Option<PathBuf>,
}

impl Config {
    /// Reads the file named by the environment, or the default one if it exists.
    pub(super) fn read() -> Result<Self, Failure> {
        let is_named = std::env::var_os(VARIABLE).is_some();
        let path = Self::path();
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Self { named: is_named, ..Self::parse(&path, &text)? }),
            Err(error) if !is_named && error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(unusable(&path, &Fault::new(Code::Unreadable, error.to_string()))),
        }
    }

    /// The path of the file, whether it exists or not.
    pub(super) fn path() -> PathBuf {
        std::env::var_os(VARIABLE).map_or_else(|| PathBuf::from(DEFAULT), PathBuf::from)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Failure> {
        let fail = |fault: Fault| unusable(path, &fault);
        let mut content: Tape = serde_yaml::from_str(text)
            .map_err(|error| fail(Fault::new(Code::Syntax, syntax::reason_and_place(&error))))?;
        if content.root().is_null() {
            return Ok(Self::default());
        }
        if let Some(fault) = content.take_faults().into_iter().next() {
            return Err(fail(fault));
        }
        let (file, faults) = decode::<File>(content.root(), None);
        if let Some(fault) = faults.into_iter().next() {
            return Err(fail(fault));
        }
        let file = file.unwrap_or_default();
        let lints = LintLevels::named(&file.lints, file.allowed_labels).map_err(|fault| {
            let path = fault.path.under(&FieldPath::root().join("lints"));
            fail(fault.at(path))
        })?;
        let lints = LintLevels { certificate_expiry_days: file.certificate_expiry_days, ..lints };
        let sources = followed::checked(file.sources, &lints).map_err(fail)?;
        let options = file.options.into_iter().map(|(name, value)| (name, text_of(value))).collect();
        let git_hook = file.hooks.git.map(|hook| hook.secret_file);
        Ok(Self { options, path: path.to_owned(), named: false, lints, sources, git_hook })
    }

    /// Sets the configured values as defaults of the options in every command. Flags and the environment take
    /// precedence.
    pub(super) fn apply(&self, mut command: Command) -> Result<Command, Failure> {
        for (name, value) in &self.options {
            // A pull request can add this file to the working folder, and must not redirect the token or read other
            // files.
            if !self.named && ["server", "allow-outside-files"].contains(&name.as_str()) {
                let message = format!("`{name}` cannot be set in a configuration file found in the working folder");
                let fault = Fault::new(Code::NotAllowed, message);
                return Err(unusable(
                    &self.path,
                    &fault.help(format!("use the flag or its environment variable, or set {VARIABLE}")),
                ));
            }
            let mut known = false;
            for subcommand in subcommands(&command) {
                command = command.mut_subcommand(subcommand, |subcommand| set(subcommand, name, value, &mut known));
            }
            if !known {
                let fault = Fault::new(Code::UnknownField, format!("unknown option `{name}`"));
                return Err(unusable(&self.path, &fault));
            }
        }
        Ok(command)
    }
}

fn subcommands(command: &Command) -> Vec<String> {
    command.get_subcommands().map(|subcommand| subcommand.get_name().to_owned()).collect()
}

/// Sets the default of an option in a command and its subcommands. An option without an environment variable has no
/// default either (D32).
fn set(mut command: Command, name: &str, value: &str, known: &mut bool) -> Command {
    let is_it = |argument: &&clap::Arg| argument.get_long() == Some(name) && argument.get_env().is_some();
    let found = command.get_arguments().find(is_it).map(|it| it.get_id().clone());
    if let Some(id) = found {
        *known = true;
        let value = value.to_owned();
        command = command.mut_arg(id, |argument| argument.default_value(value));
    }
    for subcommand in subcommands(&command) {
        command = command.mut_subcommand(subcommand, |subcommand| set(subcommand, name, value, known));
    }
    command
}

fn unusable(path: &Path, fault: &Fault) -> Failure {
    let place = fault.path.to_string();
    let place = if place.is_empty() { place } else { format!(" at {place}") };
    let diagnostic =
        Diagnostic::error(fault.code, format!("invalid configuration {}{place}: {}", path.display(), fault.message));
    match &fault.help {
        Some(help) => diagnostic.help(help.clone()).into(),
        None => diagnostic.into(),
    }
}
