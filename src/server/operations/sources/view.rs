//! The responses of `/sources`, for the server and for `edgewright status`.

use std::path::Path;
use std::time::SystemTime;

use crate::model::diagnostics::Check;
use crate::model::key::segment;
use crate::model::{DriftedResource, Severity};
use crate::plan::format::json::{Item, Spot};
use crate::plan::proof_report::{InvariantProof, ProofReport};
use crate::reconcile::sync_loop::condition::{Condition, Reason, Status};
use crate::reconcile::sync_loop::status::{RunFindings, SourceStatus, SyncRecord};
use crate::reconcile::sync_loop::suspension::Suspension;
use crate::server::prelude::*;
use crate::store::history::after_rollback::AppliedManifests;

/// The most invariants of a source that are listed.
const MOST_UNPROVEN: usize = 20;

/// A source that the server follows or that owns resources, and its status.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SourceView {
    /// The name of the source.
    pub name: String,
    /// The URI.
    pub uri: String,
    /// The state in one word.
    pub state: SourceState,
    /// When the source got into this state. A restart does not change that. If nobody follows the source, when it was last
    /// applied; empty if that is not known.
    pub since: String,
    /// The conditions of the source.
    pub conditions: Vec<ConditionView>,
    /// The files and folders of the manifests; in a repository, the path inside it.
    pub paths: Vec<String>,
    /// The path or URL of the Git repository that is read without a work tree, or empty.
    pub repository: String,
    /// The branch, tag or commit of the repository, or empty.
    #[serde(rename = "ref")]
    pub revision: String,
    /// How the server handles drift: `enforce`, `warn` or `off`; empty if nobody follows the source.
    pub drift: String,
    /// The range of versions whose highest tag is read instead of a `ref`, or empty.
    pub semver: String,
    /// How often the source is synced without an event, in seconds; 0 if nobody follows it.
    pub interval_seconds: u64,
    /// The last sync; null before the first one has finished.
    pub last_attempt: Option<SyncView>,
    /// The last sync after which the store matched the manifests, or the first one that applied a later commit without what
    /// drifted or is invalid. From the history after a restart or a rollback, and if nobody follows the source; null if there
    /// was none.
    pub last_applied: Option<SyncView>,
    /// The API key of the client that applied `last_applied`, if nobody follows the source; null if the server or the command
    /// line applied it.
    #[serde(default)]
    pub applied_by: Option<AppliedBy>,
    /// The suspension, if the source is suspended: its manifests are planned but not applied.
    pub suspension: Option<SuspensionView>,
    /// In the response to a suspension, the one that it replaces, and to a resumption, the one that it ends; null everywhere
    /// else.
    pub replaced_suspension: Option<SuspensionView>,
    /// When the next sync is due, also without an event; empty during the first one, and if nobody follows the source.
    pub next_sync_at: String,
    /// The number of the sync that began last, counted since the server follows the source; 0 if nobody does.
    #[serde(default)]
    pub syncs_begun: u64,
    /// The number of the last sync that has ended. A requested sync has ended once this is greater than `syncs_begun`
    /// of the response.
    #[serde(default)]
    pub syncs_ended: u64,
    /// The numbers of resources and findings.
    pub counts: SourceCounts,
    /// The first hundred diagnostics of the last run, errors first.
    pub diagnostics: Vec<Item>,
    /// The number of diagnostics that are not listed.
    pub diagnostics_omitted: usize,
    /// The first twenty resources that others have changed and that are not reverted, with who changed them. One that the
    /// manifests have changed too counts as pending.
    pub drifted: Vec<DriftedResource>,
    /// If it is not known what others have changed before a revision, that revision.
    #[serde(skip)]
    pub drift_since: Option<u64>,
    /// The values that are not in the source's commits: their names, never their content.
    #[serde(default)]
    pub values: Vec<SourceValueView>,
}

/// The API key of a client that applied a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AppliedBy {
    /// The ID of the key; `certificate:` or `person:` and a name if there was a certificate or a person instead.
    pub key_id: String,
    /// The description of the key, or empty if it has none or was deleted.
    pub key_description: String,
    /// The owner of the key.
    pub owner_id: String,
}

impl AppliedBy {
    fn new((key, owner): &(Id, Id), snapshot: &Snapshot) -> Self {
        let key_description = snapshot.key_description(key).to_owned();
        Self { key_id: key.to_string(), key_description, owner_id: owner.to_string() }
    }
}

