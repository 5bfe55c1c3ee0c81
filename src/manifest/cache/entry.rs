//! The content of an entry: everything that one file declares, in a form that is compact and fast to read. Specs are in
//! their stored form; names are in a table, so that resources share them as after parsing.

use std::{collections::BTreeMap, str::from_utf8, sync::Arc};

use foldhash::HashMap;
use zeroize::Zeroizing;

use crate::{
    lint::Level,
    manifest::{
        FileRead, ManifestFile,
        declaration::{Declaration, Declared, DeclaredName, Facts, ModuleSet, StatedId},
        kinds,
        merged::Merged,
        origin::{DocumentPart, Origin},
        reader::{ROUTES, SOURCES},
        transfer::TransferMarkers,
    },
    model::{Kind, resource::AnyResource, secret::Secrets},
};

/// The lists whose entries declare something.
const LISTS: [&str; 2] = [ROUTES.0, SOURCES.0];
/// The fields that can be the name of an entry.
const NAME_FIELDS: [&str; 3] = ["name", "match", "type"];
/// The host of the modules of a set.
const HOST: Kind = Kind::HttpsEdgeRoute;

/// The kinds of declared names: those of manifests, and those that are declared only inside others.
fn kind_names() -> impl Iterator<Item = &'static str> {
    kinds::names().chain(Kind::all().map(|info| info.name))
}

/// Encodes what was read of a file. Returns none if that depends on more than its text, has errors or warnings, or
/// contains a secret.
pub(super) fn encode(read: &FileRead) -> Option<Vec<u8>> {
    let FileRead { declared, diagnostics, taken } = read;
    let (names, ids) = declared.names_and_ids()?;
    if !taken.is_empty() || !diagnostics.is_empty() {
        return None;
    }
    let mut encoder = Encoder::default();
    encoder.number(declared.resources.len())?;
    for declaration in &declared.resources {
        encoder.declaration(declaration)?;
    }
    encoder.number(declared.sets.len())?;
    for (name, set) in &declared.sets {
        encoder.text(name)?;
        encoder.module_set(set)?;
    }
    encoder.number(names.len())?;
    for DeclaredName { kind, parent, name, origin, field } in names {
        encoder.position(kind_names(), kind)?;
        encoder.optional(parent.as_deref())?;
        encoder.text(name)?;
        encoder.origin(origin)?;
        encoder.position(NAME_FIELDS, field)?;
    }
    encoder.number(ids.len())?;
    for StatedId { kind, parent, id, name, head } in ids {
        encoder.position(kind_names(), kind)?;
        encoder.text(parent)?;
        encoder.text(id)?;
        encoder.text(name)?;
        encoder.origin(head)?;
    }
    encoder.finish()
}

/// Decodes what a file declares. Returns none if the payload is not a complete entry.
pub(super) fn decode(payload: &[u8], file: &Arc<ManifestFile>) -> Option<Declared> {
    let mut decoder = Decoder { rest: payload, texts: Vec::new(), file };
    for _ in 0..decoder.number()? {
        let text = from_utf8(decoder.bytes()?).ok()?;
        decoder.texts.push(Arc::from(text));
    }
    let mut declared = Declared::default();
    for _ in 0..decoder.number()? {
        declared.resources.push(Arc::new(decoder.declaration()?));
    }
    for _ in 0..decoder.number()? {
        let name = decoder.string()?;
        declared.sets.insert(name, Arc::new(decoder.module_set()?));
    }
    for _ in 0..decoder.number()? {
        let kind = kind_names().nth(decoder.number()?)?;
        let (parent, name, origin) = (decoder.optional()?, decoder.text()?, decoder.origin()?);
        let field = *NAME_FIELDS.get(decoder.number()?)?;
        declared.note(kind, parent, name, origin, field);
    }
    for _ in 0..decoder.number()? {
        let kind = kind_names().nth(decoder.number()?)?;
        let (parent, id, name) = (decoder.text()?, decoder.text()?, decoder.text()?);
        declared.note_id(kind, &parent, &id, &name, decoder.origin()?);
    }
    decoder.rest.is_empty().then_some(declared)
}

