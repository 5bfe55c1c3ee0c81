//! Who has access, as pages show it: what protects a route, and what a change did to that.

use maud::{Markup, html};

use super::access_effect::{AccessEffect, compared_revision};
use super::elements::{Tone, badge, locked};
use super::layout::prose;
use super::page::PageRequest;
use crate::model::Entry;
use crate::routing::behaviour::protections;
use crate::server::prelude::*;

/// The modules of a route and of its edge that restrict access.
pub(super) fn locks(edge: Option<&Entry>, route: &Entry) -> Vec<&'static str> {
    let of = |entry: &Entry| protections(entry.spec().modules());
    edge.map(of).unwrap_or_default().into_values().chain(of(route).into_values()).collect()
}

/// Shows what protects a route, or that it is open, which is a warning only where it is new.
pub(super) fn lock_list(locks: &[&str]) -> Markup {
    html! {
        @if locks.is_empty() { (badge(Tone::Neutral, "open to everybody")) }
        (lock_icons(locks))
    }
}

/// Shows what protects a route among others. One that is open has a faint badge, as most have: what is protected stands out.
pub(super) fn lock_badges(locks: &[&str]) -> Markup {
    html! {
        @if locks.is_empty() { span.badge title="Nothing on the route or its edge restricts access" { "open" } }
        (lock_icons(locks))
    }
}

fn lock_icons(locks: &[&str]) -> Markup {
    html! { @for lock in locks { (locked(lock)) " " } }
}

/// What a revision that changed so many resources did to access, and as it is shown: nothing if it did nothing.
pub(super) fn effect_of(
    request: &PageRequest,
    revision: Option<u64>,
    changed: usize,
) -> (Option<Arc<AccessEffect>>, Markup) {
    let effect = compared_revision(revision, changed).and_then(|revision| request.effect(revision));
    let shown = html! {
        @if let Some(effect) = &effect { (effect.shown()) }
        @else if revision.is_some() && changed > 0 { (badge(Tone::Neutral, "access not compared")) }
    };
    (effect, shown)
}

impl AccessEffect {
    /// Shows the effect; nothing if there is none.
    pub(super) fn shown(&self) -> Markup {
        let names = |modules: &[String]| {
            modules.iter().map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
        };
        html! {
            @if !self.lost.is_empty() { (badge(Tone::Bad, format_args!("opens access: without {}", names(&self.lost)))) " " }
            @if !self.taken_over.is_empty() { (badge(Tone::Bad, "opens access")) " " (prose(&self.taken_over.join("; "))) " " }
            @if self.is_new_and_open { (badge(Tone::Warning, "new open route")) " " (self.open_routes) " " }
            @if !self.gained.is_empty() { (badge(Tone::Good, format_args!("closes access: with {}", names(&self.gained)))) " " }
            @if self.is_partial { small { "requests not compared" } }
        }
    }
}
