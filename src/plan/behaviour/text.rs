//! A behaviour diff as lines for people. Their number is bounded; a report in JSON has everything.

use std::collections::BTreeSet;

use super::diff::{BehaviourChange, BehaviourDiff, RequestPattern};
use super::wording::{closes, stops};
use crate::model::Kind;
use crate::syntax::text::number_of;

/// The most changes that are listed.
const MOST_CHANGES: usize = 50;
/// The most patterns of a change, and exceptions of a pattern.
const MOST_PATTERNS: usize = 3;

/// The sentence about the whole diff of a plan, which changes resources of some kinds that are not compared.
pub(crate) fn summary(diff: &BehaviourDiff, is_empty_plan: bool, uncompared: &BTreeSet<&str>) -> String {
    let mut text = summary_of_seen(diff, is_empty_plan, uncompared);
    if !diff.unseen.is_empty() {
        text += " That depends on what the manifests do not show.";
    }
    text
}

fn summary_of_seen(diff: &BehaviourDiff, is_empty_plan: bool, uncompared: &BTreeSet<&str>) -> String {
    let opening = diff.changes.iter().filter(|change| change.opens).count();
    let weakening = diff.changes.iter().filter(|change| change.weakens_tls).count();
    match (diff.changes.len(), opening + weakening) {
        (0, _) if is_empty_plan || (uncompared.is_empty() && !diff.unseen.is_empty()) => {
            "Behaviour: no request is treated differently.".to_owned()
        }
        (0, _) if !uncompared.is_empty() => {
            let invariant = Kind::Invariant.facts().name;
            let kinds: Vec<&str> = uncompared.iter().copied().filter(|kind| *kind != invariant).collect();
            let mut text = match kinds.is_empty() {
                true => "Behaviour: no request is treated differently.".to_owned(),
                false => format!(
                    "Behaviour: edges treat no request differently. What changes of {} is not compared.",
                    kinds.join(", ")
                ),
            };
            if uncompared.contains(invariant) {
                text += " Invariants change, and with them which changes are refused.";
            }
            text
        }
        (0, _) => "Behaviour: no request is treated differently. The plan is a safe refactoring.".to_owned(),
        (all, 0) => format!("Behaviour: {} in how requests are treated.", number_of(all, "change")),
        (all, _) => {
            let counted = [(opening, "opens access", "open access"), (weakening, "weakens TLS", "weaken TLS")];
            let counted = counted.into_iter().filter(|(count, ..)| *count > 0);
            let told = counted.map(|(count, one, more)| format!("{count} {}", if count == 1 { one } else { more }));
            let told = told.collect::<Vec<_>>().join(", ");
            format!("Behaviour: {} in how requests are treated, of which {told}.", number_of(all, "change"))
        }
    }
}

/// The lines of the changes: the requests, and what becomes of them. Those that open access or weaken TLS are marked. Last comes
/// what all of that depends on.
pub(crate) fn lines(diff: &BehaviourDiff) -> Vec<(bool, String)> {
    let shown = diff.changes.iter().take(MOST_CHANGES).map(|change| (change.opens || change.weakens_tls, line(change)));
    let omitted = diff.changes.len().saturating_sub(MOST_CHANGES);
    let more = (omitted > 0).then(|| (false, format!("… and {omitted} more: use --format json to list all")));
    let unseen = diff.unseen.iter().map(|clause| (false, format!("depends on {clause}")));
    shown.chain(more).chain(unseen).collect()
}

/// The lines of the changes that admit fewer requests.
pub(crate) fn closing_lines(diff: &BehaviourDiff) -> Vec<String> {
    let closing = diff.changes.iter().filter(|change| !change.opens && closes(&change.change));
    closing.take(MOST_CHANGES).map(line).collect()
}

/// The lines of the changes after which nothing handles the requests.
pub(crate) fn stopping_lines(diff: &BehaviourDiff) -> Vec<String> {
    let stopping = diff.changes.iter().filter(|change| stops(&change.change));
    stopping.take(MOST_CHANGES).map(line).collect()
}

fn line(change: &BehaviourChange) -> String {
    let count: usize = change.requests.iter().map(|it| it.origins.len()).sum();
    let all = change.requests.iter().flat_map(urls).take(MOST_PATTERNS);
    let mut requests = all.collect::<Vec<_>>().join(", ");
    if count > MOST_PATTERNS {
        requests += &format!(" and {} more", count - MOST_PATTERNS);
    }
    format!("{requests}: {}", marked(change.opens, change.weakens_tls, &change.change))
}

