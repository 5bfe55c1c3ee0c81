//! A module with nothing but what every module must have, and its defaults.

use std::sync::Arc;

use schemars::SchemaGenerator;
use serde_json::json;

use super::macros::{module, slots};
use super::traits::Module;
use crate::model::base_urls::BaseUrls;
use crate::model::diagnostics::Check;
use crate::model::id::Id;
use crate::model::key::Key;
use crate::model::kind::Kind;
use crate::model::schema::refine;
use crate::syntax::yaml::Tape;

module! {
    /// Limits nothing.
    pub struct MadeUp {
        /// A number.
        pub rate: u32,
    }
}

impl Check for MadeUp {}

impl Module for MadeUp {
    const SLOT: &'static str = "made_up";
    type View = Self;
}

slots! {
    /// A host of the module.
    pub struct Host {}

    /// The response form of the host's modules.
    pub struct HostModules {
        /// Limits nothing.
        made_up: MadeUp,
    }
}

#[test]
fn a_module_with_nothing_but_the_required_items_has_cautious_defaults() {
    assert_eq!(Host::SLOTS.len(), 1);
    for slot in Host::SLOTS {
        assert_eq!((slot.name, slot.needs_termination, slot.is_login), ("made_up", true, false));
        assert_eq!((slot.empty_is_harmless, slot.required), (false, &[][..]));
        let example = serde_json::from_value::<Tape>((slot.example)()).unwrap_or_default();
        let (module, faults) = (slot.decode)(example.root(), None);
        assert!(faults.is_empty(), "{faults:?}");
        assert!(module.is_some_and(|module| module.enabled() && !module.restricts_access()));
        let mut generator = SchemaGenerator::default();
        assert_eq!((slot.spec_schema)(&mut generator).to_value(), json!({"$ref": "#/$defs/MadeUp"}));
        let mut definitions = generator.take_definitions(true);
        refine(&mut definitions, (slot.constraints)());
        let made_up = definitions.get("MadeUp").cloned().unwrap_or_default();
        assert_eq!(made_up.pointer("/properties/rate/maximum"), Some(&json!(u32::MAX)));
        assert_eq!(made_up.get("required"), None);
    }
    let host = Host { made_up: Some(Arc::new(MadeUp::default())) };
    let (base_url, saml_base_url) = (String::new(), String::new());
    let base_urls = BaseUrls { base_url, saml_base_url, saml_certificate: Box::new(|_| String::new()) };
    let key = Key::new(Kind::HttpsEdge, Id::new("edghts_1"));
    assert!(host.module_views(&key, &base_urls).made_up.is_some());
}