/// Writes numbers as 32 bits, and texts as their index in a table. A method returns none for what cannot be cached.
#[derive(Default)]
struct Encoder<'a> {
    texts: Vec<&'a str>,
    indices: HashMap<&'a str, usize>,
    body: Vec<u8>,
}

impl<'a> Encoder<'a> {
    /// The table of the texts, and what refers to them.
    fn finish(self) -> Option<Vec<u8>> {
        let mut whole =
            Encoder { body: Vec::with_capacity(self.body.len() + 64 * self.texts.len()), ..Self::default() };
        whole.number(self.texts.len())?;
        for text in self.texts {
            whole.bytes(text.as_bytes())?;
        }
        whole.body.extend_from_slice(&self.body);
        Some(whole.body)
    }

    fn number(&mut self, number: usize) -> Option<()> {
        self.body.extend_from_slice(&u32::try_from(number).ok()?.to_le_bytes());
        Some(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Option<()> {
        self.number(bytes.len())?;
        self.body.extend_from_slice(bytes);
        Some(())
    }

    fn text(&mut self, text: &'a str) -> Option<()> {
        let next = self.texts.len();
        let index = *self.indices.entry(text).or_insert(next);
        if index == next {
            self.texts.push(text);
        }
        self.number(index)
    }

    fn optional(&mut self, text: Option<&'a str>) -> Option<()> {
        self.number(usize::from(text.is_some()))?;
        text.map_or(Some(()), |text| self.text(text))
    }

    fn texts(&mut self, texts: &'a [String]) -> Option<()> {
        self.number(texts.len())?;
        texts.iter().try_for_each(|text| self.text(text))
    }

    /// The position of a name among the known ones.
    fn position(&mut self, known: impl IntoIterator<Item = &'static str>, name: &str) -> Option<()> {
        let position = known.into_iter().position(|it| it == name)?;
        self.number(position)
    }

    fn origin(&mut self, origin: &Origin) -> Option<()> {
        let (document, part) = origin.position();
        self.number(document)?;
        match part {
            DocumentPart::Document => self.number(0),
            DocumentPart::Spec => self.number(1),
            DocumentPart::Entry(list, index) => {
                self.number(2)?;
                self.position(LISTS, list)?;
                self.number(index)
            }
        }
    }

    fn facts(&mut self, facts: &'a Facts) -> Option<()> {
        let Facts { plain_secrets, labels, levels } = facts;
        if !plain_secrets.is_empty() {
            return None;
        }
        self.texts(labels)?;
        self.number(levels.len())?;
        for (name, level) in levels {
            self.text(name)?;
            self.text(level.as_str())?;
        }
        Some(())
    }

    /// The stored form of a Spec without secrets. What is written is the masked form, so that no secret can be in it.
    fn spec(&mut self, spec: &dyn AnyResource) -> Option<()> {
        let masked = spec.to_bytes(Secrets::Masked).ok()?;
        let stored = Zeroizing::new(spec.to_bytes(Secrets::Revealed).ok()?);
        if masked != *stored {
            return None;
        }
        self.bytes(&masked)
    }

    fn declaration(&mut self, declaration: &'a Declaration) -> Option<()> {
        let Declaration {
            kind,
            name,
            parent,
            id,
            renamed_from,
            prevent_destroy,
            transfer: TransferMarkers { from, to },
            spec,
            modules_from,
            token_file,
            origin,
            facts,
            faulty,
            merged: _,
        } = declaration;
        if *faulty || token_file.is_some() {
            return None;
        }
        self.number(*kind as usize)?;
        self.text(name)?;
        self.optional(parent.as_deref())?;
        self.optional(id.as_deref())?;
        self.optional(renamed_from.as_deref())?;
        self.number(usize::from(*prevent_destroy))?;
        self.optional(from.as_deref())?;
        self.optional(to.as_deref())?;
        self.texts(modules_from)?;
        self.origin(origin)?;
        self.facts(facts)?;
        self.spec(spec.as_ref())
    }

    fn module_set(&mut self, set: &'a ModuleSet) -> Option<()> {
        let ModuleSet { modules, origin, facts, faulty } = set;
        if *faulty {
            return None;
        }
        self.number(modules.len())?;
        for (slot, _) in modules {
            self.text(slot.name)?;
        }
        self.origin(origin)?;
        self.facts(facts)?;
        let given: Vec<_> = modules.iter().map(|(slot, module)| (*slot, Some(Arc::clone(module)))).collect();
        self.spec((HOST.info().empty)().with_modules(&given).as_ref())
    }
}

/// Reads what an [`Encoder`] has written. A method returns none if it cannot have been written.
struct Decoder<'a> {
    rest: &'a [u8],
    texts: Vec<Arc<str>>,
    file: &'a Arc<ManifestFile>,
}

impl<'a> Decoder<'a> {
    fn number(&mut self) -> Option<usize> {
        let (number, rest) = self.rest.split_first_chunk::<4>()?;
        self.rest = rest;
        usize::try_from(u32::from_le_bytes(*number)).ok()
    }

    fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<Arc<str>> {
        let index = self.number()?;
        self.texts.get(index).map(Arc::clone)
    }

    fn string(&mut self) -> Option<String> {
        let index = self.number()?;
        self.texts.get(index).map(|text| String::from(text.as_ref()))
    }

    fn optional(&mut self) -> Option<Option<Arc<str>>> {
        match self.flag()? {
            true => self.text().map(Some),
            false => Some(None),
        }
    }

    fn strings(&mut self) -> Option<Vec<String>> {
        (0..self.number()?).map(|_| self.string()).collect()
    }

    fn origin(&mut self) -> Option<Origin> {
        let document = Origin::new(Arc::clone(self.file), self.number()?);
        Some(match self.number()? {
            0 => document,
            1 => document.part(DocumentPart::Spec),
            2 => {
                let list = *LISTS.get(self.number()?)?;
                document.part(DocumentPart::Entry(list, self.number()?))
            }
            _ => return None,
        })
    }

    fn facts(&mut self) -> Option<Facts> {
        let labels = self.strings()?;
        let mut levels = BTreeMap::new();
        for _ in 0..self.number()? {
            let name = self.string()?;
            levels.insert(name, Level::from_name(&self.text()?)?);
        }
        Some(Facts { plain_secrets: Vec::new(), labels, levels })
    }

    fn spec(&mut self, kind: Kind) -> Option<Arc<dyn AnyResource>> {
        let stored = from_utf8(self.bytes()?).ok()?;
        (kind.info().restore)(stored).ok()
    }

    fn declaration(&mut self) -> Option<Declaration> {
        let kind = Kind::all().nth(self.number()?)?.kind;
        Some(Declaration {
            kind,
            name: self.text()?,
            parent: self.optional()?,
            id: self.optional()?.map(|id| String::from(id.as_ref())),
            renamed_from: self.optional()?.map(|name| String::from(name.as_ref())),
            prevent_destroy: self.flag()?,
            transfer: TransferMarkers {
                from: self.optional()?.map(|name| String::from(name.as_ref())),
                to: self.optional()?.map(|name| String::from(name.as_ref())),
            },
            modules_from: self.strings()?,
            token_file: None,
            origin: self.origin()?,
            facts: self.facts()?,
            spec: self.spec(kind)?,
            faulty: false,
            merged: Merged::default(),
        })
    }

    fn module_set(&mut self) -> Option<ModuleSet> {
        let slots: Option<Vec<_>> = self.strings()?.iter().map(|name| HOST.info().slot(name)).collect();
        let (origin, facts, host) = (self.origin()?, self.facts()?, self.spec(HOST)?);
        let modules = slots?.into_iter().map(|slot| Some((slot, host.shared_module(slot)?)));
        Some(ModuleSet { modules: modules.collect::<Option<Vec<_>>>()?, origin, facts, faulty: false })
    }
}
