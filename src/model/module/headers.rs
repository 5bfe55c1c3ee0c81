//! The modules `request_headers` and `response_headers`: they add and remove headers of requests and responses.

use std::collections::BTreeMap;

use super::prelude::*;
use crate::model::traffic::header_step;

/// Declares a module that changes headers. The two have different types because schemas name and document each.
macro_rules! header_module {
    (
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(#[$add_meta:meta])*
            add,
            $(#[$remove_meta:meta])*
            remove,
        }
        slot: $slot:literal, stage: $stage:ident
    ) => {
        module! {
            $(#[$meta])*
            pub struct $name {
                $(#[$add_meta])*
                #[schemars(extend(
                    "propertyNames" = check::header_name_schema(),
                    "additionalProperties" = check::header_value_schema()
                ))]
                pub add: BTreeMap<String, String>,
                $(#[$remove_meta])*
                #[schemars(extend("items" = check::header_name_schema()))]
                pub remove: Vec<String>,
            }
        }

        impl Check for $name {
            fn check(&self, faults: &mut Faults) {
                check::headers(faults, &self.add, &self.remove);
            }
        }

        impl Module for $name {
            const SLOT: &'static str = $slot;
            type View = Self;

            fn steps(&self, _request: &TracedRequest) -> Vec<Step> {
                vec![header_step(Stage::$stage, &self.add, &self.remove)]
            }

            fn example() -> Value {
                json!({"add": {"X-Edge": "shop"}, "remove": ["Server"]})
            }
        }
    };
}

header_module! {
    /// Adds headers to requests and removes headers from them.
    pub struct RequestHeaders {
        /// The headers to add to the request before it goes upstream.
        add,
        /// The names of headers to remove from the request before it goes upstream.
        remove,
    }
    slot: "request_headers", stage: RequestChange
}

header_module! {
    /// Adds headers to responses and removes headers from them.
    pub struct ResponseHeaders {
        /// The headers to add to the response.
        add,
        /// The names of headers to remove from the response.
        remove,
    }
    slot: "response_headers", stage: ResponseChange
}
