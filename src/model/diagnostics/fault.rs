//! Faults in a document: what is wrong, at which field, and how to fix it.

use std::{borrow::Cow, fmt};

use super::code::Code;
use super::invariant_finding::InvariantFinding;
pub(crate) use super::suggestions::{nearest, suggest};
use crate::syntax::text::without_tokens;

/// One step of a [`Path`] into a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// A key of a mapping.
    Key(String),
    /// An index in a list, from 0.
    Index(usize),
}

impl From<&str> for Segment {
    fn from(key: &str) -> Self {
        Segment::Key(key.to_owned())
    }
}

impl From<usize> for Segment {
    fn from(index: usize) -> Self {
        Segment::Index(index)
    }
}

/// The path from a document's root to a field; displays as a JSON pointer (RFC 6901).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(pub Vec<Segment>);

impl Path {
    /// Returns the path of the document itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Returns this path with one more step.
    #[must_use]
    pub fn join(&self, step: impl Into<Segment>) -> Self {
        let mut steps = self.0.clone();
        steps.push(step.into());
        Self(steps)
    }

    /// Returns this path below `prefix`.
    #[must_use]
    pub fn under(&self, prefix: &Path) -> Self {
        Self(prefix.0.iter().chain(&self.0).cloned().collect())
    }

    /// Returns the rest of the path after the key `first`, or `None` if it starts with another step.
    pub fn strip(&self, first: &str) -> Option<Self> {
        match self.0.split_first() {
            Some((Segment::Key(key), rest)) if key == first => Some(Self(rest.to_vec())),
            _ => None,
        }
    }
}

impl From<&str> for Path {
    fn from(field: &str) -> Self {
        Self(vec![field.into()])
    }
}

impl<const N: usize> From<[&str; N]> for Path {
    fn from(fields: [&str; N]) -> Self {
        Self(fields.into_iter().map(Segment::from).collect())
    }
}

/// Creates the path of an entry of a list.
impl From<(&str, usize)> for Path {
    fn from((list, index): (&str, usize)) -> Self {
        Self(vec![list.into(), index.into()])
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.0 {
            match step {
                Segment::Key(key) => write!(f, "/{}", key.replace('~', "~0").replace('/', "~1"))?,
                Segment::Index(index) => write!(f, "/{index}")?,
            }
        }
        Ok(())
    }
}

/// The part of a mapping entry that a fault is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultTarget {
    /// The key, such as an unknown field.
    Key,
    /// The value.
    Value,
}

/// A fault of one field. It never contains a secret: messages quote only names and plain values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The code.
    pub code: Code,
    /// The field, relative to the document's root.
    pub path: Path,
    /// Whether the fault is about the field's key or its value.
    pub target: FaultTarget,
    /// One sentence without a full stop.
    pub message: String,
    /// How to fix the fault, if known.
    pub help: Option<String>,
    /// The entry of a list that is missing in the decoded value because of this fault.
    pub(crate) left_out: Option<Box<Path>>,
    /// The field beside an unknown one that is probably a misspelling of it.
    pub(crate) meant: Option<Box<str>>,
    /// The invariant that the fault is about.
    pub(crate) invariant: Option<Box<InvariantFinding>>,
}

impl Fault {
    /// Creates a fault of the whole document; [`Fault::at`] sets the field.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let message = hide_tokens(message.into());
        let (path, target) = (Path::root(), FaultTarget::Value);
        Self { code, path, target, message, help: None, left_out: None, meant: None, invariant: None }
    }

    /// Creates the fault of a field that is missing or empty.
    pub(crate) fn required(field: &str) -> Self {
        Self::new(Code::Required, format!("`{field}` is required")).at(field)
    }

    /// Sets the field.
    #[must_use]
    pub fn at(mut self, path: impl Into<Path>) -> Self {
        self.path = path.into();
        self
    }

    /// Moves the field below a path.
    #[must_use]
    pub(crate) fn under(self, path: &Path) -> Self {
        let path = self.path.under(path);
        self.at(path)
    }

    /// Makes the fault about the field's key instead of its value.
    #[must_use]
    pub fn of_key(mut self) -> Self {
        self.target = FaultTarget::Key;
        self
    }

    /// The path of the field that an unknown one probably means. Whatever is wrong with that field is this fault.
    pub(crate) fn meant(&self) -> Option<Path> {
        let ((_, parents), meant) = self.path.0.split_last().zip(self.meant.as_deref())?;
        Some(Path(parents.to_vec()).join(meant))
    }

    /// The name of an unknown field of the document itself, unless it is probably a misspelling.
    pub(crate) fn unknown_field(&self) -> Option<&str> {
        match self.path.0.as_slice() {
            [Segment::Key(field)] if self.code == Code::UnknownField && self.meant.is_none() => Some(field.as_str()),
            _ => None,
        }
    }

    /// Sets the help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(hide_tokens(help.into()));
        self
    }
}

