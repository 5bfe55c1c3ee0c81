//! A scanner with just enough YAML to find the end of a key and a value.

/// How a value continues on the following lines.
pub(super) enum Continuation {
    /// No continuation, or a collection.
    Nothing,
    /// A plain scalar may continue.
    Plain,
    /// Quotes or brackets are open.
    Open(Scan),
    /// A block scalar follows, with its chomping and explicit indentation.
    Block { keep: bool, explicit: Option<usize> },
}

/// The offset of a key's colon, if the text starts with `key:`.
pub(super) fn key_end(text: &str) -> Option<usize> {
    let start = text.len() - without_properties(text).len();
    let rest = text.get(start..)?;
    let closes = |at: usize| {
        let after = rest.get(at..)?;
        let colon = at + (after.len() - after.trim_start().len());
        let value = rest.get(colon..)?.strip_prefix(':')?;
        (value.is_empty() || value.starts_with([' ', '\t'])).then_some(start + colon)
    };
    if rest.starts_with(['"', '\'']) {
        let scan = Scan::default().over(rest);
        return if scan.is_open() { None } else { closes(scan.end) };
    }
    if rest.starts_with(['[', '{', '|', '>', '#']) {
        return None;
    }
    let comment = rest.find(" #").unwrap_or(rest.len());
    rest.match_indices(':').map(|(at, _)| at).take_while(|at| *at < comment).find_map(closes)
}

/// A value without its anchor and tag.
fn without_properties(text: &str) -> &str {
    let mut rest = text.trim_start();
    while rest.starts_with(['&', '!']) {
        rest = rest.split_once([' ', '\t']).map_or("", |(_, rest)| rest).trim_start();
    }
    rest
}

/// Returns a line from its value on, with one space after each comma in brackets, and in place of the blanks after each colon
/// and opening bracket.
pub(super) fn spaced(text: &str) -> String {
    let value = without_properties(text);
    let properties = text.get(..text.len() - value.len()).unwrap_or_default();
    format!("{properties}{}", Scan::default().spaced(value))
}

/// A text without the blanks at its start.
pub(super) fn without_blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t'])
}

/// How the value after a key or dash continues.
pub(super) fn rest_of(value: &str) -> Continuation {
    let value = without_properties(value);
    match value.chars().next() {
        None | Some('#' | '*') => Continuation::Nothing,
        Some('|' | '>') => {
            let header = value.split(' ').next().unwrap_or_default();
            let explicit = header.chars().find_map(|c| c.to_digit(10)).and_then(|digit| usize::try_from(digit).ok());
            Continuation::Block { keep: header.contains('+'), explicit }
        }
        Some('"' | '\'' | '[' | '{') => {
            let scan = Scan::default().over(value);
            if scan.is_open() { Continuation::Open(scan) } else { Continuation::Nothing }
        }
        Some(_) => Continuation::Plain,
    }
}

/// The open quotes and brackets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scan {
    /// The open quote.
    pub quote: Option<char>,
    depth: usize,
    /// Whether a value can start at this position.
    fresh: bool,
    /// The end of the value.
    end: usize,
}

impl Default for Scan {
    fn default() -> Self {
        Self { quote: None, depth: 0, fresh: true, end: 0 }
    }
}

impl Scan {
    /// Whether anything is open.
    pub(super) fn is_open(self) -> bool {
        self.quote.is_some() || self.depth > 0
    }

    /// Scans one more line, up to the end of the value.
    pub(super) fn over(self, line: &str) -> Self {
        self.separators(line, |_| {})
    }

    /// Like [`spaced`], for one more line.
    pub(super) fn spaced(self, line: &str) -> String {
        let (mut text, mut copied) = (String::with_capacity(line.len()), 0);
        self.separators(line, |end| {
            let rest = line.get(end..).unwrap_or_default();
            let value = without_blanks(rest);
            let is_next = line.get(..end).is_some_and(|before| before.ends_with(',')) && !value.starts_with([']', '}']);
            // A comment may be aligned with others.
            if (is_next || value.len() < rest.len()) && !value.is_empty() && !value.starts_with('#') {
                text.push_str(line.get(copied..end).unwrap_or_default());
                text.push(' ');
                copied = line.len() - value.len();
            }
        });
        text.push_str(line.get(copied..).unwrap_or_default());
        text
    }

    /// Scans one more line. Calls `separated` with the end of each opening bracket, and of each colon and comma in brackets.
    fn separators(mut self, line: &str, mut separated: impl FnMut(usize)) -> Self {
        let mut chars = line.char_indices().peekable();
        let mut before = ' ';
        while let Some((at, c)) = chars.next() {
            match self.quote {
                Some('"') if c == '\\' => {
                    chars.next();
                }
                Some('\'') if c == '\'' && chars.peek().is_some_and(|(_, next)| *next == '\'') => {
                    chars.next();
                }
                Some(quote) if c == quote => (self.quote, self.fresh) = (None, false),
                Some(_) => {}
                None if c == '#' && before.is_whitespace() => return self,
                None => match c {
                    '"' | '\'' if self.fresh => self.quote = Some(c),
                    '[' | '{' if self.fresh || self.depth > 0 => {
                        (self.depth, self.fresh) = (self.depth + 1, true);
                        separated(at + 1);
                    }
                    ']' | '}' if self.depth > 0 => (self.depth, self.fresh) = (self.depth - 1, false),
                    ',' | ':' if self.depth > 0 => {
                        self.fresh = true;
                        separated(at + 1);
                    }
                    c if c.is_whitespace() => {}
                    _ => self.fresh = false,
                },
            }
            before = c;
            if !self.is_open() && !self.fresh {
                self.end = at + c.len_utf8();
                return self;
            }
        }
        self
    }
}
