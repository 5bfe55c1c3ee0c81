//! `duplicate-entry`: a list with one entry twice.
//!
//! Email addresses and domains are the subject of `email-not-lowercase`.

use std::{collections::BTreeMap, sync::LazyLock};

use foldhash::{HashMap, HashMapExt as _};
use schemars::SchemaGenerator;
use serde_json::Value;

use super::prelude::*;
use crate::lint::clean_modules::CleanModules;
use crate::model::{Secrets, Slot};

pub(crate) static LINT: Lint = Lint {
    name: "duplicate-entry",
    default: Level::Warn,
    summary: "A list contains an entry twice: a hostport, ID, scope, group, team, organization, user agent pattern, \
              policy, condition, module set or certificate.",
    why: "The second entry has no effect. Often it is a copied line that was not edited. Hostports, teams and \
          organizations are compared in their normal form.",
    cure: "Remove one of the two entries, or correct it.",
    check: LintCheck::EdgeAndManifests(check, check_module_sets),
};

/// The fields of modules whose lists are sets.
const SETS: &[&str] =
    &["authorized_groups", "certificate_authority_ids", "ip_policy_ids", "organizations", "scopes", "teams"];

/// The slots of each kind for modules with such a field, by their schemas. Other modules, which most routes have, are not
/// written.
static SLOTS_WITH_SETS: LazyLock<BTreeMap<Kind, Vec<&'static Slot>>> = LazyLock::new(|| {
    let has_set = |slot: &Slot| {
        let mut generator = SchemaGenerator::default();
        (slot.spec_schema)(&mut generator);
        let schema = Value::Object(generator.take_definitions(true)).to_string();
        SETS.iter().any(|set| schema.contains(&format!("\"{set}\":")))
    };
    Kind::all().map(|info| (info.kind, info.slots.iter().filter(|slot| has_set(slot)).collect())).collect()
});

fn check(view: &EdgeView<'_>, findings: &mut Findings) {
    for (key, edge) in view.all::<HttpsEdge>() {
        repeated(findings, key, &Path::root(), "hostports", &edge.hostports, spelled_alike);
    }
    let mut clean_modules = CleanModules::default();
    for (key, filter) in view.route_modules(|route| route.user_agent_filter.as_deref()) {
        clean_modules.judge(filter, findings, |findings| {
            let module = Path::from("user_agent_filter");
            repeated(findings, key, &module, "allow", &filter.allow, str::to_owned);
            repeated(findings, key, &module, "deny", &filter.deny, str::to_owned);
        });
    }
    for (key, restriction) in view.all::<IpRestriction>() {
        repeated(findings, key, &Path::root(), "ip_policy_ids", &restriction.ip_policy_ids, str::to_owned);
    }
    let mut clean_modules = CleanModules::default();
    for (key, spec) in view.resources() {
        for slot in SLOTS_WITH_SETS.get(&key.kind).into_iter().flatten() {
            let Some(module) = spec.module(slot) else { continue };
            clean_modules.judge(module, findings, |findings| {
                // A module that cannot be written is reported when it is planned.
                if let Ok(module) = module.to_json(Secrets::Planned) {
                    visit(view, findings, key, &Path::from(slot.name), &module);
                }
            });
        }
    }
    check_policies(view, findings);
    for chain in chains(view) {
        for link in chain.links.iter().filter(|link| link.is_repeated) {
            findings.report(chain.key, [chain.field], format!("`{}` contains {link} twice", chain.field));
        }
    }
}

fn check_module_sets(world: &World<'_>, findings: &mut Findings) {
    for (key, sets) in &world.manifests.repeated_module_sets {
        let field = if key.kind == Kind::HttpsEdge { "required_modules" } else { "modules_from" };
        repeated(findings, key, &Path::root(), field, sets, str::to_owned);
    }
}

/// Reports policies of one list with one name, and conditions that a policy has twice.
fn check_policies(view: &EdgeView<'_>, findings: &mut Findings) {
    let mut list: Option<(&Key, bool)> = None;
    let mut names: HashMap<&str, Path> = HashMap::new();
    for placed in placed_policies(view) {
        let this = Some((placed.key, placed.is_outbound));
        if list != this {
            list = this;
            names.clear();
        }
        let name = placed.policy.name.as_str();
        let at = placed.path.join("name");
        if let Some(first) = names.get(name) {
            let message = format!("another policy in the list has the name `{}`", printable(name));
            findings.report(placed.key, at, message).relate(placed.key, first.clone(), "first policy");
        } else if !name.is_empty() {
            names.insert(name, at);
        }
        let mut conditions: HashMap<&str, usize> = HashMap::new();
        for (index, condition) in placed.policy.expressions.iter().enumerate() {
            let earlier = *conditions.entry(condition.trim()).or_insert(index);
            if earlier < index {
                let list = placed.path.join("expressions");
                // The condition is not quoted, because it may contain a secret.
                let finding = findings.report(placed.key, list.join(index), "duplicate entry in `expressions`");
                finding.relate(placed.key, list.join(earlier), "first entry");
            }
        }
    }
}

/// Looks for sets in a part of a module.
fn visit(view: &EdgeView<'_>, findings: &mut Findings, key: &Key, path: &Path, part: &Value) {
    for (name, value) in part.as_object().into_iter().flatten() {
        match value {
            Value::Object(_) => visit(view, findings, key, &path.join(name.as_str()), value),
            Value::Array(entries) if SETS.contains(&name.as_str()) => {
                let entries = entries.iter().filter_map(Value::as_str);
                let entries: Vec<String> = entries.map(|entry| as_written(view, name, entry)).collect();
                let normal: Normal = match name.as_str() {
                    // GitHub ignores the case of slugs.
                    "teams" | "organizations" => str::to_lowercase,
                    _ => str::to_owned,
                };
                repeated(findings, key, path, name, &entries, normal);
            }
            _ => {}
        }
    }
}

/// Returns the name of an authority instead of the ID that it was resolved to.
fn as_written(view: &EdgeView<'_>, field: &str, entry: &str) -> String {
    let is_authority = field == "certificate_authority_ids";
    let name = is_authority.then(|| view.authority_name(entry)).flatten();
    name.unwrap_or(entry).to_owned()
}

/// Maps entries that mean the same to one text.
type Normal = fn(&str) -> String;

/// Reports every entry of a list that an earlier one repeats.
fn repeated(findings: &mut Findings, key: &Key, path: &Path, field: &str, entries: &[String], normal: Normal) {
    if entries.len() < 2 {
        return;
    }
    let mut first = HashMap::with_capacity(entries.len());
    for (index, text) in entries.iter().enumerate() {
        let earlier = *first.entry(normal(text)).or_insert(index);
        if earlier < index {
            let list = path.join(field);
            let message = format!("duplicate entry `{}` in `{field}`", printable(text));
            findings.report(key, list.join(index), message).relate(key, list.join(earlier), "first entry");
        }
    }
}

fn spelled_alike(hostport: &str) -> String {
    host_port(hostport).map_or_else(|| hostport.to_owned(), |(host, port)| format!("{host}:{port}"))
}
