//! What a module must say about itself, and a module of any type.

use std::{any::Any, fmt::Debug, sync::Arc};

use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::admission::{AccessChange, Admittance};
use super::agent_patterns::CompiledPatterns;
use crate::model::base_urls::BaseUrls;
use crate::model::diagnostics::{Check, Faults, check};
use crate::model::id::Id;
use crate::model::json::{self, JsonError};
use crate::model::key::Key;
use crate::model::reference::Reference;
use crate::model::schema::Constraint;
use crate::model::secrets::Secrets;
use crate::model::traffic::{Stage, Step, StepEffect, TracedRequest};

/// A configuration that can be disabled without removing it.
pub trait Toggle {
    /// Whether the module applies to traffic.
    fn enabled(&self) -> bool;
}

/// The response form of the module `M`.
#[allow(unreachable_pub)] // a bound of a public trait
pub trait ModuleView<M>: Serialize + JsonSchema {
    /// Creates the response form of a module on the host `host`.
    fn new(module: &M, host: &Key, base_urls: &BaseUrls) -> Self;
}

impl<M: Module> ModuleView<M> for M {
    fn new(module: &M, _host: &Key, _base_urls: &BaseUrls) -> Self {
        module.clone()
    }
}

/// A traffic module, which is configured, replaced and deleted as a whole.
pub trait Module:
    Serialize + DeserializeOwned + JsonSchema + Check + Toggle + PartialEq + Clone + Debug + Send + Sync + 'static
{
    /// The URL segment, manifest key and field name.
    const SLOT: &'static str;

    /// The fields without which the module is invalid; its schema requires them. `Check` reports them.
    const REQUIRED: &'static [&'static str] = &[];

    /// Whether the module fully works with its defaults, and does not change who has access. A PUT without a body
    /// configures such a module (D64).
    const EMPTY_IS_HARMLESS: bool = false;

    /// Whether the module works on decrypted traffic only, so that an edge that passes TLS through cannot apply it (D15).
    const NEEDS_TERMINATION: bool = true;

    /// Whether the module is a login for people; a route can have one.
    const IS_LOGIN: bool = false;

    /// The settings of the module in other systems that contain the ID of its host, for a sentence.
    const SETTINGS_WITH_ID: Option<&'static str> = None;

    /// The response form; the module itself if they are equal.
    type View: ModuleView<Self>;

    /// Returns the response form on the host `host`.
    fn view(&self, host: &Key, base_urls: &BaseUrls) -> Self::View {
        Self::View::new(self, host, base_urls)
    }

    /// Whether the module, while enabled, restricts access to the backend. A login does.
    fn restricts_access(&self) -> bool {
        Self::IS_LOGIN
    }

    /// Returns the lists that decide who has access, as their fields and lengths. A PATCH that empties one warns (D65).
    fn access_lists(&self) -> Vec<(String, usize)> {
        Vec::new()
    }

    /// Returns whom the enabled module admits. What depends on an unknown answer is neither proven nor refuted (D120).
    fn admits(&self) -> Admittance {
        Admittance::Somebody
    }

    /// Whether the enabled module lets preflight requests pass without a check.
    fn lets_preflights_pass(&self) -> bool {
        false
    }

    /// Returns how the enabled module differs from a former one in whom it admits, apart from the preflight requests that it lets
    /// pass. By default, another configuration of a module that restricts access may admit somebody who was refused.
    fn access_change(&self, former: &Self) -> AccessChange {
        let restricts = self.restricts_access() || former.restricts_access();
        if restricts { AccessChange::of_value(former, self) } else { AccessChange::Same }
    }

    /// Returns the IP policies that alone admit clients, if the enabled module admits clients by their addresses.
    fn ip_policies(&self) -> Option<&[String]> {
        None
    }

    /// Returns what the enabled module does with a request, as a trace shows it (D42). The stages decide the order of
    /// all modules.
    fn steps(&self, _request: &TracedRequest) -> Vec<Step> {
        vec![Step::new(Stage::Dispatch, StepEffect::Depends, "applies to the request")]
    }

    /// Like [`steps`](Self::steps), with what was compiled for earlier requests.
    fn steps_with(&self, request: &TracedRequest, _patterns: &mut CompiledPatterns) -> Vec<Step> {
        Module::steps(self, request)
    }

    /// Returns an example body for the OpenAPI document. A test sends it to the API.
    fn example() -> Value {
        json!({"enabled": true})
    }

    /// Returns the constraints on the schema's definitions that the types do not express, beyond [`Module::REQUIRED`].
    fn constraints() -> Vec<Constraint> {
        Vec::new()
    }

    /// Visits every reference to a resource of this service.
    fn references(&self, _visit: &mut dyn FnMut(Reference)) {}

    /// Replaces the reference targets, in the order of [`Module::references`]. This turns the names in a manifest into
    /// IDs.
    fn set_references(&mut self, _targets: &[Id]) {}
}

