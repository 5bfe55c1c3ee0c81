//! The sources that `serve` follows, as the configuration file lists them (D82).

mod repository;
mod values;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use jiff::{Span, SpanRelativeTo};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    cli::manifests::source_args::{Loading, Ownership},
    manifest::tree::{
        ContextTree, Lineage, RefTree, RepositoryPlace, SourceValues, StopCheck, Tree, UnsetValues,
        remote::{GitTransport, Mirrors, RemoteAccess, RemoteMirror},
    },
    model::{
        Kind,
        diagnostics::{
            code::Code,
            diagnostic::Diagnostic,
            fault::{Fault, Path as FieldPath, nearest},
        },
        host_pattern::check_host_pattern,
        key_scope::includes_kind,
        kind::owner::Role,
    },
    plan::safety::Budget,
    reconcile::{
        LintLevels, Options, check_new_source,
        run::cancel::Cancel,
        sources::{
            fetch_schedule::FetchSchedule,
            handle::{FollowedSource, INTERVAL, SourceLocation},
        },
        sync_loop::drift::DriftPolicy,
    },
    syntax::text::printable,
    tenancy::{Adoption, SourceScope},
};
use repository::{ConfiguredRepository, RepositoryAddress};

/// The shortest and the longest interval: the loop resolves its paths once a second, and lints depend on the day.
const INTERVALS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(24 * 3600));

/// A source in the configuration file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceEntry {
    /// The name of the source (D40).
    name: String,
    /// A folder or file; with `repository`, inside the repository.
    path: Option<PathBuf>,
    /// Folders and files of other sources, which this one uses without owning them.
    #[serde(default)]
    with: Vec<PathBuf>,
    /// The local path or the URL of a Git repository.
    repository: Option<String>,
    /// A branch, tag or commit of the repository.
    #[serde(rename = "ref")]
    revision: Option<String>,
    /// The folder with the values that the commits of the repository do not have.
    values: Option<PathBuf>,
    /// How often to look without an event.
    interval: Option<Value>,
    prune: Option<bool>,
    isolate: Option<bool>,
    /// Whether resources whose stated ID does not exist are created under it: to build a lost store again.
    #[serde(default)]
    recreate_ids: bool,
    /// What the source may declare.
    scope: Option<ScopeEntry>,
    /// Whether to look without applying.
    suspend: Option<bool>,
    /// What to do about drift.
    drift: Option<String>,
    max_deletes: Option<Value>,
    /// Levels of lints, over those of the whole file.
    #[serde(default)]
    lints: BTreeMap<String, String>,
    /// A range of versions: the highest tag in it is read.
    semver: Option<String>,
    /// The user at the server of the repository.
    username: Option<String>,
    /// The file with the password or token.
    password_file: Option<PathBuf>,
    /// The environment variable with the password or token.
    password_env: Option<String>,
    /// The private key for SSH.
    ssh_key_file: Option<PathBuf>,
    /// The file with the passphrase of the key.
    ssh_key_passphrase_file: Option<PathBuf>,
    /// The keys of SSH servers.
    known_hosts_file: Option<PathBuf>,
    /// The authorities of HTTPS servers.
    ca_file: Option<PathBuf>,
    /// What a commit must have to be applied.
    verify: Option<VerifyEntry>,
}

/// What a source may declare.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ScopeEntry {
    /// The kinds of resources, or `*`.
    kinds: Option<Vec<String>>,
    /// The kinds of resources without a source that it may adopt, or `*`.
    adopt: Option<Vec<String>>,
    /// The hosts of edges.
    hosts: Option<Vec<String>>,
    /// The roles of the owners of API keys.
    roles: Option<Vec<Role>>,
    /// The folder of token files.
    token_folder: Option<PathBuf>,
}

/// What a commit must have to be applied.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VerifyEntry {
    /// The file of the SSH keys that may sign.
    allowed_signers_file: PathBuf,
}

/// A source to follow, with what the configuration file sets for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConfiguredSource {
    /// The name of the source.
    pub name: String,
    location: SourceLocation,
    /// The paths of the context, inside the repository if there is one.
    context: Vec<PathBuf>,
    repository: Option<ConfiguredRepository>,
    /// The folder with the values that the commits do not have.
    values: Option<PathBuf>,
    interval: Duration,
    prune: Option<bool>,
    isolate: Option<bool>,
    recreate_ids: bool,
    is_suspended: bool,
    drift: Option<DriftPolicy>,
    budget: Option<Budget>,
    lints: LintLevels,
    scope: SourceScope,
}

