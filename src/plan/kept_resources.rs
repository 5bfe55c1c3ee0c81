//! Resources that a source no longer declares but that are kept because other sources use them: a user of a resource
//! must not block all other changes of its source (D35, D112).
//!
//! A kept resource is not a change of the plan: it neither counts towards the deletion limit nor leaves anything
//! pending. Each plan looks again, so that the first one after the last user is gone deletes it.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use crate::model::{Claim, Desired, Entry, Id, Key, Kind, Snapshot};
use crate::syntax::text::{printable, printable_path};
use crate::tenancy::certificates::depends_on;

/// The most users that a warning names.
const NAMED: usize = 10;

/// A resource that a source no longer declares, and that other sources still use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptResource {
    /// The resource.
    pub key: Key,
    /// The name in the manifests, prefixed with the parent's name.
    pub name: String,
    /// The declared resource of the same name, which replaces it.
    pub successor: Option<Key>,
    /// The first of its users.
    users: Vec<ResourceUser>,
    /// The number of users that are not listed.
    omitted: usize,
}

/// A user of a kept resource: a resource of another source, or a kept one of the same source.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ResourceUser {
    key: Key,
    source: String,
    /// The kind, name, source and ID.
    name: String,
    /// The file and line that declare it, if known.
    place: Option<String>,
}

impl KeptResource {
    pub(super) fn new(
        snapshot: &Snapshot,
        desired: &BTreeMap<Key, Desired>,
        (key, claim, name): (&Key, &Claim, String),
        users: &[Key],
    ) -> Self {
        let user = |key: &Key| ResourceUser {
            key: key.clone(),
            source: snapshot.get(key).and_then(|it| it.source()).unwrap_or_default().to_owned(),
            name: snapshot.name_of(key),
            place: None,
        };
        let first = Key { id: Id::new(""), ..key.clone() };
        let mut siblings =
            desired.range(first..).take_while(|(other, _)| other.kind == key.kind && other.parent == key.parent);
        let successor = siblings.find(|(_, wanted)| wanted.claim.name == claim.name).map(|(key, _)| key.clone());
        let listed: Vec<ResourceUser> = users.iter().take(NAMED).map(user).collect();
        let omitted = users.len() - listed.len();
        Self { key: key.clone(), name, successor, users: listed, omitted }
    }

    /// Looks up where other sources than `own` declare what uses it.
    pub(crate) fn locate(&mut self, own: &str, declared_at: impl Fn(&Key, &str) -> Option<String>) {
        for user in self.users.iter_mut().filter(|user| user.source != own) {
            user.place = declared_at(&user.key, &user.source);
        }
    }
}

impl Display for KeptResource {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({}) is kept: it is in use by ", self.key.kind, printable(&self.name), self.key.id)?;
        for (index, user) in self.users.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            write!(f, "{separator}{}", user.name)?;
            if let Some(place) = &user.place {
                write!(f, " at {}", printable_path(place))?;
            }
        }
        if self.omitted > 0 {
            write!(f, " and {} more", self.omitted)?;
        }
        Ok(())
    }
}

