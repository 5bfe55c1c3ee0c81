//! Operation ids, tags, summaries and descriptions.

use crate::model::{Kind, KindInfo};
use crate::server::resources::endpoint::{Action, Endpoint};
use crate::syntax::text::plural;

/// The words of kind names that are written in capitals.
const ACRONYMS: [&str; 4] = ["api", "https", "ip", "tls"];

/// The id of an operation, in camel case: `createHttpsEdge`, `listHttpsEdges`, `replaceHttpsEdgeRouteSaml`.
pub(super) fn operation_id(endpoint: &Endpoint) -> String {
    let kind = endpoint.kind.info().name;
    match endpoint.action {
        Action::Create => format!("create{kind}"),
        Action::List => format!("list{}", plural(kind)),
        Action::Get => format!("get{kind}"),
        Action::Patch => format!("update{kind}"),
        Action::Delete => format!("delete{kind}"),
        Action::PutModule(slot) => format!("replace{kind}{}", pascal(slot.name)),
        Action::GetModule(slot) => format!("get{kind}{}", pascal(slot.name)),
        Action::DeleteModule(slot) => format!("delete{kind}{}", pascal(slot.name)),
    }
}

/// The tag of a kind's operations: `HTTPS edges`.
pub(super) fn tag(kind: &str) -> String {
    capitalized(&plural(&noun(kind)))
}

/// The summary of an operation.
pub(super) fn summary(endpoint: &Endpoint) -> String {
    let noun = noun(endpoint.kind.info().name);
    let one = format!("{} {noun}", article(&noun));
    match endpoint.action {
        Action::Create => format!("Create {one}"),
        Action::List => format!("List {}", plural(&noun)),
        Action::Get => format!("Get {one}"),
        Action::Patch => format!("Change {one}"),
        Action::Delete => format!("Delete {one}"),
        Action::PutModule(slot) => format!("Set or replace the `{}` module of {one}", slot.name),
        Action::GetModule(slot) => format!("Get the `{}` module of {one}", slot.name),
        Action::DeleteModule(slot) => format!("Remove the `{}` module of {one}", slot.name),
    }
}

/// The description of an operation beyond its summary, in the same words for all kinds.
pub(super) fn description(endpoint: &Endpoint) -> String {
    let info = endpoint.kind.info();
    let noun = noun(info.name);
    match endpoint.action {
        Action::Create => {
            let text = "Returns the new resource. The `Location` header is its URI.".to_owned();
            with(text, implicit_parent(info).map(|parent| format!("The first {noun} creates the {parent}.")))
        }
        Action::List if endpoint.kind == Kind::EventSource => {
            "Returns the resources, newest first. All of them are on one page.".to_owned()
        }
        Action::List => "Returns the resources, newest first. `next_page_uri` is the URI of the next page.".to_owned(),
        Action::Get => "Returns the resource, or 304 if the client's copy is current.".to_owned(),
        Action::Patch => {
            let text = "Fields that are missing or null in the body stay as they are.".to_owned();
            let text = with(
                text,
                (!info.slots.is_empty())
                    .then(|| "A module in the body replaces the existing one completely.".to_owned()),
            );
            let fixed: Vec<String> = info.fixed.iter().map(|field| format!("`{field}`")).collect();
            let fixed = (!fixed.is_empty()).then(|| format!("{} cannot change after creation.", fixed.join(" and ")));
            with(text, fixed)
        }
        Action::Delete => {
            let text = "Returns 409 if another resource uses it.".to_owned();
            let children = info.children.map(|kind| plural(&self::noun(kind.info().name)));
            let text = with(text, children.map(|children| format!("Also deletes its {children}.")));
            with(text, implicit_parent(info).map(|parent| format!("Deleting the last {noun} deletes the {parent}.")))
        }
        Action::PutModule(_) => {
            let text = "Replaces the module completely: fields that are not in the body get their defaults.".to_owned();
            with(text, info.implicit.then(|| format!("The first module creates the {noun}.")))
        }
        Action::GetModule(_) => {
            "Returns the module, 304 if the client's copy is current, or 404 if the resource lacks it.".to_owned()
        }
        Action::DeleteModule(_) => {
            let text = "Returns 404 if the resource lacks the module.".to_owned();
            with(text, info.implicit.then(|| format!("Removing the last module deletes the {noun}.")))
        }
    }
}

/// The description of a path parameter.
pub(super) fn path_parameter(name: &str) -> String {
    match name.strip_suffix("_id") {
        Some(parent) => format!("The ID of the {parent}."),
        None if name == "id" => "The ID of the resource.".to_owned(),
        None => format!("The {name} of the resource."),
    }
}

/// The parent that exists only while it has children (D34).
fn implicit_parent(info: &KindInfo) -> Option<String> {
    let parent = info.parent?.info();
    parent.implicit.then(|| noun(parent.name))
}

fn with(text: String, more: Option<String>) -> String {
    match more {
        Some(more) => format!("{text} {more}"),
        None => text,
    }
}

/// A kind's name as words: `HttpsEdge` is "HTTPS edge".
pub(super) fn noun(kind: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for letter in kind.chars() {
        if letter.is_ascii_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(letter.to_ascii_lowercase());
        }
    }
    for word in &mut words {
        if ACRONYMS.contains(&word.as_str()) {
            word.make_ascii_uppercase();
        }
    }
    words.join(" ")
}

fn article(noun: &str) -> &'static str {
    // Acronyms are read letter by letter: "an HTTPS edge", "a TLS edge".
    let acronym = noun.split(' ').next().is_some_and(|word| ACRONYMS.contains(&word.to_ascii_lowercase().as_str()));
    let with_vowel = if acronym { "AEFHILMNORSX" } else { "aeiou" };
    if noun.starts_with(|letter: char| with_vowel.contains(letter)) { "an" } else { "a" }
}

/// A field name as a part of a type's name: `ip_restriction` is `IpRestriction`.
pub(super) fn pascal(field: &str) -> String {
    field.split('_').map(capitalized).collect()
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kinds_are_read_as_english() {
        let read = |kind: &str| {
            let noun = noun(kind);
            format!("{} {noun}, {}", article(&noun), tag(kind))
        };
        assert_eq!(read("ApiKey"), "an API key, API keys");
        assert_eq!(read("CertificateAuthority"), "a certificate authority, Certificate authorities");
        assert_eq!(read("HttpsEdgeRoute"), "an HTTPS edge route, HTTPS edge routes");
        assert_eq!(read("TlsEdge"), "a TLS edge, TLS edges");
        assert_eq!(read("EventSource"), "an event source, Event sources");
        assert_eq!(pascal("websocket_tcp_converter"), "WebsocketTcpConverter");
    }
}
