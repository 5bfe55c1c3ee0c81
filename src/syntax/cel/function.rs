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

struct FunctionInfo {
    name: &'static str,
    function: CelFunction,
    form: CallForm,
    /// The number of arguments, with the receiver.
    arguments: usize,
    usage: &'static str,
}

const fn info(
    name: &'static str,
    function: CelFunction,
    form: CallForm,
    arguments: usize,
    usage: &'static str,
) -> FunctionInfo {
    FunctionInfo { name, function, form, arguments, usage }
}

static FUNCTIONS: [FunctionInfo; 11] = [
    info("size", CelFunction::Size, CallForm::Both, 1, "size(value)"),
    info("startsWith", CelFunction::StartsWith, CallForm::Method, 2, "text.startsWith('prefix')"),
    info("endsWith", CelFunction::EndsWith, CallForm::Method, 2, "text.endsWith('suffix')"),
    info("contains", CelFunction::Contains, CallForm::Method, 2, "text.contains('part')"),
    info("lowerAscii", CelFunction::LowerAscii, CallForm::Method, 1, "text.lowerAscii()"),
    info("upperAscii", CelFunction::UpperAscii, CallForm::Method, 1, "text.upperAscii()"),
    info("timestamp", CelFunction::Timestamp, CallForm::Global, 1, "timestamp('2026-01-01T00:00:00Z')"),
    info("duration", CelFunction::Duration, CallForm::Global, 1, "duration('36h')"),
    info("string", CelFunction::String, CallForm::Global, 1, "string(value)"),
    info("int", CelFunction::Int, CallForm::Global, 1, "int(value)"),
    info("double", CelFunction::Double, CallForm::Global, 1, "double(value)"),
];

static FOLDS: [(&str, CelFold, &str); 5] = [
    ("all", CelFold::All, "list.all(item, condition)"),
    ("exists", CelFold::Exists, "list.exists(item, condition)"),
    ("exists_one", CelFold::ExistsOne, "list.exists_one(item, condition)"),
    ("filter", CelFold::Filter, "list.filter(item, condition)"),
    ("map", CelFold::Map, "list.map(item, value)"),
];

/// Why there is no function for a call.
pub(super) enum NoFunction {
    /// None has the name.
    Unknown,
    /// The one with the name is called in another way.
    Usage(&'static str),
}

/// Finds the function of a call.
pub(super) fn find(name: &str, is_method: bool, arguments: usize) -> Result<CelFunction, NoFunction> {
    if let Some(&(.., usage)) = FOLDS.iter().find(|(known, ..)| *known == name) {
        return Err(NoFunction::Usage(usage));
    }
    let found = FUNCTIONS.iter().find(|info| info.name == name).ok_or(NoFunction::Unknown)?;
    let form = if is_method { CallForm::Method } else { CallForm::Global };
    let fits =
        (found.form == form || found.form == CallForm::Both) && found.arguments == arguments + usize::from(is_method);
    if fits { Ok(found.function) } else { Err(NoFunction::Usage(found.usage)) }
}

/// The names of all functions and macros.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    let functions = FUNCTIONS.iter().map(|info| info.name);
    functions.chain(FOLDS.iter().map(|(name, ..)| *name)).chain(["has", "matches"])
}

impl CelFunction {
    /// Its name.
    pub(super) fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|info| info.function == self).map_or("", |info| info.name)
    }
}

impl CelFold {
    /// Finds a macro by name.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        FOLDS.iter().find(|(known, ..)| *known == name).map(|(_, fold, _)| *fold)
    }

    /// How to call it.
    pub(super) fn usage(self) -> &'static str {
        FOLDS.iter().find(|(_, fold, _)| *fold == self).map_or("", |(.., usage)| *usage)
    }

    /// Whether the macro takes so many expressions for each item: `map` can have a condition before the value.
    pub(super) fn takes(self, expressions: usize) -> bool {
        expressions == 1 || (self == CelFold::Map && expressions == 2)
    }
}
