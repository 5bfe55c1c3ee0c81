//! What a resource is, whatever its kind: a typed Spec and its View.
//!
//! A kind implements [`Resource`] for its Spec. What all other modules use follows from that type (`type_erasure.rs`): its Spec
//! among those of other kinds (`any_resource.rs`), and the description of the kind (`kind_info.rs`):
//!
//! ```text
//! impl Resource for HttpsEdge { … }  →  dyn AnyResource, Kind::HttpsEdge.info()
//! ```

pub(crate) mod any_resource;
pub(crate) mod endpoint_offers;
pub(crate) mod kind_info;
mod type_erasure;

use std::fmt::Debug;

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::diagnostics::Check;
use super::reference::Reference;
use any_resource::{AccessList, ViewContext};
use kind_info::KindInfo;

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
            fn new($spec: &$resource, $at: &$crate::model::resource::any_resource::ViewContext<'_>) -> Self {
                Self { $($field: $value,)* }
            }
        }
    };
}
pub(crate) use view;

impl ViewContext<'_> {
    /// Returns the Views of the children, oldest first.
    pub fn child_views<R: Resource>(&self) -> Vec<R::View> {
        let specs = self.children.iter().filter_map(|(at, spec)| Some((at, spec.as_any().downcast_ref::<R>()?)));
        specs.map(|(at, spec)| R::View::new(spec, at)).collect()
    }
}
