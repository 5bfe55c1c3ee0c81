//! A module that requests pass, and whether another one has the same effect: an answer that confirms no guess of a secret (D101).
//!
//! # The problem
//!
//! Every reader may plan, and a planned route can take requests from any other route. If their fates were compared with the
//! secrets of both routes, a plan that treats no request differently would confirm a guess of the other route's secret. Masking
//! what a reader does not see is not enough: a plan also depends on resources that its manifests do not name.
//!
//! # The idea
//!
//! **Secrets of different resources are never compared**, whoever asks. Modules of two resources are compared without their
//! secrets. If they are equal but have a secret, they are neither the same nor configured differently: they have
//! [other secrets](ModuleLikeness::OtherSecrets), even if the values happen to be equal. So nothing that is made from fates has to
//! know its reader.
//!
//! A resource before and after a change is compared with its secrets, if these have the same origin
//! ([`required_secrets`](crate::model::required_secrets)): a plan for somebody who does not see them has the same ones on both
//! sides.
//!
//! For example, `/` of source `shop` has `webhook_verification`, and `docs` plans `/docs/` with the same module and a guess. The
//! requests below `/docs/` then have that module with the secret of another route, whether the guess is right or not.
//!
//! # What it never does
//!
//! It does not decide by the value of a secret, except for the same resource.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::model::module::admission::AccessChange;
use crate::model::required_secrets::are_comparable;
use crate::model::secrets::serialization_mode::without_digests;
use crate::model::traffic::Stage;
use crate::model::{AnyModule, Entry, Id, Key, MASK, Secrets, Slot, Snapshot};
use crate::routing::order::in_traffic_order;

/// An enabled module that requests pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FateModule<'s> {
    state: &'s Snapshot,
    /// The slot of the module.
    pub(crate) slot: &'static Slot,
    /// The module.
    pub(crate) module: &'s dyn AnyModule,
    /// The edge or route that has it.
    pub(crate) host: &'s Arc<Entry>,
    /// The stage at which it first takes effect.
    pub(crate) stage: Stage,
}

/// How a module compares with the one in the same slot of another fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModuleLikeness {
    /// The module has the same effect.
    Same,
    /// The module belongs to another resource and differs at most in its secrets, which are not compared.
    OtherSecrets,
    /// The module has the same configuration, but another system knows it by the ID of its host, which is another one.
    OtherIdentity,
    /// The module is configured differently.
    Different,
}

impl<'s> FateModule<'s> {
    /// The enabled modules of an edge or route that have an effect on requests.
    pub(super) fn all_of(state: &'s Snapshot, host: &'s Arc<Entry>) -> Vec<Self> {
        let found = in_traffic_order(host.spec().as_ref()).into_iter().filter_map(|it| {
            let stage = it.stages.first().copied()?;
            Some(Self { state, slot: it.slot, module: it.module, host, stage })
        });
        found.collect()
    }

    /// Compares the module with one of another fate.
    pub(crate) fn compare(&self, other: &FateModule<'_>) -> ModuleLikeness {
        if self.slot != other.slot {
            return ModuleLikeness::Different;
        }
        if self.host.key == other.host.key {
            let is_comparable = are_comparable((self.state, &**self.host), (other.state, &**other.host), self.slot);
            let is_alike = is_comparable && is_like(self, other, is_same);
            return if is_alike { ModuleLikeness::Same } else { ModuleLikeness::Different };
        }
        if !is_like(self, other, is_same_in_public) {
            return ModuleLikeness::Different;
        }
        if self.slot.settings_with_id.is_some() && self.host.key.id != other.host.key.id {
            return ModuleLikeness::OtherIdentity;
        }
        if has_secrets(self.module) { ModuleLikeness::OtherSecrets } else { ModuleLikeness::Same }
    }

    /// Compares whom the module admits with whom a former one did.
    pub(super) fn access_change(&self, former: &FateModule<'_>) -> AccessChange {
        self.plain_access_change(former).unwrap_or_else(|| self.module.access_change(former.module))
    }

