//! Follows a text with the schemas of manifests, and shows what they declare to be public.

use std::{collections::HashSet, ops::Range};

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::fields::{Fields, SchemaPlace};
use super::mask::Mask;
use super::quoting::{has_credential, quotable_key, quotable_path, quotable_variable};
use super::secret_values::SecretValues;
use crate::syntax::text::{token_secrets, url_passwords};
use crate::syntax::yaml::{YamlCursor, without_tabs_after_colons};

/// The deepest nesting that is read; a deeper text counts as unreadable.
const MOST_LEVELS: usize = 128;
/// The most events that are read; the rest counts as unreadable, because a longer text is not a manifest (D48).
const MOST_EVENTS: usize = 1_000_000;
/// The characters between values. What follows the last three is a name, which is no value of a field.
const SYNTAX: [char; 11] = ['-', '?', ':', ',', '[', ']', '{', '}', '&', '!', '*'];
/// The key of an HTTP status in the free-form configuration of a policy's action.
const STATUS: &str = "status_code";
/// Scalars that say nothing.
const LITERALS: [&str; 4] = ["null", "~", "true", "false"];

/// Returns what is shown of a text, and its secrets.
pub(super) fn read(text: &str, fields: &Fields) -> (Mask, SecretValues) {
    let mut reader = ExcerptReader {
        text,
        fields,
        cursor: YamlCursor::new(text),
        mask: Mask::over(text),
        read: 0,
        open: Vec::new(),
        candidates: Vec::new(),
        secrets: SecretValues::default(),
        secret_anchors: HashSet::new(),
    };
    let is_complete = reader.read_events();
    reader.finish(is_complete);
    let ExcerptReader { mut mask, mut secrets, .. } = reader;
    for credential in url_passwords(text).into_iter().chain(token_secrets(text)) {
        secrets.add(text.get(credential.clone()).unwrap_or_default(), fields);
        mask.hide(credential);
    }
    (mask, secrets)
}

struct ExcerptReader<'t, 'f> {
    text: &'t str,
    fields: &'f Fields,
    cursor: YamlCursor<'t>,
    mask: Mask,
    /// The end of the part that was read.
    read: usize,
    open: Vec<OpenCollection<'f>>,
    /// The texts to show unless they repeat a secret, in order.
    candidates: Vec<QuotableText>,
    secrets: SecretValues,
    /// The anchors with aliases in places that are not shown.
    secret_anchors: HashSet<usize>,
}

/// The facts about a value before it is read.
#[derive(Default)]
struct Expectation<'f> {
    place: SchemaPlace<'f>,
    /// Whether no field is at this place.
    is_hidden: bool,
    /// Whether the place is in the value of a secret field.
    is_secret: bool,
    /// The key, in a mapping.
    key: String,
}

/// A mapping or list that has not ended.
struct OpenCollection<'f> {
    within: Expectation<'f>,
    is_list: bool,
    /// The value of the key that was read last.
    awaited: Option<Expectation<'f>>,
    /// The start of its candidates.
    candidates: usize,
    /// Whether an item is the name of a secret field: another one may be its value.
    names_secret: bool,
}

/// A scalar of the text.
struct Scalar<'e> {
    value: &'e str,
    /// The place in the text; none for an empty scalar.
    range: Option<Range<usize>>,
    is_block: bool,
    anchor: usize,
}

/// A value or key that may be shown.
struct QuotableText {
    range: Range<usize>,
    /// The value, unless it is in the text as it is.
    value: Option<String>,
    anchor: usize,
}

impl QuotableText {
    fn value<'c>(&'c self, text: &'c str) -> &'c str {
        self.value.as_deref().or(text.get(self.range.clone())).unwrap_or_default()
    }
}