/// A value that a source takes from its folder on the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SourceValue")]
pub(crate) struct SourceValueView {
    /// The path in the folder, as in the manifests.
    pub name: String,
    /// When the file was last changed.
    pub changed_at: String,
}

impl SourceValueView {
    fn new((name, changed): (String, SystemTime)) -> Self {
        let changed = Timestamp::try_from(changed).and_then(|changed| Timestamp::from_second(changed.as_second()));
        Self { name, changed_at: changed.map(|changed| changed.to_string()).unwrap_or_default() }
    }
}

/// The state of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) enum SourceState {
    /// The store matches the manifests.
    Synced,
    /// The store matches only a part of the manifests, or they are held by a rollback.
    OutOfSync,
    /// The manifests have errors; the last good state stays.
    Invalid,
    /// A safety limit refuses the plan, or the commit lacks the signature of a key that may sign, or does not descend from
    /// the one that was applied last.
    Refused,
    /// The plan could not be applied, the repository could not be fetched, or the loop is stuck or has ended.
    Failed,
    /// The source is suspended: nothing is applied.
    Suspended,
    /// Others have changed resources of the source, which are left as they are or not reverted yet.
    Drifted,
    /// The first run has not finished, or nobody follows the source.
    #[default]
    Unknown,
}

/// The suspension of a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SuspensionView {
    /// The reason that the caller gave.
    pub reason: String,
    /// The owner of the API key that suspended it, the name of a person, `command line` or `configuration file`.
    pub by: String,
    /// The description of the newest key of the owner that has one, or empty.
    #[serde(default)]
    pub by_description: String,
    /// When it began.
    pub since: String,
    /// When the suspension ends; empty if it has no end.
    pub until: String,
}

/// A suspension to begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceSuspend {
    /// The reason, shown in the status of the source.
    #[schemars(length(min = 1, max = 1000))]
    pub reason: String,
    /// When the suspension ends, such as `2027-01-31T18:00:00Z`; empty if it has no end.
    #[serde(default)]
    pub until: String,
    /// After how many seconds it ends instead, by the clock of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub for_seconds: Option<u32>,
}

impl Check for SourceSuspend {}

/// How a source is resumed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceResume {
    /// The commit that the source continues from, although it does not descend from the last applied one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 40, max = 40))]
    pub accept_commit: Option<String>,
}

/// A condition of a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Condition")]
pub(crate) struct ConditionView {
    /// The type of the condition, `Synced`.
    #[serde(rename = "type")]
    pub kind: String,
    /// `Synced`, `OutOfSync` or `Unknown`.
    pub status: String,
    /// The reason in one word.
    pub reason: String,
    /// The reason in one sentence.
    pub message: String,
    /// When the source got into the state of the reason.
    pub last_transition_time: String,
    /// The revision of the store after the last run.
    pub observed_revision: u64,
}

/// A sync of a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Sync")]
pub(crate) struct SyncView {
    /// When it ended.
    pub at: String,
    /// The Git commit of the manifests, or empty.
    pub commit: String,
    /// The tag of the commit that `semver` chose, or empty.
    pub tag: String,
    /// The revision of the store then.
    pub revision: u64,
}

impl SyncView {
    fn new(sync: &SyncRecord) -> Self {
        Self {
            at: sync.at.to_string(),
            commit: sync.commit.clone().unwrap_or_default(),
            tag: sync.tag.clone().unwrap_or_default(),
            revision: sync.revision,
        }
    }
}

/// The numbers of resources and findings of a source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct SourceCounts {
    /// Resources that the source owns.
    pub owned: usize,
    /// Resources that the manifests declare.
    pub declared: usize,
    /// Manifest files.
    pub files: usize,
    /// Requests in the route tests of the last run.
    #[serde(default)]
    pub tests: usize,
    /// Tested requests with another outcome than expected, also in tests that are informing only.
    #[serde(default)]
    pub failed_tests: usize,
    /// Errors.
    pub errors: usize,
    /// Warnings.
    pub warnings: usize,
    /// Resources to create: planned, but not applied.
    pub pending_create: usize,
    /// Resources to change, replace or adopt.
    pub pending_change: usize,
    /// Resources to delete.
    pub pending_delete: usize,
    /// Resources that only others have changed and that are not reverted. They are not pending.
    pub drifted: usize,
}

impl SourceCounts {
    /// The numbers after a sync. `further_warnings` are not among its findings.
    fn new(findings: &RunFindings, owned: usize, further_warnings: usize) -> Self {
        let pending = findings.pending;
        Self {
            owned,
            declared: findings.declared,
            files: findings.files,
            tests: findings.tests.requests,
            failed_tests: findings.tests.failures,
            errors: findings.errors,
            warnings: findings.warnings + further_warnings,
            pending_create: pending.create,
            pending_change: pending.change + pending.replace + pending.adopt,
            pending_delete: pending.delete,
            ..Self::default()
        }
    }

