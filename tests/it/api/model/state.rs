//! What the model believes the server has: a list of resources, oldest first, and the rules between them.

use serde_json::{Value, json};

use super::specification::{Faults, Fields, ROUTE_MODULES, TLS_EDGE_MODULES};

/// A resource as responses show it, but without what is nested in it.
#[derive(Clone)]
pub(super) struct Resource {
    /// The path of its list.
    pub list: String,
    pub id: String,
    pub json: Value,
    /// The source that owns it, and its name in the manifests.
    pub declared: Option<(String, String)>,
}

/// All resources of a revision.
#[derive(Clone, Default)]
pub(super) struct State(pub Vec<Resource>);

/// The list of an edge's routes.
pub(super) fn routes_of(edge: &str) -> String {
    format!("/edges/https/{edge}/routes")
}

/// The list of a subscription's sources.
pub(super) fn sources_of(subscription: &str) -> String {
    format!("/event_subscriptions/{subscription}/sources")
}

/// The edge of a list of routes.
pub(super) fn edge_of(list: &str) -> Option<&str> {
    list.strip_prefix("/edges/https/")?.strip_suffix("/routes")
}

impl State {
    /// The resources of a list, oldest first.
    pub(super) fn resources_of<'a>(&'a self, list: &'a str) -> impl DoubleEndedIterator<Item = &'a Resource> {
        self.0.iter().filter(move |resource| resource.list == list)
    }

    pub(super) fn find(&self, list: &str, id: &str) -> Option<&Resource> {
        self.0.iter().find(|resource| resource.list == list && resource.id == id)
    }

    /// The first new hostport of an edge whose host an edge of another source has, on whichever port (D103).
    pub(super) fn taken(&self, id: &str, wanted: &Value) -> Option<usize> {
        let list = "/edges/https";
        let before = self.find(list, id);
        let own = before.and_then(|it| it.declared.as_ref()).map(|(source, _)| source);
        let hostports = |edge: &Resource| edge.json["hostports"].as_array().cloned().unwrap_or_default();
        let has = |edge: &Resource, text: &Value| hostports(edge).contains(text);
        let is_of_other = |text: &Value| {
            let others: Vec<String> = self
                .resources_of(list)
                .filter(|edge| edge.id != id && edge.declared.as_ref().is_some_and(|(it, _)| Some(it) != own))
                .flat_map(|edge| hostports(edge).iter().map(host_of).collect::<Vec<_>>())
                .collect();
            others.contains(&host_of(text))
        };
        let is_new = |text: &Value| !before.is_some_and(|before| has(before, text));
        wanted.as_array()?.iter().position(|text| is_new(text) && is_of_other(text))
    }

    /// Replaces a resource, or adds it as the newest one.
    pub(super) fn put(&mut self, new: Resource) {
        match self.0.iter_mut().find(|known| known.list == new.list && known.id == new.id) {
            Some(known) => *known = new,
            None => self.0.push(new),
        }
    }

    /// Removes a resource and what is nested in it (D35), and returns all of it.
    pub(super) fn remove(&mut self, list: &str, id: &str) -> Vec<Resource> {
        let inside = format!("{list}/{id}/");
        let is_removed = |it: &Resource| (it.list == list && it.id == id) || it.list.starts_with(&inside);
        let (removed, kept): (Vec<Resource>, Vec<Resource>) =
            std::mem::take(&mut self.0).into_iter().partition(is_removed);
        self.0 = kept;
        removed
    }

    /// Whether there is the edge whose routes a list has. Other lists are always there (D34).
    pub(super) fn has_list(&self, list: &str) -> bool {
        edge_of(list).is_none_or(|edge| self.find("/edges/https", edge).is_some())
    }

    /// A resource as a GET returns it.
    pub(super) fn shown(&self, resource: &Resource) -> Value {
        let nested = |list: String| Value::Array(self.resources_of(&list).map(|it| it.json.clone()).collect());
        let mut json = resource.json.clone();
        match resource.list.as_str() {
            "/edges/https" => json["routes"] = nested(routes_of(&resource.id)),
            "/event_subscriptions" => json["sources"] = nested(sources_of(&resource.id)),
            _ => {}
        }
        json
    }

