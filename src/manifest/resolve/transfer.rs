//! Resources that move between sources: what `transfer_from` and `transfer_to` mean in the present state (D104).

use std::collections::BTreeMap;

use super::transfer_markers::{FROM, TO, TransferMarkers};
use crate::manifest::load::declaration::Declaration;
use crate::model::claim::{SURROUNDING_OWNER, source_in_words};
use crate::model::{Claim, Code, Diagnostic, Entry, Fault, Key};
use crate::syntax::text::{first_of, printable};

/// The most resources that a warning names.
const MOST_NAMED: usize = 10;

/// The state of a declared resource's transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransferState<'c> {
    /// The manifest is applied: nobody else owns the resource, or its owner has offered it.
    Applied,
    /// Another source owns the resource, and the manifests say nothing about a transfer.
    Conflict(&'c Claim),
    /// The owner has not offered the resource yet, or that of the parent that contains it.
    Waiting(Option<&'c Claim>),
    /// Another source has the resource, or will create it.
    HandedOver(Option<&'c Claim>),
    /// A rollback gave the resource, or the one that contains it, back to the source that had it before. The manifests may
    /// still be those that the rollback undid.
    Returned(&'c Claim),
}

impl TransferMarkers {
    /// Whether a resource of another source is the one that a manifest of `source` declares: it is taken over, has been
    /// handed over, or was transferred by command.
    pub(super) fn concern(&self, claim: &Claim, source: &str) -> bool {
        let names = |marker: &Option<String>| marker.as_deref() == Some(claim.source.as_str());
        claim.source != source
            && (names(&self.from) || names(&self.to) || claim.transferred_from.as_deref() == Some(source))
    }

    /// The source that may take the resource over from `source`.
    pub(super) fn receiver(&self, source: &str) -> Option<&str> {
        self.to.as_deref().filter(|to| *to != source)
    }

    /// The transfer state of a resource that the store does not have. `parent_waits` says whether it is declared inside
    /// of one that waits.
    pub(super) fn state_of_missing(&self, source: &str, parent_waits: bool) -> TransferState<'static> {
        match parent_waits {
            // A resource that the receiver has deleted must not come back, and in a new store the receiver creates it.
            _ if self.receiver(source).is_some() => TransferState::HandedOver(None),
            true => TransferState::Waiting(None),
            false => TransferState::Applied,
        }
    }

    /// The transfer state of a resource that the store has, with or without the claim of a source.
    pub(super) fn state<'c>(&self, source: &str, claim: Option<&'c Claim>) -> TransferState<'c> {
        let Some(claim) = claim.filter(|claim| claim.source != source) else { return TransferState::Applied };
        if self.from.as_deref() == Some(claim.source.as_str()) {
            return match claim.transfer_to.as_deref() == Some(source) {
                true => TransferState::Applied,
                false if claim.is_returned_by(source) => TransferState::Returned(claim),
                false => TransferState::Waiting(Some(claim)),
            };
        }
        // The receiver may have passed it on.
        if self.receiver(source).is_some() {
            return TransferState::HandedOver(Some(claim));
        }
        if claim.is_returned_by(source) { TransferState::Returned(claim) } else { TransferState::Conflict(claim) }
    }
}

