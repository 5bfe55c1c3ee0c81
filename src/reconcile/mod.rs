//! One run of the reconciler, and the loop that repeats it. Returns data; the command line and the API print it.

pub mod cancel;
mod folders;
pub mod health;
pub mod token;
pub mod watch;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::PathBuf,
    sync::Arc,
    time::Instant,
};

use cancel::Cancel;
use token::{Tokens, with_hashes};

use crate::{
    lint::{self, Finding, LINTS, Level, Subject, World},
    manifest::{
        self, Loaded, ManifestFile, Origin,
        resolve::{Resolved, resolve, resolve_offline},
        tree::{Disk, Tree},
    },
    model::{
        code::Code,
        desired::Desired,
        diagnostic::{Diagnostic, Name, Severity, sort},
        fault::{Aim, Fault, Path as FieldPath, nearest},
        id::Id,
        key::Key,
        operation::Author,
        snapshot::{Entry, Refusal, Snapshot},
    },
    plan::{Plan, diff, outline::Outline, report::Report, safety::Budget},
    store::{Commit, CommitError, Store, mint},
    text::printable,
};

/// What a reconciliation is about.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the manifests are.
    pub tree: Arc<dyn Tree>,
    /// The name under which resources are owned (D40).
    pub source: String,
    /// Whether what is owned and no longer declared is deleted.
    pub prune: bool,
    /// Whether what is faulty is set aside with its dependents, and the rest goes on (D44).
    pub isolate: bool,
    /// How much may be deleted (D41).
    pub budget: Budget,
    /// The levels of lints.
    pub lints: LintLevels,
    /// Gives the run up when nobody waits for it any longer (D52).
    pub cancel: Cancel,
}

impl Options {
    /// The usual options for manifests.
    pub fn new(tree: impl Tree + 'static) -> Self {
        Self { tree: Arc::new(tree), ..Self::default() }
    }
}

/// The usual options, for no manifests at all.
impl Default for Options {
    fn default() -> Self {
        Self {
            tree: Arc::new(Disk::default()),
            source: DEFAULT_SOURCE.to_owned(),
            prune: true,
            isolate: false,
            budget: Budget::default(),
            lints: LintLevels::default(),
            cancel: Cancel::default(),
        }
    }
}

/// The source name of whoever does not name one (D40).
pub const DEFAULT_SOURCE: &str = "default";

/// Whether a source can have this name. The reason is for a person.
pub fn check_source(name: &str) -> Result<(), String> {
    let good = !name.trim().is_empty() && name.len() <= 255 && !name.contains(char::is_control);
    good.then_some(()).ok_or_else(|| "a source's name has 1 to 255 bytes and no control character".into())
}

/// What a configuration says of lints.
#[derive(Debug, Clone, Default)]
pub struct LintLevels {
    /// Levels by lint name.
    pub levels: BTreeMap<String, Level>,
    /// The label keys that manifests may use; none means any.
    pub allowed_labels: Option<BTreeSet<String>>,
}

impl LintLevels {
    /// From the names of lints and levels, as people write them. The path of a fault starts at the lint's name.
    pub fn named(
        names: &BTreeMap<String, String>,
        allowed_labels: Option<BTreeSet<String>>,
    ) -> Result<LintLevels, Fault> {
        let mut levels = BTreeMap::new();
        for (name, level) in names {
            let path = FieldPath::root().join(name.as_str());
            if lint::find(name).is_none() {
                let fault = Fault::new(Code::UnknownValue, format!("there is no lint `{}`", printable(name))).at(path);
                return Err(match nearest(name, LINTS.iter().map(|lint| lint.name)) {
                    Some(near) => fault.help(format!("did you mean `{near}`?")),
                    None => fault.help("`edgewright explain` lists them"),
                });
            }
            let level = Level::from_name(level).ok_or_else(|| {
                Fault::new(Code::UnknownValue, format!("`{}` is not a level of a lint", printable(level)))
                    .at(path)
                    .help("the levels are allow, warn and deny")
            })?;
            levels.insert(name.clone(), level);
        }
        Ok(Self { levels, allowed_labels })
    }
}

