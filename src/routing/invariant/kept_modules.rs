//! The modules that an invariant `keeps`: a change neither takes one from requests nor lets it restrict them less.
//!
//! Each module says itself how a configuration differs from a former one in whom it admits
//! ([`Module::access_change`](crate::model::Module::access_change)), as for a behaviour diff. For example, a
//! `user_agent_filter` without patterns is still there, but refuses nobody. So is a `mutual_tls` whose edge no longer terminates TLS.
//! A login that lets preflight requests pass still checks all others: these are judged apart.

use super::flaw::{Flaw, FlawPlace};
use super::requirement::{JudgedRequests, MetModule, method_in, modules_of};
use crate::model::Module as _;
use crate::model::kind::invariant::Invariant;
use crate::model::module::admission::AccessChange;
use crate::model::module::tls_termination::TlsTermination;
use crate::routing::behaviour::Fate;
use crate::syntax::text::printable;

impl JudgedRequests<'_, '_> {
    /// Whether the requests lose a module in `keeps` that they met, or it restricts them less: on the way of a route before and
    /// after the change, or on the edge that answers them before and after it. The next change could enable the backend, or add a
    /// route.
    pub(super) fn lost(self, invariant: &Invariant, former: &Fate<'_>) -> Option<Flaw> {
        let (edge, is_routed) = (self.fate.edge?, self.fate.route.is_some());
        let stays = former.edge.is_some_and(|former| former.key == edge.key);
        let counts =
            |met: &MetModule<'_>| (is_routed && former.route.is_some()) || (stays && met.place == FlawPlace::Edge);
        let had = |name: &str| {
            !former.lacks_tls(name, self.port) && modules_of(former).any(|met| counts(&met) && met.slot.name == name)
        };
        let has = |name: &str| modules_of(self.fate).any(|met| met.slot.name == name);
        let end = match self.fate.backend().map(printable) {
            Some(backend) => format!(" on its way to the backend `{backend}`"),
            None if is_routed => ", and its route could get a backend".to_owned(),
            None => ", and its edge could get a route".to_owned(),
        };
        let kept: Vec<&str> = invariant.keeps.iter().map(String::as_str).filter(|name| had(name)).collect();
        if let Some(lost) = kept.iter().find(|name| !has(name)) {
            let (clause, cure) = (format!("loses `{lost}`{end}"), format!("keep `{lost}`"));
            return Some(self.lacking(clause, cure, |met| met.slot.name == *lost));
        }
        if let Some(idle) = kept.iter().find(|name| self.fate.lacks_tls(name, self.port)) {
            let clause = format!("loses `{idle}` with the TLS of its edge{end}");
            let flaw = Flaw::certain(clause, FlawPlace::Edge).at(TlsTermination::SLOT);
            return Some(flaw.cured_by(format!("let the edge terminate TLS, for `{idle}`")));
        }
        let weakened = |are_preflights: bool| self.weakened(invariant, former, &kept, are_preflights, &end);
        let flaws: Vec<Flaw> = [false, true].into_iter().filter_map(weakened).collect();
        flaws.iter().find(|flaw| flaw.is_certain).or(flaws.first()).cloned()
    }

    /// Whether one of the kept modules restricts the requests less: the preflights among them, or the others.
    fn weakened(
        self,
        invariant: &Invariant,
        former: &Fate<'_>,
        kept: &[&str],
        are_preflights: bool,
        end: &str,
    ) -> Option<Flaw> {
        let method = method_in(&invariant.scope, are_preflights)?;
        let mut doubt = None;
        for met in modules_of(self.fate).filter(|met| kept.contains(&met.slot.name)) {
            let name = met.slot.name;
            match self.fate.access_change(former, name, are_preflights) {
                AccessChange::Wider => {
                    let flaw = Flaw::certain(format!("is restricted less by `{name}`{end}"), met.place).at(name);
                    let flaw = flaw.cured_by(format!("let `{name}` restrict as much as before"));
                    return Some(Flaw { method, ..flaw });
                }
                AccessChange::Unknown => doubt = doubt.or_else(|| Some(met.doubt("whom the changed `{}` would admit"))),
                AccessChange::Same | AccessChange::Narrower => {}
            }
        }
        doubt.map(|doubt: Flaw| Flaw { method, ..doubt })
    }
}
