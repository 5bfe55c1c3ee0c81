//! The manifest kinds: what a manifest's `spec` has beyond the API's write form, and the file that it is exported to.

use schemars::SchemaGenerator;
use serde_json::{Value, json};

use crate::model::decode::{list, one_of};
use crate::model::kind::event_subscription::EventSubscription;
use crate::model::route_test::TestedRequest;
use crate::model::schema::{add_property, inline, require};
use crate::model::{
    ApiKey, CertificateAuthority, Code, Fault, HttpsEdge, HttpsEdgeRoute, Invariant, IpRestriction, Kind, Resource,
    TlsCertificate, TlsEdge,
};
use crate::syntax::text::printable;
use crate::syntax::yaml::Node;

/// The manifest kind of named modules, which is no resource.
pub(crate) const MODULE_SET: &str = "ModuleSet";
/// The manifest kind of requests with what must become of them, which is no resource.
pub(crate) const ROUTE_TEST: &str = "RouteTest";
/// The field of an edge with the other sources that may add routes.
pub(super) const DELEGATES_TO: &str = "delegates_to";
/// The field of an edge with the other sources whose certificates it presents.
pub(super) const CERTIFICATES_FROM: &str = "certificates_from";
/// The field of a certificate with the other sources whose edges may present it.
pub(super) const SHARED_WITH: &str = "shared_with";
/// The field of an edge with the module sets that every route has. In the Spec, it has their modules.
pub(crate) const REQUIRED_MODULES: &str = "required_modules";

/// A manifest kind.
pub(crate) struct ManifestKind {
    /// The value of `kind`.
    pub name: &'static str,
    /// The resource that a manifest declares; `None` for [`MODULE_SET`] and [`ROUTE_TEST`].
    pub resource: Option<Kind>,
    /// The fields that the API's write form lacks: all fields of [`ROUTE_TEST`], which is no part of the API.
    pub fields: &'static [ManifestField],
    /// The field that names the parent; a name is unique within the parent.
    pub parent_field: Option<&'static str>,
    /// The form of an export.
    pub export: Export,
}

/// A field that only manifests have.
pub(crate) struct ManifestField {
    /// The name.
    pub name: &'static str,
    /// Whether a manifest must have it.
    pub required: bool,
    /// The schema.
    pub schema: fn(&mut SchemaGenerator) -> Value,
}