/// What came of planning.
#[derive(Debug)]
pub struct Planned {
    /// Faults and warnings of the manifests.
    pub diagnostics: Vec<Diagnostic>,
    /// The plan; none when the manifests have errors.
    pub plan: Option<Plan>,
    /// What the manifests ask for.
    pub desired: BTreeMap<Key, Desired>,
    /// What was set aside, because it or something that it depends on is faulty.
    pub left_out: Vec<Desired>,
    /// The files that were read.
    pub files: Vec<Arc<ManifestFile>>,
    /// The Specs of API keys in the manifests, for faults of their `token_file`.
    keys: HashMap<Key, Origin>,
}

impl Planned {
    /// Returns the error that writing the token of a new API key would meet, at the line of its `token_file`. Only for
    /// whoever writes it: a server has no such file.
    pub fn token_fault(&self, key: &Key) -> Option<Diagnostic> {
        let file = self.desired.get(key)?.token_file.as_ref()?;
        let fault = ApplyError::TokenFile(file.clone(), token::obstacle(file)?).diagnostic();
        Some(match self.keys.get(key) {
            Some(origin) => fault.at(origin.place(&FieldPath::root().join("token_file"), Aim::Value)),
            None => fault,
        })
    }

    /// Whether the manifests are at fault.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|it| it.severity == Severity::Error)
    }

    /// A run that was given up has no plan, and nothing to commit.
    fn given_up(mut self) -> Self {
        self.diagnostics.push(Diagnostic::error(Code::Unavailable, "the run was given up before it was done"));
        self
    }

    /// What was set aside, for a person.
    pub fn left_out_names(&self) -> Vec<String> {
        let named = |key: &Key| {
            let left_out = || self.left_out.iter().find(|it| it.key == *key);
            self.desired.get(key).or_else(left_out).map(|it| it.claim.name.clone())
        };
        let name = |it: &Desired| match it.key.parent_key().map(|parent| (named(&parent), parent.id)) {
            Some((parent, id)) => format!("{}/{}", parent.unwrap_or_else(|| id.to_string()), it.claim.name),
            None => it.claim.name.clone(),
        };
        self.left_out.iter().map(|it| format!("{} {} ({})", it.key.kind, name(it), it.key.id)).collect()
    }

    /// What a command tells of it.
    pub fn report(&self, command: &'static str) -> Report {
        let mut diagnostics = self.diagnostics.clone();
        let plan = self.plan.as_ref().map(Outline::of).transpose().unwrap_or_else(|error| {
            // A plan that cannot be shown is none, and an error.
            diagnostics.push(error.into());
            None
        });
        Report {
            command,
            diagnostics,
            plan,
            refusals: self.plan.as_ref().map(|plan| plan.refusals.clone()).unwrap_or_default(),
            files: self.files.len(),
            applied: None,
        }
    }
}

/// Reads the manifests and checks them with nothing but the files: every rule, and every lint.
pub fn validate(tree: &dyn Tree, lints: &LintLevels) -> Planned {
    validate_loaded(manifest::load(tree), lints)
}

/// The same for manifests that were read already.
pub fn validate_loaded(loaded: Loaded, lints: &LintLevels) -> Planned {
    let resolved = resolve_offline(&loaded, DEFAULT_SOURCE);
    let (planned, resolved) = judge(loaded, resolved, &[], lints);
    Planned { desired: resolved.desired, ..planned }
}

/// Reads the manifests and plans what turns `snapshot` into what they say. Changes nothing.
pub fn plan(options: &Options, snapshot: &Snapshot) -> Planned {
    let given_up = || options.cancel.is_cancelled();
    let (mut planned, mut resolved) = read(options, snapshot);
    if given_up() {
        return planned.given_up();
    }
    if planned.has_errors() && !options.isolate {
        return planned;
    }
    let isolated = planned.has_errors();
    if isolated {
        planned.left_out = resolved.set_aside();
        // Lints that are denied hold for the rest all the same: one broken file must not switch them off.
        let (found, denied) = findings(&resolved, &[], &options.lints);
        let found = found.into_iter().filter(|it| it.severity == Severity::Error);
        planned.diagnostics.extend(found);
        sort(&mut planned.diagnostics);
        resolved.faulty = denied.into_iter().collect();
        planned.left_out.extend(resolved.set_aside());
    }
    // What cannot be read may be what a resource was renamed or moved to: nothing is deleted until all is in order.
    let prune = options.prune && !isolated;
    let plan = diff(snapshot, &resolved.desired, &options.source, prune, options.budget);
    if given_up() {
        return planned.given_up();
    }
    // The plan is tried on the Snapshot, so that whatever a commit would refuse is told now, at its line.
    if plan.refusals.is_empty()
        && let Err(refusal) = snapshot.apply(&plan.operations(), mint::now())
    {
        planned.diagnostics.extend(at_their_lines(refusal, &resolved));
        return planned;
    }
    if given_up() {
        return planned.given_up();
    }
    planned.plan = Some(plan);
    planned.desired = resolved.desired;
    planned
}

