//! Manifests of two sources: what they declare is created, changed, replaced and deleted in one revision (D29, D45).

use std::collections::BTreeMap;

use rand::Rng;
use serde_json::{Value, json};

use super::{
    bodies,
    case::Case,
    client::{Difference, Expected, Request, same},
    specification::{Faults, Fields},
    state::{Resource, common, routes_of},
};
use crate::support::server::BASE_URL;

/// A declared resource: its kind, its list, its fields as responses show them, and its `spec`.
struct Declared {
    kind: &'static str,
    list: &'static str,
    fields: Fields,
    spec: Value,
}

/// The kind of the resources in a list.
fn kind_of(list: &str) -> &'static str {
    if list == "/edges/https" { "HttpsEdge" } else { "IpRestriction" }
}

/// What a plan does with a resource: the effect, the kind and the name.
type Effect = (String, String, String);

fn fields(value: Value) -> Fields {
    value.as_object().cloned().unwrap_or_default()
}

impl Case {
    /// The manifests of a source: one of two edges, or a restriction, or both.
    fn manifests(&mut self, source: &str) -> BTreeMap<String, Declared> {
        let mut declared = BTreeMap::new();
        if self.random.random_bool(0.8) {
            let name = format!("{source}-{}", bodies::one(&mut self.random, &["front", "side"]));
            let description = bodies::one(&mut self.random, &["a", "b"]);
            let ports = [443, 8443].into_iter().filter(|_| self.random.random_bool(0.5));
            let hostports: Vec<String> = ports.map(|port| format!("{name}.example.com:{port}")).collect();
            let shown = json!({
                "description": description, "metadata": "", "hostports": hostports, "mutual_tls": null,
                "tls_termination": null
            });
            let spec = json!({"description": description, "hostports": hostports});
            let edge = Declared { kind: "HttpsEdge", list: "/edges/https", fields: fields(shown), spec };
            declared.insert(name, edge);
        }
        if declared.is_empty() || self.random.random_bool(0.8) {
            let (traffic, enforced) = (bodies::one(&mut self.random, &["api", "agent"]), self.random.random_bool(0.5));
            let policy = json!({"id": "ipp_1", "uri": format!("{BASE_URL}/ip_policies/ipp_1")});
            let shown = json!({
                "description": "", "metadata": "", "enforced": enforced, "type": traffic, "ip_policies": [policy]
            });
            let spec = json!({"type": traffic, "enforced": enforced, "ip_policy_ids": ["ipp_1"]});
            let restriction = Declared { kind: "IpRestriction", list: "/ip_restrictions", fields: fields(shown), spec };
            declared.insert(format!("{source}-office"), restriction);
        }
        declared
    }

    /// The resource that a source owns under a name.
    fn owned(&self, source: &str, name: &str) -> Option<&Resource> {
        let is_it = |owner: &(String, String)| owner.0 == source && owner.1 == name;
        self.state.0.iter().find(|resource| resource.declared.as_ref().is_some_and(is_it))
    }

