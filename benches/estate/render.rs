//! The styles of a manifest: block, flow and minified JSON.
//!
//! A mapping's key [`COMMENT`] is a comment above it. Only block style shows it.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The key of a comment.
pub(crate) const COMMENT: &str = "#";
/// Lists with one item per line; other lists of scalars are in brackets.
const LONG_LISTS: [&str; 2] = ["hostports", "deny"];
/// Mappings in braces, even in block style.
const SHORT_MAPPINGS: [&str; 3] = ["labels", "issuer", "audience"];

/// A document in block style, with its separator.
pub(crate) fn block_document(out: &mut String, document: &Value) {
    out.push_str("---\n");
    let mapping = mapping(document);
    comment(out, mapping, 0);
    block(out, mapping, 0);
}

/// A document in flow style, with its separator. Each field of the document has a line.
pub(crate) fn flow_document(out: &mut String, document: &Value) {
    out.push_str("---\n");
    for (key, value) in fields(mapping(document)) {
        write!(out, "{key}: ").unwrap();
        flow(out, value);
        out.push('\n');
    }
}

/// A document as minified JSON, which is valid YAML too.
pub(crate) fn minified(document: &Value) -> String {
    serde_json::to_string(&uncommented(document)).unwrap()
}

fn uncommented(value: &Value) -> Value {
    match value {
        Value::Object(mapping) => {
            Value::Object(fields(mapping).map(|(key, value)| (key.clone(), uncommented(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(uncommented).collect()),
        scalar => scalar.clone(),
    }
}

fn mapping(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("a mapping")
}

fn fields(mapping: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    mapping.iter().filter(|(key, _)| key.as_str() != COMMENT)
}

fn comment(out: &mut String, mapping: &Map<String, Value>, indent: usize) {
    if let Some(Value::String(text)) = mapping.get(COMMENT) {
        writeln!(out, "{:indent$}# {text}", "").unwrap();
    }
}

fn block(out: &mut String, mapping: &Map<String, Value>, indent: usize) {
    for (key, value) in fields(mapping) {
        write!(out, "{:indent$}{key}:", "").unwrap();
        match value {
            Value::Object(inner) if !inner.is_empty() && !SHORT_MAPPINGS.contains(&key.as_str()) => {
                out.push('\n');
                comment(out, inner, indent + 2);
                block(out, inner, indent + 2);
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                out.push('\n');
                for item in items {
                    block_item(out, item, indent + 2);
                }
            }
            Value::Array(items) if LONG_LISTS.contains(&key.as_str()) => {
                out.push('\n');
                for item in items {
                    write!(out, "{:1$}- ", "", indent + 2).unwrap();
                    scalar(out, item, true);
                    out.push('\n');
                }
            }
            Value::String(text) if text.contains('\n') => {
                out.push_str(" |\n");
                for line in text.lines() {
                    writeln!(out, "{:1$}{line}", "", indent + 2).unwrap();
                }
            }
            Value::Object(_) | Value::Array(_) => {
                out.push(' ');
                flow(out, value);
                out.push('\n');
            }
            value => {
                out.push(' ');
                scalar(out, value, true);
                out.push('\n');
            }
        }
    }
}

fn block_item(out: &mut String, item: &Value, indent: usize) {
    let mapping = mapping(item);
    comment(out, mapping, indent);
    let start = out.len();
    block(out, mapping, indent + 2);
    out.replace_range(start + indent..start + indent + 2, "- ");
}

fn flow(out: &mut String, value: &Value) {
    match value {
        Value::Object(mapping) => {
            out.push('{');
            for (number, (key, value)) in fields(mapping).enumerate() {
                write!(out, "{}{key}: ", if number == 0 { "" } else { ", " }).unwrap();
                flow(out, value);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                out.push_str(if number == 0 { "" } else { ", " });
                flow(out, item);
            }
            out.push(']');
        }
        // A single-quoted scalar would fold the line breaks of a PEM block.
        Value::String(text) if text.contains('\n') => write!(out, "{value}").unwrap(),
        scalar_value => scalar(out, scalar_value, false),
    }
}

fn scalar(out: &mut String, value: &Value, block: bool) {
    match value {
        Value::String(text) if is_plain(text, block) => out.push_str(text),
        Value::String(text) => write!(out, "'{}'", text.replace('\'', "''")).unwrap(),
        other => write!(out, "{other}").unwrap(),
    }
}

/// Whether a text needs no quotes.
fn is_plain(text: &str, block: bool) -> bool {
    let safe = |c: char| c.is_ascii_alphanumeric() || " _./;=-".contains(c) || (block && ",:".contains(c));
    let keyword = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(safe)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !keyword.contains(&text.to_ascii_lowercase().as_str())
}
