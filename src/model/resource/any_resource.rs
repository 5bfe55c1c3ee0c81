//! A Spec of any kind, as all other modules use it, and what its View needs from around it.

use std::{any::Any, fmt::Debug, sync::Arc};

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::model::base_urls::BaseUrls;
use crate::model::diagnostics::Faults;
use crate::model::json::JsonError;
use crate::model::key::Key;
use crate::model::kind::Kind;
use crate::model::module::{AnyModule, SharedModule, Slot};
use crate::model::reference::Reference;
use crate::model::secrets::Secrets;

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
    pub base_urls: &'a BaseUrls,
    /// The children, oldest first, if the View of the kind includes them (see `KindFacts::children`).
    pub children: &'a [(ViewContext<'a>, &'a dyn AnyResource)],
}

impl ViewContext<'_> {
    /// Returns the URI of the resource.
    pub fn uri(&self) -> String {
        self.base_urls.uri(self.key)
    }
}
