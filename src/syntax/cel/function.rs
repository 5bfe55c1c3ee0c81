//! The functions and macros of filters.

/// A function of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CelFunction {
    Size,
    StartsWith,
    EndsWith,
    Contains,
    LowerAscii,
    UpperAscii,
    Timestamp,
    Duration,
    String,
    Int,
    Double,
}

/// A macro over the items of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CelFold {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

/// How a function is called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallForm {
    Method,
    Global,
    Both,
}

/// Each function with its name, form, number of arguments with the receiver, and usage.
static FUNCTIONS: [(&str, CelFunction, CallForm, usize, &str); 11] = [
    ("size", CelFunction::Size, CallForm::Both, 1, "size(value)"),
    ("startsWith", CelFunction::StartsWith, CallForm::Method, 2, "text.startsWith('prefix')"),
    ("endsWith", CelFunction::EndsWith, CallForm::Method, 2, "text.endsWith('suffix')"),
    ("contains", CelFunction::Contains, CallForm::Method, 2, "text.contains('part')"),
    ("lowerAscii", CelFunction::LowerAscii, CallForm::Method, 1, "text.lowerAscii()"),
    ("upperAscii", CelFunction::UpperAscii, CallForm::Method, 1, "text.upperAscii()"),
    ("timestamp", CelFunction::Timestamp, CallForm::Global, 1, "timestamp('2026-01-01T00:00:00Z')"),
    ("duration", CelFunction::Duration, CallForm::Global, 1, "duration('36h')"),
    ("string", CelFunction::String, CallForm::Global, 1, "string(value)"),
    ("int", CelFunction::Int, CallForm::Global, 1, "int(value)"),
    ("double", CelFunction::Double, CallForm::Global, 1, "double(value)"),
];

/// Each macro with its name and usage.
static FOLDS: [(&str, CelFold, &str); 5] = [
    ("all", CelFold::All, "list.all(item, condition)"),
    ("exists", CelFold::Exists, "list.exists(item, condition)"),
    ("exists_one", CelFold::ExistsOne, "list.exists_one(item, condition)"),
    ("filter", CelFold::Filter, "list.filter(item, condition)"),
    ("map", CelFold::Map, "list.map(item, value)"),
];

/// Finds the function of a call. The error is the usage of a function of this name that is called in another way, if any.
pub(super) fn find(name: &str, is_method: bool, arguments: usize) -> Result<CelFunction, Option<&'static str>> {
    if let Some(&(.., usage)) = FOLDS.iter().find(|(known, ..)| *known == name) {
        return Err(Some(usage));
    }
    let found = FUNCTIONS.iter().find(|(known, ..)| *known == name);
    let Some((_, function, takes, count, usage)) = found else { return Err(None) };
    let form = if is_method { CallForm::Method } else { CallForm::Global };
    let fits = (*takes == form || *takes == CallForm::Both) && *count == arguments + usize::from(is_method);
    if fits { Ok(*function) } else { Err(Some(*usage)) }
}

/// The names of all functions and macros.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let functions = FUNCTIONS.iter().map(|(name, ..)| *name);
    functions.chain(FOLDS.iter().map(|(name, ..)| *name)).chain(["has", "matches"])
}

impl CelFunction {
    /// Returns the name.
    pub(super) fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|(_, function, ..)| *function == self).map_or("", |(name, ..)| *name)
    }
}

impl CelFold {
    /// Finds a macro by name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        FOLDS.iter().find(|(known, ..)| *known == name).map(|(_, fold, _)| *fold)
    }

    /// Returns how to call the macro.
    pub(super) fn usage(self) -> &'static str {
        FOLDS.iter().find(|(_, fold, _)| *fold == self).map_or("", |(.., usage)| *usage)
    }

    /// Whether the macro takes so many expressions for each item: `map` can have a condition before the value.
    pub(super) fn takes(self, expressions: usize) -> bool {
        expressions == 1 || (self == CelFold::Map && expressions == 2)
    }
}
