//! `edgewright prove`.

use super::review::ReviewArgs;
use super::source_args::{Loading, ReportedSource, report_source};
use super::validate::{is_unjudged, judged};
use crate::cli::command_prelude::*;
use crate::cli::input::option_origins::OptionOrigins;
use crate::model::claim::SURROUNDING_OWNER;
use crate::plan::Detail;
use crate::plan::format::verdict::{answers, unseen_lines};
use crate::plan::proof_report::{InvariantProof, ProofReport};
use crate::reconcile::Prepared;
use crate::server::operations::proofs::PATH;
use crate::server::operations::reconciliation::wire::ReconciliationRequest;

/// What is done to manifests with a store or server.
const AMONG: &str = "Judging the manifests among the resources of";
/// How to have invariants if neither manifests nor a store or server have any.
const IN_OTHERS: &str = "declare an `Invariant`, or add --with and the folder that declares them";

/// Show whether the invariants hold for all requests.
///
/// For each invariant, the answer is `proven`, `refuted` with a request that breaks it, `depends` with what it depends on, or
/// `unused` if no edge serves requests in its scope. Without paths, checks the store or, with --server, a running server. With
/// paths, checks only the manifests or, with the flag --store or a server, all resources there as if the manifests had been
/// applied, including the invariants in --with. Exits with code 3 if an answer would refuse a change, and with code 1 if there
/// are no invariants.
#[derive(Debug, clap::Args)]
// `prove` shows no plan.
#[command(mut_arg("full", |argument| argument.hide(true)))]
pub(crate) struct Args {
    #[command(flatten)]
    reported: ReportedSource,
    #[command(flatten)]
    review: ReviewArgs,
    #[command(flatten)]
    place: StoreOrServer,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    loading: Loading,
    /// Manifest files and folders, or `-` for standard input.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

impl Args {
    /// Whether the command reads manifests, and not only a store.
    pub(crate) fn reads_manifests(&self) -> bool {
        !self.paths.is_empty()
    }

    /// Chooses between a store and a server. Manifests alone need neither.
    pub(crate) fn choose(&mut self, origins: &OptionOrigins<'_>) -> Result<(), Failure> {
        self.place.choose_beside_files(self.reads_manifests(), origins)
    }

    pub(crate) fn run(self, lints: LintLevels) -> CommandResult {
        let mut report = if self.reads_manifests() { self.of_manifests(lints)? } else { self.of_state()? };
        if self.reads_manifests() && is_unjudged(&report) {
            report.proofs = None;
        }
        let judged = report.proofs.as_ref().map_or(0, |proofs| proofs.invariants.len());
        if judged == 0 && !report.has_errors() {
            report.diagnostics.push(self.nothing_judged());
        }
        self.conclude(&report, judged)
    }

    /// The warning without a single invariant: whoever asks whether they hold expects some.
    fn nothing_judged(&self) -> Diagnostic {
        let (has_server, names_store) = (self.place.server.url().is_some(), self.place.store.is_by_flag);
        let (lack, help) = match (self.reads_manifests(), has_server, names_store) {
            (true, false, false) => (
                "the manifests declare none",
                "add --server or --store to judge those of a server or store, or --with and the folder that declares them",
            ),
            (true, true, _) => ("neither the manifests nor the server have any", IN_OTHERS),
            (true, false, true) => ("neither the manifests nor the store have any", IN_OTHERS),
            (_, true, _) => ("the server has none", "declare an `Invariant`, and apply it"),
            (_, false, _) => ("the store has none", "declare an `Invariant`, and apply it"),
        };
        Diagnostic::warning(Code::InvariantUnproven, format!("no invariants were judged: {lack}")).help(help)
    }

