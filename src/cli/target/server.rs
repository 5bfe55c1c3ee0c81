//! A store behind a running server, reached through `/reconciliations`.

mod review;

use ureq::http::Method;

use super::api_response::{RequestEffect, SendError};
use super::client::ApiClient;
use super::error_response::foreign_response;
use super::proposal::{AppliedPlan, PlanFile, Proposal, Target};
use super::server_args::ServerArgs;
use super::sources::sources_of_server;
use super::upload::{Texts, UploadFiles};
use crate::cli::manifests::source_args::report_source;
use crate::cli::output::{diagnostics, during};
use crate::cli::prelude::*;
use crate::manifest::Loaded;
use crate::manifest::tree::collect;
use crate::model::diagnostics::diagnostic::sort;
use crate::model::{Cause, SourceFile};
use crate::plan::format::json::{Item, ReportDocument};
use crate::plan::{Effect, SavedPlan};
use crate::reconcile::run::token::{TokenFiles, Tokens};
use crate::reconcile::validate_loaded;
use crate::server::http::body::Limits;
use crate::server::operations::reconciliation::wire::{
    FOLLOWED_HELP, ReconciliationRequest, ReconciliationRun, followed_message,
};
use crate::syntax::text::printable_path;

/// Plans and applies through a server. Errors in the files alone are reported before anything is sent.
pub(crate) struct ServerTarget {
    client: ApiClient,
    url: String,
    options: Options,
    /// Whether the plan is applied after it was shown.
    pub applies: bool,
    /// What a request has besides the manifests and their options, such as what else to return than the plan.
    pub asked: ReconciliationRequest,
    proposed: Option<LastProposal>,
}

struct LastProposal {
    files: UploadFiles,
    /// New API keys and the paths of their token files.
    keys: Vec<(Id, PathBuf)>,
    outcome: String,
    /// The plan as it was shown, to say how another one differs.
    shown: Option<SavedPlan>,
}

impl ServerTarget {
    /// Prepares a client that shows plans. Sends nothing yet.
    pub(crate) fn new(url: &str, args: &ServerArgs, mut options: Options) -> Result<Self, Failure> {
        let client = args.connect(url)?;
        if let Some(source) = args.source() {
            options.source = source.to_owned();
        }
        Ok(Self {
            url: client.address("/reconciliations"),
            client,
            options,
            applies: false,
            asked: ReconciliationRequest::default(),
            proposed: None,
        })
    }

    /// The dry run, still without files.
    fn request(&self) -> ReconciliationRequest {
        let lints = &self.options.lints;
        let details = self.options.tree.commit_details();
        let (name, email) = details.author.map(|author| (author.name, author.email)).unwrap_or_default();
        let levels = lints.levels.iter().map(|(name, level)| (name.clone(), level.as_str().to_owned()));
        ReconciliationRequest {
            dry_run: true,
            source: self.options.source.clone(),
            prune: self.options.prune,
            isolate: self.options.isolate,
            recreate_ids: self.options.recreate_ids,
            max_deletes: self.options.budget,
            commit: self.options.tree.commit().unwrap_or_default(),
            commit_author_name: name,
            commit_author_email: email,
            commit_message: details.message.unwrap_or_default(),
            lints: levels.collect(),
            allowed_labels: lints.allowed_labels.clone(),
            certificate_expiry_days: lints.certificate_expiry_days,
            assume_values: self.options.tree.assumes_values(),
            behaviour: self.options.behaviour,
            ..self.asked.clone()
        }
    }

