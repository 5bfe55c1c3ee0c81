//! A position in a text, and the scalars that the plain reader reads from there.

use super::scalar::{PlainScalar, resolve};
use crate::syntax::yaml::read::BYTES_OF_A_VALUE;
use crate::syntax::yaml::tape::{Tape, TapeItem};

/// The most open collections. serde_yaml rejects more than 128.
pub(super) const MOST_OPEN: usize = 60;
/// The longest key. Keys of more than 1024 characters are an error without a question mark.
pub(super) const MOST_PLAIN_KEY: usize = 1000;

/// Reads a text into a tape per document. Its methods return `None` where the meaning of the text is uncertain.
pub(super) struct PlainReader<'t> {
    pub(super) text: &'t str,
    /// The offset of the next byte.
    pub(super) at: usize,
    /// The current document.
    pub(super) tape: Tape,
    /// The open block collections of the document, the outermost first.
    pub(super) open: Vec<OpenBlock>,
    /// Whether the document, the last key or the last dash has no value yet.
    pub(super) is_due: bool,
    /// The number of values, counted like those of an `Allowance`.
    pub(super) values: usize,
}

/// A block collection whose end is not read yet.
#[derive(Clone, Copy)]
pub(super) struct OpenBlock {
    /// The position in the tape.
    pub(super) at: u32,
    /// The column of its keys or dashes.
    pub(super) indent: usize,
    pub(super) form: BlockForm,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum BlockForm {
    Map,
    Seq,
    /// A list with its dashes in the column of its key.
    SeqAtKey,
}

impl<'t> PlainReader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0, tape: Tape::default(), open: Vec::new(), is_due: true, values: 0 }
    }

    /// Returns the unread bytes.
    pub(super) fn rest(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// Returns the next byte.
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Whether the next byte follows a space or a line break, so that it can start a comment.
    pub(super) fn is_spaced(&self) -> bool {
        let before = self.at.checked_sub(1).and_then(|before| self.text.as_bytes().get(before));
        before.is_none_or(|byte| matches!(byte, b' ' | b'\n'))
    }

    /// Skips spaces, and returns their number.
    pub(super) fn skip_spaces(&mut self) -> usize {
        let spaces = self.rest().iter().take_while(|byte| **byte == b' ').count();
        self.at += spaces;
        spaces
    }

    /// Skips everything up to the end of the line.
    pub(super) fn skip_to_break(&mut self) {
        let rest = self.rest();
        self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }

    /// Skips the rest of the line if it has nothing but spaces and a comment.
    pub(super) fn skip_line_end(&mut self) -> bool {
        self.skip_spaces();
        if self.peek() == Some(b'#') && self.is_spaced() {
            self.skip_to_break();
        }
        let next = self.peek();
        self.at += usize::from(next == Some(b'\n'));
        matches!(next, None | Some(b'\n'))
    }

    /// Adds a stored text as a value or a key.
    pub(super) fn add_text(&mut self, text: TapeItem) -> Option<()> {
        if let TapeItem::String { bytes, .. } = text {
            self.values += bytes as usize / BYTES_OF_A_VALUE;
        }
        self.tape.add(text)
    }

    /// Adds the value of a plain scalar.
    pub(super) fn add_plain(&mut self, text: &str) -> Option<()> {
        match resolve(text)? {
            PlainScalar::Null => self.tape.add(TapeItem::Null),
            PlainScalar::Bool(value) => self.tape.add(TapeItem::Bool(value)),
            PlainScalar::Number(number) => self.tape.add_number(number),
            PlainScalar::Text(text) => {
                let text = self.tape.store_text(text)?;
                self.add_text(text)
            }
        }
    }

    /// Reads a quoted or plain scalar of one line as a value.
    pub(super) fn scalar(&mut self, is_in_flow: bool) -> Option<()> {
        match self.peek()? {
            b'"' | b'\'' => {
                let text = self.quoted()?;
                self.add_text(text)
            }
            _ => {
                let text = self.plain(is_in_flow)?;
                self.add_plain(text)
            }
        }
    }

    /// Stores a plain key that is certainly a text.
    pub(super) fn store_plain_key(&mut self, key: &str) -> Option<TapeItem> {
        match resolve(key)? {
            PlainScalar::Text(key) => self.tape.store_text(key),
            _ => None,
        }
    }

    /// Reads a plain scalar of one line without the spaces that follow it.
    pub(super) fn plain(&mut self, is_in_flow: bool) -> Option<&'t str> {
        let rest = self.rest();
        if !starts_plain(rest) {
            return None;
        }
        let mut end = 0;
        loop {
            let mut unread = rest.get(end..)?.iter();
            let stop = if is_in_flow {
                unread.position(|byte| is_stop(*byte) || is_flow_indicator(*byte))
            } else {
                unread.position(|byte| is_stop(*byte))
            };
            end = stop.map_or(rest.len(), |stop| end + stop);
            let before = end.checked_sub(1).and_then(|before| rest.get(before));
            let next = rest.get(end + 1).copied();
            match rest.get(end).copied() {
                None if is_in_flow => return None,
                None | Some(b'\n') => break,
                Some(b'\t') => return None,
                Some(b':') => match next {
                    None | Some(b' ' | b'\n') => break,
                    Some(next) if is_in_flow && (next == b'?' || is_flow_indicator(next)) => return None,
                    Some(_) => {}
                },
                Some(b'#') if before == Some(&b' ') => break,
                Some(b'#') => {}
                // An indicator of a flow collection.
                Some(_) => break,
            }
            end += 1;
        }
        let text = self.text.get(self.at..self.at + end)?.trim_end_matches(' ');
        self.at += text.len();
        Some(text)
    }

    /// Stores a quoted scalar of one line.
    pub(super) fn quoted(&mut self) -> Option<TapeItem> {
        let start = self.tape.texts.len();
        match self.peek()? {
            b'"' => self.double_quoted()?,
            _ => self.single_quoted()?,
        }
        self.tape.text_since(start)
    }

    fn single_quoted(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            let rest = self.rest();
            let end = rest.iter().position(|byte| matches!(byte, b'\'' | b'\n'))?;
            if rest.get(end) == Some(&b'\n') {
                return None;
            }
            // Two quotes are one quote of the text.
            let doubled = usize::from(rest.get(end + 1) == Some(&b'\''));
            self.tape.texts.push_str(self.text.get(self.at..self.at + end + doubled)?);
            self.at += end + 1 + doubled;
            if doubled == 0 {
                return Some(());
            }
        }
    }

    fn double_quoted(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            let rest = self.rest();
            let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | b'\n'))?;
            self.tape.texts.push_str(self.text.get(self.at..self.at + end)?);
            self.at += end + 1;
            match rest.get(end)? {
                b'"' => return Some(()),
                b'\\' => {
                    let character = self.escaped()?;
                    self.tape.texts.push(character);
                }
                _ => return None,
            }
        }
    }

    /// Reads an escape sequence after its backslash.
    fn escaped(&mut self) -> Option<char> {
        let byte = self.peek()?;
        self.at += 1;
        Some(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'x' => self.code_point(2)?,
            b'u' => self.code_point(4)?,
            b'U' => self.code_point(8)?,
            _ => return None,
        })
    }

    fn code_point(&mut self, digits: usize) -> Option<char> {
        let code = self.text.get(self.at..self.at + digits)?;
        if !code.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += digits;
        char::from_u32(u32::from_str_radix(code, 16).ok()?)
    }
}

/// Whether a plain scalar starts here, in a block as in a flow collection.
fn starts_plain(rest: &[u8]) -> bool {
    match rest.first() {
        Some(b'-') => rest.get(1).is_some_and(u8::is_ascii_alphanumeric),
        Some(byte) => {
            byte.is_ascii_alphanumeric()
                || !byte.is_ascii()
                || matches!(
                    byte,
                    b'$' | b'(' | b')' | b'+' | b'.' | b'/' | b';' | b'<' | b'=' | b'\\' | b'^' | b'_' | b'~'
                )
        }
        None => false,
    }
}

/// Whether a plain scalar may end at this byte.
fn is_stop(byte: u8) -> bool {
    matches!(byte, b':' | b'#' | b'\n' | b'\t')
}

fn is_flow_indicator(byte: u8) -> bool {
    matches!(byte, b',' | b'[' | b']' | b'{' | b'}')
}
