//! The sources that `serve` follows, as the configuration file lists them (D82).

pub(crate) mod entry;
mod repository;
mod values;

use crate::cli::config::options::scalar_text;
use crate::cli::input::durations::{INTERVALS, duration};
use crate::cli::manifests::source_args::{Loading, Ownership};
use crate::cli::prelude::*;
use crate::manifest::tree::remote::{GitTransport, Mirrors, RemoteAccess, RemoteMirror};
use crate::manifest::tree::{Lineage, ListedVariables, RefTree, RepositoryPlace, SourceValues, StopCheck, UnsetValues};
use crate::model::host_pattern::check_host_pattern;
use crate::model::key_scope::includes_kind;
use crate::model::kind::owner::is_owner_id;
use crate::reconcile::check_new_source;
use crate::reconcile::run::cancel::Cancel;
use crate::reconcile::sources::fetch_schedule::FetchSchedule;
use crate::reconcile::sources::forge_links::ForgeLinks;
use crate::reconcile::sources::handle::{FollowedSource, INTERVAL};
use crate::reconcile::sources::location::SourceLocation;
use crate::reconcile::sync_loop::drift_policy::DriftPolicy;
use crate::tenancy::{Adoption, SourceScope};
use entry::SourceEntry;
use repository::{ConfiguredRepository, RepositoryAddress};

/// A source to follow, with what the configuration file sets for it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ConfiguredSource {
    pub name: String,
    location: SourceLocation,
    /// The paths of the surrounding manifests, inside the repository if there is one.
    surrounding: Vec<PathBuf>,
    repository: Option<ConfiguredRepository>,
    /// The links to its forge.
    pub forge: ForgeLinks,
    /// The folder with the values that the commits do not have.
    values: Option<PathBuf>,
    /// The environment variables that the manifests can read: without a list, all that are not the program's own.
    variables: Option<BTreeSet<String>>,
    interval: Duration,
    prune: Option<bool>,
    isolate: Option<bool>,
    recreate_ids: bool,
    is_suspended: bool,
    drift: Option<DriftPolicy>,
    budget: Option<DeletionBudget>,
    lints: LintLevels,
    scope: SourceScope,
}

/// The variables with credentials to fetch repositories.
pub(crate) fn credential_variables(entries: &[SourceEntry]) -> BTreeSet<String> {
    entries.iter().filter_map(|entry| entry.password_env.clone()).collect()
}

/// Checks the list of sources, and returns the first fault of each. `lints` are the levels for all sources; the path of a
/// fault starts at `sources`.
pub(crate) fn parse_sources(
    entries: Vec<SourceEntry>,
    lints: &LintLevels,
) -> Result<Vec<ConfiguredSource>, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut names = BTreeSet::new();
    let mut sources = Vec::new();
    let is_alone = entries.len() == 1;
    let credentials = credential_variables(&entries);
    for (at, entry) in entries.into_iter().enumerate() {
        let place = FieldPath::root().join("sources").join(at);
        let is_new = names.insert(entry.name.clone());
        match entry.parse(lints, &credentials) {
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
            Err(fault) => faults.push(fault.under(&place)),
        }
    }
    if faults.is_empty() {
        faults.extend(values::check_apart(&sources).err());
    }
    if faults.is_empty() { Ok(sources) } else { Err(faults) }
}

impl SourceEntry {
    fn parse(self, lints: &LintLevels, credentials: &BTreeSet<String>) -> Result<ConfiguredSource, Fault> {
        let field = |name: &str| FieldPath::root().join(name);
        check_new_source(&self.name).map_err(|fault| {
            fault
                .at(field("name"))
                .help("use another name; `edgewright transfer --all` moves the resources of an existing source")
        })?;
        let (location, repository) = self.location()?;
        let surrounding = self.surrounding()?;
        let values = self.values()?;
        let variables = Some(self.variables(credentials)?);
        let forge = self.forge()?;
        let scope = self.scope(repository.is_some())?;
        let interval = match self.interval.map(scalar_text) {
            Some(text) => parse_interval(&text).map_err(|fault| fault.at(field("interval")))?,
            None => INTERVAL,
        };
        let budget = self.max_deletes.map(|value| scalar_text(value).parse::<DeletionBudget>()).transpose();
        let budget = budget.map_err(|reason| Fault::new(Code::InvalidFormat, reason).at(field("max_deletes")))?;
        let drift = self.drift.map(|name| name.parse::<DriftPolicy>()).transpose();
        let drift = drift.map_err(|reason| Fault::new(Code::UnknownValue, reason).at(field("drift")))?;
        let own = LintLevels::named(&self.lints, None).map_err(|fault| fault.under(&field("lints")))?;
        let mut lints = lints.clone();
        lints.levels.extend(own.levels);
        Ok(ConfiguredSource {
            name: self.name,
            location,
            surrounding,
            repository,
            forge,
            values,
            variables,
            interval,
            prune: self.prune,
            isolate: self.isolate,
            recreate_ids: self.recreate_ids,
            is_suspended: self.suspend.unwrap_or_default(),
            drift,
            budget,
            lints,
            scope,
        })
    }