    /// Compares whom the module admits with preflight requests, or with all others, with whom a former one did.
    pub(super) fn access_change_of(&self, former: &FateModule<'_>, are_preflights: bool) -> AccessChange {
        let plain = self.plain_access_change(former);
        plain.unwrap_or_else(|| self.module.access_change_of(former.module, are_preflights))
    }

    /// The difference in whom the modules admit, unless their own configurations decide it. Of modules with secrets that are not
    /// compared, it is unknown as soon as anything else differs.
    fn plain_access_change(&self, former: &FateModule<'_>) -> Option<AccessChange> {
        if former.compare(self) != ModuleLikeness::Different {
            return Some(AccessChange::Same);
        }
        let is_comparable = self.host.key == former.host.key
            && are_comparable((former.state, &**former.host), (self.state, &**self.host), self.slot);
        let is_secret = !is_comparable && (has_secrets(self.module) || has_secrets(former.module));
        (is_secret || reference_another_content(former, self)).then_some(AccessChange::Unknown)
    }
}

/// Whether two modules reference a resource that has another content for the second one.
fn reference_another_content(one: &FateModule<'_>, other: &FateModule<'_>) -> bool {
    let others = references(other.module);
    let mut common = references(one.module).into_iter().filter(|target| others.contains(target));
    common.any(|target| match (one.state.get(&target), other.state.get(&target)) {
        (Some(one), Some(other)) => !has_same_content(one, other),
        (None, None) => false,
        _ => true,
    })
}

/// Whether both have the same Spec, and it references nothing that could differ.
pub(super) fn is_unchanged(one: &Entry, other: &Entry) -> bool {
    let is_same = || Arc::ptr_eq(one.spec(), other.spec()) || one.spec().same(other.spec().as_ref());
    one.lazy_spec.references().is_empty() && is_same()
}

/// Whether two modules have the same configuration, with the content of what they reference instead of its ID.
fn is_like(
    one: &FateModule<'_>,
    other: &FateModule<'_>,
    are_equal: fn(&dyn AnyModule, &dyn AnyModule) -> bool,
) -> bool {
    let (targets, others) = (references(one.module), references(other.module));
    if targets.is_empty() && others.is_empty() {
        return are_equal(one.module, other.module);
    }
    let blank = |module: &dyn AnyModule, count: usize| module.with_references(&vec![Id::new(""); count]);
    let contents = targets.iter().zip(&others).all(|(target, another)| {
        match (one.state.get(target), other.state.get(another)) {
            (Some(target), Some(another)) => has_same_content(target, another),
            // Of states that have edges and routes only, the ID is all that is known.
            (None, None) => target == another,
            _ => false,
        }
    });
    let (blank_one, blank_other) = (blank(one.module, targets.len()), blank(other.module, others.len()));
    targets.len() == others.len() && contents && are_equal(blank_one.as_ref(), blank_other.as_ref())
}

fn is_same(one: &dyn AnyModule, other: &dyn AnyModule) -> bool {
    one.same(other)
}

/// Whether two modules are the same for somebody who sees no secret.
fn is_same_in_public(one: &dyn AnyModule, other: &dyn AnyModule) -> bool {
    public_form(one).is_some_and(|form| public_form(other) == Some(form))
}

/// A module with masks instead of secrets, known or not.
fn public_form(module: &dyn AnyModule) -> Option<Value> {
    let mut form = module.to_json(Secrets::Masked).ok()?;
    without_digests(&mut form);
    Some(form)
}

/// Whether a module has secrets, known or not.
fn has_secrets(module: &dyn AnyModule) -> bool {
    public_form(module).is_none_or(|form| has_mask(&form))
}