    /// The counts of planned and unapplied changes, with their words.
    pub(in crate::server) fn pending(&self) -> [(usize, &'static str); 3] {
        [(self.pending_create, "to create"), (self.pending_change, "to change"), (self.pending_delete, "to delete")]
    }
}

/// The sources of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct SourceList {
    pub sources: Vec<SourceView>,
    /// The URI of the list.
    pub uri: String,
}

impl SourceView {
    /// The status of a source that owns so many resources, from what was observed of it. `others` are all sources of the server.
    pub(super) fn followed(
        handle: &SourceHandle,
        (condition, status): (&Condition, &SourceStatus),
        others: &[(&SourceHandle, &SourceStatus)],
        owned: usize,
        state: &Snapshot,
        base_url: &str,
    ) -> Self {
        let findings = &status.findings;
        let suspension = handle.suspension();
        let location = &handle.settings.location;
        let shown = |path: &Path| path.display().to_string();
        let claimed = others.iter().flat_map(|(other, status)| {
            let own = status.findings.ownership_conflicts.iter().filter(move |clash| clash.owner == handle.source);
            own.map(move |clash| clash_of(&other.source, &clash.resource))
        });
        let claimed: Vec<Item> = claimed.collect();
        let listed = findings.diagnostics.iter().map(|(_, item)| item);
        let counts = SourceCounts::new(findings, owned, claimed.len() + status.notices.len());
        Self {
            name: handle.source.clone(),
            uri: format!("{base_url}/sources/{}", segment(&handle.source)),
            state: SourceState::new(condition, suspension.as_ref()),
            since: suspension.as_ref().map_or(condition.last_transition_time, |it| it.since).to_string(),
            paths: location.paths.iter().map(|path| shown(path)).collect(),
            repository: location.repository.clone(),
            revision: location.revision.clone(),
            drift: handle.settings.drift.to_string(),
            semver: location.semver.clone(),
            interval_seconds: handle.settings.interval.as_secs(),
            last_attempt: status.attempt.as_ref().map(SyncView::new),
            last_applied: status.applied.as_ref().map(SyncView::new),
            suspension: suspension.map(|suspension| SuspensionView::new(suspension, state)),
            next_sync_at: status.next_sync.as_ref().map(Timestamp::to_string).unwrap_or_default(),
            syncs_begun: status.begun,
            syncs_ended: status.ended,
            counts,
            diagnostics_omitted: findings.omitted(),
            diagnostics: listed.chain(&status.notices).cloned().chain(claimed).collect(),
            values: handle.settings.values.names().into_iter().map(SourceValueView::new).collect(),
            conditions: vec![ConditionView::new(condition)],
            ..Self::default()
        }
    }

    /// The status of a source that owns resources and that nobody follows. `last` is the last revision that a client applied
    /// and that is in effect, and `sent` the Unix time of the last successful sync that one has sent.
    pub(super) fn unfollowed(
        source: &str,
        owned: usize,
        snapshot: &Snapshot,
        last: Option<&AppliedManifests>,
        sent: Option<i64>,
        base_url: &str,
    ) -> Self {
        let sent = sent.and_then(|second| Timestamp::from_second(second).ok());
        let by = sent.map(|sent| format!("; a client last synced it at {sent}")).unwrap_or_default();
        let since = last.map(|last| last.at.to_string()).unwrap_or_default();
        let through = last.and_then(|last| last.through.as_ref());
        let resources = number_of(owned, "resource");
        let message = format!(
            "the server does not follow the source, which owns {resources}{by}. To follow it, add it to \
             `sources` in the configuration file; to delete its resources, run `edgewright destroy --source {}`",
            printable(source)
        );
        let condition = ConditionView {
            kind: "Synced".to_owned(),
            status: Status::Unknown.to_string(),
            reason: Self::NOT_FOLLOWED.to_owned(),
            message,
            last_transition_time: since.clone(),
            observed_revision: snapshot.revision,
        };
        Self {
            name: source.to_owned(),
            uri: format!("{base_url}/sources/{}", segment(source)),
            since,
            conditions: vec![condition],
            last_applied: last.map(|last| SyncView::new(&last.into())),
            applied_by: through.map(|through| AppliedBy::new(through, snapshot)),
            counts: SourceCounts { owned, ..SourceCounts::default() },
            ..Self::default()
        }
    }