/// A text without the secret parts of the API tokens in it.
pub(crate) fn hide_tokens(message: String) -> String {
    match without_tokens(&message) {
        Cow::Borrowed(_) => message,
        Cow::Owned(hidden) => hidden,
    }
}

/// The maximum number of faults to report per document.
pub(crate) const MOST_FAULTS: usize = 100;

/// Collects the faults of a document during a visit of its fields, so that all are reported at once.
#[derive(Debug, Default)]
pub struct Faults {
    /// The faults so far, with paths relative to the visited field.
    found: Vec<Fault>,
}

impl Faults {
    /// Creates an empty collection at the document's root.
    pub fn new() -> Self {
        Self::default()
    }

    /// Visits a field: the paths of faults that `visit` reports are relative to `step`.
    pub fn within(&mut self, step: impl Into<Segment>, visit: impl FnOnce(&mut Self)) {
        let before = self.found.len();
        visit(self);
        // Hardly any field has a fault, so a step is made only then.
        let Some(found) = self.found.get_mut(before..).filter(|found| !found.is_empty()) else { return };
        let step = step.into();
        for fault in found {
            fault.path.0.insert(0, step.clone());
        }
    }

    /// Visits each item of a list.
    pub fn each<T>(&mut self, items: impl IntoIterator<Item = T>, mut visit: impl FnMut(&mut Self, T)) {
        for (index, item) in items.into_iter().enumerate() {
            self.within(index, |faults| visit(faults, item));
        }
    }

    /// Visits each item of the list in a field.
    pub fn each_in<T>(&mut self, field: &str, items: impl IntoIterator<Item = T>, visit: impl FnMut(&mut Self, T)) {
        self.within(field, |faults| faults.each(items, visit));
    }

    /// Reports a fault; its path is relative to the visited field. Drops faults beyond the first hundred.
    pub fn report(&mut self, fault: Fault) {
        if self.found.len() >= MOST_FAULTS {
            return;
        }
        self.found.push(fault);
    }

    /// Reports several faults; their paths are relative to the visited field.
    pub fn extend(&mut self, faults: impl IntoIterator<Item = Fault>) {
        for fault in faults {
            self.report(fault);
        }
    }

    /// Whether no fault was reported.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns all faults, in the order of the visit.
    pub fn into_vec(self) -> Vec<Fault> {
        self.found
    }
}

/// Adds the faults that a value's rules found to those of decoding it, except for fields that already have a fault: a
/// field that failed to decode, or is misspelt, must not also be reported as missing.
pub(crate) fn add_new_faults(faults: &mut Vec<Fault>, found: impl IntoIterator<Item = Fault>) {
    let decoding_faults = faults.len();
    let left_out = left_out_entries(faults);
    for mut fault in found {
        count_left_out(&mut fault.path, &left_out);
        let tells =
            |known: &Fault| known.path.0.starts_with(&fault.path.0) || known.meant().is_some_and(|it| it == fault.path);
        match faults.iter_mut().take(decoding_faults).find(|known| tells(known)) {
            // The entry is missing all the same.
            Some(known) => known.left_out = known.left_out.take().or(fault.left_out),
            None => faults.push(fault),
        }
    }
}

/// Adds the faults that a value has beside others. No fault of one of its fields explains them.
pub(crate) fn add_faults_beside_fields(faults: &mut Vec<Fault>, found: impl IntoIterator<Item = Fault>) {
    let left_out = left_out_entries(faults);
    faults.extend(found.into_iter().map(|mut fault| {
        count_left_out(&mut fault.path, &left_out);
        fault
    }));
}

/// The entries of lists that a decoded value lacks, in their order.
fn left_out_entries(faults: &[Fault]) -> Vec<Path> {
    let mut left_out: Vec<Path> = faults.iter().filter_map(|fault| fault.left_out.as_deref().cloned()).collect();
    left_out.sort();
    left_out
}

/// Turns the indices of a decoded value into those of the document, which has the entries that were left out, too.
fn count_left_out(path: &mut Path, left_out: &[Path]) {
    for at in 0..path.0.len() {
        let (parents, rest) = path.0.split_at_mut(at);
        let Some(Segment::Index(index)) = rest.first_mut() else { continue };
        for entry in left_out {
            if let Some((Segment::Index(missing), list)) = entry.0.split_last()
                && *list == *parents
                && *missing <= *index
            {
                *index += 1;
            }
        }
    }
}

/// The rules of a Spec or module that depend on nothing else.
pub trait Check {
    /// Reports every violation of the specification's rules; by default, every value is valid.
    fn check(&self, _faults: &mut Faults) {}

    /// Returns the faults as a list.
    fn faults(&self) -> Vec<Fault> {
        let mut faults = Faults::new();
        self.check(&mut faults);
        faults.into_vec()
    }
}
