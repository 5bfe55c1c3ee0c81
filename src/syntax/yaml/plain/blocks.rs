//! Documents and block collections, line by line.

use super::reader::{BlockForm, MOST_OPEN, MOST_PLAIN_KEY, OpenBlock, PlainReader};
use crate::syntax::yaml::tape::{Tape, TapeItem};

/// The line before a document.
const SEPARATOR: &[u8] = b"---";

/// Reads the documents of a text. Returns `None` if the meaning of a byte is uncertain, or if there are more values than
/// `most_values`.
pub(crate) fn plain_documents(text: &str, most_values: usize) -> Option<Vec<Tape>> {
    if !has_usual_characters(text) {
        return None;
    }
    let mut reader = PlainReader::new(text);
    let documents = reader.documents()?;
    (reader.values <= most_values).then_some(documents)
}

/// Whether a text has no carriage returns, no line breaks of Unicode, and nothing that YAML forbids.
fn has_usual_characters(text: &str) -> bool {
    let is_usual = |byte: u8| matches!(byte, b'\n' | b'\t' | b' '..=b'~');
    let mut chunks = text.as_bytes().chunks(64);
    // Without a branch for each byte, many are compared at once.
    chunks.all(|chunk| chunk.iter().fold(true, |all, byte| all & is_usual(*byte)))
        || text.chars().all(|c| match c {
            '\n' | '\t' | ' '..='~' => true,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => false,
            _ => c >= '\u{a0}',
        })
}