    /// Sends a request with the files, and repeats it until the server has all texts. `doing` is for the progress.
    fn exchange(
        &self,
        mut request: ReconciliationRequest,
        files: &mut UploadFiles,
        doing: &str,
    ) -> Result<ReconciliationRun, SendError> {
        let mut texts = files.first_texts();
        let mut label = doing.to_owned();
        loop {
            request.files = files.listed(&texts);
            match during(&label, || self.send(&request))? {
                ServerResponse::Run(run) => return Ok(*run),
                ServerResponse::Missing(digests) => {
                    request.files = files.listed(&Texts::DigestsOnly);
                    let size = json::bytes(&request, Secrets::Revealed).map_or(0, |body| body.len());
                    let room = Limits::MANIFESTS.bytes.saturating_sub(size);
                    let next = files.next_texts(&digests, room, &self.url).map_err(SendError::Refused)?;
                    label = next.progress.unwrap_or_else(|| doing.to_owned());
                    texts = next.texts;
                }
                ServerResponse::DigestsUnknown => {
                    files.send_whole();
                    texts = Texts::All;
                }
            }
        }
    }

    fn send(&self, request: &ReconciliationRequest) -> Result<ServerResponse, SendError> {
        let body = json::bytes(request, Secrets::Revealed).map_err(|error| SendError::Refused(error.into()))?;
        if body.len() > Limits::MANIFESTS.bytes {
            let (size, most) = (body.len() >> 20, Limits::MANIFESTS.bytes >> 20);
            let message = format!("the manifests and their values are too large: {size} MiB, the limit is {most} MiB");
            let help = "split the manifests into several sources, or run reconcile on the store's machine";
            return Err(SendError::Refused(Diagnostic::error(Code::BodyTooLarge, message).help(help).into()));
        }
        let effect = if request.dry_run { RequestEffect::None } else { RequestEffect::Change };
        let response = self.client.send(&Method::POST, &self.url, Some(&body), effect)?;
        // Neither answer is possible once the server has started on the request.
        let has_digests = request.files.iter().any(|file| file.text.is_none());
        if has_digests && let Some(digests) = response.missing_files() {
            return Ok(ServerResponse::Missing(digests.to_vec()));
        }
        if let Some(failure) = self.too_old(request, &response) {
            return Err(SendError::Refused(failure));
        }
        // A fault in a manifest has the field `/files/N/text`.
        let is_digest = |field: &str| field.starts_with("/files/") && field.ends_with("/digest");
        if has_digests && response.rejects_field(is_digest) {
            return Ok(ServerResponse::DigestsUnknown);
        }
        response.report().map(|run| ServerResponse::Run(Box::new(run)))
    }

    /// Checks loaded manifests on this machine. Also returns whether they have errors that stay errors whatever
    /// the store has. Other errors are left out.
    ///
    /// Only the server can resolve every reference: another source may own the target. It also has the edges of other
    /// sources, of which the local surrounding manifests may be an old copy. Until then, its report is the correct one for
    /// denied findings, too.
    fn check(&self, loaded: &Loaded) -> (PlanResult, bool) {
        let mut validated = validate_loaded(loaded, &self.options.lints, &self.options.source);
        // The server runs the tests among everything else that it has.
        validated.diagnostics.retain(|it| it.code != Name::Code(Code::RouteTestFailed));
        // The server judges invariants among everything else that it has.
        let of_invariants = [Code::InvariantBroken, Code::InvariantUnproven].map(Name::Code);
        validated.diagnostics.retain(|it| !of_invariants.contains(&it.code));
        let unresolved = [Code::UnknownReference, Code::NotDelegated, Code::RequiredModule].map(Name::Code);
        let is_resolved = validated.diagnostics.iter().all(|it| !unresolved.contains(&it.code));
        let counts = |code: Name| is_resolved || (!unresolved.contains(&code) && !matches!(code, Name::Lint(_)));
        let is_local_error = |it: &Diagnostic| it.severity == Severity::Error && counts(it.code);
        let stops = validated.diagnostics.iter().any(is_local_error);
        // An error that the server may not have must not be reported beside those that stop the request.
        let is_unknown_set = |it: &Diagnostic| it.cause == Some(Cause::UnknownModuleSet);
        let may_pass = |it: &Diagnostic| it.severity == Severity::Error && !counts(it.code) && !is_unknown_set(it);
        validated.diagnostics.retain(|it| !may_pass(it));
        (validated, stops)
    }

