//! Resources: create, change, delete and read one, and read a page of a list, now or at an earlier revision.

use rand::Rng;
use serde_json::{Value, json};

use super::{
    bodies::{self, Pool},
    case::Case,
    client::{Difference, Expected, Request, same},
    specification::{Faults, Field, Fields, OTHER_ROUTE_MODULES, complete, given, is_unset, kind},
    state::{State, common, edge_of},
};
use crate::support::server::BASE_URL;

/// How many items a page has unless the client says otherwise (D12).
const PAGE: usize = 100;

pub(super) fn not_found() -> Expected {
    Expected::refusal(404, "NOT_FOUND")
}

pub(super) fn precondition_failed() -> Expected {
    Expected::refusal(412, "PRECONDITION_FAILED")
}

/// The fields that a body gives, with their places in it.
fn places(given: &Fields) -> Vec<(String, String)> {
    given.keys().map(|name| (name.clone(), format!("/{name}"))).collect()
}

fn is_id(prefix: &str, id: &str) -> bool {
    id.strip_prefix(prefix).is_some_and(|rest| rest.len() == 27 && rest.bytes().all(|it| it.is_ascii_alphanumeric()))
}

/// The refusal of a hostport of another source's edge.
fn taken(index: usize) -> Expected {
    Expected::Refusal(409, Faults::from([("NOT_DELEGATED", format!("/hostports/{index}"))]))
}

impl Case {
    pub(super) fn body(&mut self, fields: &[Field], probability: f64) -> Value {
        let gone = self.gone.get("/certificate_authorities").map(Vec::as_slice).unwrap_or_default();
        bodies::body(&mut self.random, &Pool { state: &self.state, gone }, fields, probability)
    }

    pub(super) fn create(&mut self) -> Result<(), Difference> {
        let list = self.writable_list();
        let kind = kind(&list);
        let mut body = self.body(&kind.fields, 0.5);
        if list == "/api_keys" && body.get("owner_id").is_some() {
            body["owner_id"] = json!(bodies::one(&mut self.random, &["usr_a", "bot_b"]));
        }
        let request = Request::new("POST", &list).with(body.clone());

        let mut faults = Faults::new();
        let mut wanted = complete(&kind.fields, &body, "", &mut faults);
        let places = places(&given(&kind.fields, &body, "", &mut Faults::new()));
        if !faults.is_empty() {
            faults.extend(self.state.faults(&list, "", &wanted, &places));
            return self.tell(&request, &Expected::Refusal(400, faults));
        }
        if !self.state.has_list(&list) {
            return self.tell(&request, &not_found());
        }
        if let Some(index) =
            wanted.get("hostports").filter(|_| list == "/edges/https").and_then(|it| self.state.taken("", it))
        {
            return self.tell(&request, &taken(index));
        }
        let faults = self.state.faults(&list, "", &wanted, &places);
        if !faults.is_empty() {
            return self.tell(&request, &Expected::Refusal(400, faults));
        }

        let reply = self.ask(&request, &Expected::Success(201))?;
        let id = reply.json["id"].as_str().unwrap_or_default().to_owned();
        let uri = format!("{BASE_URL}{list}/{id}");
        if !is_id(kind.prefix, &id) || self.state.find(&list, &id).is_some() {
            same(&request, &json!(format!("a new ID, {}…", kind.prefix)), &json!(id))?;
        }
        same(&request, &json!(uri), &json!(reply.location))?;
        wanted.extend(common(&id, &uri, &reply.json["created_at"]));
        self.add_read_only(&list, &mut wanted, &reply.json);
        let mut wanted = Value::Object(wanted);
        let token = reply.json["token"].as_str().unwrap_or_default();
        if list == "/api_keys" && token.starts_with(&format!("ew_{id}_")) {
            // It is never seen again.
            wanted["token"] = json!(token);
        }
        let mut shown = wanted.clone();
        if list == "/edges/https" {
            shown["routes"] = json!([]);
        }
        same(&request, &shown, &reply.json)?;
        if list == "/api_keys" {
            wanted["token"] = Value::Null;
        } else {
            self.etag(&request, &format!("{list}/{id}"), &shown, &reply)?;
        }
        self.add(&list, wanted, None);
        self.commit(format!("POST {list}"));
        Ok(())
    }

