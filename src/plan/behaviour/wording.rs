//! The difference between two fates, in words.

use crate::model::Module;
use crate::model::module::admission::AccessChange;
use crate::model::module::backend::Backend;
use crate::routing::behaviour::{AccessDifference, Fate, FateModule, ModuleLikeness};
use crate::syntax::text::printable;

/// The words before and after the names of new restrictions.
const CLOSED: (&str, &str) = ("open → ", " required");
const MORE_CLOSED: &str = " also required";
const INSTEAD: &str = " required instead";
/// The words after the name of a restriction that admits fewer clients or requests.
const NARROWER: &str = " admits fewer";
/// The words after the settings of a module in other systems, which contain the ID of its route.
const AT_OTHERS: &str =
    ": set up the identity provider again, or declare a renamed route in its own manifest with `renamed_from`";
/// How the words for requests begin that nothing handles any longer.
const GONE: [&str; 2] = ["now 404: ", "no edge serves "];

/// Whether the words of a difference say that nothing handles the requests any longer.
pub(super) fn stops(words: &str) -> bool {
    GONE.iter().any(|start| words.starts_with(start))
}

/// Whether the words of a difference say that fewer requests are admitted.
pub(super) fn closes(words: &str) -> bool {
    let is_closed = |part: &str| {
        part.starts_with(CLOSED.0) && part.ends_with(CLOSED.1)
            || [MORE_CLOSED, INSTEAD, NARROWER].iter().any(|it| part.ends_with(it))
    };
    words.split("; ").any(is_closed)
}

/// The difference between two fates.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WordedDifference {
    /// Whether access opens, to the requests or to their route.
    pub opens: bool,
    /// Whether clients can use an older version of TLS, or TLS no longer ends at the edge.
    pub weakens_tls: bool,
    /// The words.
    pub words: String,
}

impl WordedDifference {
    /// Describes the difference between fates at a port that are not alike, and what their route opens that took other requests.
    pub(super) fn new(then: &Fate<'_>, now: &Fate<'_>, port: u16) -> Self {
        let mut difference = Self::of_requests(then, now, port);
        if let Some(words) = words_of_settings(then, now) {
            difference.add(&words);
        }
        if !difference.opens
            && let Some((_, access)) = AccessDifference::of_moved_route(then, now, port)
        {
            difference.add(&format!("this route: {}", words_of_access(&access).join("; ")));
            difference.opens = true;
        }
        difference
    }

    fn add(&mut self, words: &str) {
        let separator = if self.words.is_empty() { "" } else { "; " };
        self.words += &format!("{separator}{words}");
    }

    fn of_requests(then: &Fate<'_>, now: &Fate<'_>, port: u16) -> Self {
        let words = match (then.route.is_some(), now.route.is_some()) {
            (true, true) => return served(then, now, port),
            (false, false) if then.edge.is_some() && now.edge.is_some() => return served(then, now, port),
            (false, true) => appears(now, port),
            (true, false) if now.edge.is_some() => "now 404: no route handles them".to_owned(),
            (true, false) => "no edge serves them any longer".to_owned(),
            (false, false) if now.edge.is_some() => {
                "now 404: an edge serves the host, and no route handles them".to_owned()
            }
            (false, false) => "no edge serves the host any longer, which answered 404".to_owned(),
        };
        Self { opens: false, weakens_tls: false, words }
    }
}

/// The words if a module has another route, whose ID is in the settings of the module in other systems. A route that had the module
/// before is known there.
fn words_of_settings(then: &Fate<'_>, now: &Fate<'_>) -> Option<String> {
    let id = |fate: &Fate<'_>| fate.route.map(|route| route.key.id.clone());
    if id(then) == id(now) {
        return None;
    }
    let (former, present) = (then.modules(), now.modules());
    let moves = |it: &&FateModule<'_>| former.iter().any(|one| one.slot == it.slot && one.host.key != it.host.key);
    let (settings, met) = present.iter().filter(moves).find_map(|it| Some((it.slot.settings_with_id?, it)))?;
    let own = then.of_route(&met.host.key);
    let is_known = own.is_some_and(|own| own.modules().iter().any(|it| it.slot == met.slot));
    Some(match is_known {
        true => format!("{settings} are those of another route"),
        false => format!("{settings} change{AT_OTHERS}"),
    })
}

/// The words for requests that nothing handled before.
fn appears(now: &Fate<'_>, port: u16) -> String {
    let Some(backend) = now.backend() else { return "new: refused, because no backend is enabled".to_owned() };
    let restrictions: Vec<&str> = now.protections(port).into_values().collect();
    match restrictions.as_slice() {
        [] => format!("new: open, to backend {}", printable(backend)),
        some => format!("new: {} required, to backend {}", names(some), printable(backend)),
    }
}

