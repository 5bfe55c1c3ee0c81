//! Filters on lists: a CEL expression over the response form, and parameters for common queries.
//!
//! # The problem
//!
//! Among 100,000 routes, a list is of no use without a question. Whoever asks over the API and on the command line
//! should get the same answer.
//!
//! # The idea
//!
//! A [`Filter`] is made from query parameters, and the API and `edgewright get` select with it. The parameters are
//! cheap and go first. An expression is evaluated last, over the response form, in which secrets are masked.
//!
//! # An example
//!
//! `?hostport=shop.example.com&filter=obj.description == ''` lists the edges of that host, on any port, without a
//! description.
//!
//! # What it never does
//!
//! It never sees a secret, and never takes more steps than its meter allows.
//!
//! See D66.

mod shape;

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use crate::model::decode::one_of;
use crate::model::json::deserialize;
use crate::model::snapshot::view::view_json;
use crate::model::traffic::host_name;
use crate::model::{
    BaseUrls, Code, Entry, Fault, HttpsEdge, HttpsEdgeRoute, Kind, Secrets, Snapshot, host_port, suggest,
};
use crate::syntax::cel::{CelError, CelExpression, CelMeter, OBJ};

/// The longest list of known words in a help.
const MOST_KNOWN: usize = 40;

/// A query parameter that selects resources.
pub(crate) struct FilterParameter {
    /// The name.
    pub name: &'static str,
    /// The selected resources, for the OpenAPI document.
    pub description: &'static str,
    /// The only kind that has it, if not all.
    kind: Option<Kind>,
    /// The question that a value asks of each resource; `None` for the expression, which is evaluated last, as it costs most.
    question: Option<fn(&str) -> Question>,
}

/// Whether a resource is selected.
type Question = Box<dyn Fn(&Entry) -> Result<bool, Fault> + Send + Sync>;

