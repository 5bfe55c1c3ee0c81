//! The store: what every engine must do, what survives which accident, and which formats it refuses.

mod backup;
mod crash;
mod faults;
mod folder;
mod full_disk;
mod growth;
mod history;
mod history_server;
mod history_shares;
mod new_store;
mod postgres;
mod postgres_tls;
mod rekey;
mod repair;
mod secret_days;
mod sled_layout;
mod wrong_clock;

mod damage;
mod earlier_revisions;
mod encryption;
mod engines;
mod formats;
mod groups;
mod index;
mod power;
mod readers;

use std::sync::Arc;

use edgewright::{
    Snapshot, Store,
    resources::{
        AnyResource, Author, HttpsEdge, HttpsEdgeRoute, Id, IpRestriction, Key, Kind, MatchType, Operation, Traffic,
    },
    storage::CommitError,
};

/// The key of a small resource with a number.
fn small_key(number: usize) -> Key {
    Key::new(Kind::IpRestriction, Id::new(&format!("ipx_{number:027}")))
}

/// Creates a small resource.
fn small(number: usize) -> Operation {
    let spec = IpRestriction {
        r#type: Some(Traffic::Api),
        description: format!("number {number}"),
        ..IpRestriction::default()
    };
    create(small_key(number), Arc::new(spec))
}

/// Changes the description of a small resource.
fn described(number: usize, description: &str) -> Operation {
    let spec = IpRestriction { description: description.into(), ..IpRestriction::default() };
    Operation::Patch { key: small_key(number), spec: Arc::new(spec), fields: vec!["description".into()] }
}

/// Deletes a small resource.
fn deleted(number: usize) -> Operation {
    Operation::Delete { key: small_key(number), with_children: false }
}

fn create(key: Key, spec: Arc<dyn AnyResource>) -> Operation {
    Operation::Create { key, spec, claim: None, token: None }
}

/// Creates an edge with routes, in one commit.
fn edge(number: usize, routes: usize) -> Vec<Operation> {
    let id = Id::new(&format!("edghts_{number:027}"));
    let spec = HttpsEdge { hostports: vec![format!("e{number}.example.com:443")], ..HttpsEdge::default() };
    let routes = (0..routes).map(|route| {
        let spec = HttpsEdgeRoute {
            match_type: Some(MatchType::PathPrefix),
            r#match: format!("/{route}"),
            description: "x".repeat(100),
            ..HttpsEdgeRoute::default()
        };
        let key = Key::child(Kind::HttpsEdgeRoute, id.clone(), Id::new(&format!("edghtsrt_{number:013}_{route:013}")));
        create(key, Arc::new(spec))
    });
    std::iter::once(create(Key::new(Kind::HttpsEdge, id.clone()), Arc::new(spec)))
        .chain(routes.collect::<Vec<_>>())
        .collect()
}

fn commit(store: &Store, operations: Vec<Operation>) -> Result<Arc<Snapshot>, CommitError> {
    store.commit(Author::Local, operations)
}

/// Everything that a store holds, as text that can be compared.
fn content(store: &Store) -> Vec<String> {
    let snapshot = store.snapshot();
    let entries = snapshot.iter().map(|entry| format!("{} {:?} {}", entry.key, entry.spec(), entry.order));
    entries.chain([format!("revision {}", snapshot.revision)]).collect()
}