/// Whether a value has a mask. It is one in a state that another program has sent without its secrets, too.
fn has_mask(value: &Value) -> bool {
    match value {
        Value::String(text) => text == MASK,
        Value::Array(items) => items.iter().any(has_mask),
        Value::Object(fields) => fields.values().any(has_mask),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn references(module: &dyn AnyModule) -> Vec<Key> {
    let mut targets = Vec::new();
    module.references(&mut |reference| targets.push(reference.target));
    targets
}

/// Whether two resources that modules reference have the same effect. Two with secrets are as little compared as two modules.
fn has_same_content(one: &Entry, other: &Entry) -> bool {
    if one.key == other.key {
        return is_unchanged(one, other) || content(one) == content(other);
    }
    let is_public = |entry: &Entry| match [Secrets::Revealed, Secrets::Masked].map(|it| entry.spec().to_json(it)) {
        [Ok(revealed), Ok(masked)] => revealed == masked,
        _ => false,
    };
    is_public(one) && is_public(other) && content(one) == content(other)
}

/// The fields of a resource that have an effect on requests: not those that are for people. They are only compared, and never with
/// those of another resource that has secrets.
pub(in crate::routing) fn content(entry: &Entry) -> Option<Map<String, Value>> {
    let mut fields = entry.spec().to_json(Secrets::Revealed).ok()?;
    fields.retain(|field, _| !matches!(field.as_str(), "description" | "metadata"));
    Some(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::secrets::unknown_value::unknown;
    use crate::routing::tests::{edge_key, route, route_key, state_of_json};

    /// A state with a route that has `webhook_verification`.
    fn state(route_id: &str, provider: &str, secret: &str) -> Snapshot {
        let hook = json!({"webhook_verification": {"provider": provider, "secret": secret}});
        let edge = (edge_key("edghts_1"), json!({"hostports": ["a.example.com:443"]}));
        state_of_json([edge, (route_key("edghts_1", route_id), route("/", hook))])
    }

    fn compared(one: &Snapshot, other: &Snapshot) -> Vec<ModuleLikeness> {
        let edge = edge_key("edghts_1");
        let [had, has] = [one, other].map(|state| {
            let modules = state.children(&edge).flat_map(|route| FateModule::all_of(state, route));
            modules.filter(|it| ["webhook_verification", "saml"].contains(&it.slot.name)).collect::<Vec<_>>()
        });
        assert_eq!((had.len(), has.len()), (1, 1));
        had.iter().zip(&has).map(|(one, other)| one.compare(other)).collect()
    }

    #[test]
    fn a_saml_login_of_another_route_is_one_that_the_identity_provider_does_not_know() {
        let of = |id: &str| {
            let saml = json!({"saml": {"idp_metadata": "<EntityDescriptor/>"}});
            let edge = (edge_key("edghts_1"), json!({"hostports": ["a.example.com:443"]}));
            state_of_json([edge, (route_key("edghts_1", id), route("/", saml))])
        };
        let known = of("edghtsrt_1");
        assert_eq!(compared(&known, &of("edghtsrt_1")), [ModuleLikeness::Same]);
        assert_eq!(compared(&known, &of("edghtsrt_2")), [ModuleLikeness::OtherIdentity]);
    }

    #[test]
    fn a_resource_is_compared_with_its_secrets_and_two_resources_never_are() {
        use ModuleLikeness::{Different, OtherSecrets, Same};
        let known = state("edghtsrt_1", "github", "right");
        assert_eq!(compared(&known, &state("edghtsrt_1", "github", "right")), [Same]);
        assert_eq!(compared(&known, &state("edghtsrt_1", "github", "wrong")), [Different]);
        let unset = unknown("from_env", "HOOK");
        for guess in ["right", "wrong", MASK, unset.as_str()] {
            let probe = |provider: &str| state("edghtsrt_2", provider, guess);
            assert_eq!(compared(&known, &probe("github")), [OtherSecrets], "{guess}");
            assert_eq!(compared(&probe("github"), &known), [OtherSecrets], "{guess}");
            assert_eq!(compared(&known, &probe("gitlab")), [Different], "{guess}");
        }
        let public = |id: &str| state(id, "sns", "");
        assert_eq!(compared(&public("edghtsrt_1"), &public("edghtsrt_2")), [Same], "no secret to compare");
        assert_eq!(compared(&public("edghtsrt_1"), &state("edghtsrt_2", "sns", "guess")), [Different]);
    }
}
