//! Modules by their own endpoints, and what exists as long as something is configured under it: TLS edges and event
//! subscriptions.

use rand::Rng;
use serde_json::{Value, json};

use super::{
    bodies,
    case::Case,
    client::{Difference, Expected, Request, same},
    resources::{not_found, precondition_failed},
    specification::{EDGE_MODULES, Faults, Fields, ROUTE_MODULES, TLS_EDGE_MODULES, module, read_module},
    state::{routes_of, sources_of},
};
use crate::support::server::BASE_URL;

const TLS_EDGES: &str = "/edges/tls";
const SUBSCRIPTIONS: &str = "/event_subscriptions";

impl Case {
    /// A PUT, DELETE or GET of a module.
    pub(super) fn write_module(&mut self) -> Result<(), Difference> {
        let (list, modules) = match self.random.random_range(0..10) {
            0..2 => ("/edges/https".to_owned(), &EDGE_MODULES[..]),
            2..4 => (TLS_EDGES.to_owned(), &TLS_EDGE_MODULES[..]),
            _ => (routes_of(&self.id("/edges/https")), &ROUTE_MODULES[..]),
        };
        let id = if list == TLS_EDGES {
            bodies::one(&mut self.random, &["edgtls_1", "edgtls_2"]).to_owned()
        } else {
            self.id(&list)
        };
        let name = bodies::one(&mut self.random, modules);
        match self.random.random_range(0..10) {
            0..6 => self.put_module(&list, &id, name),
            6..8 => self.delete_module(&list, &id, name),
            _ => {
                let path = format!("{list}/{id}/{name}");
                let request = Request::new("GET", &path);
                let current = self.module(&list, &id, name);
                if current.is_null() {
                    return self.tell(&request, &not_found());
                }
                let reply = self.ask(&request, &Expected::Success(200))?;
                same(&request, &current, &reply.json)?;
                self.etag(&request, &path, &current, &reply)
            }
        }
    }

    /// A module; null if it is not configured.
    fn module(&self, list: &str, id: &str, name: &str) -> Value {
        self.state.find(list, id).map(|resource| resource.json[name].clone()).unwrap_or_default()
    }

    /// A value for `If-Match`, if any, and whether it holds for a module.
    fn module_condition(&mut self, path: &str, current: &Value) -> (Option<String>, bool) {
        self.condition(path, Some(current).filter(|current| !current.is_null()))
    }

    fn put_module(&mut self, list: &str, id: &str, name: &'static str) -> Result<(), Difference> {
        let path = format!("{list}/{id}/{name}");
        let current = self.module(list, id, name);
        let (if_match, holds) = self.module_condition(&path, &current);
        let request = Request::new("PUT", &path).if_match(if_match);
        let has_body = self.random.random_bool(0.95);
        let body = if has_body { self.body(&module(name), 0.7) } else { json!({}) };
        // Without a body there are only the defaults of a switch (D64).
        if !has_body && name != "compression" {
            return self.tell(&request, &Expected::refusal(400, "SYNTAX"));
        }
        let request = if has_body { request.with(body.clone()) } else { request };

        let mut faults = Faults::new();
        let wanted = read_module(name, &body, "", &mut faults);
        let before = self.state.find(list, id).cloned();
        let is_missing = before.is_none() && list != TLS_EDGES;
        let mut after = before.as_ref().and_then(|it| it.json.as_object().cloned()).unwrap_or_default();
        after.insert(name.to_owned(), wanted.clone());
        let beside = self.state.faults(list, id, &after, &[(name.to_owned(), String::new())]);
        if !faults.is_empty() {
            faults.extend(if is_missing { Faults::new() } else { beside });
            return self.tell(&request, &Expected::Refusal(400, faults));
        }
        if !holds {
            return self.tell(&request, &precondition_failed());
        }
        if is_missing {
            return self.tell(&request, &not_found());
        }
        if !beside.is_empty() {
            return self.tell(&request, &Expected::Refusal(400, beside));
        }

        let reply = self.ask(&request, &Expected::Success(200))?;
        same(&request, &wanted, &reply.json)?;
        self.etag(&request, &path, &wanted, &reply)?;
        match before {
            Some(resource) => self.add(list, Value::Object(after), resource.declared),
            None => self.add_implicit(list, id, tls_edge(name, wanted))?,
        }
        self.commit(format!("PUT {path}"));
        Ok(())
    }

