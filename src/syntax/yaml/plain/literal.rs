//! Literal block scalars: `|`, `|-` and `|+`.

use super::reader::PlainReader;

impl PlainReader<'_> {
    /// Reads a literal block scalar as the value of the innermost block collection.
    pub(super) fn literal(&mut self) -> Option<()> {
        let least = self.open.last()?.indent + 1;
        self.at += 1;
        let chomping = self.peek().filter(|byte| matches!(byte, b'-' | b'+'));
        self.at += usize::from(chomping.is_some());
        if !self.skip_line_end() {
            return None;
        }
        let indent = self.literal_indent(least)?;
        let start = self.tape.texts.len();
        // The ends of the last line that has a text, without and with its line break.
        let (mut end, mut end_of_line) = (start, start);
        loop {
            let rest = self.rest();
            let spaces = rest.iter().take(indent).take_while(|byte| **byte == b' ').count();
            match rest.get(spaces) {
                Some(b'\n') => {
                    self.tape.texts.push('\n');
                    self.at += spaces + 1;
                }
                Some(b'\t') if spaces < indent => return None,
                Some(_) if spaces < indent => break,
                Some(_) => {
                    let line = rest.get(spaces..)?;
                    let length = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
                    let is_ended = length < line.len();
                    self.at += spaces;
                    let whole = length + usize::from(is_ended);
                    self.tape.texts.push_str(self.text.get(self.at..self.at + whole)?);
                    self.at += whole;
                    end_of_line = self.tape.texts.len();
                    end = end_of_line - usize::from(is_ended);
                }
                None if spaces == 0 => break,
                // Spaces at the end of the file.
                None => return None,
            }
        }
        let kept = match chomping {
            Some(b'-') => end,
            Some(_) => self.tape.texts.len(),
            None => end_of_line,
        };
        self.tape.texts.truncate(kept);
        let text = self.tape.text_since(start)?;
        self.add_text(text)
    }

    /// Returns the indentation of a literal's text, or more than any line has if there is no text.
    fn literal_indent(&self, least: usize) -> Option<usize> {
        let mut rest = self.rest();
        let mut widest_blank = 0;
        loop {
            let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
            match rest.get(spaces) {
                Some(b'\n') => {
                    widest_blank = widest_blank.max(spaces);
                    rest = rest.get(spaces + 1..)?;
                }
                Some(b'\t') => return None,
                // A wider line before the text would decide the indentation.
                Some(_) if spaces >= least => return (widest_blank <= spaces).then_some(spaces),
                _ => return Some(usize::MAX),
            }
        }
    }
}