impl PlainReader<'_> {
    fn documents(&mut self) -> Option<Vec<Tape>> {
        let mut documents = Vec::new();
        let mut has_begun = false;
        loop {
            let indent = self.skip_spaces();
            match self.peek() {
                None => break,
                Some(b'\n') => self.at += 1,
                Some(b'#') => self.skip_to_break(),
                Some(b'-') if indent == 0 && self.is_separator() => {
                    if has_begun {
                        documents.push(self.end_document()?);
                    }
                    has_begun = true;
                    self.at += SEPARATOR.len();
                    if !self.skip_line_end() {
                        return None;
                    }
                }
                // The dot may start `...`.
                Some(b'.') if indent == 0 => return None,
                Some(_) => {
                    has_begun = true;
                    self.line(indent)?;
                }
            }
        }
        // A file without any document has an empty one.
        documents.push(self.end_document()?);
        Some(documents)
    }

    fn is_separator(&self) -> bool {
        let rest = self.rest();
        rest.starts_with(SEPARATOR) && matches!(rest.get(SEPARATOR.len()), None | Some(b' ' | b'\n'))
    }

    fn end_document(&mut self) -> Option<Tape> {
        self.end_value()?;
        while let Some(block) = self.open.pop() {
            self.close(block)?;
        }
        self.is_due = true;
        // Documents of a file are often of a size.
        let next = Tape {
            items: Vec::with_capacity(self.tape.items.len()),
            texts: String::with_capacity(self.tape.texts.len()),
            ..Tape::default()
        };
        let tape = std::mem::replace(&mut self.tape, next);
        self.values += tape.items.len();
        Some(tape)
    }

    /// Reads a line from its first character, which is in a column.
    fn line(&mut self, mut column: usize) -> Option<()> {
        while self.is_dash() {
            self.begin_item(column)?;
            let dash = self.at;
            self.at += 1;
            if self.skip_line_end() {
                return Some(());
            }
            column += self.at - dash;
        }
        self.key_or_value(column)
    }

    fn is_dash(&self) -> bool {
        let rest = self.rest();
        rest.first() == Some(&b'-') && matches!(rest.get(1), None | Some(b' ' | b'\n'))
    }

    fn key_or_value(&mut self, column: usize) -> Option<()> {
        let start = self.at;
        match self.peek()? {
            b'"' | b'\'' => {
                let text = self.quoted()?;
                if self.is_colon() {
                    return self.entry(column, start, text);
                }
                self.take_due(column)?;
                self.add_text(text)?;
            }
            b'[' | b'{' | b'|' => return if self.is_nested(column) { self.value() } else { None },
            _ => {
                let text = self.plain(false)?;
                if self.is_colon() {
                    let key = self.store_plain_key(text)?;
                    return self.entry(column, start, key);
                }
                self.take_due(column)?;
                self.add_plain(text)?;
            }
        }
        self.skip_line_end().then_some(())
    }

    /// Whether a colon that ends a key follows.
    fn is_colon(&self) -> bool {
        let rest = self.rest();
        rest.first() == Some(&b':') && matches!(rest.get(1), None | Some(b' ' | b'\n'))
    }

    /// Takes the place of a scalar that is due inside a block collection. A scalar alone is not a manifest.
    fn take_due(&mut self, column: usize) -> Option<()> {
        self.open.last().filter(|block| self.is_due && column > block.indent)?;
        self.is_due = false;
        Some(())
    }

    /// Reads the entry of a key that started at an offset, from its colon.
    fn entry(&mut self, column: usize, start: usize, key: TapeItem) -> Option<()> {
        if self.at - start > MOST_PLAIN_KEY {
            return None;
        }
        self.begin_entry(column)?;
        self.add_text(key)?;
        self.at += 1;
        if self.skip_line_end() { Some(()) } else { self.value() }
    }

    /// Reads the value that is due, which starts on this line.
    fn value(&mut self) -> Option<()> {
        self.is_due = false;
        match self.peek()? {
            b'[' | b'{' => self.flow(self.open.len())?,
            // A block scalar ends with its last line.
            b'|' => return self.literal(),
            _ => self.scalar(false)?,
        }
        self.skip_line_end().then_some(())
    }

    /// Starts an item of a list at its dash.
    fn begin_item(&mut self, column: usize) -> Option<()> {
        let is_at_key = |block: &OpenBlock| block.form == BlockForm::Map && block.indent == column;
        if self.is_nested(column) {
            self.begin(BlockForm::Seq, column)?;
        } else if self.is_due && self.open.last().is_some_and(is_at_key) {
            self.begin(BlockForm::SeqAtKey, column)?;
        } else {
            self.end_deeper(column)?;
            self.open.last().filter(|block| block.form != BlockForm::Map && block.indent == column)?;
        }
        self.is_due = true;
        Some(())
    }

    /// Starts an entry of a mapping at its key.
    fn begin_entry(&mut self, column: usize) -> Option<()> {
        if self.is_nested(column) {
            self.begin(BlockForm::Map, column)?;
        } else {
            self.end_deeper(column)?;
            let list = self.open.pop_if(|block| block.form == BlockForm::SeqAtKey && block.indent == column);
            if let Some(list) = list {
                self.close(list)?;
            }
            self.open.last().filter(|block| block.form == BlockForm::Map && block.indent == column)?;
        }
        self.is_due = true;
        Some(())
    }

    /// Whether a value that is due can start in a column.
    fn is_nested(&self, column: usize) -> bool {
        self.is_due && self.open.last().is_none_or(|block| column > block.indent)
    }

    fn begin(&mut self, form: BlockForm, indent: usize) -> Option<()> {
        if self.open.len() >= MOST_OPEN {
            return None;
        }
        let at = self.tape.open()?;
        self.open.push(OpenBlock { at, indent, form });
        Some(())
    }

    /// Ends the value that is due, which is null, and the collections deeper than a column.
    fn end_deeper(&mut self, column: usize) -> Option<()> {
        self.end_value()?;
        while let Some(block) = self.open.pop_if(|block| block.indent > column) {
            self.close(block)?;
        }
        Some(())
    }

    fn end_value(&mut self) -> Option<()> {
        if std::mem::take(&mut self.is_due) { self.tape.add(TapeItem::Null) } else { Some(()) }
    }

    fn close(&mut self, block: OpenBlock) -> Option<()> {
        match block.form {
            BlockForm::Map => self.tape.close_map(block.at),
            BlockForm::Seq | BlockForm::SeqAtKey => self.tape.close_seq(block.at),
        }
    }
}
