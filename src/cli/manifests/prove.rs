//! `edgewright prove`.

use super::review::ReviewArgs;
use super::source_args::{Loading, ReportedSource, report_source};
use crate::cli::command_prelude::*;
use crate::cli::input::option_origins::OptionOrigins;
use crate::manifest::load;
use crate::plan::format::verdict::answers;
use crate::plan::proof_report::{InvariantProof, ProofReport};
use crate::reconcile::validate_loaded;
use crate::server::operations::proofs::PATH;

/// Show whether the invariants hold for all requests.
///
/// For each invariant, the answer is `proven`, `refuted` with a request that breaks it, `depends` with what nobody can tell,
/// or `unused` if no edge serves requests in its scope. Without paths, reads the store or, with --server, asks a running server. With paths, reads only the manifests or,
/// with --server, judges them among everything that the server has, as if it had applied them. Exits with code 1 if a
/// change would be refused because of an answer.
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
        match self.reads_manifests() {
            true => self.place.server.choose(origins),
            false => self.place.choose(origins),
        }
    }

    /// Runs the command.
    pub(crate) fn run(self, lints: LintLevels) -> CommandResult {
        let report = if self.reads_manifests() { self.of_manifests(lints)? } else { self.of_state()? };
        self.conclude(&report)
    }

    /// The answers about the state of a store or server.
    fn of_state(&self) -> Result<Report, Failure> {
        let proofs = match self.place.client()? {
            Some(client) => client.get(PATH)?,
            None => {
                let store = self.place.store.read_existing()?;
                during("Proving", || ProofReport::new(&store.snapshot(), clock::now()))
            }
        };
        Ok(Report { command: "prove", proofs: Some(proofs), ..Report::default() })
    }

    /// The answers about manifests.
    fn of_manifests(&self, lints: LintLevels) -> Result<Report, Failure> {
        let tree = self.review.tree(&self.paths, &self.loading);
        if let Some(url) = self.place.server.url() {
            return ServerTarget::new(url, &self.place.server, self.reported.options(tree, lints))?.prove();
        }
        let source = &self.reported.source;
        Ok(during("Proving", || {
            let loaded = load(tree.as_ref());
            let validated = validate_loaded(&loaded, &lints, source);
            let proofs = Some(validated.proofs(&loaded.surrounding_state(), source));
            Report { source: report_source(source), proofs, ..validated.report("prove") }
        }))
    }

    fn conclude(&self, report: &Report) -> CommandResult {
        if self.reads_manifests() {
            self.output.announce(report, None)?;
        }
        if let Some(proofs) = report.proofs.as_ref().filter(|_| self.output.shows_text()) {
            print(text(proofs))?;
        }
        self.output.conclude(report)?;
        let refuses = report.proofs.as_ref().is_some_and(ProofReport::refuses);
        Ok(if refuses || report.has_errors() { Exit::Invalid } else { Exit::Done })
    }
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
    if !proof.keeps.is_empty() {
        add(&format!("kept at each change: {}", proof.keeps.join(", ")));
    }
    for request in &proof.requests {
        add(&request.line());
        add(&format!("  {}", request.way));
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
        let all = ProofReport { invariants: vec![proof(ProofAnswer::Depends, 2, 0), unused] };
        assert_eq!(answers(&all), "2 invariants: 0 proven, 1 unused, 1 depends");
    }
}