/// The words for requests that a route handles before and after, or that an edge answers without one.
fn served(then: &Fate<'_>, now: &Fate<'_>, port: u16) -> WordedDifference {
    let access = AccessDifference::new(then, now, port);
    let mut parts = words_of_access(&access);
    let opens = now.reached_backend().is_some() && access.opens(then.reached_backend().is_none());
    let oldest_tls = (then.oldest_tls(port), now.oldest_tls(port));
    let weakens_tls = oldest_tls.0.is_some_and(|was| oldest_tls.1.is_none_or(|is| is < was));
    let backend = |fate: &Fate<'_>| fate.backend().map_or_else(|| "none".to_owned(), printable);
    if then.backend() != now.backend() {
        parts.push(format!("backend {} → {}", backend(then), backend(now)));
    }
    match oldest_tls {
        (Some(was), Some(is)) if was != is => {
            parts.push(format!("TLS {} or newer → TLS {} or newer", was.as_str(), is.as_str()));
        }
        (Some(was), None) => {
            let is = if now.passes_through() { "passes through" } else { "none at this edge" };
            parts.push(format!("TLS {} or newer → {is}", was.as_str()));
        }
        _ if !then.has_tls_of(now, Some(port)) => parts.push(match (then.passes_through(), now.passes_through()) {
            (false, true) => "TLS passes through to the upstream".to_owned(),
            (true, false) => "TLS terminates at the edge".to_owned(),
            _ => "`tls_termination` configured differently".to_owned(),
        }),
        _ => {}
    }
    let (before, after) = (then.modules(), now.modules());
    let (lost, gained) = (access.lost(), access.gained());
    let told = |name: &str| lost.contains(&name) || gained.contains(&name) || name == Backend::SLOT;
    let within = |modules: &[FateModule<'_>], name: &str| modules.iter().any(|it| it.slot.name == name);
    let other = |modules: &[FateModule<'_>], others: &[FateModule<'_>]| {
        let names = modules.iter().map(|it| it.slot.name).filter(|name| !told(name) && !within(others, name));
        names.collect::<Vec<&str>>()
    };
    let (loses, gains) = (other(&before, &after), other(&after, &before));
    let compared = before.iter().filter(|it| it.slot.name != Backend::SLOT).filter_map(|it| {
        let another = after.iter().find(|another| another.slot == it.slot)?;
        Some((it.slot.name, it.compare(another)))
    });
    let compared: Vec<(&str, ModuleLikeness)> = compared.collect();
    let are =
        |likeness: ModuleLikeness| compared.iter().filter(|it| it.1 == likeness).map(|it| it.0).collect::<Vec<&str>>();
    let (mut differ, have_other_secrets) = (are(ModuleLikeness::Different), are(ModuleLikeness::OtherSecrets));
    differ.retain(|name| access.changed.iter().all(|(changed, _)| changed != name));
    for (verb, modules) in [("loses ", loses), ("gains ", gains)] {
        if !modules.is_empty() {
            parts.push(format!("{verb}{}", names(&modules)));
        }
    }
    if !differ.is_empty() {
        parts.push(format!("{} configured differently", names(&differ)));
    }
    if !have_other_secrets.is_empty() {
        parts.push(format!("{} with the secret of another route", names(&have_other_secrets)));
    }
    WordedDifference { opens, weakens_tls, words: parts.join("; ") }
}

/// The words for a difference in what restricts access.
pub(super) fn words_of_access(access: &AccessDifference) -> Vec<String> {
    let (lost, gained, kept) = (access.lost(), access.gained(), access.kept());
    let mut words = Vec::new();
    if !lost.is_empty() {
        words.push(match kept.as_slice() {
            _ if access.has.is_empty() => format!("{} required → open", names(&lost)),
            [] => format!("{} no longer required", names(&lost)),
            kept => format!("{} no longer required, {} stays", names(&lost), names(kept)),
        });
    }
    if !gained.is_empty() {
        words.push(match access.had.is_empty() {
            true => format!("{}{}{}", CLOSED.0, names(&gained), CLOSED.1),
            false => words_of_gained(&gained, !lost.is_empty() && kept.is_empty()),
        });
    }
    words.extend(words_of_changed(&access.changed));
    words
}

/// The words for new restrictions: in the place of those that are gone, or beside those that stay.
pub(in crate::plan) fn words_of_gained(gained: &[&str], takes_place: bool) -> String {
    format!("{}{}", names(gained), if takes_place { INSTEAD } else { MORE_CLOSED })
}

/// The words for restrictions that do not admit the same as before.
pub(in crate::plan) fn words_of_changed(changed: &[(&'static str, AccessChange)]) -> Vec<String> {
    let words = |(name, change): &(&'static str, AccessChange)| match change {
        AccessChange::Same => None,
        AccessChange::Narrower => Some(format!("`{name}`{NARROWER}")),
        AccessChange::Wider => Some(format!("`{name}` admits more")),
        AccessChange::Unknown => Some(format!("`{name}` may admit others")),
    };
    changed.iter().filter_map(words).collect()
}

/// Names of modules for a sentence.
pub(in crate::plan) fn names(modules: &[&str]) -> String {
    modules.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_closes() {
        let difference = |had: &[&'static str], has: &[&'static str]| {
            let [had, has] = [had, has].map(|names| names.iter().map(|name| (*name, *name)).collect());
            words_of_access(&AccessDifference { had, has, changed: Vec::new() }).join("; ")
        };
        assert!(closes(&difference(&[], &["oauth"])) && closes(&difference(&["oauth"], &["oauth", "mutual_tls"])));
        assert!(!closes(&difference(&["oauth"], &[])) && !closes(&difference(&["oauth", "saml"], &["saml"])));
        let swapped = difference(&["ip_restriction"], &["webhook_verification"]);
        assert_eq!(swapped, "`ip_restriction` no longer required; `webhook_verification` required instead");
        assert!(closes(&swapped));
        let beside = difference(&["ip_restriction", "oauth"], &["oauth", "webhook_verification"]);
        let words = "`ip_restriction` no longer required, `oauth` stays; `webhook_verification` also required";
        assert_eq!(beside, words);
        assert!(stops("now 404: no route handles them") && !stops("backend bkd_1 → bkd_2"));
        assert!(!closes("now 404: no route handles them") && !closes("backend bkd_1 → bkd_2"));
        let closing = [AccessChange::Narrower, AccessChange::Wider, AccessChange::Unknown]
            .map(|change| closes(&words_of_changed(&[("ip_restriction", change)]).concat()));
        assert_eq!(closing, [true, false, false]);
    }
}
