//! Exports a store as manifests whose plan is empty. Pure: a Snapshot in, texts out.
//!
//! # The problem
//!
//! A gateway that was configured over the API should come under Git without a change to it: the first plan of the exported
//! files must have nothing to do.
//!
//! # The idea
//!
//! Each resource is written as its Spec without defaults, with what only manifests have: names for
//! identifiers, routes inside their edges, module sets for required modules. A resource that a source owns is found by the
//! name of its claim. One that is not owned is found by `metadata.id`, and exported only on request.
//!
//! For example, an edge with a route becomes `https-edge-shop.yaml`, and its client secret becomes
//! `client_secret: {from_env: SHOP_CLIENT_SECRET}`.
//!
//! # What it never does
//!
//! It never writes a secret. It does not export what another source owns, or what no manifest can declare; it lists these.

mod lint_exceptions;
mod names;
mod text;

use std::collections::HashMap;
use std::slice;

use schemars::JsonSchema;
use serde_json::json;

use super::format;
use super::load::kinds::{Export, KINDS};
use super::load::reader::adopted_id::id_fault;
use super::resolve::scope::with_references;
use crate::manifest::prelude::*;
use crate::model::required_secrets::required_modules;
use crate::model::{Entry, EventSource, MASK, Secrets, SharedModule, Slot, is_name};
use crate::syntax::yaml::{Tape, to_yaml};
use lint_exceptions::{LintExceptions, annotate, find_lint_exceptions, with_comment};
use names::{name_of_id, readable_name, variable_names};
use text::{envelope, is_its_match, prune, take_required, unique};

/// The result of an export.
#[derive(Debug, Default)]
pub(crate) struct Exported {
    /// File names without folder, and texts.
    pub files: Vec<(String, String)>,
    /// The environment variables that the manifests need.
    pub variables: Vec<Variable>,
    /// Messages about skipped resources.
    pub left_out: Vec<String>,
}

/// An environment variable that a manifest takes a secret from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ExportedVariable")]
pub(crate) struct Variable {
    /// The name.
    pub name: String,
    /// The field with the secret.
    pub field: String,
    /// Whether the secret ends with a line break, which a value of a file or variable cannot have: a plan changes it.
    pub ends_with_line_break: bool,
}

/// Exports the resources of `source`, and with `adopt` also unowned resources, as they are judged `now`.
pub(crate) fn export(snapshot: &Snapshot, source: &str, adopt: bool, now: Timestamp) -> Result<Exported, JsonError> {
    let mut exporter = Exporter {
        snapshot,
        source,
        adopt,
        lint_exceptions: LintExceptions::new(),
        names: HashMap::new(),
        taken_names: BTreeMap::new(),
        taken: BTreeSet::new(),
        listed: 0,
        out: Exported::default(),
    };
    exporter.choose_names()?;
    exporter.find_lint_exceptions(now);
    for of in &KINDS {
        if let (Some(kind), Export::File(file)) = (of.resource, &of.export) {
            let documents = exporter.documents(kind, &exporter.chosen(kind))?;
            exporter.file((*file).to_owned(), kind, &documents);
        }
    }
    for of in &KINDS {
        let (Some(kind), Export::FileEach(prefix)) = (of.resource, &of.export) else { continue };
        let mut taken = BTreeSet::new();
        for entry in exporter.chosen(kind) {
            let documents = exporter.documents(kind, slice::from_ref(&entry))?;
            // A file's name has at most 255 bytes; names are ASCII.
            let name: String = exporter.name(&entry.key).chars().take(200).collect();
            let file = unique(&mut taken, &[format!("{prefix}-{name}")], '-');
            exporter.file(format!("{file}.yaml"), kind, &documents);
        }
    }
    exporter.out.files.sort();
    exporter.note_left_out();
    Ok(exporter.out)
}

struct Exporter<'a> {
    snapshot: &'a Snapshot,
    source: &'a str,
    adopt: bool,
    /// The lints that exported resources do not pass.
    lint_exceptions: LintExceptions,
    /// The names of the exported resources.
    names: HashMap<Key, String>,
    /// The names of a kind, or of the children of a parent.
    taken_names: BTreeMap<(Kind, Option<Id>), BTreeSet<String>>,
    /// The names of the variables.
    taken: BTreeSet<String>,
    /// The number of variables already listed in a file header.
    listed: usize,
    out: Exported,
}

