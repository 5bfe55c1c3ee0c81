//! The faults of values of the wrong type: what the field must be, and a form to copy.

use crate::model::diagnostics::check::is_address;
use crate::model::diagnostics::{Code, Fault, suggest};
use crate::syntax::yaml::{Node, NodeShape};

/// Creates the fault of a value that should be a list; `subject` is what it belongs to, and `name` its field. The
/// entries are like `sample`, or texts.
pub(crate) fn not_a_list(subject: &str, name: &str, sample: Option<&str>, found: Node<'_>) -> Fault {
    let fault = Fault::new(Code::WrongType, format!("{subject} must be a list (found {})", found.describe()));
    fault.help(match (found.shape(), sample) {
        (NodeShape::Map(_), _) => format!("start each entry below `{name}:` with `- `"),
        (NodeShape::String(text), _) if text.starts_with('-') => "put a space after the `-` of each entry".to_owned(),
        (_, Some(sample)) => format!("write a list of mappings, such as `{name}: [{sample}]`"),
        (_, None) => format!("write a list, such as `{name}: [first, second]`"),
    })
}

/// Creates the fault of an entry of the list `name` that should be a mapping like `sample`.
pub(crate) fn not_an_entry(name: &str, sample: &str, found: Node<'_>) -> Fault {
    let message = format!("each entry of `{name}` must be a mapping (found {})", found.describe());
    Fault::new(Code::WrongType, message).help(format!("write `- {sample}`"))
}

/// Creates the fault of a value that should be a mapping with `fields`, or with any keys if there are none; the
/// name of an entry of a list is `-`.
pub(super) fn not_a_mapping(subject: &str, name: &str, fields: &[&str], found: Node<'_>) -> Fault {
    let fault = Fault::new(Code::WrongType, format!("{subject} must be a mapping (found {})", found.describe()));
    let start = start(name);
    if let Some(ids) = fields.iter().find(|field| field.ends_with("_ids"))
        && let NodeShape::Seq(mut entries) = found.shape()
        && entries.any(|entry| entry.as_str().is_some_and(is_address))
    {
        let help =
            format!("write `{start} {{{ids}: […]}}` with IDs: the gateway resolves them to addresses and networks");
        return fault.help(help);
    }
    fault.help(match sample(fields) {
        Some(sample) if fields.len() == 1 => format!("write `{start} {sample}`"),
        Some(sample) => format!("write `{start} {sample}`, with any of the fields {}", list(fields)),
        None => format!("write `{start} {{key: value}}`"),
    })
}

/// A mapping with the most telling of its fields.
pub(super) fn sample(fields: &[&str]) -> Option<String> {
    // Every module has `enabled`, which says the least about its form.
    let first = fields.iter().find(|field| **field != "enabled").or(fields.first())?;
    Some(format!("{{{first}: …}}"))
}

/// Returns the form of a field that must be a single value; the name of an entry of a list is `-`.
pub(super) fn scalar_form(name: &str, expected: &str, found: Node<'_>) -> Option<String> {
    let start = start(name);
    match (expected, found.shape()) {
        ("a string", NodeShape::Bool(_) | NodeShape::Number(_) | NodeShape::NotFinite | NodeShape::LongInteger) => None,
        ("a string", NodeShape::Map(entries))
            if entries.clone().any(|(key, _)| matches!(key, "from_env" | "from_file")) =>
        {
            Some("write the text itself: only secrets and long texts can come from a variable or a file".into())
        }
        ("a string", NodeShape::Map(entries)) if name == "-" && entries.clone().next().is_some() => {
            Some("write `- text`, in quotes if the text contains a colon and a space".into())
        }
        ("a string", _) => Some(format!("write `{start} text`")),
        ("true or false", _) => Some(format!("write `{start} true` or `{start} false`")),
        ("a whole number", NodeShape::String(text)) => Some(match (text.parse::<u32>(), seconds(text)) {
            (Ok(number), _) => format!("write `{start} {number}` without quotes"),
            (_, Some(seconds)) => format!("write the number of seconds, such as `{start} {seconds}`"),
            _ => format!("write a number, such as `{start} 30`"),
        }),
        ("a whole number", _) => Some(format!("write a number, such as `{start} 30`")),
        ("a number", _) => Some(format!("write a number, such as `{start} 0.5`")),
        _ => None,
    }
}

/// Reads a duration with a unit, such as `30s`.
fn seconds(text: &str) -> Option<u32> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(digits)?;
    let number = number.parse::<u32>().ok()?;
    let factor = match unit.trim_start() {
        "ms" if number.is_multiple_of(1000) => return Some(number / 1000),
        "s" | "sec" | "seconds" => 1,
        "m" | "min" | "minutes" => 60,
        "h" | "hours" => 3600,
        "d" | "days" => 86_400,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// Formats a list of words for a sentence.
pub(crate) fn list(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// The help for a misspelt word: the most similar known one, or all.
pub(crate) fn one_of(word: &str, known: &[&str]) -> String {
    suggest(word, known.iter().copied(), format!("use one of {}", list(known)))
}

fn start(name: &str) -> String {
    if name == "-" { name.to_owned() } else { format!("{name}:") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_their_unit() {
        assert_eq!([seconds("30s"), seconds("5 min"), seconds("1h")], [Some(30), Some(300), Some(3600)]);
        assert_eq!(seconds("10000ms"), Some(10));
        for other in ["", "s", "30", "500ms", "ten", "é", "4294967295h"] {
            assert_eq!(seconds(other), None, "{other}");
        }
    }
}
