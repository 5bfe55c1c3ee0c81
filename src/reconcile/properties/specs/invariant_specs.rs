//! Generated invariants.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::{description, metadata};
use crate::model::kind::invariant::{InvariantExemption, InvariantScope, UnprovenLevel};
use crate::model::module::tls_termination::TlsVersion;
use crate::model::{HttpsEdgeRoute, Invariant};

/// An invariant about hosts that no edge has, so that every state meets it. Whatever of it changes, it requires something.
pub(super) fn invariant() -> impl Strategy<Value = Invariant> {
    let some = |all: &[&str]| {
        let all: Vec<String> = all.iter().map(|text| (*text).to_owned()).collect();
        subsequence(all.clone(), 0..=all.len())
    };
    let nowhere = |host: &str| Just(vec![host.to_owned()]);
    let said = || description().prop_map(|text| if text.trim().is_empty() { "it holds".to_owned() } else { text });
    let slots: Vec<&str> = HttpsEdgeRoute::SLOTS.iter().map(|slot| slot.name).collect();
    let scope = built!(InvariantScope {
        hosts: nowhere("*.nowhere.invalid"),
        path_prefixes: some(&["/admin", "/é"]),
        methods: some(&["GET", "post"]),
        sources: some(&["shop", "größe"])
    });
    let exemption = built!(InvariantExemption {
        hosts: nowhere("a.nowhere.invalid"),
        path_prefixes: some(&["/health"]),
        owner: Just("platform".to_owned()),
        reason: said(),
        expires: Just("2099-12-31".to_owned())
    });
    built!(Invariant {
        description: said(),
        metadata: metadata(),
        scope: scope,
        requires_any: some(&slots),
        only_from: some(&["ipp_office", "ipp_home"]),
        backends: Just(vec!["bkd_shop*".to_owned()]),
        min_tls_version: option::of(select(vec![TlsVersion::V1_2, TlsVersion::V1_3])),
        keeps: some(&slots),
        unproven: select(vec![UnprovenLevel::Warn, UnprovenLevel::Deny]),
        exemptions: vec(exemption, 0..2)
    })
}