/// Checks the list of sources, and returns the first fault of each. `lints` are the levels for all sources; the path of a
/// fault starts at `sources`.
pub(crate) fn checked(entries: Vec<SourceEntry>, lints: &LintLevels) -> Result<Vec<ConfiguredSource>, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut names = BTreeSet::new();
    let mut sources = Vec::new();
    let is_alone = entries.len() == 1;
    for (at, entry) in entries.into_iter().enumerate() {
        let place = FieldPath::root().join("sources").join(at);
        let is_new = names.insert(entry.name.clone());
        match entry.checked(lints) {
            Ok(source) if !is_new => {
                let message = format!("duplicate source name `{}`", printable(&source.name));
                let fault = Fault::new(Code::DuplicateName, message).at(place.join("name"));
                let help = "give each source its own name: under one name, each would delete the other's resources";
                faults.push(fault.help(help));
            }
            Ok(mut source) => {
                // Otherwise, whoever is applied first would get everything.
                if !is_alone && source.scope.adopt == Adoption::WhileAlone {
                    source.scope.adopt = Adoption::Of(BTreeSet::new());
                }
                sources.push(source);
            }
            Err(fault) => {
                let path = fault.path.under(&place);
                faults.push(fault.at(path));
            }
        }
    }
    if faults.is_empty() {
        faults.extend(values::are_apart(&sources).err());
    }
    if faults.is_empty() { Ok(sources) } else { Err(faults) }
}

impl SourceEntry {
    fn checked(self, lints: &LintLevels) -> Result<ConfiguredSource, Fault> {
        let field = |name: &str| FieldPath::root().join(name);
        check_new_source(&self.name).map_err(|reason| {
            let fault = Fault::new(Code::InvalidFormat, reason).at(field("name"));
            fault.help("use another name; `edgewright transfer --all` moves the resources of an existing source")
        })?;
        let (location, repository) = self.location()?;
        let context = self.context()?;
        let values = self.values()?;
        let scope = self.scope(repository.is_some())?;
        let interval = match self.interval.map(text_of) {
            Some(text) => interval_of(&text).map_err(|fault| fault.at(field("interval")))?,
            None => INTERVAL,
        };
        let budget = self.max_deletes.map(|value| text_of(value).parse::<Budget>()).transpose();
        let budget = budget.map_err(|reason| Fault::new(Code::InvalidFormat, reason).at(field("max_deletes")))?;
        let drift = self.drift.map(|name| name.parse::<DriftPolicy>()).transpose();
        let drift = drift.map_err(|reason| Fault::new(Code::UnknownValue, reason).at(field("drift")))?;
        let own = LintLevels::named(&self.lints, None).map_err(|fault| {
            let path = fault.path.under(&field("lints"));
            fault.at(path)
        })?;
        let mut lints = lints.clone();
        lints.levels.extend(own.levels);
        let (name, prune, isolate, recreate_ids) = (self.name, self.prune, self.isolate, self.recreate_ids);
        let is_suspended = self.suspend.unwrap_or_default();
        Ok(ConfiguredSource {
            name,
            location,
            context,
            repository,
            values,
            interval,
            prune,
            isolate,
            recreate_ids,
            is_suspended,
            drift,
            budget,
            lints,
            scope,
        })
    }
}

impl SourceEntry {
    /// What the source may declare. A repository declares neither API keys nor what acts on every source unless its scope says
    /// so (D112).
    fn scope(&self, is_repository: bool) -> Result<SourceScope, Fault> {
        let mut scope = if is_repository { SourceScope::for_repository() } else { SourceScope::default() };
        let Some(entry) = &self.scope else { return Ok(scope) };
        let at = |field: &str| FieldPath::root().join("scope").join(field);
        let kinds_in = |field: &str, names: &[String]| {
            let kinds = names
                .iter()
                .enumerate()
                .map(|(index, name)| kinds_named(name).map_err(|fault| fault.at(at(field).join(index))));
            Ok::<BTreeSet<Kind>, Fault>(kinds.collect::<Result<Vec<_>, Fault>>()?.into_iter().flatten().collect())
        };
        if let Some(names) = &entry.kinds {
            scope.kinds = Some(kinds_in("kinds", names)?);
        }
        if let Some(names) = &entry.adopt {
            scope.adopt = Adoption::Of(kinds_in("adopt", names)?);
        }
        for (index, host) in entry.hosts.iter().flatten().enumerate() {
            check_host_pattern(host).map_err(|fault| fault.at(at("hosts").join(index)))?;
        }
        scope.hosts = entry.hosts.clone();
        if let Some(roles) = &entry.roles {
            scope.roles = Some(roles.iter().copied().collect());
        }
        if let Some(folder) = &entry.token_folder {
            let folder = folder.canonicalize().map_err(|error| {
                let message = format!("cannot use {}: {error}", folder.display());
                Fault::new(Code::Unreadable, message).at(at("token_folder")).help("name a folder that exists")
            })?;
            scope.token_folder = Some(folder);
        }
        let declares_keys = scope.kinds.as_ref().is_none_or(|kinds| kinds.contains(&Kind::ApiKey));
        if is_repository && declares_keys && scope.token_folder.is_none() {
            let fault =
                Fault::new(Code::Required, "`token_folder` is required for a repository that declares API keys");
            return Err(fault.at(at("token_folder")).help("name the folder that tokens of new keys are written to"));
        }
        Ok(scope)
    }
}