    /// The edges that name an authority.
    pub(super) fn is_in_use(&self, authority: &str) -> bool {
        self.resources_of("/edges/https")
            .any(|edge| authorities(&edge.json["mutual_tls"]).any(|(_, id)| id == authority))
    }

    /// The faults of a write against other resources: unknown references (D20) and traffic that is passed through
    /// (D15). `given` has the modules of the request with their places in its body.
    pub(super) fn faults(&self, list: &str, id: &str, after: &Fields, given: &[(String, String)]) -> Faults {
        let place = |name: &str| given.iter().find(|(given, _)| given == name).map(|(_, place)| place.as_str());
        let (mut faults, null) = (Faults::new(), Value::Null);
        if list == "/edges/https" {
            // A module that is no object is none, and a fault of its own.
            let mutual_tls = after.get("mutual_tls").filter(|module| module.is_object()).unwrap_or(&null);
            let routes = routes_of(id);
            if let Some(place) = place("mutual_tls") {
                for (index, authority) in authorities(mutual_tls) {
                    if self.find("/certificate_authorities", authority).is_none() {
                        faults.insert(("UNKNOWN_REFERENCE", format!("{place}/certificate_authority_ids/{index}")));
                    }
                }
            }
            if passes_through(after.get("tls_termination")) {
                // The module that was sent is at fault, whichever of the two was there before.
                let is_alone = !mutual_tls.is_null() && place("mutual_tls").is_none();
                let is_at_fault = is_alone || self.resources_of(&routes).any(reads_traffic);
                if let Some(place) = place("mutual_tls").filter(|_| !mutual_tls.is_null()) {
                    faults.insert(("NOT_ALLOWED", place.to_owned()));
                }
                if let Some(place) = place("tls_termination").filter(|_| is_at_fault) {
                    faults.insert(("NOT_ALLOWED", format!("{place}/terminate_at")));
                }
            }
        }
        let edge = edge_of(list).and_then(|edge| self.find("/edges/https", edge));
        if edge.is_some_and(|edge| passes_through(edge.json.get("tls_termination"))) {
            let is_module = |name: &str| after.get(name).is_some_and(Value::is_object);
            let reading = given.iter().filter(|(name, _)| needs_traffic(name) && is_module(name));
            faults.extend(reading.map(|(_, place)| ("NOT_ALLOWED", place.clone())));
        }
        faults
    }
}

/// The IDs of the authorities of a `mutual_tls` module, with their places in the list.
fn authorities(module: &Value) -> impl Iterator<Item = (usize, &str)> {
    let listed = module["certificate_authorities"].as_array().into_iter().flatten().enumerate();
    listed.filter_map(|(index, authority)| Some((index, authority["id"].as_str()?)))
}

fn passes_through(termination: Option<&Value>) -> bool {
    termination.is_some_and(|module| module["terminate_at"] == "upstream")
}

/// Whether a field of a route is a module that needs traffic that the edge can read.
fn needs_traffic(field: &str) -> bool {
    ROUTE_MODULES.contains(&field) && !TLS_EDGE_MODULES.contains(&field)
}

fn reads_traffic(route: &Resource) -> bool {
    ROUTE_MODULES.iter().any(|name| needs_traffic(name) && !route.json[*name].is_null())
}

/// The IDs, addresses and times that every resource has.
pub(super) fn common(id: &str, uri: &str, created_at: &Value) -> Fields {
    let common = json!({"id": id, "uri": uri, "created_at": created_at});
    common.as_object().cloned().unwrap_or_default()
}

/// The host of a valid hostport.
fn host_of(hostport: &Value) -> String {
    let text = hostport.as_str().unwrap_or_default();
    text.rsplit_once(':').map_or(text, |(host, _)| host).to_ascii_lowercase()
}
