//! The invariants and whether they hold, from the proofs of a moment ago: no page waits for one (D120).

use maud::{Markup, html};

use crate::model::kind::invariant::{Invariant, InvariantExemption};
use crate::plan::proof_report::{InvariantProof, ProofRequest};
use crate::routing::invariant::ProofAnswer;
use crate::server::dashboard::certificates::is_soon;
use crate::server::dashboard::elements::{self, Tone, badge, counted, first_of, more, nothing, source_cell, time};
use crate::server::dashboard::layout::prose;
use crate::server::dashboard::page::{PageRequest, ROWS};
use crate::server::prelude::*;
use crate::server::telemetry::proofs::ProvenState;

/// The most invariants on the overview, and the most exemptions in a row.
const MOST_SHORT: usize = 5;
/// The most hosts and paths of an exemption.
const MOST_EXEMPT: usize = 5;

/// The exemptions that have ended or end soon, by the source and the name of their invariant.
type EndingExemptions<'s> = BTreeMap<(Option<&'s str>, &'s str), Vec<(&'s InvariantExemption, Timestamp)>>;

/// The answers, and how they are shown.
static ANSWERS: [(ProofAnswer, Tone, &str); 4] = [
    (ProofAnswer::Refuted, Tone::Bad, "refuted"),
    (ProofAnswer::Depends, Tone::Warning, "not proven"),
    (ProofAnswer::Unused, Tone::Neutral, "unused"),
    (ProofAnswer::Proven, Tone::Good, "proven"),
];

/// How many invariants have each answer, and how that is shown, the worst first.
pub(super) fn counts(request: &PageRequest) -> [(usize, Tone, &'static str); 4] {
    let proven = request.app.telemetry.proofs.last();
    ANSWERS.map(|(answer, tone, words)| (proven.report.count(answer), tone, words))
}

/// The invariants that are refuted or not proven, and those with exemptions that end soon, on the overview.
pub(in crate::server::dashboard) fn in_short(request: &PageRequest) -> Markup {
    let proven = request.app.telemetry.proofs.last();
    let all = &proven.report.invariants;
    let ending = ending(request);
    let is_news = |it: &&InvariantProof| it.answer > ProofAnswer::Unused || ending.contains_key(&key_of(it));
    let news: Vec<&InvariantProof> = sorted(&proven).into_iter().filter(is_news).collect();
    let counts = counts(request).map(|(count, _, words)| (count, words));
    html! {
        @if all.is_empty() { (none(request, &proven)) }
        @else { p { (counted(&counts)) (as_of(request, &proven)) } }
        @if !news.is_empty() { (table(request, &news, &ending, MOST_SHORT)) }
        @if !all.is_empty() { p { a href=(request.to("server#invariants")) { "All invariants" } } }
    }
}

/// The invariants, those that are not proven first, on the page of the server.
pub(in crate::server::dashboard) fn all(request: &PageRequest) -> Markup {
    let proven = request.app.telemetry.proofs.last();
    let all = sorted(&proven);
    html! {
        @if all.is_empty() { (none(request, &proven)) }
        @else { (table(request, &all, &ending(request), ROWS)) }
    }
}

/// The answers, the worst first.
fn sorted(proven: &ProvenState) -> Vec<&InvariantProof> {
    let mut all: Vec<&InvariantProof> = proven.report.invariants.iter().collect();
    all.sort_by_key(|it| std::cmp::Reverse(it.answer));
    all
}

/// The text in place of an empty list.
fn none(request: &PageRequest, proven: &ProvenState) -> Markup {
    let is_known = proven.revision() > 0 || request.snapshot.revision == 0;
    nothing(if is_known { "There are no invariants." } else { "The first proof is not complete." })
}

/// The revision that the answers are about, if it is not that of the page.
fn as_of(request: &PageRequest, proven: &ProvenState) -> Markup {
    html! { @if proven.revision() != request.snapshot.revision { ", as of revision " (proven.revision()) } }
}

fn table(request: &PageRequest, rows: &[&InvariantProof], ending: &EndingExemptions<'_>, most: usize) -> Markup {
    let row = |it: &&InvariantProof| {
        let shown = ANSWERS.iter().find(|(answer, ..)| *answer == it.answer);
        vec![
            html! { (it.invariant) p.message { (it.description) } },
            source_cell(request, it.source.as_deref()),
            html! { @if let Some((_, tone, words)) = shown { (badge(*tone, words)) } },
            html! {
                (it.coverage())
                @if let Some(broken) = it.requests.first() { ": " (broken_by(request, broken)) }
                @if let Some(exemptions) = ending.get(&key_of(it)) {
                    @for (exemption, end) in exemptions.iter().take(MOST_SHORT) { p { (exempt(request, exemption, *end)) } }
                    (more(exemptions.len(), MOST_SHORT))
                }
            },
        ]
    };
    html! {
        (elements::table("Invariants", &["Invariant", "Source", "State", "Requests"], rows.iter().take(most).map(row)))
        (more(rows.len(), most))
    }
}

/// The source and the name by which an invariant is known.
fn key_of(proof: &InvariantProof) -> (Option<&str>, &str) {
    (proof.source.as_deref(), proof.invariant.as_str())
}

/// A request that breaks an invariant, or of which nobody can tell, with a link to its trace.
fn broken_by(request: &PageRequest, ProofRequest { certain, method, url, reason, .. }: &ProofRequest) -> Markup {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let query = query.append_pair("method", method).append_pair("url", url).finish();
    html! {
        (method) " " a href=(request.to(format_args!("trace?{query}"))) { (url) }
        @if *certain { " " } @else { " depends on " }
        (prose(reason))
    }
}

/// The exemptions of all invariants that have ended or end soon.
fn ending(request: &PageRequest) -> EndingExemptions<'_> {
    let mut found = EndingExemptions::new();
    for entry in request.snapshot.newest_first(Kind::Invariant, None, u64::MAX) {
        let exemptions = entry.spec_as::<Invariant>().map(|it| it.exemptions.as_slice()).unwrap_or_default();
        let ends = exemptions.iter().filter_map(|it| Some((it, it.end()?)));
        let soon: Vec<_> = ends.filter(|(_, end)| is_soon(end.as_second(), request.now)).collect();
        if !soon.is_empty() {
            found.insert((entry.source(), entry.name().unwrap_or(entry.key.id.as_str())), soon);
        }
    }
    found
}

/// An exemption and its end, and who answers for it.
fn exempt(request: &PageRequest, exemption: &InvariantExemption, end: Timestamp) -> Markup {
    let InvariantExemption { hosts, path_prefixes, owner, reason, .. } = exemption;
    let what: Vec<&String> = hosts.iter().chain(path_prefixes).collect();
    html! {
        @if end <= request.now { (badge(Tone::Bad, "exemption ended")) } @else { (badge(Tone::Warning, "exemption ends")) }
        " " (time(&end.to_string(), request.now)) " for "
        @if what.is_empty() { "all requests " }
        (first_of(&what, MOST_EXEMPT, |it| html! { code { (it) } }))
        "of " (owner) ": " q { (reason) }
    }
}