/// The kinds that a name in a scope includes.
fn kinds_named(name: &str) -> Result<Vec<Kind>, Fault> {
    let named: Vec<Kind> = Kind::all().filter(|info| includes_kind(name, info.name)).map(|info| info.kind).collect();
    if !named.is_empty() {
        return Ok(named);
    }
    let fault = Fault::new(Code::UnknownValue, format!("unknown kind `{}`", printable(name)));
    Err(match nearest(name, Kind::all().map(|info| info.name)) {
        Some(near) => fault.help(format!("did you mean `{near}`?")),
        None => fault.help("name kinds of resources, such as `HttpsEdge`, or `*`"),
    })
}

impl ConfiguredSource {
    /// The one source of the options, which also have its limits.
    pub(super) fn of_options(paths: Vec<PathBuf>, ownership: &Ownership, lints: LintLevels) -> Self {
        Self {
            name: ownership.defaults().source,
            repository: None,
            values: None,
            location: SourceLocation { paths, ..SourceLocation::default() },
            context: Vec::new(),
            interval: INTERVAL,
            prune: None,
            isolate: None,
            recreate_ids: false,
            is_suspended: false,
            budget: None,
            lints,
            scope: SourceScope::default(),
            drift: None,
        }
    }

    /// The source to follow. `ownership` and `drift` are the defaults of what the file does not set.
    pub(super) fn followed(
        self,
        loading: &Loading,
        ownership: &Ownership,
        drift: DriftPolicy,
        mirrors: Option<&Arc<Mirrors>>,
    ) -> Result<FollowedSource, Diagnostic> {
        let drift = self.drift.unwrap_or(drift);
        let Self {
            name,
            location,
            context,
            repository,
            values,
            interval,
            prune,
            isolate,
            recreate_ids,
            is_suspended,
            budget,
            lints,
            scope,
            ..
        } = self;
        let cancel = Cancel::default();
        let tree: Arc<dyn Tree>;
        let watched: Vec<PathBuf>;
        let (mut fetches, mut lineage) = (None, None);
        let values = Arc::new(SourceValues::new(values));
        match repository {
            None => {
                let around = (!context.is_empty()).then(|| Arc::new(loading.of(context.clone())) as Arc<dyn Tree>);
                tree = ContextTree::wrap(Arc::new(loading.of(location.paths.clone())), around, UnsetValues::Require);
                watched = location.paths.iter().cloned().chain(context).collect();
            }
            Some(ConfiguredRepository { address, wanted, verifier }) => {
                let inside = location.paths.first().cloned().unwrap_or_default();
                let place = match (address, mirrors) {
                    (RepositoryAddress::Local(path), _) => RepositoryPlace::Local(path),
                    (RepositoryAddress::Remote { url, access }, Some(mirrors)) => {
                        access.check_authorities().map_err(|(reason, help)| {
                            let message = format!("source `{}`: {reason}", printable(&name));
                            Diagnostic::error(Code::Unreadable, message).help(help)
                        })?;
                        let mirror = RemoteMirror::new(Arc::clone(mirrors), &name, url, wanted.clone(), *access);
                        let mirror = Arc::new(mirror);
                        fetches = Some(Arc::new(FetchSchedule::new(&name, Arc::clone(&mirror), interval)));
                        RepositoryPlace::Remote(mirror)
                    }
                    (RepositoryAddress::Remote { .. }, None) => {
                        return Err(Diagnostic::error(
                            Code::Internal,
                            "a remote repository requires a folder of mirrors",
                        ));
                    }
                };
                let stopped = cancel.clone();
                let stop = StopCheck::new(move || stopped.is_cancelled());
                let own = Arc::new(Lineage::new(&name, verifier.is_some()));
                lineage = Some(Arc::clone(&own));
                let mut at_revision = RefTree::new(place, wanted, verifier, inside, stop);
                at_revision.allow_outside_files = loading.allow_outside_files;
                let at_revision = at_revision.with_context(context).in_lineage(own).with_values(Arc::clone(&values));
                watched = at_revision.watched();
                tree = Arc::new(at_revision);
            }
        }
        let defaults = ownership.defaults();
        let options = Options {
            tree,
            source: name,
            prune: prune.unwrap_or(defaults.prune),
            isolate: isolate.unwrap_or(defaults.isolate),
            recreate_ids,
            budget: budget.unwrap_or(defaults.budget),
            lints,
            key_owner: None,
            scope: Arc::new(scope),
            cancel,
        };
        Ok(FollowedSource {
            options,
            watched,
            interval,
            location,
            is_suspended,
            drift,
            fetches,
            lineage,
            values,
            observer: None,
        })
    }