    /// The links to the forge. The files of a folder have no path that a forge knows.
    fn forge(&self) -> Result<ForgeLinks, Fault> {
        if !self.file_url.is_empty() && self.repository.is_none() {
            let fault = Fault::new(Code::NotAllowed, "`file_url` requires `repository`").at("file_url");
            return Err(fault.help("set `repository` to the path or URL of a Git repository, or remove `file_url`"));
        }
        ForgeLinks::new(self.commit_url.clone(), self.file_url.clone())
    }

    /// The limits of the source. A repository declares neither API keys nor what acts on every source unless its scope says
    /// so (D112).
    fn scope(&self, is_repository: bool) -> Result<SourceScope, Fault> {
        let mut scope = if is_repository { SourceScope::for_repository() } else { SourceScope::default() };
        let Some(entry) = &self.scope else { return Ok(scope) };
        let at = |field: &str| FieldPath::root().join("scope").join(field);
        let kinds_in = |field: &str, names: &[String]| -> Result<BTreeSet<Kind>, Fault> {
            let mut kinds = BTreeSet::new();
            for (index, name) in names.iter().enumerate() {
                kinds.extend(parse_kinds(name).map_err(|fault| fault.at(at(field).join(index)))?);
            }
            Ok(kinds)
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
        scope.roles = entry.roles.as_ref().map(|roles| roles.iter().copied().collect()).or(scope.roles);
        for (index, owner) in entry.owners.iter().flatten().enumerate() {
            if !is_owner_id(owner) {
                let fault = Fault::new(Code::InvalidFormat, format!("`{}` is not an owner ID", printable(owner)));
                let fault = fault.help("write an ID such as `bot_docs`; `edgewright owners list` shows the owners");
                return Err(fault.at(at("owners").join(index)));
            }
        }
        scope.owners = entry.owners.as_ref().map(|owners| owners.iter().cloned().collect());
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
fn parse_kinds(name: &str) -> Result<Vec<Kind>, Fault> {
    let named: Vec<Kind> = Kind::all().filter(|info| includes_kind(name, info.name)).map(|info| info.kind).collect();
    if !named.is_empty() {
        return Ok(named);
    }
    let fault = Fault::new(Code::UnknownValue, format!("unknown kind `{}`", printable(name)));
    let otherwise = "name kinds of resources, such as `HttpsEdge`, or `*`";
    Err(fault.help(suggest(name, Kind::all().map(|info| info.name), otherwise)))
}

impl ConfiguredSource {
    /// The one source of the options, which also have its limits.
    pub(super) fn from_options(paths: Vec<PathBuf>, ownership: &Ownership, lints: LintLevels) -> Self {
        let location = SourceLocation { paths, ..SourceLocation::default() };
        Self { name: ownership.options().source, location, interval: INTERVAL, lints, ..Self::default() }
    }

    /// The source to follow. `ownership` and `drift` are the defaults of what the file does not set.
    pub(super) fn into_followed(
        self,
        loading: &Loading,
        ownership: &Ownership,
        drift: DriftPolicy,
        mirrors: Option<&Arc<Mirrors>>,
    ) -> Result<FollowedSource, Diagnostic> {
        let Self { name, location, surrounding, interval, .. } = self;
        let cancel = Cancel::default();
        let stopped = cancel.clone();
        let stop = StopCheck::new(move || stopped.is_cancelled());
        let (mut fetches, mut lineage) = (None, None);
        let values = Arc::new(SourceValues::new(self.values));
        let (tree, watched): (Arc<dyn Tree>, Vec<PathBuf>) = match self.repository {
            None => {
                let tree = loading.tree(&location.paths, &surrounding, UnsetValues::Require, &stop);
                let watched = location.paths.iter().cloned().chain(surrounding).collect();
                (tree, watched)
            }
            Some(repository) => {
                let inside = location.paths.first().cloned().unwrap_or_default();
                let (mut at_revision, schedule) = repository_tree(&name, repository, inside, interval, mirrors)?;
                fetches = schedule;
                lineage = at_revision.lineage.clone();
                at_revision.stop = stop;
                at_revision.allow_outside_files = loading.allow_outside_files;
                at_revision.surrounding = surrounding;
                at_revision.values = Arc::clone(&values);
                let watched = at_revision.watched();
                (Arc::new(at_revision) as Arc<dyn Tree>, watched)
            }
        };
        let tree = ListedVariables::wrap(tree, &name, self.variables);
        let defaults = ownership.options();
        let options = Options {
            tree,
            source: name,
            prune: self.prune.unwrap_or(defaults.prune),
            isolate: self.isolate.unwrap_or(defaults.isolate),
            recreate_ids: self.recreate_ids,
            budget: self.budget.unwrap_or(defaults.budget),
            lints: self.lints,
            scope: Arc::new(self.scope),
            cancel,
            ..Options::default()
        };
        let (is_suspended, observer, drift) = (self.is_suspended, None, self.drift.unwrap_or(drift));
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
            observer,
        })
    }

    /// Whether a fetch uses credentials of this machine: a file, a variable or the SSH agent.
    pub(super) fn has_credentials(&self) -> bool {
        self.repository.as_ref().is_some_and(|repository| match &repository.address {
            RepositoryAddress::Local(_) => false,
            RepositoryAddress::Remote { url, access } => {
                url.transport == GitTransport::Ssh || **access != RemoteAccess::default()
            }
        })
    }

    /// The name and URL of the remote repository, if the source has one.
    pub(super) fn remote(&self) -> Option<(&str, &str)> {
        match &self.repository.as_ref()?.address {
            RepositoryAddress::Local(_) => None,
            RepositoryAddress::Remote { url, .. } => Some((self.name.as_str(), url.text.as_str())),
        }
    }
}

/// The tree of a source's repository and, if it is a remote one, the schedule of its fetches.
fn repository_tree(
    source: &str,
    repository: ConfiguredRepository,
    inside: PathBuf,
    interval: Duration,
    mirrors: Option<&Arc<Mirrors>>,
) -> Result<(RefTree, Option<Arc<FetchSchedule>>), Diagnostic> {
    let ConfiguredRepository { address, wanted, verifier } = repository;
    let (place, schedule) = match address {
        RepositoryAddress::Local(path) => (RepositoryPlace::Local(path), None),
        RepositoryAddress::Remote { url, access } => {
            let missing = || Diagnostic::error(Code::Internal, "a remote repository requires a folder of mirrors");
            let mirrors = Arc::clone(mirrors.ok_or_else(missing)?);
            access.check_authorities().map_err(|(reason, help)| {
                let message = format!("source `{}`: {reason}", printable(source));
                Diagnostic::error(Code::Unreadable, message).help(help)
            })?;
            let mirror = Arc::new(RemoteMirror::new(mirrors, source, url, wanted.clone(), *access));
            let schedule = Arc::new(FetchSchedule::new(source, Arc::clone(&mirror), interval));
            (RepositoryPlace::Remote(mirror), Some(schedule))
        }
    };
    let lineage = Lineage::new(source, verifier.is_some());
    let mut tree = RefTree::new(place, wanted, inside, verifier);
    tree.lineage = Some(Arc::new(lineage));
    Ok((tree, schedule))
}

/// Parses an interval: a number of seconds, or a duration such as `5m`.
fn parse_interval(text: &str) -> Result<Duration, Fault> {
    let interval = duration(text).map_err(|reason| Fault::new(Code::InvalidFormat, reason))?;
    if !INTERVALS.contains(&interval) {
        let message = format!("`interval` must be between 1 second and 24 hours (found {})", printable(text));
        return Err(Fault::new(Code::OutOfRange, message));
    }
    Ok(interval)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_between_a_second_and_a_day() {
        assert!(parse_interval("0").is_err() && parse_interval("25h").is_err() && parse_interval("1s").is_ok());
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
        let sources = parse_sources(serde_json::from_str(text).unwrap(), &all).unwrap();
        let levels: Vec<_> = sources.into_iter().map(|source| source.lints.levels).collect();
        let own = named(&[("route-without-backend", "allow"), ("team-format", "allow")]);
        assert_eq!(levels, [own.levels, all.levels]);
    }
}