/// Returns the users of those among some undeclared resources that other sources need: as the target of a reference, as the
/// edge of a route, or because a kept resource needs them. Users come before what they use.
pub(super) fn used_by_others(
    snapshot: &Snapshot,
    desired: &BTreeMap<Key, Desired>,
    source: &str,
    undeclared: &[&Arc<Entry>],
) -> BTreeMap<Key, Vec<Key>> {
    let mut kept: BTreeMap<Key, Vec<Key>> = BTreeMap::new();
    let is_foreign = |key: &Key| {
        let owner = snapshot.get(key).and_then(|entry| entry.source());
        // A resource that the source takes over is no longer foreign.
        owner.is_some_and(|owner| owner != source) && !desired.contains_key(key)
    };
    for entry in undeclared {
        let key = &entry.key;
        let users = snapshot.dependents(key);
        let mut users: Vec<Key> = users.filter(|user| is_foreign(user) || kept.contains_key(*user)).cloned().collect();
        if key.kind == Kind::TlsCertificate {
            // Edges present certificates by their hosts, without a reference.
            let edges = kept.keys().filter_map(|key| snapshot.get(key));
            users.extend(edges.filter(|edge| depends_on(edge, entry, desired)).map(|edge| edge.key.clone()));
        }
        if !users.is_empty() {
            kept.insert(key.clone(), users);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::module::mutual_tls::MutualTls;
    use crate::model::secrets::Text;
    use crate::model::{CertificateAuthority, HttpsEdge, Operation, Secret, TlsCertificate};
    use crate::plan::deletion_budget::DeletionBudget;
    use crate::plan::diff;
    use crate::plan::tests::{after, calls, claim, create, create_edge, create_route, edge, route, state};

    const CA: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/staff-devices.pem"));
    const CHAIN: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/shop.chain.pem"));
    const KEY: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/storefront/certs/shop.key.pem"));

    #[test]
    fn what_another_source_uses_stays_with_all_that_it_needs_until_it_is_let_go() {
        let authority = Key::new(Kind::CertificateAuthority, Id::new("ca_1"));
        let certificate = Key::new(Kind::TlsCertificate, Id::new("cert_1"));
        let mutual_tls = MutualTls { certificate_authority_ids: vec!["ca_1".to_owned()], ..MutualTls::default() };
        let hostports = vec!["shop.example.com:443".to_owned()];
        let spec = HttpsEdge { hostports, mutual_tls: Some(Arc::new(mutual_tls)), ..HttpsEdge::default() };
        let ca = CertificateAuthority { ca_pem: Text::new(CA), ..CertificateAuthority::default() };
        let (certificate_pem, private_key_pem) = (Text::new(CHAIN), Secret::new(KEY));
        let pair = TlsCertificate { certificate_pem, private_key_pem, ..TlsCertificate::default() };
        let state = state(&[
            create(&authority, Arc::new(ca), claim("a", "staff")),
            create(&certificate, Arc::new(pair), claim("a", "shop")),
            create(&edge("1"), Arc::new(spec), claim("a", "shop")),
            create_edge("2", claim("a", "unused")),
            create_route("1", "1", claim("a", "own")),
            create_route("1", "2", claim("b", "theirs")),
        ]);
        let nothing = BTreeMap::new();
        let plan = |state: &Snapshot| diff(state, &nothing, "a", true, DeletionBudget::Percent(100.0), None, None);
        let first = plan(&state);
        assert_eq!(calls(&first), ["DELETE /edges/https/edghts_1/routes/edghtsrt_1", "DELETE /edges/https/edghts_2"]);
        let told: Vec<String> = first.kept_resources.iter().map(ToString::to_string).collect();
        let by_edge = "is kept: it is in use by HttpsEdge shop of source `a` (edghts_1)";
        let by_route = "is kept: it is in use by HttpsEdgeRoute shop/theirs of source `b` (edghtsrt_2)";
        let expected = [
            format!("HttpsEdge shop (edghts_1) {by_route}"),
            format!("TlsCertificate shop (cert_1) {by_edge}"),
            format!("CertificateAuthority staff (ca_1) {by_edge}"),
        ];
        assert_eq!(told, expected);

        let applied = after(&state, &first.operations());
        let again = plan(&applied);
        assert_eq!((calls(&again), &again.kept_resources), (Vec::new(), &first.kept_resources));
        let delete = Operation::Delete { key: route("1", "2"), with_children: false };
        let released = after(&applied, &[delete]);
        let last = plan(&released);
        assert!(last.kept_resources.is_empty(), "{:?}", last.kept_resources);
        let rest = after(&released, &last.operations());
        assert_eq!((calls(&last).len(), rest.len()), (3, 0));
    }

    #[test]
    fn a_route_without_a_source_is_no_use_by_another_source() {
        let state = state(&[create_edge("1", claim("a", "shop")), create_route("1", "1", None)]);
        let plan = diff(&state, &BTreeMap::new(), "a", true, DeletionBudget::Percent(100.0), None, None);
        assert!(plan.kept_resources.is_empty(), "{:?}", plan.kept_resources);
        assert_eq!(plan.refusals.len(), 1);
    }
}