    /// The answers about the state of a store or server.
    fn of_state(&self) -> Result<Report, Failure> {
        let client = self.place.client()?;
        self.say_where("Judging the invariants of");
        let proofs = match client {
            Some(client) => client.get(PATH)?,
            None => {
                let store = self.place.store.read_existing()?;
                during("Proving", || ProofReport::new(&store.snapshot(), clock::now()))
            }
        };
        Ok(Report { command: "prove", proofs: Some(proofs), ..Report::default() })
    }

    /// Says which server or store is asked. An environment variable or a context may have chosen it.
    fn say_where(&self, doing: &str) {
        say(&match self.place.server.url() {
            Some(url) => format!("{doing} the server `{url}`."),
            None => format!("{doing} the store `{}`.", self.place.store.shown()),
        });
    }

    /// Says that another source has the invariants of the manifests, so that each is judged twice.
    fn say_other_source(&self, report: &Report) {
        let own = &self.reported.source;
        if let Some(other) = report.proofs.as_ref().and_then(|proofs| other_source_of(proofs, own)) {
            let (own, other) = (printable(own), printable(other));
            say(&format!(
                "The manifests are judged as those of source `{own}`, and source `{other}` has the same invariants: if these are \
                 its manifests, use `--source {other}`."
            ));
        }
    }

    fn of_manifests(&self, lints: LintLevels) -> Result<Report, Failure> {
        let options = self.reported.options(self.review.tree(&self.paths, &self.loading), lints);
        let (is_by_flag, has_server) = (self.place.store.is_by_flag, self.place.server.url().is_some());
        if has_server || is_by_flag {
            self.say_where(AMONG);
        }
        if has_server || !is_by_flag {
            let asked = ReconciliationRequest { proofs: true, ..ReconciliationRequest::default() };
            return judged(&self.place.server, options, ("prove", "Proving"), asked);
        }
        let source = &self.reported.source;
        let store = self.place.store.read_existing()?;
        Ok(during("Proving", || {
            let snapshot = store.snapshot();
            let prepared = Prepared::load(options);
            let planned = prepared.plan(&snapshot);
            let (source, proofs) = (report_source(source), Some(prepared.proofs(&snapshot, &planned)));
            let report = planned.report_with("prove", Detail::Effects);
            Report { source, proofs, plan: None, refusals: Vec::new(), ..report }
        }))
    }

    fn conclude(&self, report: &Report, judged: usize) -> CommandResult {
        let shows_answers = self.output.shows_text();
        let others = report.diagnostics.iter().filter(|it| !shows_answers || !report.has_in_answers(it));
        diagnostics::diagnostics(&others.cloned().collect::<Vec<_>>());
        if self.reads_manifests() {
            diagnostics::count(&report.diagnostics, report.files);
            self.say_other_source(report);
        }
        if self.output.shows_text() {
            let unjudged = || "not judged: the manifests have errors\n".to_owned();
            print(report.proofs.as_ref().map_or_else(unjudged, text))?;
        }
        self.output.conclude(report)?;
        let refuses = report.proofs.as_ref().is_some_and(ProofReport::refuses);
        Ok(match judged {
            _ if refuses || report.has_errors() => Exit::Invalid,
            0 => Exit::Error,
            _ => Exit::Done,
        })
    }
}

/// The source that has the same invariants as the manifests of another one, if there is one: both are judged.
fn other_source_of<'p>(proofs: &'p ProofReport, own: &str) -> Option<&'p str> {
    let (own, others): (Vec<_>, Vec<_>) = proofs.invariants.iter().partition(|it| it.source.as_deref() == Some(own));
    let is_same = |one: &InvariantProof, other: &InvariantProof| {
        one.invariant == other.invariant && one.description == other.description && one.scope == other.scope
    };
    let mut twins = others.into_iter().filter(|other| own.iter().any(|own| is_same(own, other)));
    twins.find_map(|it| it.source.as_deref().filter(|source| *source != SURROUNDING_OWNER))
}

/// The answers for a terminal.
fn text(proofs: &ProofReport) -> String {
    let mut out: String = proofs.invariants.iter().map(lines).collect();
    out += &format!("{}\n", answers(proofs));
    out
}

