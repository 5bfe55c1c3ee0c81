//! What a change in the history did to access: the modules that restricted it before and after.

use crate::model::{Entry, Kind};
use crate::routing::behaviour::{missing_protections, protections};
use crate::store::commit::header::ProtectionChange;

impl ProtectionChange {
    /// The effect of a change of a resource, from the whole of both: the fields that differ do not tell that another login stays.
    pub(super) fn new(before: Option<&Entry>, after: Option<&Entry>) -> Self {
        let of = |entry: &Entry| protections(entry.spec().modules());
        // Who deletes a route serves nothing there.
        let Some(after) = after else { return Self::default() };
        let has = of(after);
        let Some(had) = before.map(of) else {
            let is_new_and_open = after.key.kind == Kind::HttpsEdgeRoute && has.is_empty();
            return Self { is_new_and_open, ..Self::default() };
        };
        let names = |modules: Vec<&str>| modules.into_iter().map(str::to_owned).collect();
        let (lost, gained) = (missing_protections(&had, &has), missing_protections(&has, &had));
        Self { lost: names(lost), gained: names(gained), is_new_and_open: false }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;
    use crate::routing::tests::{route, route_key, spec_of};

    fn effect(before: Option<Value>, after: Option<Value>) -> ProtectionChange {
        let entry = |modules: Value| {
            let spec = spec_of(Kind::HttpsEdgeRoute, &route("/", modules));
            Entry::new(route_key("edghts_1", "edghtsrt_1"), spec, Timestamp::UNIX_EPOCH, 0)
        };
        ProtectionChange::new(before.map(entry).as_ref(), after.map(entry).as_ref())
    }

    #[test]
    fn a_change_opens_or_closes() {
        let mut restricting = 0;
        for slot in Kind::HttpsEdgeRoute.info().slots {
            let (with, without) = (json!({slot.name: (slot.example)()}), json!({}));
            let (opened, closed) =
                (effect(Some(with.clone()), Some(without.clone())), effect(Some(without), Some(with)));
            assert_eq!(opened.lost, closed.gained);
            assert!(opened.gained.is_empty() && closed.lost.is_empty());
            restricting += opened.lost.len();
            assert!(opened.lost.iter().all(|lost| *lost == slot.name));
        }
        assert!(restricting > 3, "{restricting}");
        assert!(effect(None, Some(json!({}))).is_new_and_open);
        let moved = effect(Some(json!({"match": "/a"})), Some(json!({})));
        for same in [effect(Some(json!({})), None), moved] {
            assert_eq!(same, ProtectionChange::default());
        }
    }

    #[test]
    fn one_of_two_logins_neither_opens_nor_closes() {
        let login = |name: &str| {
            let slot = Kind::HttpsEdgeRoute.info().slots.iter().find(|slot| slot.is_login && slot.name == name);
            slot.map(|slot| (slot.example)())
        };
        let both = json!({"oidc": login("oidc"), "oauth": login("oauth")});
        for one in ["oidc", "oauth"].map(|name| json!({name: login(name)})) {
            assert_eq!(effect(Some(both.clone()), Some(one.clone())), ProtectionChange::default());
            assert_eq!(effect(Some(one.clone()), Some(both.clone())), ProtectionChange::default());
            assert_eq!(effect(Some(one), Some(json!({}))).lost.len(), 1);
        }
    }
}