/// The words of a change, which tell first that it opens access or weakens TLS.
pub(super) fn marked(opens: bool, weakens_tls: bool, words: &str) -> String {
    let mark = match (opens, weakens_tls) {
        (true, true) => "opens access, weakens TLS: ",
        (true, false) => "opens access: ",
        (false, true) => "weakens TLS: ",
        (false, false) => "",
    };
    format!("{mark}{words}")
}

/// The URLs of a pattern as code, with its first exceptions. Those without a path are words.
fn urls(pattern: &RequestPattern) -> impl Iterator<Item = String> {
    let listed = pattern.except.iter().take(MOST_PATTERNS).map(|path| format!("`{path}`")).collect::<Vec<_>>();
    let omitted = pattern.except.len().saturating_sub(MOST_PATTERNS);
    let more = if omitted > 0 { format!(" and {omitted} more") } else { String::new() };
    let except = if listed.is_empty() { String::new() } else { format!(" except {}{more}", listed.join(", ")) };
    pattern.origins.iter().map(move |origin| match pattern.path.as_str() {
        "" => origin.clone(),
        path => format!("`{origin}{path}`{except}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(opens: bool, words: &str, requests: Vec<RequestPattern>) -> BehaviourChange {
        let (before, after, example) = Default::default();
        let weakens_tls = words.starts_with("TLS ");
        BehaviourChange { opens, weakens_tls, change: words.to_owned(), before, after, requests, example }
    }

    fn pattern(origins: &[&str], path: &str, except: &[&str]) -> RequestPattern {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        RequestPattern { origins: owned(origins), path: path.to_owned(), except: owned(except) }
    }

    #[test]
    fn a_line_names_the_requests_and_what_becomes_of_them() {
        let admin = pattern(&["https://shop.example.com"], "/admin/*", &["/admin/health"]);
        let of = |changes: Vec<BehaviourChange>| BehaviourDiff { changes, ..BehaviourDiff::default() };
        let diff = of(vec![change(true, "`oidc` required → open", vec![admin])]);
        let expected =
            "`https://shop.example.com/admin/*` except `/admin/health`: opens access: `oidc` required → open";
        assert_eq!(lines(&diff), [(true, expected.to_owned())]);
        let compared = BTreeSet::new();
        assert_eq!(
            summary(&diff, false, &compared),
            "Behaviour: 1 change in how requests are treated, of which 1 opens access."
        );
        let old = change(false, "TLS 1.2 or newer → passes through", vec![pattern(&["https://a"], "/*", &[])]);
        let both = of([diff.changes, vec![old]].concat());
        assert!(summary(&both, false, &compared).ends_with("of which 1 opens access, 1 weakens TLS."));
        let expected = "`https://a/*`: weakens TLS: TLS 1.2 or newer → passes through";
        assert_eq!(lines(&both).last(), Some(&(true, expected.to_owned())));
        let none = BehaviourDiff::default();
        assert!(summary(&none, false, &compared).ends_with("a safe refactoring.") && lines(&none).is_empty());
        let told = summary(&none, false, &BTreeSet::from(["TlsCertificate"]));
        assert!(told.ends_with("What changes of TlsCertificate is not compared."), "{told}");
        let told = summary(&none, false, &BTreeSet::from(["Invariant"]));
        assert!(told.contains("Invariants change") && !told.contains("refactoring"), "{told}");
        let all = of(vec![change(true, "open", vec![pattern(&["all hosts"], "", &[])])]);
        assert_eq!(lines(&all), [(true, "all hosts: opens access: open".to_owned())]);
        let guessed = BehaviourDiff { unseen: vec!["the edge".to_owned()], ..none };
        let told = summary(&guessed, false, &compared);
        assert!(told.ends_with("differently. That depends on what the manifests do not show."), "{told}");
        assert_eq!(lines(&guessed), [(false, "depends on the edge".to_owned())]);
    }

    #[test]
    fn long_lists_are_cut_with_their_number() {
        let hosts = ["https://a", "https://b", "https://c", "https://d", "https://e"];
        let diff = BehaviourDiff {
            changes: vec![change(false, "now 404", vec![pattern(&hosts, "/x", &[])]); MOST_CHANGES + 2],
            ..BehaviourDiff::default()
        };
        let lines = lines(&diff);
        assert_eq!(lines.len(), MOST_CHANGES + 1);
        let first = lines.first().map(|(_, line)| line.as_str());
        assert_eq!(first, Some("`https://a/x`, `https://b/x`, `https://c/x` and 2 more: now 404"));
        assert!(lines.last().is_some_and(|(_, line)| line.starts_with("… and 2 more")));
    }
}