impl Exporter<'_> {
    /// Whether a resource is exported.
    fn takes(&self, entry: &Entry) -> bool {
        self.selects(entry) && undeclarable(entry).is_none()
    }

    /// Whether a resource belongs into the export. Unowned API keys do not, so that an admin's key is not adopted by
    /// accident; owners and subscriptions cannot be declared by themselves.
    fn selects(&self, entry: &Entry) -> bool {
        let adopted = self.adopt && entry.claim.is_none() && entry.key.kind != Kind::ApiKey;
        let declared = !matches!(entry.key.kind, Kind::Owner | Kind::EventSubscription);
        declared && (entry.is_owned_by(self.source) || adopted)
    }

    /// The exported resources of a kind, by name.
    fn chosen(&self, kind: Kind) -> Vec<Arc<Entry>> {
        let all = self.snapshot.iter().filter(|entry| entry.key.kind == kind && self.takes(entry));
        self.by_name(all.cloned().collect())
    }

    fn by_name(&self, mut entries: Vec<Arc<Entry>>) -> Vec<Arc<Entry>> {
        entries.sort_by_cached_key(|entry| (self.name(&entry.key).to_owned(), entry.key.clone()));
        entries
    }

    fn name(&self, key: &Key) -> &str {
        self.names.get(key).map(String::as_str).unwrap_or_default()
    }

    /// Takes the names of claims first, so that derived names avoid them.
    fn choose_names(&mut self) -> Result<(), JsonError> {
        let snapshot = self.snapshot;
        let chosen: Vec<&Arc<Entry>> = snapshot.iter().filter(|entry| self.takes(entry)).collect();
        let mut rest = Vec::new();
        for entry in chosen {
            match entry.name().filter(|name| is_name(name) || is_its_match(entry, name)) {
                Some(name) => {
                    self.names_beside(&entry.key).insert(name.to_owned());
                    self.names.insert(entry.key.clone(), name.to_owned());
                }
                None => rest.push(entry),
            }
        }
        for entry in rest {
            let name = self.new_name(entry)?;
            self.names.insert(entry.key.clone(), name);
        }
        Ok(())
    }

    /// Finds the lints that exported resources do not pass.
    fn find_lint_exceptions(&mut self, now: Timestamp) {
        let snapshot = self.snapshot;
        let exported: Vec<&Arc<Entry>> = snapshot.iter().filter(|entry| self.takes(entry)).collect();
        let is_of_other = |entry: &&Arc<Entry>| entry.claim.is_some() && !entry.is_owned_by(self.source);
        let others: Vec<Arc<Entry>> = snapshot.iter().filter(is_of_other).cloned().collect();
        self.lint_exceptions = find_lint_exceptions(&exported, &others, now);
    }

    /// The names that a resource cannot have.
    fn names_beside(&mut self, key: &Key) -> &mut BTreeSet<String> {
        self.taken_names.entry((key.kind, key.parent.clone())).or_default()
    }

    /// A readable name that no other resource has.
    fn new_name(&mut self, entry: &Entry) -> Result<String, JsonError> {
        let spec = entry.spec().to_json(Secrets::Masked)?;
        let description = spec.get("description").and_then(Value::as_str).unwrap_or_default();
        Ok(unique(self.names_beside(&entry.key), &[readable_name(entry, description)], '-'))
    }

    /// The documents of one file: resources of a kind, with what they contain.
    fn documents(&mut self, kind: Kind, chosen: &[Arc<Entry>]) -> Result<Vec<Value>, JsonError> {
        match kind {
            Kind::HttpsEdge => {
                let edges = chosen.iter().map(|edge| self.edge(edge));
                Ok(edges.collect::<Result<Vec<_>, JsonError>>()?.into_iter().flatten().collect())
            }
            Kind::HttpsEdgeRoute => self.foreign_routes(chosen),
            Kind::EventSubscription => Ok(self.subscriptions()),
            Kind::Owner
            | Kind::ApiKey
            | Kind::IpRestriction
            | Kind::CertificateAuthority
            | Kind::TlsCertificate
            | Kind::TlsEdge
            | Kind::EventSource
            | Kind::Invariant => chosen.iter().map(|entry| self.export_document(entry)).collect(),
        }
    }

    /// The lints that a resource does not pass.
    fn lints_of(&self, key: &Key) -> BTreeSet<&'static str> {
        self.lint_exceptions.get(key).cloned().unwrap_or_default()
    }

    /// Exports a resource as a document.
    fn export_document(&mut self, entry: &Entry) -> Result<Value, JsonError> {
        let name = self.name(&entry.key).to_owned();
        let mut spec = self.spec(entry, &name)?;
        if entry.key.kind == Kind::ApiKey {
            spec.insert("token_file".into(), format!("../{name}.token").into());
        }
        Ok(self.document(entry, name, spec, &self.lints_of(&entry.key)))
    }

    /// A resource as a document that sets the level of some lints.
    fn document(&self, entry: &Entry, name: String, spec: Map<String, Value>, lints: &BTreeSet<&'static str>) -> Value {
        let mut metadata = Map::new();
        metadata.insert("name".into(), name.into());
        // Unowned and external resources can only be matched by id.
        if !entry.is_owned_by(self.source) || entry.key.kind.info().implicit {
            metadata.insert("id".into(), entry.key.id.as_str().into());
        }
        if entry.claim.as_deref().is_some_and(|claim| claim.prevent_destroy) {
            metadata.insert("prevent_destroy".into(), true.into());
        }
        // Swapped names have an empty plan only while the manifests state the swap.
        if let Some(former) = entry.claim.as_deref().and_then(|claim| claim.renamed_from.as_deref()) {
            metadata.insert("renamed_from".into(), former.into());
        }
        if let Some(to) = entry.claim.as_deref().and_then(Claim::receiver) {
            metadata.insert("transfer_to".into(), to.into());
        }
        annotate(&mut metadata, lints);
        envelope(entry.key.kind, metadata, spec)
    }

    /// Exports an edge with its routes. A route that needs metadata of its own becomes a separate document.
    fn edge(&mut self, edge: &Entry) -> Result<Vec<Value>, JsonError> {
        let name = self.name(&edge.key).to_owned();
        let mut spec = self.spec(edge, &name)?;
        let required = take_required(&name, &mut spec);
        let routes = self.snapshot.children(&edge.key).filter(|entry| self.takes(entry));
        let routes = self.by_name(routes.cloned().collect());
        let (mut inside, mut behind) = (Vec::new(), Vec::new());
        let mut lints = self.lints_of(&edge.key);
        let offered = edge.claim.as_deref().and_then(Claim::receiver);
        for route in routes {
            let own = self.name(&route.key).to_owned();
            // A route inside an edge moves with it, and has no metadata of its own.
            let is_plain = |claim: &Claim| {
                let has_metadata = claim.prevent_destroy || claim.renamed_from.is_some() || claim.receiver() != offered;
                !has_metadata && claim.name == own && claim.source == self.source
            };
            if !route.claim.as_deref().is_some_and(is_plain) {
                behind.push(self.route(&route, &name)?);
                continue;
            }
            lints.append(&mut self.lints_of(&route.key));
            let mut whole = Map::new();
            // Without a name, the match is the identity.
            if is_name(&own) {
                whole.insert("name".into(), own.clone().into());
            }
            whole.extend(self.spec(&route, &format!("{name}/{own}"))?);
            inside.push(Value::Object(whole));
        }
        if !inside.is_empty() {
            spec.insert("routes".into(), inside.into());
        }
        let mut documents = vec![self.document(edge, name, spec, &lints)];
        documents.extend(required);
        documents.append(&mut behind);
        Ok(documents)
    }

    /// A route as a separate document.
    fn route(&mut self, route: &Entry, edge: &str) -> Result<Value, JsonError> {
        let claimed = self.name(&route.key).to_owned();
        let name = if is_name(&claimed) { claimed } else { self.new_name(route)? };
        let mut spec = Map::new();
        spec.insert("edge".into(), edge.into());
        spec.extend(self.spec(route, &format!("{edge}/{name}"))?);
        let keeps_name = route.claim.as_deref().is_some_and(|claim| claim.name == name);
        let mut document = self.document(route, name, spec, &self.lints_of(&route.key));
        // If the name differs from the claim's, the id identifies the route.
        if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut)
            && !keeps_name
        {
            metadata.insert("id".into(), route.key.id.as_str().into());
        }
        Ok(document)
    }

    /// Exports routes of edges that are not exported because another source owns them.
    fn foreign_routes(&mut self, routes: &[Arc<Entry>]) -> Result<Vec<Value>, JsonError> {
        let mut documents = Vec::new();
        for route in routes {
            let parent = route.key.parent_key();
            if let Some(edge) = parent.filter(|parent| !self.names.contains_key(parent)) {
                documents.push(self.route(route, edge.id.as_str())?);
            }
        }
        Ok(documents)
    }

    /// Exports subscriptions with their sources; protected sources are in a separate document.
    fn subscriptions(&mut self) -> Vec<Value> {
        let mut sources: BTreeMap<(Id, bool), Vec<Value>> = BTreeMap::new();
        for source in self.chosen(Kind::EventSource) {
            let kept = source.claim.as_deref().is_some_and(|claim| claim.prevent_destroy);
            let (Some(parent), Some(spec)) = (source.key.parent.clone(), source.spec_as::<EventSource>()) else {
                continue;
            };
            sources.entry((parent, kept)).or_default().push(json!({"type": spec.r#type}));
        }
        let mut taken = BTreeSet::new();
        let documents = sources.into_iter().map(|((id, kept), sources)| {
            let mut metadata = Map::new();
            metadata.insert("name".into(), unique(&mut taken, &[name_of_id(id.as_str())], '-').into());
            metadata.insert("id".into(), id.as_str().into());
            if kept {
                metadata.insert("prevent_destroy".into(), true.into());
            }
            envelope(Kind::EventSubscription, metadata, json!({"sources": sources}))
        });
        documents.collect()
    }

    /// A spec without defaults, with variables for secrets and names for references.
    fn spec(&mut self, entry: &Entry, name: &str) -> Result<Map<String, Value>, JsonError> {
        let info = entry.key.kind.info();
        let named = with_references(&self.without_required(entry), |_, reference| {
            self.names.get(&reference.target).map_or(reference.target.id, |name| Id::new(name))
        });
        let (mut masked, revealed) = (named.to_json(Secrets::Masked)?, named.to_json(Secrets::Revealed)?);
        let mut defaults = (info.empty)().to_json(Secrets::Masked)?;
        for slot in info.slots {
            if let (Some(module), _) = (slot.decode)(Tape::empty_mapping().root(), None) {
                defaults.insert(slot.name.to_owned(), module.to_json(Secrets::Masked)?);
            }
        }
        for (field, value) in &mut masked {
            if let Some(real) = revealed.get(field) {
                self.hide((info.name, name), field, value, real);
            }
        }
        let is_module = |field: &str| info.slots.iter().any(|slot| slot.name == field);
        let mut kept = Map::new();
        for (field, mut value) in masked {
            let default = defaults.get(&field).unwrap_or(&Value::Null);
            // A module with default settings is written as `{}`.
            if value != *default || is_module(&field) {
                prune(&mut value, default);
                kept.insert(field, value);
            }
        }
        Ok(kept)
    }

    /// The spec without the modules that its edge requires. A plan adds them, and their secrets can be those of another
    /// source.
    fn without_required(&self, entry: &Entry) -> Arc<dyn AnyResource> {
        let edge = entry.key.parent_key().and_then(|parent| self.snapshot.get(&parent));
        let Some(required) = edge.and_then(|edge| required_modules(edge)) else { return Arc::clone(entry.spec()) };
        let added: Vec<(&'static Slot, Option<SharedModule>)> =
            required.modules().map(|(slot, _)| (slot, None)).collect();
        entry.spec().with_modules(&added)
    }

    /// Replaces each secret of a resource, which is given by its kind and name, with a variable. A value is a secret where its masked
    /// and revealed forms differ.
    fn hide(&mut self, resource: (&str, &str), path: &str, value: &mut Value, real: &Value) {
        match (&mut *value, real) {
            (Value::Object(fields), Value::Object(real)) => {
                for (field, value) in fields {
                    if let Some(real) = real.get(field) {
                        self.hide(resource, &format!("{path}.{field}"), value, real);
                    }
                }
            }
            (Value::Array(items), Value::Array(real)) => {
                for (index, (item, real)) in items.iter_mut().zip(real).enumerate() {
                    self.hide(resource, &format!("{path}.{index}"), item, real);
                }
            }
            (Value::String(masked), Value::String(real)) if masked.as_str() == MASK && real.as_str() != MASK => {
                let (kind, name) = resource;
                let variable = unique(&mut self.taken, &variable_names(kind, name, path), '_');
                self.out.variables.push(Variable {
                    name: variable.clone(),
                    field: format!("{kind} {name}: {path}"),
                    // The line breaks of PEM do not matter.
                    ends_with_line_break: real.ends_with('\n') && !path.ends_with("_pem"),
                });
                *value = json!({"from_env": variable});
            }
            _ => {}
        }
    }

    fn file(&mut self, name: String, kind: Kind, documents: &[Value]) {
        if documents.is_empty() {
            return;
        }
        let (revision, source) = (self.snapshot.revision, printable(self.source));
        let mut text = format!("# Exported from revision {revision} for source `{source}`.\n");
        let variables = self.out.variables.get(self.listed..).unwrap_or_default();
        self.listed = self.out.variables.len();
        if kind == Kind::ApiKey {
            text += "# Tokens cannot be exported. `token_file` is written only when a key is created.\n";
        }
        if !variables.is_empty() {
            text += "# Set these environment variables:\n";
        }
        for variable in variables {
            text += &format!("#   {}\n", variable.name);
        }
        let documents: Vec<String> = documents.iter().map(|document| with_comment(to_yaml(document))).collect();
        text += &documents.join("---\n");
        let text = format::format(&name, &text).unwrap_or(text);
        self.out.files.push((name, text));
    }

    fn note_left_out(&mut self) {
        let mut others: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut keys, mut unowned, mut invalid) = (0, 0, BTreeSet::new());
        for entry in self.snapshot.iter().filter(|entry| !self.takes(entry)) {
            match (&entry.claim, entry.key.kind) {
                (_, Kind::Owner | Kind::EventSubscription) => {}
                _ if self.selects(entry) => invalid.extend(undeclarable(entry)),
                (Some(claim), _) => *others.entry(&claim.source).or_default() += 1,
                (None, Kind::ApiKey) => keys += 1,
                (None, _) => unowned += 1,
            }
        }
        let unowned = (unowned > 0).then(|| {
            format!("skipped: not owned by any source ({unowned}); use --adopt to export them with their IDs")
        });
        let keys = (keys > 0)
            .then(|| format!("skipped: API keys not owned by any source ({keys}); tokens cannot be exported"));
        let others = others.iter().map(|(source, count)| {
            format!("skipped: owned by source `{}` ({count}); use --source to export them", printable(source))
        });
        self.out.left_out = unowned.into_iter().chain(keys).chain(others).chain(invalid).collect();
    }
}

/// Why no manifest can declare a resource that the API has accepted: its ID, or that of the subscription, cannot be adopted.
fn undeclarable(entry: &Entry) -> Option<String> {
    let (kind, id) = match (entry.key.kind, &entry.key.parent) {
        (Kind::EventSource, Some(subscription)) => (Kind::EventSubscription, subscription),
        (Kind::TlsEdge, _) => (Kind::TlsEdge, &entry.key.id),
        _ => return None,
    };
    let fault = id_fault(id.as_str(), kind.info())?;
    Some(format!("skipped: {} `{}` cannot be declared: {}", kind.info().name, printable(id.as_str()), fault.message))
}
