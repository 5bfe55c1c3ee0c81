//! Names for resources without a manifest: readable, and the same in each export of a state.

use super::text::{slug, spaced, words};
use crate::manifest::tree::is_own_variable;
use crate::model::{Entry, HttpsEdge, HttpsEdgeRoute};

/// The most words of a description that make a name. A longer one is a sentence.
const MOST_WORDS: usize = 4;
/// The characters of an ID that tell resources without any text apart. Its first ones are the time.
const LAST_OF_ID: usize = 6;
/// The port that a name leaves out.
const USUAL_PORT: &str = ":443";

/// Returns a name for a resource, from its match, hostport or description.
pub(super) fn readable_name(entry: &Entry, description: &str) -> String {
    let words = description.split_whitespace().count();
    let brief = if words <= MOST_WORDS { slug(description) } else { String::new() };
    let matched = entry.spec_as::<HttpsEdgeRoute>().map(|route| slug(&route.r#match)).unwrap_or_default();
    let hostport = entry.spec_as::<HttpsEdge>().and_then(|edge| edge.hostports.first());
    let host = hostport.map(|hostport| host_name(hostport)).unwrap_or_default();
    let root = if entry.spec_as::<HttpsEdgeRoute>().is_some() { "root".to_owned() } else { String::new() };
    let candidates = [matched, brief, host, root, slug(description)];
    candidates.into_iter().find(|name| !name.is_empty()).unwrap_or_else(|| from_id(entry))
}

/// `*.example.com:443` as `wildcard-example-com`.
fn host_name(hostport: &str) -> String {
    let host = hostport.strip_suffix(USUAL_PORT).unwrap_or(hostport);
    slug(&host.replace('*', "wildcard"))
}

/// The kind with the end of the ID, or the whole ID if another service has chosen it.
fn from_id(entry: &Entry) -> String {
    let (id, info) = (entry.key.id.as_str(), entry.key.kind.info());
    if info.implicit {
        return name_of_id(id);
    }
    let skipped = id.chars().count().saturating_sub(LAST_OF_ID);
    name_of_id(&format!("{} {}", spaced(info.name), id.chars().skip(skipped).collect::<String>()))
}

/// Returns a name for an ID, which may have no letters or digits.
pub(super) fn name_of_id(id: &str) -> String {
    let name = slug(id);
    if name.is_empty() { "unnamed".into() } else { name }
}

/// Returns the names of a variable for a secret field, the preferred one first: the resource and the field alone, and then
/// with the kind and the path of the field.
pub(super) fn variable_names(kind: &str, name: &str, path: &str) -> Vec<String> {
    let is_index = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    let field = path.rsplit('.').find(|part| !is_index(part)).unwrap_or(path);
    let upper_snake_case = |text: String| words(&text).join("_").to_ascii_uppercase();
    let short = upper_snake_case(format!("{name} {field}"));
    let whole = upper_snake_case(format!("{} {name} {path}", spaced(kind)));
    // The name of a variable cannot begin with a digit, and no manifest can read those of the program.
    let is_valid = !short.starts_with(|first: char| first.is_ascii_digit()) && !is_own_variable(&short);
    is_valid.then_some(short).into_iter().chain([whole]).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;
    use crate::model::kind::https_edge_route::MatchType;
    use crate::model::kind::ip_restriction::Traffic;
    use crate::model::{AnyResource, Id, IpRestriction, Key, Kind, Operation, Snapshot};

    fn name_of(kind: Kind, spec: Arc<dyn AnyResource>, description: &str) -> String {
        let edge = Key::new(Kind::HttpsEdge, Id::new("edghts_1"));
        let create = |key: &Key, spec: Arc<dyn AnyResource>| Operation::create(key.clone(), spec);
        let key = match kind {
            Kind::HttpsEdgeRoute => Key::child(kind, edge.id.clone(), Id::new("edghtsrt_2dE5abcXYZ")),
            _ => Key::new(kind, Id::new("x_2dE5abcXYZ")),
        };
        let operations = [create(&edge, Arc::new(HttpsEdge::default())), create(&key, spec)];
        let state = Snapshot::default().apply(&operations, Timestamp::UNIX_EPOCH).unwrap().0;
        readable_name(state.get(&key).unwrap(), description)
    }

    fn edge(hostport: &str) -> Arc<dyn AnyResource> {
        Arc::new(HttpsEdge { hostports: vec![hostport.into()], ..HttpsEdge::default() })
    }

    fn route(matched: &str) -> Arc<dyn AnyResource> {
        let match_type = Some(MatchType::PathPrefix);
        Arc::new(HttpsEdgeRoute { match_type, r#match: matched.into(), ..HttpsEdgeRoute::default() })
    }

    #[test]
    fn a_name_comes_from_what_people_know_of_a_resource() {
        let long = "All of the pages that customers of the shop see";
        for (hostport, description, expected) in [
            ("shop.example.com:443", "", "shop-example-com"),
            ("shop.example.com:443", long, "shop-example-com"),
            ("shop.example.com:8443", "", "shop-example-com-8443"),
            ("*.example.com:443", "", "wildcard-example-com"),
            ("shop.example.com:443", "Made by hand!", "made-by-hand"),
        ] {
            assert_eq!(name_of(Kind::HttpsEdge, edge(hostport), description), expected);
        }
        for (matched, description, expected) in [
            ("/checkout", "Payments", "checkout"),
            ("/api/v2/", "", "api-v2"),
            ("/", "Front page", "front-page"),
            ("/", "", "root"),
            ("/", long, "root"),
        ] {
            assert_eq!(name_of(Kind::HttpsEdgeRoute, route(matched), description), expected);
        }
        let restriction = || Arc::new(IpRestriction { r#type: Some(Traffic::Api), ..IpRestriction::default() });
        assert_eq!(name_of(Kind::IpRestriction, restriction(), "Office"), "office");
        assert_eq!(name_of(Kind::IpRestriction, restriction(), ""), "ip-restriction-abcxyz");
        assert_eq!(name_of(Kind::HttpsEdge, Arc::new(HttpsEdge::default()), "日本"), "https-edge-abcxyz");
    }

    #[test]
    fn a_variable_is_named_after_the_resource_and_its_field() {
        let of = |name: &str, path: &str| variable_names("HttpsEdgeRoute", name, path);
        let whole = "HTTPS_EDGE_ROUTE_SHOP_PAY_OAUTH_PROVIDER_GITHUB_CLIENT_SECRET";
        assert_eq!(of("shop/pay", "oauth.provider.github.client_secret"), ["SHOP_PAY_CLIENT_SECRET", whole]);
        assert_eq!(of("shop/pay", "keys.secret.0").first().unwrap(), "SHOP_PAY_SECRET");
        assert_eq!(of("7/pay", "secret"), ["HTTPS_EDGE_ROUTE_7_PAY_SECRET"]);
        assert_eq!(of("edgewright/pay", "secret"), ["HTTPS_EDGE_ROUTE_EDGEWRIGHT_PAY_SECRET"]);
    }
}