impl TransferState<'_> {
    /// The warning about a manifest that is not applied.
    pub(super) fn warning(self, declaration: &Declaration, source: &str) -> Option<Diagnostic> {
        let (kind, name) = (declaration.kind, printable(&declaration.name));
        let (from, to) = (declaration.transfer.from.as_deref(), declaration.transfer.receiver(source));
        let (code, field, message, help) = match self {
            TransferState::Applied | TransferState::Conflict(_) => return None,
            TransferState::Returned(claim) => {
                let owner = printable(&claim.source);
                let message = format!("{kind} `{name}` is not applied: a rollback returned it to source `{owner}`");
                let help = format!("remove it from this source, or {}", move_again("it", claim, source));
                (Code::RolledBack, "name", message, help)
            }
            TransferState::Waiting(claim) => {
                let owner = printable(claim.map(|claim| claim.source.as_str()).or(from).unwrap_or_default());
                let message = format!("{kind} `{name}` is not applied yet: source `{owner}` has not released it");
                let help = format!("set `{TO}: {}` in its manifest in source `{owner}`", printable(source));
                (Code::TransferPending, FROM, message, help)
            }
            TransferState::HandedOver(Some(claim)) => {
                let message = format!("{kind} `{name}` is not applied: source `{}` owns it", printable(&claim.source));
                let help = "remove it from this source: the transfer is complete".to_owned();
                (Code::TransferPending, TO, message, help)
            }
            TransferState::HandedOver(None) => {
                let to = printable(to.unwrap_or_default());
                let message =
                    format!("{kind} `{name}` is not applied: it does not exist, and is reserved for source `{to}`");
                let help = format!("remove it from this source, or remove `{TO}` so that this source creates it");
                (Code::TransferPending, TO, message, help)
            }
        };
        Some(declaration.origin.document().warning(Fault::new(code, message).at(["metadata", field]).help(help)))
    }

    /// The error of a manifest whose resource another source owns.
    pub(super) fn conflict(self, declaration: &Declaration, key: &Key, source: &str) -> Option<Diagnostic> {
        let TransferState::Conflict(claim) = self else { return None };
        let (owner, name) = (source_in_words(&claim.source), printable(&claim.name));
        let fault = Fault::new(Code::OwnerConflict, format!("{key} is owned by {owner} under the name `{name}`"));
        let fault = fault.help(match claim.transferred_from.as_deref() == Some(source) {
            _ if claim.source == SURROUNDING_OWNER => "remove it from one of the two".to_owned(),
            true => format!("remove it from this source: it was transferred to source `{}`", claim.source),
            false => format!(
                "remove it from one of the two sources, or run with `--source {}` if these are its manifests",
                claim.source
            ),
        });
        Some(match declaration.origin.is_entry() {
            true => declaration.origin.diagnostic(fault),
            false => {
                let field = if declaration.id.is_some() { "id" } else { "name" };
                declaration.origin.document().diagnostic(fault.at(["metadata", field]))
            }
        })
    }
}

/// The claim of a source on a resource that it declares. `held` is the claim on the resource in the store, or on the one
/// that is replaced.
pub(super) fn claim(
    declaration: &Declaration,
    source: &str,
    held: Option<&Claim>,
    renamed_from: Option<String>,
) -> Claim {
    let name: &str = &declaration.name;
    // The name in the previous source.
    let (transferred_from, known_as) = match held {
        Some(held) if held.source == source => {
            (held.transferred_from.clone(), held.transferred_as.as_deref().unwrap_or(&held.name))
        }
        Some(held) => (Some(held.source.clone()), held.name.as_str()),
        None => (None, name),
    };
    let transferred_as = (transferred_from.is_some() && known_as != name).then(|| known_as.to_owned());
    Claim {
        source: source.to_owned(),
        name: name.to_owned(),
        prevent_destroy: declaration.prevent_destroy,
        renamed_from,
        transfer_to: declaration.transfer.receiver(source).map(str::to_owned),
        transferred_from,
        transferred_as,
        returned: false,
        required_secrets: None,
    }
}

/// Returns the help for moving a resource again that a rollback returned.
fn move_again(what: &str, claim: &Claim, to: &str) -> String {
    format!("move {what} again with `edgewright transfer --from {} --to {}`", printable(&claim.source), printable(to))
}