    /// A report about the source that the server gets.
    fn of_source(&self, report: Report) -> Report {
        Report { source: report_source(&self.options.source), ..report }
    }

    /// Converts the server's run into a proposal, with places in the local files.
    fn proposal(&mut self, mut run: ReconciliationRun, files: UploadFiles, validated: PlanResult) -> Proposal {
        let report = self.of_source(to_report(&mut run.report, &[&validated]));
        let wanted = |name: &str| {
            let mut keys = validated.desired.values().filter(|wanted| wanted.key.kind == Kind::ApiKey);
            keys.find(|wanted| wanted.claim.name == name)
        };
        let changes = report.plan.iter().flat_map(|plan| &plan.changes);
        let created = changes.filter(|change| matches!(change.effect, Effect::Create | Effect::Replace));
        let keys = created.filter(|change| change.kind == Kind::ApiKey.info().name);
        let keys: Vec<_> = keys.filter_map(|change| Some((Id::new(&change.id), wanted(&change.name)?))).collect();
        let unwritable = keys.iter().filter_map(|(_, wanted)| validated.token_fault(&wanted.key)).collect();
        let keys = keys.into_iter().filter_map(|(id, wanted)| Some((id, wanted.token_file.clone()?))).collect();
        let ReconciliationRun { outcome, left_out, saved_plan: saved, traced, routing, .. } = run;
        self.proposed = Some(LastProposal { files, keys, outcome, shown: saved.clone() });
        Proposal { report, left_out, saved, unwritable, traced, routing }
    }

    /// The help for a source that the server follows: where its manifests are, if the caller may see that.
    fn followed_help(&self) -> String {
        let listed = self.client.sources(Some(&self.options.source)).ok();
        let place = listed.and_then(|list| list.sources.into_iter().next()).map(|source| match source.repository {
            repository if repository.is_empty() => source.paths.join(" "),
            repository => repository,
        });
        match place.filter(|place| !place.is_empty()) {
            Some(place) => {
                format!("change `{}` on the server; use `plan` here, or another --source", printable_path(&place))
            }
            None => FOLLOWED_HELP.to_owned(),
        }
    }

    /// Plans once more, and shows how the plan differs from the one that was shown before.
    fn show_difference(&self, mut proposed: LastProposal) {
        let now = self.exchange(self.request(), &mut proposed.files, "Planning").ok().and_then(|run| run.saved_plan);
        if let (Some(shown), Some(now)) = (proposed.shown, now) {
            diagnostics::difference(&shown.diff(&now));
        }
    }

    fn send_apply(&self, proposed: &mut LastProposal, tokens: &mut TokenFiles) -> Result<ReconciliationRun, SendError> {
        let mut request =
            ReconciliationRequest { dry_run: false, expect: Some(proposed.outcome.clone()), ..self.request() };
        for (key, file) in &proposed.keys {
            match tokens.hash(key, file) {
                Ok(hash) => request.token_hashes.insert(key.to_string(), hash),
                Err(error) => return Err(SendError::Refused(error.diagnostic().into())),
            };
        }
        self.exchange(request, &mut proposed.files, "Applying")
    }
}