/// A traffic module of any type.
pub trait AnyModule: Any + Toggle + Debug + Send + Sync {
    /// Returns the slot's name.
    fn slot(&self) -> &'static str;
    /// Whether the module, while enabled, restricts access to the backend.
    fn restricts_access(&self) -> bool;
    /// Returns the lists that decide who has access, as their fields and lengths.
    fn access_lists(&self) -> Vec<(String, usize)>;
    /// Returns whom the enabled module admits.
    fn admits(&self) -> Admittance;
    /// Returns how the enabled module differs from a former one in whom it admits with preflight requests, or with all others.
    fn access_change_of(&self, former: &dyn AnyModule, are_preflights: bool) -> AccessChange;
    /// Returns how the enabled module differs from a former one in whom it admits with any request.
    fn access_change(&self, former: &dyn AnyModule) -> AccessChange {
        self.access_change_of(former, true).and(self.access_change_of(former, false))
    }
    /// Returns the IP policies that alone admit clients, if the enabled module admits clients by their addresses.
    fn ip_policies(&self) -> Option<&[String]>;
    /// Returns what the enabled module does with a request.
    fn steps(&self, request: &TracedRequest) -> Vec<Step>;
    /// Like [`steps`](Self::steps), with what was compiled for earlier requests.
    fn steps_with(&self, request: &TracedRequest, patterns: &mut CompiledPatterns) -> Vec<Step>;
    /// Reports all faults.
    fn check(&self, faults: &mut Faults);
    /// Whether both are modules of the same type with equal values.
    fn same(&self, other: &dyn AnyModule) -> bool;
    /// Writes the write form.
    fn to_json(&self, secrets: Secrets<'_>) -> Result<Value, JsonError>;
    /// Writes the response form.
    fn view_json(&self, host: &Key, base_urls: &BaseUrls, secrets: Secrets<'_>) -> Result<Vec<u8>, JsonError>;
    /// Visits every reference to a resource of this service.
    fn references(&self, visit: &mut dyn FnMut(Reference));
    /// Returns a copy with other reference targets, in the order of the references.
    fn with_references(&self, targets: &[Id]) -> Arc<dyn AnyModule>;
    /// Returns the module for a downcast.
    fn as_any(&self) -> &dyn Any;
    /// Returns the shared module for a downcast.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<M: Module> AnyModule for M {
    fn slot(&self) -> &'static str {
        M::SLOT
    }
    fn restricts_access(&self) -> bool {
        Module::restricts_access(self)
    }
    fn access_lists(&self) -> Vec<(String, usize)> {
        Module::access_lists(self)
    }
    fn admits(&self) -> Admittance {
        Module::admits(self)
    }
    fn access_change_of(&self, former: &dyn AnyModule, are_preflights: bool) -> AccessChange {
        let Some(former) = former.as_any().downcast_ref::<M>() else { return AccessChange::Unknown };
        let [did, does] = [former, self].map(|it| are_preflights && Module::lets_preflights_pass(it));
        if did || does { AccessChange::of_switch(did, does) } else { Module::access_change(self, former) }
    }
    fn ip_policies(&self) -> Option<&[String]> {
        Module::ip_policies(self)
    }
    fn steps(&self, request: &TracedRequest) -> Vec<Step> {
        Module::steps(self, request)
    }
    fn steps_with(&self, request: &TracedRequest, patterns: &mut CompiledPatterns) -> Vec<Step> {
        Module::steps_with(self, request, patterns)
    }
    fn check(&self, faults: &mut Faults) {
        Check::check(self, faults);
        check::tokens(faults, M::SLOT, self);
    }
    fn same(&self, other: &dyn AnyModule) -> bool {
        other.as_any().downcast_ref::<M>() == Some(self)
    }
    fn to_json(&self, secrets: Secrets<'_>) -> Result<Value, JsonError> {
        json::value(self, secrets)
    }
    fn view_json(&self, host: &Key, base_urls: &BaseUrls, secrets: Secrets<'_>) -> Result<Vec<u8>, JsonError> {
        json::bytes(&self.view(host, base_urls), secrets)
    }
    fn references(&self, visit: &mut dyn FnMut(Reference)) {
        Module::references(self, visit);
    }
    fn with_references(&self, targets: &[Id]) -> Arc<dyn AnyModule> {
        let mut changed = self.clone();
        changed.set_references(targets);
        Arc::new(changed)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// A module that several hosts can share, such as those that take it from one module set.
pub(crate) type SharedModule = Arc<dyn AnyModule>;