impl<'f> ExcerptReader<'_, 'f> {
    /// Reads the text up to what is unreadable, and returns whether that is its end.
    fn read_events(&mut self) -> bool {
        if self.text.contains('\0') {
            // A dump of memory or the environment rather than a manifest.
            return false;
        }
        let readable = without_tabs_after_colons(self.text);
        let mut parser = Parser::new_from_str(&readable);
        for _ in 0..MOST_EVENTS {
            match parser.next_event() {
                None => return true,
                Some(Ok((event, span))) if self.open.len() <= MOST_LEVELS => self.event(event, span),
                Some(_) => return false,
            }
        }
        false
    }

    fn event(&mut self, event: Event<'_>, span: Span) {
        let start = self.cursor.byte(span.start.index());
        let is_list = matches!(event, Event::SequenceStart(..));
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                let properties = usize::from(anchor != 0) + usize::from(tag.is_some());
                let range = self.scalar_range(&value, style, start, properties, span);
                if let Some(range) = &range {
                    self.show_syntax(range.start);
                    self.read = self.read.max(range.end);
                }
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let scalar = Scalar { value: &value, range, is_block, anchor };
                match self.expected() {
                    Some(expected) => self.value(&scalar, expected),
                    None => self.key(&scalar),
                }
            }
            Event::Alias(anchor) => {
                self.show_syntax(start);
                self.read = self.cursor.byte(span.end.index());
                let expected = self.expected().unwrap_or_else(|| self.await_unknown());
                if expected.is_hidden || expected.is_secret {
                    self.secret_anchors.insert(anchor);
                } else {
                    self.mask.show(start..start + 1);
                }
            }
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => {
                let properties = usize::from(anchor != 0) + usize::from(tag.is_some());
                let start = self.cursor.content(start, properties);
                self.show_syntax(start);
                let mut within = self.expected().unwrap_or_else(|| self.await_unknown());
                within.is_hidden |= is_list && within.place.is_secret;
                let candidates = self.candidates.len();
                self.open.push(OpenCollection { within, is_list, awaited: None, candidates, names_secret: false });
                let has_bracket = self.cursor.rest(start).starts_with(['{', '[']);
                self.show_syntax(start + usize::from(has_bracket));
            }
            Event::SequenceEnd | Event::MappingEnd => {
                // The position of the end of a block is that of the text after it.
                if !span.is_empty() && self.cursor.rest(start).starts_with(['}', ']']) {
                    self.show_syntax(start + 1);
                }
                self.close();
            }
            _ => {}
        }
    }

    /// The span of a scalar's content. The parser's span of a quoted one includes the comment behind it, and an empty
    /// one has the span of the text after it.
    fn scalar_range(
        &mut self,
        value: &str,
        style: ScalarStyle,
        start: usize,
        properties: usize,
        span: Span,
    ) -> Option<Range<usize>> {
        let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        if (value.is_empty() && style == ScalarStyle::Plain) || (is_block && value.trim().is_empty()) {
            return None;
        }
        let mut start = self.cursor.content(start, properties);
        if is_block && properties > 0 {
            // The content is below the line with the anchor or tag.
            start += self.cursor.rest(start).find(['\n', '\r']).unwrap_or_default();
        }
        let end = match style {
            ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => self.cursor.quoted_end(start),
            _ => self.cursor.byte(span.end.index()).max(start),
        };
        Some(start..end)
    }

    /// Takes what is known of the next value; none if a key is next.
    fn expected(&mut self) -> Option<Expectation<'f>> {
        let fields = self.fields;
        match self.open.last_mut() {
            None => Some(Expectation { place: fields.document(), ..Expectation::default() }),
            Some(list) if list.is_list => {
                let place = fields.item(&list.within.place);
                let is_hidden = list.within.is_hidden || !place.is_known();
                Some(Expectation { place, is_hidden, is_secret: list.within.is_secret, key: String::new() })
            }
            Some(mapping) => mapping.awaited.take(),
        }
    }

    /// Expects an unknown value in the innermost mapping, for a key that is no name. The key is as unknown.
    fn await_unknown(&mut self) -> Expectation<'f> {
        let mapping = self.open.last_mut();
        let is_secret = mapping.as_ref().is_some_and(|it| it.within.is_secret);
        let unknown = || Expectation { is_hidden: true, is_secret, ..Expectation::default() };
        if let Some(mapping) = mapping {
            mapping.awaited = Some(unknown());
        }
        unknown()
    }

    fn key(&mut self, key: &Scalar<'_>) {
        let Some(mapping) = self.open.last_mut() else { return };
        let mut name = key.value;
        let mut place = match name {
            "<<" => mapping.within.place.clone(),
            name => self.fields.member(&mapping.within.place, name),
        };
        if !place.is_known()
            && !mapping.within.is_secret
            && let Some((meant, its_place)) = self.fields.meant(&mapping.within.place, name)
        {
            (name, place) = (meant, its_place);
        }
        let is_known = place.is_known() && !mapping.within.is_hidden;
        let is_secret = mapping.within.is_secret || place.is_secret || self.fields.is_secret_name(key.value);
        mapping.awaited = Some(Expectation { place, is_hidden: !is_known, is_secret, key: name.to_owned() });
        let in_secret = mapping.within.is_secret;
        let has_keys = !mapping.within.is_hidden && !in_secret && mapping.within.place.is_mapping();
        let Some(range) = key.range.clone() else { return };
        let has_colon = self.cursor.rest(range.end).trim_start().starts_with(':');
        if is_known {
            self.mask.show(range);
        } else if in_secret || (has_keys && !has_colon) {
            // In place of a value, or the part of one behind a comma.
            self.secrets.add(key.value, self.fields);
        } else if has_keys && quotable_key(key.value) == key.value {
            self.candidates.push(QuotableText { range, value: None, anchor: key.anchor });
        }
    }

    fn value(&mut self, scalar: &Scalar<'_>, expected: Expectation<'f>) {
        let Some(range) = scalar.range.clone() else { return };
        let text = self.text.get(range.clone()).unwrap_or_default();
        if self.fields.is_secret_name(scalar.value.trim()) {
            // A secret and its key are swapped, or are two items of a list.
            if !self.fields.has_name(&expected.key) {
                self.secrets.add(&expected.key, self.fields);
            }
            if let Some(list) = self.open.last_mut().filter(|it| it.is_list) {
                list.names_secret = true;
            }
        }
        let may_be_public = !expected.is_hidden && self.fields.is_public(&expected.place);
        if may_be_public && self.is_publishable(scalar, text, &expected.key) {
            let is_plain = scalar.value == text && scalar.anchor == 0;
            let value = (!is_plain && !scalar.is_block).then(|| scalar.value.to_owned());
            self.candidates.push(QuotableText { range, value, anchor: scalar.anchor });
        } else if !expected.is_secret
            && ((!expected.is_hidden && LITERALS.contains(&text))
                || (expected.key == STATUS && is_status(text) && self.is_in_shown_mapping()))
        {
            self.mask.show(range);
        } else if expected.is_secret || may_be_public || scalar.anchor != 0 {
            self.secrets.add(scalar.value, self.fields);
        }
    }

    /// Whether the innermost collection is a mapping whose keys are shown.
    fn is_in_shown_mapping(&self) -> bool {
        self.open.last().is_some_and(|it| !it.is_list && !it.within.is_hidden && !it.within.is_secret)
    }

    /// Whether the value of a public field is what the field is for, as far as one can see.
    fn is_publishable(&self, scalar: &Scalar<'_>, text: &str, key: &str) -> bool {
        let value = scalar.value;
        let is_argument = match key {
            "from_env" => quotable_variable(value) == value,
            "from_file" => quotable_path(value) == value,
            _ => {
                let mut words = value.split(|c: char| !c.is_alphanumeric() && !"_-".contains(c));
                let is_name = self.fields.is_secret_name(value);
                is_name || !words.any(|word| self.fields.is_secret_name(&word.to_ascii_lowercase()))
            }
        };
        // A missing quote makes a value of the lines below it.
        let is_whole = scalar.is_block || !text.contains(['\n', '\r']);
        // The credentials of a text without escapes are hidden where they are.
        let has_credentials = || !url_passwords(value).is_empty() || token_secrets(value).next().is_some();
        is_argument && is_whole && !has_credential(value) && !(text.contains('\\') && has_credentials())
    }

    fn close(&mut self) {
        let Some(list) = self.open.pop().filter(|it| it.names_secret) else { return };
        for item in self.candidates.split_off(list.candidates.min(self.candidates.len())) {
            let text = self.text.get(item.range).unwrap_or_default();
            self.secrets.add(text.trim_matches(['"', '\'']), self.fields);
        }
    }

    /// Shows the characters between two values, without comments, directives, and the names of anchors and tags.
    fn show_syntax(&mut self, end: usize) {
        let from = self.read;
        self.read = end.max(from);
        if self.open.last().is_some_and(|it| it.within.is_hidden) {
            return;
        }
        let mut line_end = from;
        for line in self.text.get(from..end).unwrap_or_default().split_inclusive(['\n', '\r']) {
            let mut at = line_end;
            line_end += line.len();
            for word in line.split_inclusive([' ', '\t', '\n', '\r']) {
                let start = at;
                at += word.len();
                // The indicators of a block are a word of their own.
                if word.starts_with(['|', '>']) {
                    self.mask.show(start..at);
                    continue;
                }
                let shown = word.find(|c: char| !SYNTAX.contains(&c)).unwrap_or(word.len());
                let is_remark = word.get(shown..).is_some_and(|rest| rest.starts_with(['#', '%']));
                self.mask.show(start..start + shown);
                if is_remark {
                    self.mask.show(start + shown..start + shown + 1);
                    break;
                }
            }
        }
    }

    /// Shows the keys at the starts of the lines that cannot be read if they are names of fields, and nothing else.
    fn show_names(&mut self) {
        let text = self.text;
        let mut end = text.get(..self.read).and_then(|read| read.rfind(['\n', '\r'])).map_or(0, |at| at + 1);
        for line in text.get(end..).unwrap_or_default().split_inclusive(['\n', '\r']) {
            let start = end;
            end += line.len();
            let bare = line.trim_start_matches([' ', '\t', '-', '{', '[', ',', '"', '\'']);
            let length = bare.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(bare.len());
            let (name, behind) = bare.split_at_checked(length).unwrap_or_default();
            let behind = behind.trim_start_matches(['"', '\'', ' ', '\t']);
            if self.fields.has_name(name) && behind.starts_with(':') {
                self.mask.show(start..end - behind.len() + 1);
            }
        }
    }

    fn finish(&mut self, is_complete: bool) {
        if is_complete {
            self.show_syntax(self.text.len());
        } else {
            self.show_names();
            while !self.open.is_empty() {
                self.close();
            }
        }
        for anchored in self.candidates.iter().filter(|it| self.secret_anchors.contains(&it.anchor)) {
            self.secrets.add(anchored.value(self.text), self.fields);
        }
        for candidate in &self.candidates {
            // An alias of it may be in what cannot be read.
            let is_safe = candidate.anchor == 0 || (is_complete && !self.secret_anchors.contains(&candidate.anchor));
            if is_safe && !self.secrets.is_in(candidate.value(self.text)) {
                self.mask.show(candidate.range.clone());
            }
        }
    }
}

/// Whether a text is an HTTP status. Three digits are no secret.
fn is_status(text: &str) -> bool {
    text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit()) && text.starts_with(['1', '2', '3', '4', '5'])
}
