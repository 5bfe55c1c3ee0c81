//! Decodes documents into declarations, and reports the errors of each document on its own.
//!
//! A document is an envelope and a body. The envelope says which kind it is, and thus who reads the body: `edge`,
//! `module_set`, `route_test`, or the kind's own Spec. A body is read field by field, and one with a fault does not
//! hide the faults of others.
//!
//! A fault in one document must not become an error in another. So a document with a valid name declares that name even
//! if the rest is faulty, and is marked: a reference to it is correct, and nothing is concluded from its content. One
//! without a valid name is checked, and declares nothing.

pub(in crate::manifest) mod adopted_id;
mod edge;
mod module_set;
mod null_values;
mod route_test;

use super::declaration::Declaration;
use super::declarations::{Declarations, DeclaredName};
use super::document::Document;
use super::envelope::{API_VERSION, Envelope, Metadata, faults_without_resource, moved_out_of_spec, with_place};
use super::findings::FileFindings;
use super::kinds::{self, ManifestKind, ROUTE_TEST};
use super::lint_facts::LintFacts;
use super::values::Values;
use crate::lint;
use crate::manifest::prelude::*;
use crate::manifest::resolve::foreign_files::foreign_document_fault;
use crate::manifest::resolve::origin::{DocumentPart, Origin};
use crate::manifest::resolve::transfer_markers::{self, TransferMarkers};
use crate::model::decode::{decode_field, decode_with, not_a_list, not_an_entry};
use crate::model::diagnostics::check;
use crate::model::diagnostics::fault::add_new_faults;
use crate::model::secrets::redact::quotable_key;
use crate::model::{EventSource, Faults, KindInfo, Path, is_name, nearest};
use crate::syntax::yaml::Node;
use adopted_id::id_fault;
use serde::de::DeserializeOwned;

/// The prefix of annotations that set a lint's level (D27).
pub(in crate::manifest) const LINT_ANNOTATION: &str = "edgewright/lint.";

/// The beginning of the keys of all annotations that mean something to edgewright.
const OWN_ANNOTATIONS: &str = "edgewright/";

/// The lists of mappings that only manifests have, and a sample entry.
const ROUTES: (&str, &str) = ("routes", "{match_type: path_prefix, match: /, …}");
const SOURCES: (&str, &str) = ("sources", "{type: ip_policy_created.v0}");

/// The state of reading a document.
struct Reader<'a> {
    origin: Origin,
    values: &'a Values<'a>,
    declared: &'a mut Declarations,
    findings: &'a mut FileFindings,
    /// Facts for the document's next declaration.
    facts: LintFacts,
    /// The fields of the document that are not missing, because unknown ones are probably misspellings of them.
    misspelt: Vec<Path>,
}

/// The body of a manifest.
struct Body<'a> {
    kind: &'static ManifestKind,
    metadata: &'a Metadata,
    spec: Node<'a>,
}

/// Reads the declarations of a document.
pub(crate) fn declare(
    document: &Document,
    values: &Values<'_>,
    declared: &mut Declarations,
    findings: &mut FileFindings,
) {
    let facts = LintFacts::default();
    let mut reader =
        Reader { origin: document.origin.clone(), values, declared, findings, facts, misspelt: Vec::new() };
    let (resources, errors) = (reader.declared.resources.len(), reader.findings.errors);
    reader.document(document.node());
    if reader.findings.errors > errors || document.faulty {
        let text = |node: Option<Node<'_>>| node.and_then(Node::as_str).unwrap_or_default().to_owned();
        let name = text(document.node().get("metadata").and_then(|metadata| metadata.get("name")));
        reader.declared.mark_faulty(resources, &name);
        reader.declared.has_faulty_tests |= text(document.node().get("kind")) == ROUTE_TEST;
    }
}