    /// Whether a fetch uses credentials of this machine: a file, a variable or the SSH agent.
    pub(super) fn has_credentials(&self) -> bool {
        self.repository.as_ref().is_some_and(|repository| match &repository.address {
            RepositoryAddress::Local(_) => false,
            RepositoryAddress::Remote { url, access } => {
                url.transport() == GitTransport::Ssh || **access != RemoteAccess::default()
            }
        })
    }

    /// The name and URL of the remote repository, if the source has one.
    pub(super) fn remote(&self) -> Option<(&str, &str)> {
        match &self.repository.as_ref()?.address {
            RepositoryAddress::Local(_) => None,
            RepositoryAddress::Remote { url, .. } => Some((self.name.as_str(), url.as_str())),
        }
    }
}

/// A scalar as it would be written for an option.
pub(crate) fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Parses an interval: a number of seconds, or a duration such as `5m`.
fn interval_of(text: &str) -> Result<Duration, Fault> {
    let (least, most) = INTERVALS;
    let interval = duration(text).map_err(|reason| Fault::new(Code::InvalidFormat, reason))?;
    if !(least..=most).contains(&interval) {
        let message = format!("`interval` must be between 1 second and 24 hours (found {})", printable(text));
        return Err(Fault::new(Code::OutOfRange, message));
    }
    Ok(interval)
}

/// Parses a duration: a number of seconds, or numbers with units such as `90s`, `5m`, `1h 30m` and `2d`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let seconds = text.trim().parse::<u64>().ok().map(Duration::from_secs);
    let with_units = || {
        let days = SpanRelativeTo::days_are_24_hours();
        Duration::try_from(text.trim().parse::<Span>().ok()?.to_duration(days).ok()?).ok()
    };
    seconds.or_else(with_units).ok_or_else(|| "expected a duration such as 30s, 5m or 2h".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit_or_is_in_seconds() {
        let seconds = |text: &str| duration(text).map(|found| found.as_secs()).ok();
        assert_eq!(["45", "45s", "5m", "2h", "1h 30m"].map(seconds), [45, 45, 300, 7200, 5400].map(Some));
        assert_eq!(["2d", "1d 1h", "1w"].map(seconds), [172_800, 90_000, 604_800].map(Some));
        for other in ["", "-5s", "soon", "5 parsecs", "1 month", "2y"] {
            assert_eq!(seconds(other), None, "{other}");
        }
        assert!(interval_of("0").is_err() && interval_of("25h").is_err() && interval_of("1s").is_ok());
    }

    #[test]
    fn a_source_overrides_the_levels_of_all_sources_and_nothing_else() {
        let named = |levels: &[(&str, &str)]| {
            let levels = levels.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned())).collect();
            LintLevels::named(&levels, None).unwrap()
        };
        let all = named(&[("route-without-backend", "deny"), ("team-format", "allow")]);
        let text =
            r#"[{"name": "a", "path": "a", "lints": {"route-without-backend": "allow"}}, {"name": "b", "path": "b"}]"#;
        let sources = checked(serde_json::from_str(text).unwrap(), &all).unwrap();
        let levels: Vec<_> = sources.into_iter().map(|source| source.lints.levels).collect();
        let own = named(&[("route-without-backend", "allow"), ("team-format", "allow")]);
        assert_eq!(levels, [own.levels, all.levels]);
    }
}