    /// Adds the fields of a new resource that no body has.
    fn add_read_only(&mut self, list: &str, wanted: &mut Fields, answer: &Value) {
        if let Some(edge) = edge_of(list) {
            wanted.insert("edge_id".into(), json!(edge));
            wanted.extend(OTHER_ROUTE_MODULES.map(|module| (module.to_owned(), Value::Null)));
        }
        if list == "/api_keys" {
            wanted.insert("token".into(), Value::Null);
            if is_unset(&wanted["owner_id"]) {
                let first = self.state.resources_of(list).next().map(|key| key.json["owner_id"].clone());
                wanted.insert("owner_id".into(), first.unwrap_or_default());
            }
        }
        if list == "/certificate_authorities" {
            // The same PEM always says the same.
            let pem = wanted["ca_pem"].as_str().unwrap_or_default().to_owned();
            let said = answer.as_object().into_iter().flatten().filter(|(name, _)| !wanted.contains_key(*name));
            let said = said.map(|(name, value)| (name.clone(), value.clone())).collect::<Value>();
            let derived = self.derived.entry(pem).or_insert(said).clone();
            wanted.extend(derived.as_object().cloned().unwrap_or_default());
        }
    }

    pub(super) fn patch(&mut self) -> Result<(), Difference> {
        let list = self.writable_list();
        let (kind, id) = (kind(&list), self.id(&list));
        let path = format!("{list}/{id}");
        let mut body = self.body(&kind.fields, 0.3);
        for fixed in kind.fixed {
            // A client changes a fixed field by mistake only.
            let is_left_out = self.random.random_bool(0.9) || *fixed == "owner_id";
            if let Some(body) = body.as_object_mut().filter(|_| is_left_out) {
                body.remove(*fixed);
            }
        }
        let before = self.state.find(&list, &id).filter(|_| self.state.has_list(&list)).cloned();
        let shown = before.as_ref().map(|before| self.state.shown(before));
        let (if_match, holds) = self.condition(&path, shown.as_ref());
        let request = Request::new("PATCH", &path).with(body.clone()).if_match(if_match);

        leave_out_unmeant_blanks(&list, &mut body);
        let mut faults = Faults::new();
        let given = given(&kind.fields, &body, "", &mut faults);
        for fixed in kind.fixed {
            if body[*fixed] == "" {
                faults.insert(("REQUIRED", format!("/{fixed}")));
            }
            if before.as_ref().is_some_and(|it| !body[*fixed].is_null() && it.json[*fixed] != body[*fixed]) {
                faults.insert(("IMMUTABLE", format!("/{fixed}")));
            }
        }
        let places = places(&given);
        let fields = before.as_ref().map(|before| {
            let mut fields = before.json.as_object().cloned().unwrap_or_default();
            fields.extend(given.clone());
            fields
        });
        let beside = fields.as_ref().map(|fields| self.state.faults(&list, &id, fields, &places)).unwrap_or_default();
        if !faults.is_empty() {
            faults.extend(beside);
            return self.tell(&request, &Expected::Refusal(400, faults));
        }
        if let Some(hostports) = given.get("hostports").filter(|_| list == "/edges/https" && before.is_some())
            && let Some(index) = self.state.taken(&id, hostports)
        {
            return self.tell(&request, &taken(index));
        }
        if !holds {
            return self.tell(&request, &precondition_failed());
        }
        let (Some(mut after), Some(fields)) = (before, fields) else { return self.tell(&request, &not_found()) };
        if !beside.is_empty() {
            return self.tell(&request, &Expected::Refusal(400, beside));
        }

        let reply = self.ask(&request, &Expected::Success(200))?;
        after.json = Value::Object(fields);
        let shown = self.state.shown(&after);
        self.state.put(after);
        same(&request, &shown, &reply.json)?;
        self.etag(&request, &path, &shown, &reply)?;
        self.commit(format!("PATCH {path}"));
        Ok(())
    }

    pub(super) fn delete(&mut self) -> Result<(), Difference> {
        let list = self.writable_list();
        let id = self.id(&list);
        if self.state.resources_of("/api_keys").next().is_some_and(|own| own.id == id) {
            // The case goes on with this key.
            return Ok(());
        }
        let path = format!("{list}/{id}");
        let shown = self.state.find(&list, &id).map(|it| self.state.shown(it));
        let (if_match, holds) = self.condition(&path, shown.as_ref());
        let request = Request::new("DELETE", &path).if_match(if_match);
        if !holds {
            return self.tell(&request, &precondition_failed());
        }
        if shown.is_none() {
            return self.tell(&request, &not_found());
        }
        if self.state.is_in_use(&id) {
            return self.tell(&request, &Expected::refusal(409, "IN_USE"));
        }
        self.tell(&request, &Expected::Success(204))?;
        self.remove(&list, &id);
        self.commit(format!("DELETE {path}"));
        Ok(())
    }