    fn delete_module(&mut self, list: &str, id: &str, name: &'static str) -> Result<(), Difference> {
        let path = format!("{list}/{id}/{name}");
        let current = self.module(list, id, name);
        let (if_match, holds) = self.module_condition(&path, &current);
        let request = Request::new("DELETE", &path).if_match(if_match);
        if !holds {
            return self.tell(&request, &precondition_failed());
        }
        let before = self.state.find(list, id).filter(|_| !current.is_null()).cloned();
        let Some(mut resource) = before else { return self.tell(&request, &not_found()) };
        self.tell(&request, &Expected::Success(204))?;
        resource.json[name] = Value::Null;
        let is_empty = TLS_EDGE_MODULES.iter().all(|module| resource.json[*module].is_null());
        if list == TLS_EDGES && is_empty {
            self.remove(list, id);
        } else {
            self.state.put(resource);
        }
        self.commit(format!("DELETE {path}"));
        Ok(())
    }

    /// Adds, removes or reads the event type of a subscription.
    pub(super) fn event_source(&mut self) -> Result<(), Difference> {
        let subscription = bodies::one(&mut self.random, &["esb_1", "esb_2"]);
        let (list, kind) = (sources_of(subscription), bodies::one(&mut self.random, &["a.v0", "b.v0", "c.v1"]));
        let path = format!("{list}/{kind}");
        let current = self.state.find(&list, kind).map(|source| source.json.clone());
        if self.random.random_bool(0.4) {
            let (if_match, holds) = self.condition(&path, current.as_ref());
            let request = Request::new("DELETE", &path).if_match(if_match);
            if !holds {
                return self.tell(&request, &precondition_failed());
            }
            if current.is_none() {
                return self.tell(&request, &not_found());
            }
            self.tell(&request, &Expected::Success(204))?;
            self.remove(&list, kind);
            if self.state.resources_of(&list).next().is_none() {
                self.remove(SUBSCRIPTIONS, subscription);
            }
            self.commit(format!("DELETE {path}"));
            return Ok(());
        }
        let faulty =
            [(json!({"type": "A"}), "INVALID_FORMAT"), (json!({}), "REQUIRED"), (json!({"type": 7}), "WRONG_TYPE")];
        if let Some((body, code)) = faulty.get(self.random.random_range(0..20_usize)) {
            let faults = Faults::from([(*code, "/type".to_owned())]);
            return self.tell(&Request::new("POST", &list).with(body.clone()), &Expected::Refusal(400, faults));
        }
        let request = Request::new("POST", &list).with(json!({"type": kind}));
        if current.is_some() {
            return self.tell(&request, &Expected::refusal(409, "CONFLICT"));
        }
        let reply = self.ask(&request, &Expected::Success(201))?;
        let wanted = json!({"type": kind, "uri": format!("{BASE_URL}{path}")});
        same(&request, &wanted, &reply.json)?;
        self.etag(&request, &path, &wanted, &reply)?;
        let is_first = self.state.resources_of(&list).next().is_none();
        self.add(&list, wanted, None);
        if is_first {
            let fields = json!({"description": "", "metadata": "", "destinations": []});
            self.add_implicit(SUBSCRIPTIONS, subscription, fields)?;
        }
        self.commit(format!("POST {list}"));
        Ok(())
    }
}

/// The fields of a new TLS edge with its first module.
fn tls_edge(name: &str, module: Value) -> Value {
    let mut fields = Fields::new();
    for text in ["description", "metadata"] {
        fields.insert(text.to_owned(), json!(""));
    }
    fields.insert("hostports".to_owned(), json!([]));
    for other in ["ip_restriction", "policies", "backend"] {
        fields.insert(other.to_owned(), Value::Null);
    }
    fields.insert(name.to_owned(), module);
    Value::Object(fields)
}
