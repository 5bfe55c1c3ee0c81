//! The invariants and whether they hold, from the proofs of a moment ago: no page waits for one (D120).

use maud::{Markup, html};

use crate::plan::proof_report::InvariantProof;
use crate::routing::invariant::ProofAnswer;
use crate::server::dashboard::certificates::is_soon;
use crate::server::dashboard::elements::{self, Tone, badge, counted, more, name_or, nothing, source_link, time};
use crate::server::dashboard::layout::prose;
use crate::server::dashboard::page::{PageRequest, ROWS};
use crate::server::prelude::*;
use crate::server::telemetry::metrics::inventory::Expiry;
use crate::server::telemetry::proofs::ProvenState;

/// The most invariants that do not hold, and the most exemptions that end, on the overview.
const MOST_SHORT: usize = 5;

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

/// The invariants that are refuted or not proven, and the exemptions that end soon, on the overview.
pub(in crate::server::dashboard) fn in_short(request: &PageRequest) -> Markup {
    let proven = request.app.telemetry.proofs.last();
    let all = &proven.report.invariants;
    let unproven: Vec<&InvariantProof> =
        sorted(&proven).into_iter().filter(|it| it.answer > ProofAnswer::Unused).collect();
    let counts = counts(request).map(|(count, _, words)| (count, words));
    html! {
        @if all.is_empty() { (none(request, &proven)) }
        @else { p { (counted(&counts)) (as_of(request, &proven)) } }
        @if !unproven.is_empty() { (table(request, &unproven, MOST_SHORT)) }
        (ending(request, &proven, MOST_SHORT))
        @if !all.is_empty() { p { a href=(request.to("server#invariants")) { "All invariants" } } }
    }
}

/// The invariants, those that are not proven first, on the page of the server.
pub(in crate::server::dashboard) fn all(request: &PageRequest) -> Markup {
    let proven = request.app.telemetry.proofs.last();
    let all = sorted(&proven);
    html! {
        @if all.is_empty() { (none(request, &proven)) }
        @else { (table(request, &all, ROWS)) }
        (ending(request, &proven, ROWS))
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

fn table(request: &PageRequest, rows: &[&InvariantProof], most: usize) -> Markup {
    let row = |it: &&InvariantProof| {
        let shown = ANSWERS.iter().find(|(answer, ..)| *answer == it.answer);
        vec![
            html! { span title=(it.description) { (it.invariant) } },
            html! { @if let Some(source) = &it.source { (source_link(request, source)) } @else { "–" } },
            html! { @if let Some((_, tone, words)) = shown { (badge(*tone, words)) } },
            html! {
                (it.coverage())
                @if let Some(broken) = it.requests.first() { ": " (prose(&broken.line())) }
            },
        ]
    };
    html! {
        (elements::table("Invariants", &["Invariant", "Source", "State", "Requests"], rows.iter().take(most).map(row)))
        (more(rows.len(), most))
    }
}

/// The exemptions that end soon or have ended: the first one of each invariant. Nothing if there are none.
fn ending(request: &PageRequest, proven: &ProvenState, most: usize) -> Markup {
    let soon: Vec<&Expiry> = proven.expiries.iter().filter(|it| is_soon(it.second, request.now)).collect();
    html! {
        @if !soon.is_empty() {
            ul.brief {
                @for it in soon.iter().take(most) {
                    @let at = Timestamp::from_second(it.second).map(|at| at.to_string()).unwrap_or_default();
                    @let has_ended = it.second <= request.now.as_second();
                    li { (badge(Tone::Warning, "exemption")) " of " span title=(it.id) { (name_or(&it.name, &it.id)) }
                        @if has_ended { " ended " } @else { " ends " } (time(&at, request.now)) }
                }
            }
        }
        (more(soon.len(), most))
    }
}