    pub(super) fn reconcile(&mut self) -> Result<(), Difference> {
        self.counts.reconciles += 1;
        let source = bodies::one(&mut self.random, &["shop", "docs"]);
        let declared = self.manifests(source);
        let (is_dry, is_faulty) = (self.random.random_bool(0.2), self.random.random_bool(0.1));
        let mut documents = Vec::new();
        for (name, it) in &declared {
            let mut spec = it.spec.clone();
            if is_faulty && documents.is_empty() {
                spec["colour"] = json!(1);
            }
            let manifest =
                json!({"apiVersion": "edgewright/v1", "kind": it.kind, "metadata": {"name": name}, "spec": spec});
            documents.push(manifest.to_string());
        }
        let files = json!([{"name": "a.yaml", "text": documents.join("\n---\n")}]);
        let body = json!({"files": files, "source": source, "max_deletes": "100%", "dry_run": is_dry});
        let request = Request::new("POST", "/reconciliations").with(body);
        if is_faulty {
            let faults = Faults::from([("UNKNOWN_FIELD", "/files/0/text".to_owned())]);
            let refused = if is_dry { Expected::Success(200) } else { Expected::Refusal(400, faults) };
            return self.tell(&request, &refused);
        }

        let is_undeclared = |resource: &&Resource| {
            resource.declared.as_ref().is_some_and(|(owner, name)| owner == source && !declared.contains_key(name))
        };
        let undeclared: Vec<Resource> = self.state.0.iter().filter(is_undeclared).cloned().collect();
        let effects: Vec<Effect> = {
            let deleted = undeclared.iter().filter_map(|resource| {
                let (_, name) = resource.declared.clone()?;
                Some(("delete".to_owned(), kind_of(&resource.list).to_owned(), name))
            });
            let others = declared.iter().filter_map(|(name, it)| {
                let effect = effect(self.owned(source, name), it)?;
                Some((effect.to_owned(), it.kind.to_owned(), name.clone()))
            });
            deleted.chain(others).collect()
        };
        // Routes that nobody declared keep their edge (D35).
        if undeclared.iter().any(|it| self.state.resources_of(&routes_of(&it.id)).next().is_some()) {
            let refused = if is_dry { Expected::Success(200) } else { Expected::refusal(409, "IN_USE") };
            return self.tell(&request, &refused);
        }
        let changes_nothing = is_dry || effects.is_empty();
        let reply = self.ask(&request, &Expected::Success(if changes_nothing { 200 } else { 201 }))?;
        same(&request, &told(effects), &told(planned(&reply.json)))?;
        if changes_nothing {
            return Ok(());
        }

        for resource in &undeclared {
            self.remove(&resource.list, &resource.id);
        }
        let ids = planned_ids(&reply.json);
        for (name, it) in declared {
            self.apply(source, &name, it, ids.get(&name).map(String::as_str))?;
        }
        self.commit(format!("the manifests of {source}"));
        same(&request, &json!(self.revision()), &reply.json["applied"])
    }

    /// What a run does with one declared resource. A plan says under which ID.
    fn apply(&mut self, source: &str, name: &str, declared: Declared, id: Option<&str>) -> Result<(), Difference> {
        let owned = self.owned(source, name).cloned();
        let (Some(effect), Some(id)) = (effect(owned.as_ref(), &declared), id) else { return Ok(()) };
        let owner = Some((source.to_owned(), name.to_owned()));
        if let Some(owned) = owned {
            if effect == "change" {
                let mut json = fields(owned.json);
                json.extend(declared.fields);
                self.add(&owned.list, Value::Object(json), owner);
                return Ok(());
            }
            self.remove(&owned.list, &owned.id);
        }
        let path = format!("{}/{id}", declared.list);
        let request = Request::new("GET", &path);
        let reply = self.ask(&request, &Expected::Success(200))?;
        let mut json = declared.fields;
        json.extend(common(id, &format!("{BASE_URL}{path}"), &reply.json["created_at"]));
        self.add(declared.list, Value::Object(json), owner);
        let shown = self.state.find(declared.list, id).map(|it| self.state.shown(it)).unwrap_or_default();
        same(&request, &shown, &reply.json)
    }
}

/// What a plan does with a declared resource, if anything.
fn effect(owned: Option<&Resource>, declared: &Declared) -> Option<&'static str> {
    let Some(owned) = owned else { return Some("create") };
    if owned.json["type"] != declared.fields.get("type").cloned().unwrap_or_default() {
        return Some("replace");
    }
    declared.fields.iter().any(|(name, value)| owned.json[name] != *value).then_some("change")
}

/// The changes of a report; the former one of a replaced resource is part of its replacement.
fn changes(report: &Value) -> impl Iterator<Item = &Value> {
    report["plan"]["changes"].as_array().into_iter().flatten().filter(|change| change["effect"] != "replaced")
}

fn planned(report: &Value) -> Vec<Effect> {
    let text = |change: &Value, name: &str| change[name].as_str().unwrap_or_default().to_owned();
    changes(report).map(|it| (text(it, "effect"), text(it, "kind"), text(it, "name"))).collect()
}

fn planned_ids(report: &Value) -> BTreeMap<String, String> {
    let text = |change: &Value, name: &str| change[name].as_str().unwrap_or_default().to_owned();
    changes(report).map(|it| (text(it, "name"), text(it, "id"))).collect()
}

/// Effects in one order.
fn told(mut effects: Vec<Effect>) -> Value {
    effects.sort();
    json!(effects)
}
