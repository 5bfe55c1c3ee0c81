//! Resource kinds: a typed Spec, its View, and the type-erased form used by the other modules.

use std::{any::Any, fmt::Debug, ops::Deref, sync::Arc};

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{
    base_urls::Site,
    decode::{Decoded, ValueSource, decode_request, decode_with},
    diagnostics::{Check, Faults, Path, check},
    json::{self, JsonError, deserialize},
    key::Key,
    kind::{Kind, KindFacts},
    module::{AnyModule, SharedModule, Slot, switch::advise},
    node::Node,
    reference::Reference,
    schema::Constraint,
    secrets::Secrets,
};

/// The room for a response form from the start. Most fit: every field is in it, also those that are not set.
const USUAL_VIEW: usize = 2 << 10;

/// The Spec of a kind: API body, manifest `spec`, stored record and schema are all this one type.
pub trait Resource:
    Serialize + DeserializeOwned + JsonSchema + Check + PartialEq + Clone + Default + Debug + Send + Sync + 'static
{
    /// The description of the kind.
    const INFO: KindInfo;

    /// The response form; the Spec itself if they are equal.
    type View: ResourceView<Self>;

    /// Visits every reference to a resource of this service.
    fn references(&self, _visit: &mut dyn FnMut(Reference)) {}

    /// Returns the lists that decide who has access, except those of modules.
    fn access_lists(&self) -> Vec<AccessList> {
        Vec::new()
    }

    /// Returns an example body that creates a resource, for the OpenAPI document. A test sends it to the API.
    fn example() -> Option<Value> {
        None
    }

    /// Returns an example body that changes a resource.
    fn patch_example() -> Value {
        json!({"description": "Another description"})
    }

    /// Shares parsed texts with `former`, except those in modules.
    fn keep_readings(&mut self, _former: &Self) {}

    /// Returns this resource with the spelling of a stored one, if immutable fields of both mean the same but are
    /// spelled differently.
    fn as_stored(&self, _stored: &Self) -> Option<Self> {
        None
    }
}

/// The response form of the kind `R`.
#[allow(unreachable_pub)] // a bound of a public trait
pub trait ResourceView<R>: Serialize + JsonSchema {
    /// Creates the response form of a Spec.
    fn new(spec: &R, at: &ViewContext<'_>) -> Self;
}

impl<R: Resource> ResourceView<R> for R {
    fn new(spec: &R, _at: &ViewContext<'_>) -> Self {
        spec.clone()
    }
}

/// Declares the response form of a kind: each field with its value, made of the Spec and of where the resource is.
macro_rules! view {
    (
        $(#[$meta:meta])*
        pub struct $view:ident($spec:ident: &$resource:ty, $at:ident) {
            $($(#[$field_meta:meta])* $vis:vis $field:ident: $type:ty = $value:expr,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, serde::Serialize, schemars::JsonSchema)]
        pub struct $view {
            $($(#[$field_meta])* $vis $field: $type,)*
        }

        impl $crate::model::resource::ResourceView<$resource> for $view {
            fn new($spec: &$resource, $at: &$crate::model::resource::ViewContext<'_>) -> Self {
                Self { $($field: $value,)* }
            }
        }
    };
}
pub(crate) use view;

/// A list that decides who has access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessList {
    /// The path of its field, with dots.
    pub field: String,
    /// The number of its items.
    pub length: usize,
    /// Whether the list applies to traffic.
    pub enforced: bool,
}

/// The data that a View shows in addition to the Spec.
#[derive(Clone, Copy)]
pub struct ViewContext<'a> {
    /// The key of the resource.
    pub key: &'a Key,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The service's URLs and certificates.
    pub site: &'a Site,
    /// The children, oldest first, if the View of the kind includes them (see `KindFacts::children`).
    pub children: &'a [ViewChild<'a>],
}

/// A child of the resource in a View.
pub struct ViewChild<'a> {
    /// The key of the child.
    pub key: &'a Key,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// The Spec of the child.
    pub spec: &'a dyn AnyResource,
}

impl ViewContext<'_> {
    /// Returns the URI of the resource.
    pub fn uri(&self) -> String {
        self.site.uri(self.key)
    }

    /// Returns the Views of the children, oldest first.
    pub fn child_views<R: Resource>(&self) -> Vec<R::View> {
        let view = |child: &ViewChild<'_>| {
            let spec = child.spec.as_any().downcast_ref::<R>()?;
            let at = ViewContext { key: child.key, created_at: child.created_at, site: self.site, children: &[] };
            Some(R::View::new(spec, &at))
        };
        self.children.iter().filter_map(view).collect()
    }
}

/// Whether an endpoint exists, and whether it is in the API specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// In the specification.
    Specified,
    /// An extension of the specification (D24).
    Extension,
    /// Not available.
    Absent,
}