    /// The state to read, and the query that asks for it (D79).
    fn moment(&mut self) -> (State, Option<String>) {
        if self.random.random_bool(0.6) {
            return (self.state.clone(), None);
        }
        let newest = self.revision();
        let at = self.random.random_range(newest.saturating_sub(60).max(1)..=newest);
        let state = self.revisions.get(&at).map(|revision| revision.state.clone()).unwrap_or_default();
        (state, Some(format!("at={at}")))
    }

    pub(super) fn get(&mut self) -> Result<(), Difference> {
        let list = self.any_list();
        let id = self.id(&list);
        let ((state, query), path) = (self.moment(), format!("{list}/{id}"));
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let mut request = Request::new("GET", format!("{path}{query}"));
        let Some(resource) = state.find(&list, &id) else { return self.tell(&request, &not_found()) };
        let wanted = state.shown(resource);
        if let Some(etag) = self.known_etag(&path, &wanted).filter(|_| self.random.random_bool(0.3)) {
            request.condition = Some(("If-None-Match", etag));
            return self.tell(&request, &Expected::Success(304));
        }
        let reply = self.ask(&request, &Expected::Success(200))?;
        same(&request, &wanted, &reply.json)?;
        self.etag(&request, &path, &wanted, &reply)
    }

    pub(super) fn list(&mut self) -> Result<(), Difference> {
        let list = self.any_list();
        let (state, at) = self.moment();
        let array = kind(&list).array;
        let items: Vec<Value> = state.resources_of(&list).rev().map(|it| state.shown(it)).collect();
        // The sources of a subscription are one page.
        let is_paged = array != "sources";
        let limit = [None, None, Some(1), Some(2), Some(3), Some(1000), Some(0)];
        let limit = limit[self.random.random_range(0..limit.len())].filter(|_| is_paged);
        let start = if is_paged && !items.is_empty() && self.random.random_bool(0.4) {
            Some(self.random.random_range(0..items.len()))
        } else {
            None
        };
        let mut query: Vec<String> = limit.map(|limit| format!("limit={limit}")).into_iter().collect();
        query.extend(start.map(|start| format!("before_id={}", items[start]["id"].as_str().unwrap_or_default())));
        query.extend(at.clone());
        let path = if query.is_empty() { list.clone() } else { format!("{list}?{}", query.join("&")) };
        let request = Request::new("GET", path);
        if limit == Some(0) {
            return self.tell(&request, &Expected::Refusal(400, Faults::from([("PARAMETER", "/limit".to_owned())])));
        }
        if !state.has_list(&list) {
            return self.tell(&request, &not_found());
        }

        let reply = self.ask(&request, &Expected::Success(200))?;
        let rest = &items[start.map_or(0, |start| start + 1)..];
        let page = &rest[..rest.len().min(limit.unwrap_or(PAGE))];
        let mut wanted = json!({"uri": format!("{BASE_URL}{list}")});
        wanted[array] = json!(page);
        if is_paged {
            let last =
                page.last().filter(|_| page.len() < rest.len()).map(|last| last["id"].as_str().unwrap_or_default());
            let at = at.map(|at| format!("&{at}")).unwrap_or_default();
            let next = |last: &str| format!("{BASE_URL}{list}?limit={}&before_id={last}{at}", limit.unwrap_or(PAGE));
            wanted["next_page_uri"] = json!(last.map(next));
        }
        same(&request, &wanted, &reply.json)
    }
}

/// Removes the blanks of a PATCH that are not given (D6, D65).
fn leave_out_unmeant_blanks(list: &str, body: &mut Value) {
    let Some(body) = body.as_object_mut() else { return };
    body.retain(|_, value| !value.is_null());
    let has_match = ["match_type", "match"].iter().any(|field| body.get(*field).is_some_and(|value| *value == ""));
    let has_others = body.len() > 1;
    body.retain(|name, value| {
        let is_unmeant = match name.as_str() {
            "match_type" | "match" => *value == "",
            "description" | "metadata" => *value == "" && has_match && edge_of(list).is_some(),
            "ip_policy_ids" => *value == json!([]) && has_others,
            _ => false,
        };
        !is_unmeant
    });
}
