//! A fault in one document: what is wrong, at which field, and how to mend it.

use std::fmt;

use super::code::Code;

/// One step of a [`Path`] into a document.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// A key of a mapping.
    Key(String),
    /// A position in a list, from 0.
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

/// The way from a document's root to one of its fields; displays as a JSON pointer (RFC 6901).
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Path(pub Vec<Segment>);

impl Path {
    /// The path of the document itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// This path and one step more.
    #[must_use]
    pub fn join(&self, step: impl Into<Segment>) -> Self {
        let mut steps = self.0.clone();
        steps.push(step.into());
        Self(steps)
    }

    /// This path below `prefix`.
    #[must_use]
    pub fn under(&self, prefix: &Path) -> Self {
        Self(prefix.0.iter().chain(&self.0).cloned().collect())
    }

    /// The rest of the path behind a first key, where it has that first key.
    pub fn strip(&self, first: &str) -> Option<Self> {
        match self.0.split_first() {
            Some((Segment::Key(key), rest)) if key == first => Some(Self(rest.to_vec())),
            _ => None,
        }
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

/// Which half of an entry is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aim {
    /// The key: a field that should not be there.
    Key,
    /// The value.
    Value,
}

/// What is wrong with one field. It never holds a secret: messages quote names and plain values only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The registered code.
    pub code: Code,
    /// The field, from the root of the document that was read.
    pub path: Path,
    /// Whether the field's key or its value is meant.
    pub aim: Aim,
    /// One sentence without a full stop.
    pub message: String,
    /// The cure, where one can be named.
    pub help: Option<String>,
}

impl Fault {
    /// A fault of the document as a whole; [`Fault::at`] narrows it.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, path: Path::root(), aim: Aim::Value, message: message.into(), help: None }
    }

    /// The same fault at `path`.
    #[must_use]
    pub fn at(mut self, path: Path) -> Self {
        self.path = path;
        self
    }

    /// The same fault, of the key instead of the value.
    #[must_use]
    pub fn of_key(mut self) -> Self {
        self.aim = Aim::Key;
        self
    }

    /// The same fault with its cure.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// How many faults of one document are worth reporting.
pub const MOST_FAULTS: usize = 100;

/// Gathers the faults of one document while its parts are visited, so that all are reported at once.
#[derive(Debug, Default)]
pub struct Faults {
    here: Path,
    found: Vec<Fault>,
}

impl Faults {
    /// An empty collection at the root.
    pub fn new() -> Self {
        Self::default()
    }

    /// Visits a part of the document: what `visit` reports is placed below `step`.
    pub fn within(&mut self, step: impl Into<Segment>, visit: impl FnOnce(&mut Self)) {
        self.here.0.push(step.into());
        visit(self);
        self.here.0.pop();
    }

    /// Visits each item of a list with its position.
    pub fn each<T>(&mut self, items: impl IntoIterator<Item = T>, mut visit: impl FnMut(&mut Self, T)) {
        for (index, item) in items.into_iter().enumerate() {
            self.within(index, |faults| visit(faults, item));
        }
    }

    /// Reports a fault; its path is taken as relative to the part being visited. Of a document with very many faults
    /// only the first hundred are kept.
    pub fn report(&mut self, fault: Fault) {
        if self.found.len() >= MOST_FAULTS {
            return;
        }
        let path = fault.path.under(&self.here);
        self.found.push(fault.at(path));
    }

    /// Takes over faults that were found elsewhere, placing them below the part being visited.
    pub fn extend(&mut self, faults: impl IntoIterator<Item = Fault>) {
        for fault in faults {
            self.report(fault);
        }
    }

    /// Whether nothing was reported.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Everything that was reported, in the order of the visit.
    pub fn into_vec(self) -> Vec<Fault> {
        self.found
    }
}

/// Adds what the rules of a value find to the faults of decoding it: what was set aside as faulty is not also missing.
pub fn add_untold(faults: &mut Vec<Fault>, found: impl IntoIterator<Item = Fault>) {
    let told = faults.len();
    for fault in found {
        if !faults.iter().take(told).any(|known| known.path.0.starts_with(&fault.path.0)) {
            faults.push(fault);
        }
    }
}

/// What a Spec or module can say about itself without looking at anything else.
pub trait Check {
    /// Reports every fault; an empty report means the value obeys the rules of the specification.
    fn check(&self, faults: &mut Faults);

    /// The faults as a list.
    fn faults(&self) -> Vec<Fault> {
        let mut faults = Faults::new();
        self.check(&mut faults);
        faults.into_vec()
    }
}

/// Longer words are not compared with known ones: that takes the product of both lengths, and no known word is as long.
const LONGEST_WORD: usize = 256;

/// The known word nearest to a mistyped one, if it is near enough to be what was meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST_WORD {
        return None;
    }
    let folded = word.to_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|candidate| {
            let plain = candidate.to_lowercase().replace('-', "_");
            let near = strsim::jaro_winkler(&folded, &plain);
            // A word that only lacks or repeats a part ("header" for "request_headers") is near too.
            let distance = strsim::damerau_levenshtein(&folded, &plain);
            (candidate, near, distance)
        })
        .filter(|(candidate, near, distance)| *near > 0.85 || *distance <= 1 + candidate.len() / 5)
        .max_by(|a, b| b.2.cmp(&a.2).then(a.1.total_cmp(&b.1)))
        .map(|(candidate, ..)| candidate)
}
