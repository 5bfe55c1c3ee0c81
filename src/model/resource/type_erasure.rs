//! How a typed [`Resource`] becomes one of any kind: its description, and its [`AnyResource`].

use std::{any::Any, sync::Arc};

use serde_json::{Map, Value};

use super::any_resource::{AccessList, AnyResource, ViewContext};
use super::endpoint_offers::Offers;
use super::kind_info::{KindInfo, SpecArc};
use super::{Resource, ResourceView as _};
use crate::model::decode::{Decoded, decode_request, decode_with};
use crate::model::diagnostics::{Check, Faults, Path, check};
use crate::model::json::{self, JsonError, deserialize};
use crate::model::kind::Kind;
use crate::model::module::switch::advise;
use crate::model::module::{SharedModule, Slot};
use crate::model::reference::Reference;
use crate::model::secrets::Secrets;
use crate::syntax::yaml::Node;

/// The capacity for a response form. Most fit, and a list with a filter writes one per entry.
const USUAL_VIEW: usize = 2048;

/// Makes a decoded Spec one of any type, and helps with modules that are written like a switch.
fn erase<R: Resource>((spec, faults): Decoded<R>, node: Node<'_>) -> Decoded<SpecArc> {
    (spec.map(|spec| Arc::new(spec) as SpecArc), advise(faults, R::INFO.slots, node))
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
    use serde_json::json;

    use super::*;
    use crate::model::kind::https_edge_route::HttpsEdgeRoute;
    use crate::model::kind::tls_certificate::TlsCertificate;
    use crate::model::module::saml::Saml;
    use crate::model::secrets::Text;
    use crate::syntax::yaml::Tape;

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