/// The warnings about resources of a source that are promised to a source and not declared: they are not deleted. `is_had`
/// says whether a source has another resource of the name.
pub(super) fn kept_warnings<'e>(
    promised: impl Iterator<Item = &'e Entry>,
    is_had: impl Fn(&Entry, &Claim, &str) -> bool,
) -> Vec<Diagnostic> {
    let mut by_receiver: BTreeMap<(Option<&str>, bool), Vec<String>> = BTreeMap::new();
    let mut returned: BTreeMap<&str, (&Claim, Vec<String>)> = BTreeMap::new();
    for entry in promised {
        let Some(claim) = &entry.claim else { continue };
        let name = format!("{} (`{}`)", entry.key, printable(&claim.name));
        match claim.returned_from() {
            Some(from) => returned.entry(from).or_insert_with(|| (claim, Vec::new())).1.push(name),
            None => {
                let to = claim.receiver();
                let is_had = to.is_some_and(|to| is_had(entry, claim, to));
                by_receiver.entry((to, is_had)).or_default().push(name);
            }
        }
    }
    let brought_back = returned.into_iter().map(|(from, (claim, names))| {
        let message = format!(
            "kept until a manifest of this source declares them, because a rollback returned them from source `{}`: {}",
            printable(from),
            listed(&names)
        );
        let help = format!(
            "declare them in source `{}`, or {}; to delete them, apply a manifest that declares them, then remove it",
            printable(&claim.source),
            move_again("them", claim, from)
        );
        Diagnostic::warning(Code::RolledBack, message).help(help)
    });
    let warnings = by_receiver.into_iter().map(|((to, is_had), names)| {
        let why = match to {
            Some(to) if is_had => {
                format!("although source `{}` cannot take over: it has its own resource with that name", printable(to))
            }
            Some(to) => format!("until source `{}` takes over", printable(to)),
            None => "until a manifest of this source declares them, after their transfer".to_owned(),
        };
        let message = format!("kept {why}: {}", listed(&names));
        let instead = if is_had { "" } else { " instead" };
        let help = format!("to delete{instead}, apply a manifest without `{TO}`, then remove it");
        Diagnostic::warning(Code::TransferPending, message).help(help)
    });
    brought_back.chain(warnings).collect()
}

fn listed(names: &[String]) -> String {
    first_of(names.iter().map(String::as_str), MOST_NAMED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markers(from: Option<&str>, to: Option<&str>) -> TransferMarkers {
        TransferMarkers { from: from.map(str::to_owned), to: to.map(str::to_owned) }
    }

    fn claim(source: &str, to: Option<&str>) -> Claim {
        Claim { transfer_to: to.map(str::to_owned), ..Claim::new(source, "shop") }
    }

    #[test]
    fn a_resource_changes_hands_only_with_the_consent_of_both() {
        let (held, offered, elsewhere) = (claim("a", None), claim("a", Some("b")), claim("a", Some("c")));
        let taking = markers(Some("a"), None);
        let state_of = |claim| taking.state("b", Some(claim));
        assert_eq!(state_of(&offered), TransferState::Applied);
        assert_eq!(state_of(&held), TransferState::Waiting(Some(&held)));
        assert_eq!(state_of(&elsewhere), TransferState::Waiting(Some(&elsewhere)));
        let silent = TransferMarkers::default();
        assert_eq!(silent.state("b", Some(&offered)), TransferState::Conflict(&offered));
        let other = claim("d", Some("b"));
        assert_eq!(state_of(&other), TransferState::Conflict(&other), "offered by somebody else");
    }

    #[test]
    fn who_hands_over_neither_creates_nor_fights() {
        let giving = markers(None, Some("b"));
        let (own, taken, passed) = (claim("a", Some("b")), claim("b", None), claim("c", None));
        assert_eq!(giving.state("a", Some(&own)), TransferState::Applied);
        assert_eq!(giving.state("a", Some(&taken)), TransferState::HandedOver(Some(&taken)));
        assert_eq!(giving.state("a", Some(&passed)), TransferState::HandedOver(Some(&passed)));
        assert_eq!(giving.state_of_missing("a", false), TransferState::HandedOver(None));
        // One that is passed on: taken first, and offered at once.
        let both = markers(Some("a"), Some("c"));
        assert_eq!(both.state("b", Some(&own)), TransferState::Applied);
        assert_eq!(both.state("b", Some(&passed)), TransferState::HandedOver(Some(&passed)));
    }

    #[test]
    fn what_is_inside_of_a_waiting_resource_waits() {
        let taking = markers(Some("a"), None);
        let missing = |parent_waits| taking.state_of_missing("b", parent_waits);
        assert_eq!((missing(true), missing(false)), (TransferState::Waiting(None), TransferState::Applied));
    }
}
