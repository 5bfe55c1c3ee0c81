//! The list of endpoints, used by the router, the OpenAPI document and the tests.

use serde_json::json;

use crate::filter;
use crate::model::Slot;
use crate::model::resource::endpoint_offers::Offer;
use crate::server::http::page;
use crate::server::prelude::*;

/// The query parameter with the role of a new API key's owner.
pub(crate) const OWNER_ROLE: &str = "owner_role";

/// The action of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub enum Action {
    Create,
    List,
    Get,
    Patch,
    Delete,
    PutModule(&'static Slot),
    GetModule(&'static Slot),
    DeleteModule(&'static Slot),
}

/// A method and path.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The HTTP method.
    pub method: &'static str,
    /// The path with parameters in braces.
    pub path: String,
    /// The kind of resource.
    pub kind: Kind,
    /// The action.
    pub action: Action,
    /// Whether the API specification lacks it (D24).
    pub extension: bool,
}

impl Endpoint {
    /// The query parameters, and what the OpenAPI document says about them.
    pub(crate) fn query_parameters(&self) -> Vec<(&'static str, Value)> {
        match self.action {
            Action::Create if self.kind == Kind::ApiKey => vec![owner_role()],
            Action::List => {
                let paging = self.kind.is_paged().then(|| page::parameters(["resource", "resources"]));
                let filters = filter::parameters(self.kind).map(|parameter| {
                    let schema = json!({"type": "string", "minLength": 1});
                    let described =
                        json!({"description": parameter.description, "schema": schema, "x-extension": true});
                    (parameter.name, described)
                });
                paging.into_iter().flatten().chain([at()]).chain(filters).collect()
            }
            Action::Get | Action::GetModule(_) => vec![at()],
            _ => Vec::new(),
        }
    }
}

/// The role of the owner of a new API key (D23).
fn owner_role() -> (&'static str, Value) {
    let described = json!({
        "description": "The role of the key's owner. An owner that does not exist yet is created with it (default: `editor`). For one with another role, the response is 409. Only admins can set it.",
        "schema": {"type": "string", "enum": Role::ALL.map(Role::as_str)},
        "x-extension": true,
    });
    (OWNER_ROLE, described)
}

/// The revision of a read (D79).
fn at() -> (&'static str, Value) {
    let described = json!({
        "description": "The revision to read: its number, at least 7 digits of the ID of a Git commit for the newest revision that was applied from it, or `latest`. The next pages of a list are read at the same revision.",
        "schema": {"type": "string", "pattern": "^([0-9]{1,20}|[0-9A-Fa-f]{7,64}|latest)$"},
        "x-extension": true,
    });
    (page::AT, described)
}

/// The module endpoints in the specification; the others are extensions.
const SPECIFIED_MODULES: &[(Kind, &str, &[&str])] = &[
    (Kind::HttpsEdgeRoute, "saml", &["PUT", "GET", "DELETE"]),
    (Kind::HttpsEdgeRoute, "oauth", &["PUT", "GET"]),
    (Kind::HttpsEdgeRoute, "websocket_tcp_converter", &["PUT", "GET", "DELETE"]),
    (Kind::TlsEdge, "ip_restriction", &["PUT", "GET", "DELETE"]),
    (Kind::TlsEdge, "policies", &["PUT", "GET", "DELETE"]),
    (Kind::TlsEdge, "backend", &["PUT", "GET", "DELETE"]),
];

/// All endpoints of all kinds and modules.
pub fn endpoints() -> Vec<Endpoint> {
    Kind::all().flat_map(kind_endpoints).collect()
}

fn kind_endpoints(info: &'static KindInfo) -> Vec<Endpoint> {
    let item = format!("{}/{{{}}}", info.collection, info.id_parameter);
    let offers = &info.offers;
    let resource = [
        (offers.create, "POST", info.collection, Action::Create),
        (offers.list, "GET", info.collection, Action::List),
        (offers.get, "GET", &item, Action::Get),
        (offers.patch, "PATCH", &item, Action::Patch),
        (offers.delete, "DELETE", &item, Action::Delete),
    ];
    let resource =
        resource.into_iter().filter(|(offer, ..)| *offer != Offer::Absent).map(|(offer, method, path, action)| {
            let extension = offer == Offer::Extension;
            Endpoint { method, path: path.to_owned(), kind: info.kind, action, extension }
        });
    let modules = info.slots.iter().flat_map(|slot| {
        let path = format!("{item}/{}", slot.name);
        let specified = SPECIFIED_MODULES.iter().find(|(kind, name, _)| *kind == info.kind && *name == slot.name);
        let specified = specified.map_or(&[][..], |(.., methods)| *methods);
        [("PUT", Action::PutModule(slot)), ("GET", Action::GetModule(slot)), ("DELETE", Action::DeleteModule(slot))]
            .map(|(method, action)| {
                let extension = !specified.contains(&method);
                Endpoint { method, path: path.clone(), kind: info.kind, action, extension }
            })
    });
    resource.chain(modules).collect()
}