/// The endpoints of a kind.
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)]
pub struct Offers {
    pub create: Offer,
    pub list: Offer,
    pub get: Offer,
    pub patch: Offer,
    pub delete: Offer,
}

impl Offers {
    /// All five, as in the specification.
    pub const ALL: Offers = Offers::every(Offer::Specified);
    /// None, for an internal kind.
    pub const NONE: Offers = Offers::every(Offer::Absent);
    /// The specified endpoints of edges and routes, and extensions to list and delete them.
    pub const EDGE: Offers = Offers { list: Offer::Extension, delete: Offer::Extension, ..Offers::ALL };
    /// Read-only, for an implicit kind.
    pub const IMPLICIT: Offers = Offers { list: Offer::Extension, get: Offer::Extension, ..Offers::NONE };

    const fn every(offer: Offer) -> Self {
        Self { create: offer, list: offer, get: offer, patch: offer, delete: offer }
    }
}

type SpecArc = Arc<dyn AnyResource>;
/// Decodes a spec from a manifest, ignoring the given fields that are known elsewhere.
pub(crate) type DecodeSpec = fn(Node<'_>, &[&str], Option<&dyn ValueSource>) -> Decoded<SpecArc>;

/// Makes a decoded Spec one of any type, and helps with modules that are written like a switch.
fn erase<R: Resource>((spec, faults): Decoded<R>, node: Node<'_>) -> Decoded<SpecArc> {
    (spec.map(|spec| Arc::new(spec) as SpecArc), advise(faults, R::INFO.slots, node))
}

/// The fields of a PATCH next to which a blank means "not given" (D65).
pub(crate) enum BlankContext {
    /// Any other field.
    Anything,
    /// A blank in any of these.
    BlankOf(&'static [&'static str]),
}

/// The description of a kind. [`Kind::all`] lists all kinds.
pub struct KindInfo {
    /// The kind.
    pub kind: Kind,
    /// The names and addresses, which are also fields of the description.
    pub facts: KindFacts,
    /// The immutable fields: a change requires a new resource.
    pub fixed: &'static [&'static str],
    /// The fields without which a Spec is invalid; its schema requires them. `Check` reports them.
    pub required: &'static [&'static str],
    /// The fields that only manifests set: no request or response has them.
    pub(crate) hidden: &'static [&'static str],
    /// Further constraints on the definitions of its schema.
    pub(crate) constraints: fn() -> Vec<Constraint>,
    /// The fields that clients send empty when they mean "not given" (D6).
    pub(crate) blank_is_unset: &'static [&'static str],
    /// The other fields of which a blank in a PATCH may stand for nothing, because clients write it whatever they were
    /// given (D65).
    pub(crate) unmeant_blanks: &'static [(&'static str, BlankContext)],
    /// The endpoints.
    pub offers: Offers,
    /// The module slots.
    pub slots: &'static [Slot],
    /// Returns an example body that creates a resource.
    pub example: fn() -> Option<Value>,
    /// Returns an example body that changes a resource.
    pub patch_example: fn() -> Value,
    /// Returns an empty spec.
    pub(crate) empty: fn() -> SpecArc,
    /// Decodes a manifest's `spec`, ignoring the given fields that are known elsewhere.
    pub(crate) decode: DecodeSpec,
    /// Decodes the body of a POST or PATCH, ignoring the fields of the first list, and never suggesting those of the second.
    pub(crate) decode_request: fn(Node<'_>, &[&str], &[&str]) -> Decoded<SpecArc>,
    /// Decodes the spec of a stored record.
    pub(crate) restore: fn(&str) -> Result<SpecArc, serde_json::Error>,
    /// The schema of the write form.
    pub(crate) spec_schema: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of the response form.
    pub(crate) view_schema: fn(&mut SchemaGenerator) -> Schema,
}

impl KindInfo {
    /// The fields that follow from the type; the kind sets the others.
    pub(crate) const fn new<R: Resource>(kind: Kind) -> KindInfo {
        KindInfo {
            kind,
            facts: kind.facts(),
            fixed: &[],
            required: &[],
            hidden: &[],
            constraints: Vec::new,
            blank_is_unset: &[],
            unmeant_blanks: &[],
            offers: Offers::ALL,
            slots: &[],
            example: R::example,
            patch_example: R::patch_example,
            empty: || Arc::new(R::default()),
            decode: |node, elsewhere, sources| erase(decode_with::<R>(node, elsewhere, sources), node),
            decode_request: |node, elsewhere, fixed| erase(decode_request::<R>(node, elsewhere, fixed), node),
            restore: |raw| Ok(Arc::new(deserialize::from_str::<R>(raw)?)),
            spec_schema: |generator| generator.subschema_for::<R>(),
            view_schema: |generator| generator.subschema_for::<R::View>(),
        }
    }