static PARAMETERS: [FilterParameter; 6] = [
    FilterParameter {
        name: "filter",
        description: "A CEL expression over the resource as the API returns it, with masked secrets, such as `obj.description == 'shop'`.",
        kind: None,
        question: None,
    },
    FilterParameter {
        name: "hostport",
        description: "Only edges that list this hostport, or this host with any port.",
        kind: Some(Kind::HttpsEdge),
        question: Some(lists_hostport),
    },
    FilterParameter {
        name: "match",
        description: "Only routes with this `match`.",
        kind: Some(Kind::HttpsEdgeRoute),
        question: Some(|value| {
            ask(value, |entry, value| entry.spec_as::<HttpsEdgeRoute>().is_some_and(|route| route.r#match == value))
        }),
    },
    FilterParameter {
        name: "name",
        description: "Only resources with this name in their manifest.",
        kind: None,
        question: Some(|value| ask(value, |entry, value| entry.name() == Some(value))),
    },
    FilterParameter {
        name: "source",
        description: "Only resources that this manifest source owns.",
        kind: None,
        question: Some(|value| ask(value, |entry, value| entry.is_owned_by(value))),
    },
    FilterParameter {
        name: "q",
        description: "Only resources with this text in the description, metadata, a hostport or the name, ignoring case.",
        kind: None,
        question: Some(has_text),
    },
];

/// The parameters of a kind's list.
pub(crate) fn parameters(kind: Kind) -> impl Iterator<Item = &'static FilterParameter> {
    PARAMETERS.iter().filter(move |parameter| parameter.kind.is_none_or(|only| only == kind))
}

/// Reads the filter parameters of a query, in its order.
pub(crate) fn read_parameters(kind: Kind, query: &str) -> Vec<(&'static str, String)> {
    let pairs = form_urlencoded::parse(query.as_bytes());
    let known = pairs.filter_map(|(name, value)| {
        let parameter = parameters(kind).find(|parameter| *parameter.name == *name)?;
        Some((parameter.name, value.into_owned()))
    });
    known.collect()
}

/// A checked filter: all its parts must hold.
pub(crate) struct Filter {
    expression: Option<(String, CelExpression)>,
    questions: Vec<Question>,
}

impl Filter {
    /// Checks the values of filter parameters; names that a list of the kind does not have are ignored.
    pub(crate) fn new(kind: Kind, given: &[(&str, String)]) -> Result<Self, Vec<Fault>> {
        let (mut filter, mut faults) = (Self { expression: None, questions: Vec::new() }, Vec::new());
        for (name, value) in given {
            let Some(parameter) = parameters(kind).find(|parameter| parameter.name == *name) else { continue };
            match parameter.question {
                None => match CelExpression::parse(value, shape::response_shape(kind)) {
                    Ok(expression) => filter.expression = Some((value.clone(), expression)),
                    Err(error) => faults.push(fault(&error, value)),
                },
                // An empty search box must not look like a search that found everything.
                Some(_) if value.is_empty() => {
                    let fault = Fault::new(Code::Parameter, format!("`{name}` must not be empty"));
                    faults.push(fault.at(*name).help("remove the parameter, or give it a value"));
                }
                Some(question) => filter.questions.push(question(value)),
            }
        }
        if faults.is_empty() { Ok(filter) } else { Err(faults) }
    }

    /// Whether a resource is selected.
    pub(crate) fn selects(
        &self,
        snapshot: &Snapshot,
        base_urls: &BaseUrls,
        entry: &Entry,
        meter: &CelMeter<'_>,
    ) -> Result<bool, Fault> {
        for selects in &self.questions {
            if !selects(entry)? {
                return Ok(false);
            }
        }
        let Some((text, expression)) = &self.expression else { return Ok(true) };
        // A filter could otherwise be used to guess a secret that the response masks. Children are written only for
        // expressions that read them, as an edge can have thousands of routes.
        let reads_children = entry.key.kind.facts().children.is_some_and(|kind| expression.reads(kind.facts().list));
        // In an empty snapshot, no resource has children, so they are left out.
        let childless = Snapshot::default();
        let state = if reads_children { snapshot } else { &childless };
        let body = view_json(state, entry, base_urls, Secrets::Masked).map_err(|_| internal())?;
        let obj: Value = deserialize::from_slice(&body).map_err(|_| internal())?;
        let holds = meter.begin(body.len()).and_then(|()| expression.holds(&obj, meter));
        holds.map_err(|error| fault(&error, text))
    }
}

fn ask(value: &str, selects: fn(&Entry, &str) -> bool) -> Question {
    let value = value.to_owned();
    Box::new(move |entry: &Entry| Ok(selects(entry, &value)))
}

/// Whether an edge lists a hostport, or a host with any port, in whatever spelling.
fn lists_hostport(value: &str) -> Question {
    let (host, port) = normal_hostport(value);
    Box::new(move |entry: &Entry| Ok(entry.spec_as::<HttpsEdge>().is_some_and(|edge| is_listed(edge, &host, port))))
}

/// A host in its normal form, and the port if there is one.
fn normal_hostport(value: &str) -> (String, Option<u16>) {
    // An IPv6 address without brackets has colons, and no port.
    match host_port(value).filter(|_| value.parse::<IpAddr>().is_err()) {
        Some((host, port)) => (host, Some(port)),
        None => (host_name(value), None),
    }
}

fn is_listed(edge: &HttpsEdge, host: &str, port: Option<u16>) -> bool {
    edge.addresses().any(|(_, _, address)| address.0 == host && port.is_none_or(|port| port == address.1))
}

/// Whether a resource has a text.
fn has_text(value: &str) -> Question {
    let value = value.to_lowercase();
    Box::new(move |entry: &Entry| {
        let spec = entry.spec().to_json(Secrets::Masked).map_err(|_| internal())?;
        let fields = ["description", "metadata"].into_iter().filter_map(|field| spec.get(field)?.as_str());
        let hostports = spec.get("hostports").and_then(Value::as_array).into_iter().flatten();
        let mut texts = fields.chain(hostports.filter_map(Value::as_str)).chain(entry.name());
        Ok(texts.any(|text| text.to_lowercase().contains(&value)))
    })
}

fn internal() -> Fault {
    Fault::new(Code::Internal, "cannot write a resource to filter it")
}

/// The fault of the parameter `filter`.
fn fault(error: &CelError, expression: &str) -> Fault {
    let column = error.column(expression);
    let message = format!("invalid filter at column {column}: {}", error.message);
    let fault = Fault::new(Code::Parameter, message).at("filter");
    let Some((word, known)) = &error.unknown else { return fault };
    let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    let known: Vec<&str> = known.into_iter().collect();
    fault.help(match known.len() {
        ..=MOST_KNOWN => one_of(word, &known),
        _ => suggest(word, known.iter().copied(), format!("the resource is `{OBJ}`")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::resource::endpoint_offers::Offer;

    fn faults(kind: Kind, name: &str, value: &str) -> Vec<Fault> {
        Filter::new(kind, &[(name, value.to_owned())]).err().unwrap_or_default()
    }

    #[test]
    fn every_kind_has_the_general_parameters_and_some_their_own() {
        let names = |kind| parameters(kind).map(|parameter| parameter.name).collect::<Vec<_>>();
        assert_eq!(names(Kind::ApiKey), ["filter", "name", "source", "q"]);
        assert_eq!(names(Kind::HttpsEdge), ["filter", "hostport", "name", "source", "q"]);
        assert_eq!(names(Kind::HttpsEdgeRoute), ["filter", "match", "name", "source", "q"]);
    }

    #[test]
    fn a_wrong_expression_is_a_fault_with_its_column_and_the_nearest_field() {
        for (kind, text, message, help) in [
            (
                Kind::ApiKey,
                "obj.descripton == 'x'",
                "column 5: unknown field `descripton`",
                "did you mean `description`?",
            ),
            (
                Kind::HttpsEdge,
                "obj.routes.exists(r, r.oidc.isuer != '')",
                "column 29: unknown",
                "did you mean `issuer`?",
            ),
            (Kind::HttpsEdge, "obj.hostports.contans('x')", "column 15: unknown function", "did you mean `contains`?"),
            (
                Kind::TlsCertificate,
                "obj.subject_alternative_names.color == 1",
                "column 31: unknown field",
                "use one of `dns_names`, `ips`",
            ),
            (
                Kind::IpRestriction,
                "obj.enforced == 'yes'",
                "column 14: `==` does not apply to a boolean and a string",
                "",
            ),
        ] {
            let faults = faults(kind, "filter", text);
            let [fault] = faults.as_slice() else { unreachable!("{text}: {faults:?}") };
            assert_eq!((fault.code, fault.path.to_string()), (Code::Parameter, "/filter".to_owned()));
            assert!(fault.message.contains(message), "{text}: {}", fault.message);
            assert_eq!(fault.help.as_deref().unwrap_or_default(), help, "{text}");
        }
    }

    #[test]
    fn a_hostport_is_found_in_any_spelling() {
        let hostports = ["Shop.example.com.:443", "[2001:DB8:0::1]:8443", "192.0.2.1:80", "*.example.com:443"];
        let edge = HttpsEdge { hostports: hostports.map(str::to_owned).into(), ..HttpsEdge::default() };
        for (value, expected) in [
            ("shop.example.com", true),
            ("SHOP.example.com.", true),
            ("shop.example.com:443", true),
            ("shop.example.com.:443", true),
            ("shop.example.com:80", false),
            ("2001:db8::1", true),
            ("[2001:db8::1]", true),
            ("[2001:db8::1]:8443", true),
            ("[2001:db8::1]:443", false),
            ("::ffff:192.0.2.1", true),
            ("[::ffff:192.0.2.1]:80", true),
            ("*.EXAMPLE.com", true),
            ("docs.example.com", false),
            ("2001:db8::1:8443", false),
        ] {
            let (host, port) = normal_hostport(value);
            assert_eq!(is_listed(&edge, &host, port), expected, "{value}");
        }
    }

    #[test]
    fn a_plain_parameter_is_not_empty() {
        assert_eq!(faults(Kind::HttpsEdge, "q", "").len(), 1);
        assert!(faults(Kind::HttpsEdge, "q", "x").is_empty());
    }

    #[test]
    fn the_shape_of_every_kind_is_known() {
        for info in Kind::all().filter(|info| info.offers.list != Offer::Absent) {
            for text in ["size(obj) == 0", "obj.no_such_field == 1"] {
                let wrong = !faults(info.kind, "filter", text).is_empty();
                assert_eq!(wrong, text.contains("no_such"), "{} {text}", info.name);
            }
        }
    }
}