/// The report that a server sent, with places in the local files.
pub(crate) fn to_report(sent: &mut ReportDocument, validated: &[&PlanResult]) -> Report {
    let files = || validated.iter().flat_map(|validated| &validated.files);
    let known: HashMap<&str, Arc<SourceFile>> =
        files().map(|file| (file.source.name.as_str(), Arc::clone(&file.source))).collect();
    // For an unset variable or unreadable file, the local diagnostic says more: the values are read on this machine.
    let here = |it: Diagnostic| {
        let of_value = matches!(it.code, Name::Code(Code::EnvUnset | Code::FileUnreadable));
        let same = |own: &&Diagnostic| of_value && own.place.is_some() && own.position() == it.position();
        let mut own = validated.iter().flat_map(|validated| &validated.diagnostics);
        own.find(same).cloned().unwrap_or(it)
    };
    let diagnostics = |items: &[Item]| items.iter().map(|item| here(item.diagnostic(&known))).collect();
    Report {
        command: "plan",
        diagnostics: diagnostics(&sent.diagnostics),
        refusals: diagnostics(&sent.refusals),
        plan: sent.plan.take(),
        refused: sent.refused_plan.take(),
        tests: sent.tests.take(),
        proofs: sent.proofs.take(),
        page: sent.page.take(),
        files: validated.iter().map(|validated| validated.own_files()).sum(),
        first_file: files().next().map(|file| file.source.name.clone()),
        ..Report::default()
    }
}

enum ServerResponse {
    Run(Box<ReconciliationRun>),
    /// The server lacks the texts of these digests, and did nothing.
    Missing(Vec<String>),
    /// The server is older than digests, and did nothing.
    DigestsUnknown,
}

/// The help for a plan that may have been applied.
const SEE_PLAN: &str = "run `edgewright plan` to see whether the changes were applied";

impl Target for ServerTarget {
    fn propose(&mut self, document: Option<PlanFile<'_>>) -> Result<Proposal, Failure> {
        if let Some(PlanFile::LikeReviewed(reviewed)) = document
            && reviewed.is_masked()
        {
            // So that the server returns plans in the same form.
            self.asked.expect = Some(reviewed.outcome()?);
        }
        let (loaded, files) = during("Reading", || collect(&self.options.tree));
        let (validated, stops) = self.check(&loaded);
        if (stops && !self.options.isolate) || (validated.has_errors() && files.is_empty()) {
            return Ok(Proposal { report: self.of_source(validated.report("plan")), ..Proposal::default() });
        }
        // Unreadable files are not sent. With pruning, their resources would be deleted.
        let is_unread = |it: &&Diagnostic| matches!(it.cause, Some(Cause::NotRead | Cause::NoContent));
        let unread: Vec<Diagnostic> = validated.diagnostics.iter().filter(is_unread).cloned().collect();
        self.options.prune &= unread.is_empty();
        let mut files = UploadFiles::new(files);
        let run = self.exchange(self.request(), &mut files, "Planning").map_err(|error| error.failure(SEE_PLAN))?;
        // Without the outcome, the server could not check that it applies this very plan.
        if run.report.plan.is_some() && run.outcome.is_empty() && !self.options.tree.assumes_values() {
            return Err(foreign_response(&self.url, 200));
        }
        if run.followed && self.applies {
            // The server would refuse the plan after it was shown and, perhaps, approved.
            let message = followed_message(&self.options.source);
            return Err(Diagnostic::error(Code::Conflict, message).help(self.followed_help()).into());
        }
        let mut proposal = self.proposal(run, files, validated);
        proposal.report.diagnostics.extend(unread);
        sort(&mut proposal.report.diagnostics);
        Ok(proposal)
    }

    fn sources(&self) -> BTreeSet<String> {
        sources_of_server(&self.client)
    }

    fn apply(&mut self, hid_secrets: bool) -> Result<AppliedPlan, Failure> {
        let Some(mut proposed) = self.proposed.take() else { return Ok(AppliedPlan::as_shown(0)) };
        let mut tokens = TokenFiles::default();
        match self.send_apply(&mut proposed, &mut tokens) {
            Ok(run) => AppliedPlan::from_report(run.report, hid_secrets, &self.url, SEE_PLAN),
            Err(SendError::Refused(failure)) => {
                tokens.take_back();
                if failure.exit == Exit::Stale {
                    self.show_difference(proposed);
                }
                Err(failure)
            }
            // Keep the token files: their keys may exist by now.
            Err(error @ SendError::Unknown(..)) => Err(error.failure(SEE_PLAN)),
        }
    }
}
