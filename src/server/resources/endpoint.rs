//! The list of endpoints, used by the router, the OpenAPI document and the tests.

use crate::model::resource::endpoint_offers::Offer;
use crate::model::{Kind, KindInfo, Slot};

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