/// The form in which a kind is exported.
pub(crate) enum Export {
    /// Not by itself: module sets are part of the routes that use them, and tests are in no store.
    Never,
    /// One file for all resources.
    File(&'static str),
    /// One file for each resource, with a prefix before its name.
    FileEach(&'static str),
}

impl ManifestKind {
    /// A kind whose `spec` is the API's write form, exported into one file.
    const fn for_resource<R: Resource>(file: &'static str) -> Self {
        Self {
            name: R::INFO.facts.name,
            resource: Some(R::INFO.kind),
            fields: &[],
            parent_field: None,
            export: Export::File(file),
        }
    }
}

/// Every manifest kind, in the order of [`Kind`].
pub(crate) static KINDS: [ManifestKind; 11] = [
    ManifestKind {
        fields: &[ManifestField { name: "token_file", required: true, schema: token_file }],
        ..ManifestKind::for_resource::<ApiKey>("api-keys.yaml")
    },
    ManifestKind::for_resource::<IpRestriction>("ip-restrictions.yaml"),
    ManifestKind::for_resource::<CertificateAuthority>("certificate-authorities.yaml"),
    ManifestKind {
        fields: &[ManifestField { name: SHARED_WITH, required: false, schema: shared_with }],
        ..ManifestKind::for_resource::<TlsCertificate>("tls-certificates.yaml")
    },
    ManifestKind {
        fields: &[
            ManifestField { name: "routes", required: false, schema: routes },
            ManifestField { name: DELEGATES_TO, required: false, schema: delegates_to },
            ManifestField { name: CERTIFICATES_FROM, required: false, schema: certificates_from },
            ManifestField { name: REQUIRED_MODULES, required: false, schema: required_modules },
        ],
        export: Export::FileEach("https-edge"),
        ..ManifestKind::for_resource::<HttpsEdge>("")
    },
    ManifestKind {
        fields: &[
            ManifestField { name: "edge", required: true, schema: edge },
            ManifestField { name: "modules_from", required: false, schema: modules_from },
        ],
        parent_field: Some("edge"),
        ..ManifestKind::for_resource::<HttpsEdgeRoute>("routes-of-other-edges.yaml")
    },
    ManifestKind::for_resource::<TlsEdge>("tls-edges.yaml"),
    ManifestKind {
        fields: &[ManifestField { name: "sources", required: false, schema: sources }],
        ..ManifestKind::for_resource::<EventSubscription>("event-subscriptions.yaml")
    },
    ManifestKind::for_resource::<Invariant>("invariants.yaml"),
    ManifestKind { name: MODULE_SET, resource: None, fields: &[], parent_field: None, export: Export::Never },
    ManifestKind {
        name: ROUTE_TEST,
        resource: None,
        fields: &[
            ManifestField { name: "requests", required: true, schema: requests },
            ManifestField { name: "informing_only", required: false, schema: informing_only },
        ],
        parent_field: None,
        export: Export::Never,
    },
];

/// Finds a manifest kind by name.
pub(crate) fn find(name: &str) -> Option<&'static ManifestKind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// The fault of a `spec` that is not a mapping, with fields of the kind.
pub(super) fn bad_spec(kind: &ManifestKind, spec: Node<'_>) -> Fault {
    let message = format!("the `spec` of {} must be a mapping (found {})", kind.name, spec.describe());
    let example = kind.resource.and_then(|kind| (kind.info().example)());
    let fields: Vec<&str> = match example.as_ref().and_then(Value::as_object) {
        Some(fields) => fields.keys().map(String::as_str).collect(),
        None if !kind.fields.is_empty() => kind.fields.iter().map(|field| field.name).collect(),
        None => HttpsEdgeRoute::INFO.slots.iter().map(|slot| slot.name).collect(),
    };
    let help = format!("put one field on each line, such as {}", list(fields.get(..2).unwrap_or(&fields)));
    Fault::new(Code::WrongType, message).help(help)
}

/// The fault of an unknown or missing `kind`.
pub(super) fn unknown_kind(kind: &str) -> Fault {
    let known: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
    if kind.is_empty() {
        return Fault::new(Code::UnknownKind, "`kind` is missing")
            .of_key()
            .help(format!("use one of {}", list(&known)));
    }
    Fault::new(Code::UnknownKind, format!("unknown kind `{}`", printable(kind))).help(one_of(kind, &known))
}

fn token_file(_: &mut SchemaGenerator) -> Value {
    json!({"type": "string", "description": "The file that receives the token when the key is created; it must be outside the source tree."})
}

fn edge(_: &mut SchemaGenerator) -> Value {
    json!({"type": "string", "description": "The route's edge, by name or ID."})
}

fn modules_from(_: &mut SchemaGenerator) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": "Module sets to include, by name. Later sets override earlier ones, and the route's own modules override all sets."})
}

/// The schema of the routes inside an edge.
fn routes(generator: &mut SchemaGenerator) -> Value {
    let info = Kind::HttpsEdgeRoute.info();
    let mut route = inline(generator, info.spec_schema);
    require(info.required, &mut route);
    add_property(
        &mut route,
        "name",
        json!({"type": "string", "description": "The route's name, unique within its edge; defaults to its match_type and match."}),
    );
    let sets = modules_from(generator);
    add_property(&mut route, "modules_from", sets);
    json!({"type": "array", "items": route, "description": "Routes of the edge."})
}

fn delegates_to(_: &mut SchemaGenerator) -> Value {
    let delegation = json!({
        "type": "object",
        "properties": {
            "source": {"type": "string", "minLength": 1, "description": "The other source."},
            "path_prefix": {"type": "string", "pattern": "^/(.*/)?$", "description": "The path prefix that its routes may match. `/` delegates all paths, and, unless the edge has `required_modules`, hosts below its wildcards and other ports of its hosts."}
        },
        "required": ["source", "path_prefix"],
        "additionalProperties": false
    });
    json!({"type": "array", "items": delegation, "description": "Other sources that may add routes to the edge, and the path prefixes of these routes."})
}

fn certificates_from(_: &mut SchemaGenerator) -> Value {
    json!({"type": "array", "items": {"type": "string", "minLength": 1}, "description": "Other sources whose certificates the edge presents, in addition to those of its own source. For hosts that none of them covers, the edge presents certificates that no source owns."})
}

fn shared_with(_: &mut SchemaGenerator) -> Value {
    json!({"type": "array", "items": {"type": "string", "minLength": 1}, "description": "The other sources whose edges may present the certificate if they name its source in `certificates_from`; `[]` for none. Without the field, every source may."})
}

fn required_modules(_: &mut SchemaGenerator) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": "Module sets that edgewright adds to every route of the edge, from any source. Later sets override earlier ones. It is an error if a route sets one of these modules differently."})
}

fn sources(generator: &mut SchemaGenerator) -> Value {
    let source = (Kind::EventSource.info().spec_schema)(generator).to_value();
    json!({"type": "array", "items": source, "description": "The event types that trigger the subscription."})
}

fn requests(generator: &mut SchemaGenerator) -> Value {
    let request = generator.subschema_for::<TestedRequest>().to_value();
    json!({"type": "array", "items": request, "minItems": 1, "description": "The requests, each with its expected handling."})
}

fn informing_only(_: &mut SchemaGenerator) -> Value {
    json!({"type": "boolean", "default": false, "description": "Whether a failure is only a warning, so that the source is applied."})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_manifests_except_those_that_are_made_otherwise() {
        // Owners are created with their keys, and sources are declared inside their subscription.
        let others = [Kind::Owner, Kind::EventSource];
        let expected = Kind::all().filter(|info| !others.contains(&info.kind)).map(|info| (info.name, Some(info.kind)));
        let expected: Vec<_> = expected.chain([(MODULE_SET, None), (ROUTE_TEST, None)]).collect();
        assert_eq!(KINDS.iter().map(|kind| (kind.name, kind.resource)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_exported_file_has_a_name_of_its_own() {
        let mut files: Vec<&str> = KINDS
            .iter()
            .filter_map(|kind| match kind.export {
                Export::Never => None,
                Export::File(name) | Export::FileEach(name) => Some(name),
            })
            .collect();
        files.sort_unstable();
        let count = files.len();
        files.dedup();
        assert_eq!((files.len(), files.contains(&"")), (count, false), "{files:?}");
    }
}