    /// The module slot with a name.
    pub fn slot(&self, name: &str) -> Option<&'static Slot> {
        self.slots.iter().find(|slot| slot.name == name)
    }
}

impl Deref for KindInfo {
    type Target = KindFacts;

    fn deref(&self) -> &KindFacts {
        &self.facts
    }
}

/// The Spec of a resource of any kind.
pub trait AnyResource: Any + Debug + Send + Sync {
    /// The kind.
    fn kind(&self) -> Kind;
    /// Reports violations of its own rules, including those of modules.
    fn check(&self, faults: &mut Faults);
    /// Whether both are the same kind and value.
    fn same(&self, other: &dyn AnyResource) -> bool;
    /// Writes the write form.
    fn to_json(&self, secrets: Secrets<'_>) -> Result<Map<String, Value>, JsonError>;
    /// Writes the write form as bytes.
    fn to_bytes(&self, secrets: Secrets<'_>) -> Result<Vec<u8>, JsonError>;
    /// Writes the response form.
    fn view_json(&self, at: &ViewContext<'_>, secrets: Secrets<'_>) -> Result<Vec<u8>, JsonError>;
    /// Visits every reference to a resource of this service, including those of modules.
    fn references(&self, visit: &mut dyn FnMut(Reference));
    /// Returns the lists that decide who has access, its modules included.
    fn access_lists(&self) -> Vec<AccessList>;
    /// The module slots of its kind.
    fn slots(&self) -> &'static [Slot];
    /// Returns a copy with the modules of some slots replaced or removed.
    fn with_modules(&self, modules: &[(&'static Slot, Option<SharedModule>)]) -> Arc<dyn AnyResource>;
    /// Returns a copy with the given fields of another spec of its kind.
    fn patched(&self, patch: &dyn AnyResource, fields: &[String]) -> Result<Arc<dyn AnyResource>, serde_json::Error>;
    /// Returns this resource with the spelling of a stored one, if immutable fields of both mean the same.
    fn as_stored(&self, stored: &dyn AnyResource) -> Option<Arc<dyn AnyResource>>;
    /// For a downcast.
    fn as_any(&self) -> &dyn Any;
}

impl dyn AnyResource + '_ {
    /// Returns the module in a slot.
    pub fn module(&self, slot: &Slot) -> Option<&dyn AnyModule> {
        (slot.get)(self.as_any())
    }

    /// Returns the module in a slot, to share it.
    pub fn shared_module(&self, slot: &Slot) -> Option<SharedModule> {
        (slot.share)(self.as_any())
    }

    /// Returns its modules, in the order of the slots.
    pub fn modules(&self) -> impl Iterator<Item = (&'static Slot, &dyn AnyModule)> {
        self.slots().iter().filter_map(move |slot| Some((slot, self.module(slot)?)))
    }
}

/// Returns a copy without modules.
fn without_modules<R: Resource>(resource: &R) -> R {
    let mut bare = resource.clone();
    for slot in R::INFO.slots {
        (slot.set)(&mut bare, None);
    }
    bare
}

impl<R: Resource> AnyResource for R {
    fn kind(&self) -> Kind {
        R::INFO.kind
    }

    fn check(&self, faults: &mut Faults) {
        Check::check(self, faults);
        // Modules refuse tokens themselves.
        check::tokens(faults, R::INFO.kind.facts().name, &without_modules(self));
        for (slot, module) in (self as &dyn AnyResource).modules() {
            faults.within(slot.name, |faults| module.check(faults));
        }
    }

    fn same(&self, other: &dyn AnyResource) -> bool {
        other.as_any().downcast_ref::<R>() == Some(self)
    }

    fn to_json(&self, secrets: Secrets<'_>) -> Result<Map<String, Value>, JsonError> {
        json::object(self, secrets)
    }

    fn to_bytes(&self, secrets: Secrets<'_>) -> Result<Vec<u8>, JsonError> {
        json::bytes(self, secrets)
    }

    fn view_json(&self, at: &ViewContext<'_>, secrets: Secrets<'_>) -> Result<Vec<u8>, JsonError> {
        let mut bytes = Vec::with_capacity(USUAL_VIEW);
        json::append(&R::View::new(self, at), secrets, &mut bytes).map(|()| bytes)
    }

    fn references(&self, visit: &mut dyn FnMut(Reference)) {
        Resource::references(self, visit);
        for (slot, module) in (self as &dyn AnyResource).modules() {
            module.references(&mut |reference| {
                let path = reference.path.under(&Path::from(slot.name));
                visit(Reference { path, ..reference });
            });
        }
    }

    fn access_lists(&self) -> Vec<AccessList> {
        let mut lists = Resource::access_lists(self);
        for (slot, module) in (self as &dyn AnyResource).modules() {
            let enforced = module.enabled();
            lists.extend(module.access_lists().into_iter().map(|(field, length)| {
                let field = format!("{}.{field}", slot.name);
                AccessList { field, length, enforced }
            }));
        }
        lists
    }

    fn slots(&self) -> &'static [Slot] {
        R::INFO.slots
    }

    fn with_modules(&self, modules: &[(&'static Slot, Option<SharedModule>)]) -> Arc<dyn AnyResource> {
        let mut changed = self.clone();
        for (slot, module) in modules {
            (slot.set)(&mut changed, module.clone());
        }
        Arc::new(changed)
    }

    fn as_stored(&self, stored: &dyn AnyResource) -> Option<Arc<dyn AnyResource>> {
        Some(Arc::new(Resource::as_stored(self, stored.as_any().downcast_ref::<R>()?)?))
    }

    fn patched(&self, patch: &dyn AnyResource, fields: &[String]) -> Result<Arc<dyn AnyResource>, serde_json::Error> {
        // Modules are copied: serialising them takes longer than all the rest, and would lose their parsed texts.
        let bare = without_modules(self);
        let (mut whole, mut changes) = (bare.to_json(Secrets::Revealed)?, patch.to_json(Secrets::Revealed)?);
        for field in fields {
            match changes.remove(field) {
                Some(value) => whole.insert(field.clone(), value),
                // An optional field that is not written when it is unset.
                None => whole.remove(field),
            };
        }
        whole.retain(|name, _| R::INFO.slot(name).is_none());
        let mut patched = serde_json::from_value::<R>(Value::Object(whole))?;
        patched.keep_readings(self);
        for slot in R::INFO.slots {
            let named = fields.iter().any(|field| field == slot.name);
            let given = if named { patch.shared_module(slot) } else { None };
            (slot.set)(&mut patched, given.or_else(|| (slot.share)(self)));
        }
        Ok(Arc::new(patched))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        kind::{https_edge_route::HttpsEdgeRoute, tls_certificate::TlsCertificate},
        module::saml::Saml,
        node::Tape,
        secrets::Text,
    };

    fn described<R: Resource>(before: &R, description: &str) -> R {
        let patch = R::INFO.decode;
        let body = serde_json::from_value::<Tape>(json!({"description": description})).unwrap_or_default();
        let patch = patch(body.root(), &[], None).0.unwrap_or_else(R::INFO.empty);
        let patched = AnyResource::patched(before, patch.as_ref(), &["description".to_owned()]);
        patched.ok().and_then(|it| it.as_any().downcast_ref::<R>().cloned()).unwrap_or_default()
    }

    #[test]
    fn a_patch_keeps_what_was_parsed_of_other_fields() {
        let saml = Saml { idp_metadata: Text::new("<a/>"), ..Saml::default() };
        let route = HttpsEdgeRoute { saml: Some(Arc::new(saml)), ..HttpsEdgeRoute::default() };
        let patched = described(&route, "new");
        assert_eq!(patched.description, "new");
        let reading =
            |route: &HttpsEdgeRoute| route.saml.as_ref().map(|saml| std::ptr::from_ref(saml.idp_metadata.read()));
        assert!(reading(&route).is_some() && reading(&route) == reading(&patched));
        let certificate = TlsCertificate { certificate_pem: Text::new("-"), ..TlsCertificate::default() };
        let patched = described(&certificate, "new");
        assert_eq!(patched.description, "new");
        assert!(std::ptr::eq(certificate.certificate_pem.read(), patched.certificate_pem.read()));
    }

    #[test]
    fn a_patch_replaces_the_modules_that_it_names() {
        let module = |text: &str| Some(Arc::new(Saml { idp_metadata: Text::new(text), ..Saml::default() }));
        let route = HttpsEdgeRoute { saml: module("a"), compression: Some(Default::default()), ..Default::default() };
        let patch = HttpsEdgeRoute { saml: module("b"), ..Default::default() };
        let fields = ["saml".to_owned(), "compression".to_owned()];
        let patched = AnyResource::patched(&route, &patch, &fields).ok();
        let patched = patched.as_ref().and_then(|it| it.as_any().downcast_ref::<HttpsEdgeRoute>());
        assert_eq!(patched, Some(&HttpsEdgeRoute { saml: module("b"), ..route.clone() }));
    }
}