/// Plans what turns the state of one set of manifests into that of another, without any store.
pub fn compare(old: &Options, new: &Options) -> Planned {
    let lenient = |options: &Options| Options { budget: Budget::Percent(100.0), ..options.clone() };
    let mut before = plan(&lenient(old), &Snapshot::default());
    let Some(first) = before.plan.take() else { return before };
    match Snapshot::default().apply(&first.operations(), mint::now()) {
        Ok((snapshot, _)) => {
            let mut after = plan(&lenient(new), &snapshot);
            after.files.splice(0..0, before.files);
            after
        }
        Err(refusal) => Planned {
            diagnostics: refusal.faults.into_iter().map(|fault| Diagnostic::error(fault.code, fault.message)).collect(),
            ..before
        },
    }
}

fn read(options: &Options, snapshot: &Snapshot) -> (Planned, Resolved) {
    let Options { source, lints, .. } = options;
    let loaded = manifest::load(options.tree.as_ref());
    if options.cancel.is_cancelled() {
        return judge(Loaded::default(), Resolved::default(), &[], lints);
    }
    let resolved = resolve(&loaded, snapshot, source, options.prune);
    let owned = |entry: &&Arc<Entry>| entry.claim.as_ref().is_some_and(|claim| claim.source != *source);
    let others: Vec<Arc<Entry>> = snapshot.iter().filter(owned).cloned().collect();
    judge(loaded, resolved, &others, lints)
}

/// What is wrong with manifests: rules first, and where they hold, lints.
fn judge(loaded: Loaded, mut resolved: Resolved, others: &[Arc<Entry>], lints: &LintLevels) -> (Planned, Resolved) {
    let mut planned = Planned {
        diagnostics: loaded.diagnostics,
        plan: None,
        desired: BTreeMap::new(),
        left_out: Vec::new(),
        files: loaded.files,
        keys: HashMap::new(),
    };
    let with_token = resolved.desired.values().filter(|wanted| wanted.token_file.is_some());
    let origins =
        with_token.filter_map(|wanted| Some((wanted.key.clone(), resolved.origins.get(&wanted.key)?.clone())));
    planned.keys.extend(origins);
    planned.diagnostics.extend(resolved.diagnostics.iter().cloned());
    // Lints look at the whole; of a part they would say what is not so.
    if !planned.has_errors() {
        let (found, denied) = findings(&resolved, others, lints);
        planned.diagnostics.extend(found);
        resolved.faulty.extend(denied);
    }
    sort(&mut planned.diagnostics);
    (planned, resolved)
}

/// What lints find, at the levels that manifests, the configuration or the catalogue set, in this order; and the
/// resources that a denied finding is about.
fn findings(resolved: &Resolved, others: &[Arc<Entry>], lints: &LintLevels) -> (Vec<Diagnostic>, Vec<Key>) {
    let world = World {
        desired: &resolved.desired,
        others,
        manifests: &resolved.facts,
        now: mint::now(),
        allowed_labels: lints.allowed_labels.as_ref(),
    };
    let level = |finding: &Finding| {
        let own = resolved.levels.get(&finding.subject).and_then(|levels| levels.get(finding.lint));
        let default = || lint::find(finding.lint).map_or(Level::Warn, |lint| lint.default);
        own.or_else(|| lints.levels.get(finding.lint)).copied().unwrap_or_else(default)
    };
    let mut denied = Vec::new();
    let shown: Vec<Diagnostic> = lint::run(&world)
        .into_iter()
        .filter_map(|finding| {
            let severity = match level(&finding) {
                Level::Allow => return None,
                Level::Warn => Severity::Warning,
                Level::Deny => Severity::Error,
            };
            if let (Severity::Error, Subject::Resource(key)) = (severity, &finding.subject) {
                denied.push(key.clone());
            }
            let origin = resolved.origin(&finding.subject)?;
            let place = match finding.in_document {
                true => origin.document().place(&finding.path, finding.aim),
                false => origin.place(&finding.path, finding.aim),
            };
            let related = finding.related.iter().filter_map(|(subject, path, label)| {
                Some((resolved.origin(subject)?.place(path, Aim::Value), (*label).to_owned()))
            });
            let cure = lint::find(finding.lint).map(|lint| lint.cure).unwrap_or_default();
            Some(Diagnostic {
                severity,
                related: related.collect(),
                ..Diagnostic::error(Name::Lint(finding.lint), finding.message.clone()).help(cure).at(place)
            })
        })
        .collect();
    (shown, denied)
}