impl Reader<'_> {
    fn report(&mut self, fault: Fault) {
        if !self.misspelt.contains(&fault.path) {
            self.misspelt.extend(fault.meant());
            self.findings.error(|| self.origin.diagnostic(fault));
        }
    }

    /// Reports a fault of a part.
    fn report_in(&mut self, part: DocumentPart, fault: Fault) {
        self.misspelt.extend(fault.meant().map(|field| field.under(&part.path())));
        self.findings.error(|| self.origin.part(part).diagnostic(fault));
    }

    /// Decodes a field of a mapping; returns the default if it is missing or invalid.
    fn field<T>(&mut self, node: Node<'_>, part: DocumentPart, name: &str) -> T
    where
        T: DeserializeOwned + Serialize + Default,
    {
        let Some(value) = node.get(name).filter(|value| !value.is_null()) else { return T::default() };
        let (value, faults) = decode_field::<T>(value, name, Some(self.values));
        self.check(part, &name.into(), value.as_ref(), faults, |value, found| check::tokens(found, name, value));
        value.unwrap_or_default()
    }

    /// Checks a decoded value by a rule, and reports what is wrong with it, below a path of a part.
    fn check<T: ?Sized>(
        &mut self,
        part: DocumentPart,
        path: &Path,
        value: Option<&T>,
        mut faults: Vec<Fault>,
        rule: impl FnOnce(&T, &mut Faults),
    ) {
        if let Some(value) = value {
            let mut found = Faults::new();
            rule(value, &mut found);
            add_new_faults(&mut faults, found.into_vec());
        }
        faults.into_iter().for_each(|fault| self.report_in(part, fault.under(path)));
    }

    /// Decodes and checks a spec.
    fn spec(
        &mut self,
        kind: Kind,
        node: Node<'_>,
        part: DocumentPart,
        elsewhere: &[&str],
    ) -> Option<Arc<dyn AnyResource>> {
        yield_to_requests();
        let (spec, mut faults) = (kind.info().decode)(node, elsewhere, Some(self.values));
        self.warn_of_null_modules(kind, node, part, &mut faults);
        self.warn_of_null_entries(part, &Path::root());
        let is_entry = part != DocumentPart::Spec;
        faults = faults.into_iter().map(|fault| moved_out_of_spec(kind, is_entry, fault)).collect();
        self.check(part, &Path::root(), spec.as_deref(), faults, |spec, found| spec.check(found));
        self.facts.plain_secrets = self.values.take_plain_secrets();
        spec
    }

    fn document(&mut self, node: Node<'_>) {
        let Some(entries) = node.entries() else {
            let message = format!("a manifest must be a mapping (found {})", node.describe());
            let help = "separate manifests with a `---` line, or in JSON, put each in its own file";
            return self.report(Fault::new(Code::WrongType, message).help(help));
        };
        if let Some(fault) = foreign_document_fault(node) {
            return self.report(fault);
        }
        let (envelope, faults) = decode_with::<Envelope>(node, &["spec"], Some(self.values));
        self.warn_of_null_entries(DocumentPart::Document, &Path::root());
        for fault in faults {
            self.report(with_place(fault));
        }
        self.misspelt.extend(node.get("name").map(|_| Path::from(["metadata", "name"])));
        let Some(envelope) = envelope else { return };
        // A value of the wrong type was reported already.
        let is_wrong_type = |name: &str, value: &str| {
            value.is_empty() && entries.clone().any(|(key, value)| key == name && !value.is_null())
        };
        let version = envelope.api_version.as_str();
        if version != API_VERSION && !is_wrong_type("apiVersion", version) {
            let fault = match version {
                "" => Fault::new(Code::ApiVersion, "`apiVersion` is missing").of_key(),
                other => Fault::new(Code::ApiVersion, format!("unknown apiVersion `{}`", printable(other))),
            };
            self.report(fault.at("apiVersion").help(format!("set `apiVersion: {API_VERSION}`")));
        }
        let kind = kinds::find(&envelope.kind);
        if kind.is_none() && !is_wrong_type("kind", &envelope.kind) {
            self.report(kinds::unknown_kind(&envelope.kind).at("kind"));
        }
        let name_is_good = self.name(&envelope.metadata, node);
        self.note_facts(&envelope.metadata);
        let spec = node.get("spec").filter(|spec| !spec.is_null());
        if spec.is_none() {
            let fault = Fault::new(Code::Required, "`spec` is missing").at("spec").of_key();
            self.report(fault.help("add `spec` with the fields of the resource"));
        }
        let Some(kind) = kind else { return };
        if !name_is_good {
            self.declared.invalid.insert((kind.name, envelope.metadata.name.clone()));
            // The rest of the document can still be checked.
            if let Some(spec) = spec {
                self.check_body(kind, &envelope.metadata, spec);
            }
            return;
        }
        let name: Arc<str> = Arc::from(envelope.metadata.name.as_str());
        let parent: Option<Arc<str>> =
            kind.parent_field.and_then(|field| spec?.get(field)).and_then(Node::as_str).map(Arc::from);
        let declared = DeclaredName { kind: kind.name, parent, name, origin: self.origin.clone() };
        if let (Some(id), Some(_)) = (&envelope.metadata.id, kind.resource) {
            self.declared.ids.push((id.clone(), declared.clone()));
        }
        self.declared.names.push(declared);
        if let Some(spec) = spec {
            self.body(kind, &envelope.metadata, spec);
        }
    }

    /// Checks the body of a document without declaring anything.
    fn check_body(&mut self, kind: &'static ManifestKind, metadata: &Metadata, spec: Node<'_>) {
        let (origin, values, mut declared) = (self.origin.clone(), self.values, Declarations::default());
        let (findings, facts) = (&mut *self.findings, LintFacts::default());
        let misspelt = Vec::new();
        Reader { origin, values, declared: &mut declared, findings, facts, misspelt }.body(kind, metadata, spec);
    }

    /// Records the labels and the lint levels set by annotations.
    fn note_facts(&mut self, metadata: &Metadata) {
        self.facts.labels = metadata.labels.keys().cloned().collect();
        for (key, value) in &metadata.annotations {
            let path = ["metadata", "annotations", key.as_str()];
            let Some(name) = key.strip_prefix(LINT_ANNOTATION) else {
                if key.starts_with(OWN_ANNOTATIONS) {
                    let fault = || unknown_annotation(key).of_key().at(path);
                    self.findings.error(|| self.origin.diagnostic(fault()));
                }
                continue;
            };
            let Some(lint) = lint::find(name) else {
                let fault = || unknown_lint(name, LINT_ANNOTATION).of_key().at(path);
                self.findings.error(|| self.origin.diagnostic(fault()));
                continue;
            };
            match annotated_level(lint, value) {
                Ok(level) => {
                    self.facts.levels.insert(name.to_owned(), level);
                    if level != Level::Allow {
                        self.declared.raised_lints.insert(lint.name);
                    }
                }
                Err(fault) => self.report(fault.at(path)),
            }
        }
    }

    /// Checks the document's name.
    fn name(&mut self, metadata: &Metadata, node: Node<'_>) -> bool {
        let written = node.get("metadata").and_then(|metadata| metadata.get("name"));
        if metadata.name.is_empty() {
            // A name or metadata of the wrong type was reported already.
            let is_readable = node.get("metadata").is_none_or(|it| it.is_null() || it.entries().is_some());
            if is_readable && written.is_none_or(|name| name.is_null() || name.as_str().is_some()) {
                let fault = Fault::new(Code::Required, "`metadata.name` is missing").at(["metadata", "name"]).of_key();
                self.report(fault.help("add a name, as in `metadata: {name: shop}`"));
            }
            return false;
        }
        self.check_name(&metadata.name, ["metadata", "name"].into())
    }

    fn check_name(&mut self, name: &str, path: Path) -> bool {
        let is_valid = is_name(name);
        if !is_valid {
            let fault = Fault::new(Code::InvalidName, format!("invalid name `{}`", printable(name)));
            self.report(fault.at(path).help("use 1 to 253 lower-case letters, digits, '-' and '.'"));
        }
        is_valid
    }

    fn body(&mut self, kind: &'static ManifestKind, metadata: &Metadata, spec: Node<'_>) {
        if spec.entries().is_none() {
            return self.report(kinds::bad_spec(kind, spec).at("spec"));
        }
        if let Some(resource) = kind.resource {
            self.check_identity(metadata, resource.info());
        }
        let faults = match kind.resource {
            Some(_) => transfer_markers::faults(metadata),
            None => faults_without_resource(metadata, kind.name),
        };
        faults.into_iter().for_each(|fault| self.report(fault));
        let body = Body { kind, metadata, spec };
        match kind.resource {
            Some(Kind::ApiKey) => self.api_key(&body),
            Some(Kind::HttpsEdge) => self.edge(&body),
            Some(Kind::HttpsEdgeRoute) => self.route(&body),
            Some(Kind::TlsCertificate) => self.certificate(&body),
            Some(Kind::EventSubscription) => self.subscription(&body),
            Some(
                Kind::Owner
                | Kind::IpRestriction
                | Kind::CertificateAuthority
                | Kind::TlsEdge
                | Kind::EventSource
                | Kind::Invariant,
            ) => self.resource(&body),
            None if kind.name == ROUTE_TEST => self.route_test(&body),
            None => self.module_set(&body),
        }
    }

    /// The Spec of a body, without the fields that only manifests have.
    fn spec_of(&mut self, body: &Body<'_>) -> Option<Arc<dyn AnyResource>> {
        let extra: Vec<&str> = body.kind.fields.iter().map(|field| field.name).collect();
        self.spec(body.kind.resource?, body.spec, DocumentPart::Spec, &extra)
    }

    /// Reports a field of a body that is missing, with what it is for.
    fn require(&mut self, body: &Body<'_>, field: &str, purpose: &str) {
        if body.spec.get(field).is_none_or(Node::is_null) {
            let fault = Fault::new(Code::Required, format!("`{field}` is missing: {purpose}"));
            self.report(fault.at(["spec", field]).of_key());
        }
    }

    /// Reads a resource whose `spec` is its Spec.
    fn resource(&mut self, body: &Body<'_>) {
        if let Some(resource) = self.spec_of(body) {
            self.declare(body.metadata, resource, DocumentPart::Spec, |_| {});
        }
    }

    /// Reads a route that names its edge.
    fn route(&mut self, body: &Body<'_>) {
        let Body { metadata, spec, .. } = *body;
        let edge: String = self.field(spec, DocumentPart::Spec, "edge");
        let modules_from: Vec<String> = self.list(spec, DocumentPart::Spec, "modules_from");
        let route = self.spec_of(body);
        self.require(body, "edge", "the name or ID of the route's edge");
        if let Some(route) = route.filter(|_| !edge.is_empty()) {
            self.declare(metadata, route, DocumentPart::Spec, |it| {
                (it.parent, it.modules_from) = (Some(edge.into()), modules_from);
            });
        }
    }

    /// Reads an API key and the file for its token.
    fn api_key(&mut self, body: &Body<'_>) {
        let Body { metadata, spec, .. } = *body;
        let token_file: Option<PathBuf> = self.field(spec, DocumentPart::Spec, "token_file");
        let key = self.spec_of(body);
        self.require(body, "token_file", "the file to write the token to");
        let path = token_file.map(|file| self.values.token_file(file)).transpose();
        let token_file = path.unwrap_or_else(|fault| {
            self.report(fault.at(["spec", "token_file"]));
            None
        });
        if let Some(key) = key {
            self.declare(metadata, key, DocumentPart::Spec, |it| it.token_file = token_file);
        }
    }

    fn check_identity(&mut self, metadata: &Metadata, info: &KindInfo) {
        if let Some(fault) = metadata.id.as_deref().and_then(|id| id_fault(id, info)) {
            self.report(fault.at(["metadata", "id"]));
        }
        if let Some(name) = &metadata.renamed_from {
            self.check_name(name, ["metadata", "renamed_from"].into());
        }
    }

    /// Declares a resource. `set` sets what only its kind has.
    fn declare(
        &mut self,
        metadata: &Metadata,
        spec: Arc<dyn AnyResource>,
        part: DocumentPart,
        set: impl FnOnce(&mut Declaration),
    ) {
        let mut declaration = Declaration {
            kind: spec.kind(),
            name: Arc::from(metadata.name.as_str()),
            parent: None,
            id: metadata.id.clone(),
            renamed_from: metadata.renamed_from.clone(),
            prevent_destroy: metadata.prevent_destroy,
            transfer: TransferMarkers::from_metadata(metadata),
            spec,
            modules_from: Vec::new(),
            token_file: None,
            origin: self.origin.part(part),
            facts: self.facts.clone(),
            faulty: false,
        };
        // The labels belong to the document, not to the routes inside it.
        self.facts.labels.clear();
        set(&mut declaration);
        if declaration.origin.is_entry() {
            let Declaration { kind, name, parent, origin, .. } = &declaration;
            let (parent, name, origin) = (parent.clone(), Arc::clone(name), origin.clone());
            self.declared.names.push(DeclaredName { kind: kind.info().name, parent, name, origin });
        }
        self.declared.resources.push(Arc::new(declaration));
    }

    /// Reads the entries of a list, which are mappings like the sample.
    fn entries(
        &mut self,
        spec: Node<'_>,
        (list, sample): (&'static str, &str),
        mut read: impl FnMut(&mut Self, Node<'_>, DocumentPart),
    ) {
        self.warn_of_null_list(spec, DocumentPart::Spec, list);
        let Some(value) = spec.get(list).filter(|value| !value.is_null()) else { return };
        let Some(entries) = value.items() else {
            let fault = not_a_list(&format!("`{list}`"), list, Some(sample), value);
            return self.report(fault.at(["spec", list]));
        };
        for (index, node) in entries.enumerate() {
            let part = DocumentPart::Entry(list, index);
            match node.entries() {
                Some(_) => read(self, node, part),
                None => self.report_in(part, not_an_entry(list, sample, node)),
            }
        }
    }

    /// Decodes the routes inside an edge.
    fn routes(&mut self, metadata: &Metadata, spec: Node<'_>) {
        let edge: Arc<str> = Arc::from(metadata.name.as_str());
        self.entries(spec, ROUTES, |reader, node, part| {
            let name: String = reader.field(node, part, "name");
            let modules_from: Vec<String> = reader.list(node, part, "modules_from");
            let route = reader.spec(Kind::HttpsEdgeRoute, node, part, &["name", "modules_from"]);
            if !name.is_empty() && !reader.check_name(&name, part.path().join("name")) {
                return;
            }
            let Some(route) = route else { return };
            let by_match = || {
                let route = route.as_any().downcast_ref::<HttpsEdgeRoute>()?;
                Some(format!("{} {}", route.match_type?.as_str(), route.r#match))
            };
            // Without a match it has no identity; the missing match was reported already.
            let Some(name) = Some(name).filter(|name| !name.is_empty()).or_else(by_match) else { return };
            let metadata = Metadata { name, ..transfer_markers::inherited_metadata(metadata) };
            reader.declare(&metadata, route, part, |it| {
                (it.parent, it.modules_from) = (Some(Arc::clone(&edge)), modules_from);
            });
        });
    }

    /// Reads the sources of a subscription, which is no resource of its own.
    fn subscription(&mut self, body: &Body<'_>) {
        let Body { metadata, spec, .. } = *body;
        self.spec_of(body);
        if metadata.renamed_from.is_some() && metadata.id.is_none() {
            let fault = Fault::new(Code::NotAllowed, "`renamed_from` of an EventSubscription requires `metadata.id`");
            self.report(fault.at(["metadata", "renamed_from"]).help("set `metadata.id` to the subscription's ID"));
        }
        let parent: Arc<str> = Arc::from(metadata.id.as_deref().unwrap_or(&metadata.name));
        self.entries(spec, SOURCES, |reader, node, part| {
            let Some(source) = reader.spec(Kind::EventSource, node, part, &[]) else { return };
            let Some(typed) = source.as_any().downcast_ref::<EventSource>() else { return };
            let (name, prevent_destroy) = (typed.r#type.clone(), metadata.prevent_destroy);
            let metadata = Metadata { name, prevent_destroy, ..transfer_markers::inherited_metadata(metadata) };
            reader.declare(&metadata, source, part, |it| it.parent = Some(Arc::clone(&parent)));
        });
    }
}

/// The fault of an annotation that would have no effect, such as one with a misspelt prefix.
fn unknown_annotation(key: &str) -> Fault {
    let fault = Fault::new(Code::UnknownField, format!("unknown annotation `{}`", printable(&quotable_key(key))));
    fault.help(format!("write `{LINT_ANNOTATION}NAME` for the level of a lint, or use another prefix"))
}

/// The fault of the name of a lint that does not exist. `prefix` is written before the name of a lint.
pub(crate) fn unknown_lint(name: &str, prefix: &str) -> Fault {
    let fault = Fault::new(Code::UnknownValue, format!("unknown lint `{}`", printable(name)));
    match nearest(name, lint::LINTS.iter().map(|lint| lint.name)) {
        Some(near) => fault.help(format!("did you mean `{prefix}{near}`?")),
        None => fault.help("run `edgewright explain` to list all lints"),
    }
}

/// Parses the value of an annotation: a level, also with a reason in parentheses.
fn annotated_level(lint: &lint::Lint, value: &str) -> Result<Level, Fault> {
    let with_reason =
        value.split_once(" (").and_then(|(level, reason)| Some((level, reason.strip_suffix(')')?.trim())));
    let (level, reason) = with_reason.unwrap_or((value, ""));
    let level = lint_level(level)?;
    if matches!(lint.name, "access-opened" | "invariant-weakened") && level == Level::Allow && reason.is_empty() {
        let message = format!("a reason is required to allow `{}`", lint.name);
        return Err(
            Fault::new(Code::Required, message).help("write `allow (REASON)`, such as `allow (public status page)`")
        );
    }
    Ok(level)
}

/// Parses the level of a lint.
pub(crate) fn lint_level(name: &str) -> Result<Level, Fault> {
    Level::from_name(name).ok_or_else(|| {
        let fault = Fault::new(Code::UnknownValue, format!("unknown lint level `{}`", printable(name)));
        fault.help("use `allow`, `warn` or `deny`")
    })
}