    /// The status of a source of the configuration whose loop has not started, from that of one that nobody follows.
    pub(super) fn unstarted(mut self, reason: &str) -> Self {
        for condition in &mut self.conditions {
            condition.reason = Self::NOT_STARTED.to_owned();
            condition.message = format!("not started: {reason}. The server tries again every few seconds");
            condition.last_transition_time.clear();
        }
        (self.state, self.applied_by) = (SourceState::Failed, None);
        self.since.clear();
        self
    }

    /// Adds the invariants of the source that are not proven.
    pub(super) fn with_invariants(mut self, report: &ProofReport) -> Self {
        let own = report.invariants.iter().filter(|it| it.source.as_deref() == Some(self.name.as_str()));
        let found: Vec<Item> = own.filter_map(unproven).take(MOST_UNPROVEN).collect();
        self.counts.warnings += found.len();
        self.diagnostics.extend(found);
        self
    }

    /// The reason of a source that nobody follows.
    pub(crate) const NOT_FOLLOWED: &str = "NotFollowed";
    /// The reason of a source that the server would follow if its parts had started.
    const NOT_STARTED: &str = "NotStarted";

    /// The commit of the last sync, whose findings these are; empty if there is none.
    pub(in crate::server) fn attempted_commit(&self) -> &str {
        self.last_attempt.as_ref().map_or("", |sync| sync.commit.as_str())
    }

    /// Whether the server follows the source, or has it in its configuration to do so.
    pub(crate) fn is_followed(&self) -> bool {
        self.conditions.iter().all(|condition| condition.reason != Self::NOT_FOLLOWED)
    }

    /// Whether the source has a loop, which knows of its drift.
    pub(in crate::server) fn has_loop(&self) -> bool {
        self.is_followed() && self.conditions.iter().all(|condition| condition.reason != Self::NOT_STARTED)
    }
}

impl SourceState {
    /// The state of a source with this condition and suspension.
    pub(crate) fn new(condition: &Condition, suspension: Option<&Suspension>) -> Self {
        match condition.reason.state() {
            _ if suspension.is_some() => SourceState::Suspended,
            Reason::Starting => SourceState::Unknown,
            Reason::InSync => SourceState::Synced,
            Reason::Invalid => SourceState::Invalid,
            Reason::Refused => SourceState::Refused,
            Reason::Failed => SourceState::Failed,
            Reason::Drifted => SourceState::Drifted,
            _ => SourceState::OutOfSync,
        }
    }
}

impl fmt::Display for SourceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl SuspensionView {
    /// Describes a suspension. `state` has the present descriptions of API keys.
    pub(crate) fn new(suspension: Suspension, state: &Snapshot) -> Self {
        Self {
            reason: suspension.reason,
            by_description: rules::owner_description(state, &suspension.by).to_owned(),
            by: suspension.by,
            since: suspension.since.to_string(),
            until: suspension.until.map(|until| until.to_string()).unwrap_or_default(),
        }
    }
}

impl ConditionView {
    fn new(condition: &Condition) -> Self {
        Self {
            kind: "Synced".to_owned(),
            status: condition.status.to_string(),
            reason: condition.reason.to_string(),
            message: condition.message.clone(),
            last_transition_time: condition.last_transition_time.to_string(),
            observed_revision: condition.observed_revision,
        }
    }
}

/// The warning about an invariant for which a request shows that it is not proven.
fn unproven(proof: &InvariantProof) -> Option<Item> {
    let request = proof.requests.first()?;
    let (code, verdict) = match request.certain {
        true => (Code::InvariantBroken, "does not hold"),
        false => (Code::InvariantUnproven, "is not proven"),
    };
    let message = format!("the invariant `{}` {verdict}: {}", printable(&proof.invariant), request.line());
    Some(Item { invariant: Some(proof.finding(request)), ..warning(code, message, format!("way: {}", request.way)) })
}

/// The warning of the source that owns a resource which another one declares, too. The other one has the error.
fn clash_of(source: &str, resource: &str) -> Item {
    let message = format!("source `{source}` declares {resource}, which this source owns");
    warning(Code::OwnerConflict, message, "remove the resource from one of the two sources".to_owned())
}

/// A warning without a place in the manifests.
fn warning(code: Code, message: String, help: String) -> Item {
    let (severity, spot, related) = (Severity::Warning, Spot::default(), Vec::new());
    Item { code: code.to_string(), severity, message, help: Some(help), spot, related, invariant: None }
}