fn at_their_lines(refusal: Refusal, resolved: &Resolved) -> Vec<Diagnostic> {
    let Refusal { key, faults } = refusal;
    let origin = resolved.origins.get(&key);
    let placed = faults.into_iter().map(|fault| match origin {
        Some(origin) => origin.diagnostic(fault),
        None => Diagnostic { help: fault.help.clone(), ..Diagnostic::error(fault.code, about(&key, &fault)) },
    });
    placed.collect()
}

/// A fault's message with the resource that it is about; one that names the resource needs no other name in front.
fn about(key: &Key, fault: &Fault) -> String {
    let subject = key.to_string();
    if fault.message.contains(&subject) {
        return fault.message.clone();
    }
    let place = if fault.path == FieldPath::root() { String::new() } else { format!(" at {}", fault.path) };
    format!("{subject}{place}: {}", fault.message)
}

/// Commits a plan as one revision, and tells which.
pub fn apply(store: &Store, plan: &Plan, author: Author, tokens: &mut dyn Tokens) -> Result<u64, ApplyError> {
    let applied = with_hashes(plan, tokens).and_then(|operations| {
        let commit = Commit { base: Some(plan.base), operations, author, at: mint::now() };
        store.commit(commit).map(|committed| committed.snapshot.revision).map_err(ApplyError::Commit)
    });
    if applied.is_err() {
        tokens.take_back();
    }
    applied
}

/// Measures a reconciliation that a server has made (D33).
pub fn measure(result: &'static str, began: Instant) {
    metrics::histogram!("edgewright_reconcile_duration_seconds").record(began.elapsed().as_secs_f64());
    metrics::counter!("edgewright_reconcile_total", "result" => result).increment(1);
}

/// Why a plan was not applied; nothing has changed.
#[derive(Debug)]
pub enum ApplyError {
    /// The store refused it or failed.
    Commit(CommitError),
    /// A token could not be written where the manifest wants it.
    TokenFile(PathBuf, std::io::Error),
    /// Nobody has given the hash of a new key's token.
    NoTokenHash(Id),
}

impl ApplyError {
    /// The error for a person.
    pub fn diagnostic(&self) -> Diagnostic {
        match self {
            ApplyError::TokenFile(path, error) => Diagnostic::error(
                Code::Unreadable,
                format!("the token cannot be written to {}: {error}", path.display()),
            )
            .help("there must be no such file yet, in a folder that can be written to; nothing was changed"),
            ApplyError::NoTokenHash(key) => {
                Diagnostic::error(Code::Required, format!("the new API key {key} needs the hash of its token"))
            }
            ApplyError::Commit(CommitError::Failed(error)) => {
                Diagnostic::error(error.code, error.message.clone()).help(error.code.info().cure)
            }
            ApplyError::Commit(error @ CommitError::Stale { .. }) => {
                Diagnostic::error(Code::Stale, error.to_string()).help("plan again and review the new plan")
            }
            ApplyError::Commit(CommitError::Refused(refusal)) => {
                let fault = refusal.faults.first();
                let code = fault.map_or(Code::Internal, |fault| fault.code);
                Diagnostic::error(code, fault.map(|fault| about(&refusal.key, fault)).unwrap_or_default())
                    .help(code.info().cure)
            }
        }
    }
}