fn lines(proof: &InvariantProof) -> String {
    let answer = proof.answer.as_str();
    let mut out = format!("{answer:8} {}: {}\n", escaped(&proof.full_name()), escaped(&proof.description));
    let mut add = |text: &str| out += &format!("         {}\n", escaped(text));
    add(&proof.coverage());
    if let Some(kept) = proof.kept() {
        add(&kept);
    }
    unseen_lines(&proof.unseen).for_each(|line| add(&line));
    for request in &proof.requests {
        add(&request.line());
        add(&format!("  {}", request.way));
        if let Some((place, help)) = request.place.as_ref().zip(request.help.as_ref()) {
            add(&format!("  {place}: {help}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::kind::invariant::InvariantScope;
    use crate::routing::invariant::ProofAnswer;

    #[test]
    fn an_answer_says_over_how_much() {
        let proof = |answer: ProofAnswer, classes: usize, exempt: usize| InvariantProof {
            invariant: "admin".into(),
            source: Some("platform".into()),
            description: "It holds".into(),
            scope: InvariantScope { hosts: vec!["*.intern.example.com".to_owned()], ..InvariantScope::default() },
            answer,
            refuses: false,
            classes,
            exempt,
            keeps: Vec::new(),
            keeps_compared: false,
            unseen: Vec::new(),
            requests: Vec::new(),
        };
        let proven = lines(&proof(ProofAnswer::Proven, 12, 1));
        assert_eq!(proven, "proven   platform/admin: It holds\n         over 12 classes of requests, 1 more exempt\n");
        let unused = proof(ProofAnswer::Unused, 0, 0);
        let told = "no edge serves requests in its scope: is `*.intern.example.com` right?";
        assert_eq!(lines(&unused), format!("unused   platform/admin: It holds\n         {told}\n"));
        let any = InvariantProof { scope: InvariantScope::default(), ..unused.clone() };
        assert_eq!(any.coverage(), "no edge serves requests in its scope");
        let exempt = proof(ProofAnswer::Proven, 0, 2).coverage();
        assert_eq!(exempt, "an exemption counts for all requests in its scope: 2 classes of requests");
        assert_eq!(proof(ProofAnswer::Refuted, 1, 0).coverage(), "over 1 class of requests");
        assert_eq!(proof(ProofAnswer::Depends, 0, 0).coverage(), "over no class of requests", "too many of them");
        let all = ProofReport { invariants: vec![proof(ProofAnswer::Depends, 2, 0), unused] };
        assert_eq!(answers(&all), "2 invariants: 0 proven, 1 unused, 1 depends");
        let revision = "a revision to compare with".to_owned();
        let kept = InvariantProof { keeps: vec!["oidc".to_owned()], ..proof(ProofAnswer::Proven, 1, 0) };
        let (again, own) = (ProofReport { invariants: vec![any.clone(), kept.clone()] }, "default");
        assert_eq!(other_source_of(&again, own), None);
        let of = |source: &str| InvariantProof { source: Some(source.into()), ..kept.clone() };
        let of_sources = |sources: [&str; 2]| ProofReport { invariants: sources.map(of).to_vec() };
        assert_eq!(other_source_of(&of_sources(["platform", own]), own), Some("platform"));
        assert_eq!(other_source_of(&of_sources(["platform", "shop"]), own), None);
        assert_eq!(other_source_of(&of_sources([own, SURROUNDING_OWNER]), own), None);
        let alone = InvariantProof { answer: ProofAnswer::Depends, unseen: vec![revision], ..kept.clone() };
        let told = "over 1 class of requests\n         depends on a revision to compare with\n";
        assert!(lines(&alone).ends_with(told), "{}", lines(&alone));
        let compared = InvariantProof { keeps_compared: true, ..kept };
        assert!(lines(&compared).ends_with("kept at each change: oidc\n"), "{}", lines(&compared));
    }
}
