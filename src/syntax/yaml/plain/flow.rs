//! Flow collections, on one line or several.

use super::reader::{MOST_OPEN, MOST_PLAIN_KEY, PlainReader};

impl PlainReader<'_> {
    /// Reads a flow collection inside a number of others.
    pub(super) fn flow(&mut self, depth: usize) -> Option<()> {
        if depth >= MOST_OPEN {
            return None;
        }
        let is_map = self.peek()? == b'{';
        let end = if is_map { b'}' } else { b']' };
        let at = self.tape.open()?;
        self.at += 1;
        loop {
            self.skip_gap()?;
            // A comma may follow the last value.
            if self.peek()? == end {
                break;
            }
            if is_map {
                self.flow_key()?;
            }
            match self.peek()? {
                b'[' | b'{' => self.flow(depth + 1)?,
                _ => self.scalar(true)?,
            }
            self.skip_gap()?;
            match self.peek()? {
                b',' => self.at += 1,
                byte if byte == end => break,
                _ => return None,
            }
        }
        self.at += 1;
        if is_map { self.tape.close_map(at) } else { self.tape.close_seq(at) }
    }

    /// Reads a key and its colon, which must follow without a space.
    fn flow_key(&mut self) -> Option<()> {
        let start = self.at;
        let key = match self.peek()? {
            b'"' | b'\'' => self.quoted()?,
            _ => {
                let key = self.plain(true)?;
                self.store_plain_key(key)?
            }
        };
        if self.peek()? != b':' || self.at - start > MOST_PLAIN_KEY {
            return None;
        }
        self.add_text(key)?;
        self.at += 1;
        self.skip_gap()
    }

    /// Skips spaces, line breaks and comments between the values.
    fn skip_gap(&mut self) -> Option<()> {
        loop {
            self.skip_spaces();
            match self.peek()? {
                b'#' if self.is_spaced() => self.skip_to_break(),
                b'\n' => {
                    self.at += 1;
                    // In the first column, these may start a document marker.
                    if matches!(self.peek(), Some(b'-' | b'.')) {
                        return None;
                    }
                }
                _ => return Some(()),
            }
        }
    }
}
