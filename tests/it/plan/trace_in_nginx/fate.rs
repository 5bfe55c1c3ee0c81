//! What becomes of a request: what its trace says, and what the client and the backend see.

use std::collections::BTreeMap;

use edgewright::{Trace, report::StepEffect, resources::HeaderChange};

use super::{
    estate::{ADDED, CLOSED, POLICIES, REQUEST_HEADERS, RESPONSE_HEADERS},
    gateway::OLD,
    request::{Request, SENT},
};
use crate::support::http::HttpAnswer;

/// The status and, if a backend answers, what it gets and what becomes of its answer.
type Fate = BTreeMap<String, String>;

/// What a trace says.
pub(super) fn traced(trace: &Trace, request: &Request) -> Fate {
    let Some(route) = trace.route() else { return fate(404) };
    let is_closed = route.route.name.as_ref().is_some_and(|name| name.starts_with(CLOSED));
    let mut forwarded = fate(200);
    forwarded.insert("path".to_owned(), request.path.clone());
    forwarded.insert("host".to_owned(), request.authority.clone());
    note(&mut forwarded, "request", REQUEST_HEADERS, request.headers.iter().map(|name| (*name, SENT)));
    note(&mut forwarded, "response", RESPONSE_HEADERS, OLD.into_iter());
    for step in &trace.modules {
        match (step.module, step.effect) {
            ("ip_restriction endpoints", _) if !admits(&step.note, request.client) => return fate(403),
            ("ip_restriction endpoints", _) => {}
            _ if is_closed => return fate(503),
            ("ip_restriction", _) if !admits(&step.note, request.client) => return fate(403),
            ("ip_restriction", _) => {}
            // nginx compares bytes, and not characters, so it lets none of these pass.
            ("user_agent_filter", _) if !request.agent.is_ascii() => return fate(403),
            ("user_agent_filter", StepEffect::Refused) => return fate(403),
            ("user_agent_filter", StepEffect::Passes) => {}
            ("request_headers", _) => change(&mut forwarded, "request", &step.header_changes),
            ("backend", StepEffect::Refused) => return fate(502),
            ("backend", _) => {
                forwarded.insert("backend".to_owned(), step.note.clone());
            }
            ("response_headers", _) => change(&mut forwarded, "response", &step.header_changes),
            ("compression", _) if request.accepts_gzip => {
                forwarded.insert("encoding".to_owned(), "gzip".to_owned());
            }
            ("compression", _) => {}
            _ => panic!("{step:?}"),
        }
    }
    forwarded
}

/// What an answer shows. Backends tell in headers what they got.
pub(super) fn seen(answer: &HttpAnswer) -> Fate {
    let mut seen = fate(answer.status);
    if let [backend] = answer.header("x-backend")[..] {
        let got: Vec<String> = serde_json::from_str(answer.header("x-got")[0]).unwrap();
        let sent = || got.iter().filter_map(|line| line.split_once(": "));
        let host = sent().filter(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, value)| value);
        seen.insert("backend".to_owned(), backend.to_owned());
        seen.insert("path".to_owned(), got[0].split(' ').nth(1).unwrap().to_owned());
        seen.insert("host".to_owned(), host.collect());
        note(&mut seen, "request", REQUEST_HEADERS, sent());
        let returned = answer.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        note(&mut seen, "response", RESPONSE_HEADERS, returned);
        seen.extend(answer.header("content-encoding").iter().map(|it| ("encoding".to_owned(), (*it).to_owned())));
    }
    seen
}

fn fate(status: u16) -> Fate {
    Fate::from([("status".to_owned(), status.to_string())])
}

/// Notes the headers that modules can change.
fn note<'a>(fate: &mut Fate, of: &str, names: &str, headers: impl Iterator<Item = (&'a str, &'a str)>) {
    for (name, value) in headers.filter(|(name, _)| names.split(", ").any(|it| it.eq_ignore_ascii_case(name))) {
        *fate.entry(format!("{of} {}", name.to_lowercase())).or_default() += value;
    }
}

fn change(fate: &mut Fate, of: &str, changes: &[HeaderChange]) {
    for change in changes {
        let key = format!("{of} {}", change.name.to_lowercase());
        if change.is_added {
            fate.insert(key, ADDED.to_owned());
        } else {
            fate.remove(&key);
        }
    }
}

/// Whether the policies in the note of a step let a client pass: one allows it, and none denies it.
fn admits(note: &str, client: u8) -> bool {
    let ids: Vec<&str> = note.rsplit(": ").next().unwrap().split(", ").collect();
    let named: Vec<_> = POLICIES.iter().filter(|(id, ..)| ids.contains(id)).collect();
    assert_eq!(named.len(), ids.len(), "{note}");
    named.iter().any(|(_, allow, _)| allow.contains(&client)) && !named.iter().any(|(.., deny)| deny.contains(&client))
}
