//! Who has access, as pages show it: what protects a route, and what a change did to that.

use maud::{Markup, html};

use super::access_effect::AccessEffect;
use super::elements::{Tone, badge, locked};
use crate::model::Entry;
use crate::routing::behaviour::protections;
use crate::server::prelude::*;

/// The modules of a route and of its edge that restrict access.
pub(super) fn locks(edge: Option<&Entry>, route: &Entry) -> Vec<&'static str> {
    let of = |entry: &Entry| protections(entry.spec().modules());
    edge.map(of).unwrap_or_default().into_values().chain(of(route).into_values()).collect()
}

/// Shows what protects a route, or that it is open.
pub(super) fn lock_list(locks: &[&str]) -> Markup {
    html! {
        @if locks.is_empty() { (badge(Tone::Warning, "open to everybody")) }
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

impl AccessEffect {
    /// Shows the effect; nothing if there is none.
    pub(super) fn shown(&self) -> Markup {
        let names = |modules: &[&str]| {
            modules.iter().copied().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
        };
        html! {
            @if !self.lost.is_empty() { (badge(Tone::Bad, format_args!("opens access: without {}", names(&self.lost)))) " " }
            @if !self.taken_over.is_empty() { (badge(Tone::Bad, "opens access")) " " (self.taken_over.join("; ")) " " }
            @if self.is_new_and_open { (badge(Tone::Warning, "new open route")) " " }
            @if !self.gained.is_empty() { (badge(Tone::Good, format_args!("closes access: with {}", names(&self.gained)))) " " }
            @if self.is_partial { small { "requests not compared" } }
        }
    }
}
