//! The part of a file that a diagnostic shows: a few lines around each place, and of a long line only what is near it.
//! `(hidden)` is in place of what is not public (D28).
//!
//! miette shows lines whole and panics past column 65,535, which a JSON file without line breaks reaches easily. It
//! gets an excerpt instead, with the line numbers and columns of the file.

use std::ops::Range;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use crate::{cli::prelude::*, manifest::load::schema::fields, model::diagnostics::SourceFile};

/// The most characters of a line shown around one place.
const MOST_CHARACTERS: usize = 160;
/// The number of these characters before the place.
const BEFORE: usize = 40;
/// The most lines shown of one place.
const MOST_LINES: usize = 12;
/// Places with no more lines than this between them share an excerpt.
const NEAR: usize = 8;
/// Marks cut text.
const CUT: &str = "…";
/// The text in place of hidden text.
pub(super) const HIDDEN: &str = "(hidden)";

/// Excerpts of one file, as a source for miette.
#[derive(Debug)]
pub(super) struct Excerpt {
    name: String,
    text: String,
    blocks: Vec<Block>,
    marks: Vec<Mark>,
}

#[derive(Debug)]
struct Block {
    /// The number of the first line, from 0.
    first: usize,
    lines: usize,
    /// Their bytes in the text of the excerpt.
    range: Range<usize>,
}

#[derive(Debug)]
struct Mark {
    /// The position in the text of the excerpt.
    span: SourceSpan,
    /// The start in the file, from 0; the column counts characters.
    line: usize,
    column: usize,
}

impl Excerpt {
    /// The lines around places, which are bytes of the file's text.
    pub(super) fn new(file: &SourceFile, places: &[Range<usize>]) -> Self {
        let redacted = file.redacted(fields());
        let lines = Lines { text: &redacted.text, hidden: &redacted.hidden, starts: file.line_starts() };
        let column = |line_start: usize, at: usize| file.text.get(line_start..at).unwrap_or_default().chars().count();
        Self::around(&file.name, &lines, places, column)
    }

    /// The lines around places, with a function that counts the characters between two bytes of the file.
    fn around(name: &str, lines: &Lines<'_>, places: &[Range<usize>], count: impl Fn(usize, usize) -> usize) -> Self {
        let places: Vec<Extent> = places.iter().map(|place| Extent::new(lines, place)).collect();
        let mut shown: Vec<Range<usize>> = places.iter().map(|place| place.with_context(lines)).collect();
        shown.sort_by_key(|it| it.start);
        let mut merged: Vec<Range<usize>> = Vec::new();
        for next in shown {
            match merged.last_mut() {
                Some(last) if next.start <= last.end + NEAR => last.end = last.end.max(next.end),
                _ => merged.push(next),
            }
        }
        let mut copy = ExcerptBuilder::default();
        let blocks = merged.into_iter().map(|range| {
            let start = copy.text.len();
            for line in range.clone() {
                copy.line(lines, line, &places);
            }
            Block { first: range.start, lines: range.len(), range: start..copy.text.len() }
        });
        let blocks = blocks.collect();
        let marks = places.iter().map(|place| {
            let start = copy.position(place.bytes.start, CutSide::Start);
            let end = copy.position(place.bytes.end, CutSide::End).max(start);
            let column = count(lines.range(place.first).start, place.bytes.start);
            Mark { span: SourceSpan::from((start, end - start)), line: place.first, column }
        });
        let marks = marks.collect();
        Self { name: escaped(name).into_owned(), text: copy.text, blocks, marks }
    }

    /// The places in the text of the excerpt, in the order in which they were given.
    pub(super) fn spans(&self) -> impl Iterator<Item = SourceSpan> + '_ {
        self.marks.iter().map(|mark| mark.span)
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        context_before: usize,
        _context_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let block = self.blocks.iter().rfind(|block| block.range.start <= span.offset());
        let block = block.ok_or(MietteError::OutOfBounds)?;
        let data = self.text.get(block.range.clone()).unwrap_or_default();
        // Without context miette asks for the place in the header, otherwise for the lines.
        let mark = self.marks.iter().find(|mark| context_before == 0 && mark.span == *span);
        let (line, column) = mark.map_or((block.first, 0), |mark| (mark.line, mark.column));
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            data.as_bytes(),
            SourceSpan::from((block.range.start, data.len())),
            line,
            column,
            block.lines,
        )))
    }
}

/// A text by its lines, which count from 0.
struct Lines<'a> {
    text: &'a str,
    /// The hidden parts of the text, in order.
    hidden: &'a [Range<usize>],
    /// The offset of each line's first byte; never empty.
    starts: &'a [usize],
}

impl Lines<'_> {
    fn line_at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// The bytes of a line without its line break.
    fn range(&self, line: usize) -> Range<usize> {
        let start = self.starts.get(line).copied().unwrap_or(self.text.len());
        let end = self.starts.get(line + 1).map_or(self.text.len(), |next| next.saturating_sub(1));
        let content = self.text.get(start..end).unwrap_or_default().trim_end_matches('\r');
        start..start + content.len()
    }

    /// The offset `count` characters after another one, or the end of the text.
    fn forward(&self, from: usize, count: usize) -> usize {
        let rest = self.text.get(from..).unwrap_or_default();
        rest.char_indices().nth(count).map_or(self.text.len(), |(at, _)| from + at)
    }

    /// The offset `count` characters before another one, or the start of the text.
    fn back(&self, from: usize, count: usize) -> usize {
        let before = self.text.get(..from).unwrap_or_default();
        before.char_indices().rev().take(count).last().map_or(from, |(at, _)| at)
    }
}

/// A place with its lines.
struct Extent {
    bytes: Range<usize>,
    first: usize,
    last: usize,
    /// Whether the lines after `last` are cut.
    is_cut: bool,
}

impl Extent {
    fn new(lines: &Lines<'_>, place: &Range<usize>) -> Self {
        let start = lines.text.floor_char_boundary(place.start);
        let end = lines.text.ceil_char_boundary(place.end.min(lines.text.len())).max(start);
        let first = lines.line_at(start);
        // A line break at the end belongs to the line that it ends.
        let last = lines.line_at(end.saturating_sub(1).max(start));
        if last - first < MOST_LINES {
            return Self { bytes: start..end, first, last, is_cut: false };
        }
        let last = first + MOST_LINES - 1;
        Self { bytes: start..lines.range(last + 1).start, first, last, is_cut: true }
    }

    /// The lines of the place, plus one on each side.
    fn with_context(&self, lines: &Lines<'_>) -> Range<usize> {
        self.first.saturating_sub(1)..(self.last + 2).min(lines.starts.len())
    }

    /// The part of a long line to show for this place.
    fn window(&self, lines: &Lines<'_>, line: usize) -> Option<Range<usize>> {
        if line == self.first {
            let start = self.bytes.start;
            return Some(lines.back(start, BEFORE)..lines.forward(start, MOST_CHARACTERS - BEFORE));
        }
        (line == self.last && !self.is_cut).then(|| {
            let end = self.bytes.end;
            lines.back(end, MOST_CHARACTERS - BEFORE)..lines.forward(end, BEFORE)
        })
    }
}

#[derive(Default)]
struct ExcerptBuilder {
    text: String,
    /// The copied byte ranges of the file, in ascending order, and where they are in `text`.
    pieces: Vec<(Range<usize>, Range<usize>)>,
}

/// The side of a place that a position is.
#[derive(Clone, Copy, PartialEq)]
enum CutSide {
    Start,
    End,
}

impl ExcerptBuilder {
    fn line(&mut self, lines: &Lines<'_>, line: usize, places: &[Extent]) {
        let whole = lines.range(line);
        let mut windows: Vec<Range<usize>> = Vec::new();
        if lines.forward(whole.start, MOST_CHARACTERS) >= whole.end {
            windows.push(whole.clone());
        } else {
            windows.extend(places.iter().filter_map(|place| place.window(lines, line)));
            windows.sort_by_key(|it| it.start);
        }
        if windows.is_empty() {
            windows.push(whole.start..lines.forward(whole.start, MOST_CHARACTERS));
        }
        if places.iter().any(|place| place.is_cut && place.last + 1 == line)
            && !places.iter().any(|place| place.first <= line && line <= place.last)
        {
            windows.clear();
            windows.push(whole.start..whole.start);
        }
        let mut copied = whole.start;
        for window in windows {
            let (start, end) = (window.start.max(copied), window.end.min(whole.end));
            if start > end {
                continue;
            }
            if start > copied {
                self.text.push_str(CUT);
            }
            self.copy(lines, start..end);
            copied = end;
        }
        if copied < whole.end {
            self.text.push_str(CUT);
        }
        if line + 1 < lines.starts.len() {
            self.text.push('\n');
        }
    }

    fn copy(&mut self, lines: &Lines<'_>, range: Range<usize>) {
        let first = lines.hidden.partition_point(|part| part.end <= range.start);
        let mut at = range.start;
        for part in lines.hidden.iter().skip(first).take_while(|part| part.start < range.end) {
            let hidden = part.start.max(range.start)..part.end.min(range.end);
            self.piece(at..hidden.start, lines.text.get(at..hidden.start).unwrap_or_default());
            at = hidden.end;
            self.piece(hidden, HIDDEN);
        }
        self.piece(at..range.end, lines.text.get(at..range.end).unwrap_or_default());
    }

    fn piece(&mut self, range: Range<usize>, text: &str) {
        let start = self.text.len();
        // Terminals interpret control characters.
        self.text.extend(text.chars().map(|c| if c.is_ascii_control() && c != '\t' { ' ' } else { c }));
        self.pieces.push((range, start..self.text.len()));
    }

    /// The offset in the excerpt of a byte of the file; a cut byte maps to the end of the text shown before it, and one in a
    /// hidden part to that side of it.
    fn position(&self, offset: usize, side: CutSide) -> usize {
        let behind = self.pieces.partition_point(|(range, _)| range.start <= offset);
        let Some((range, copy)) = behind.checked_sub(1).and_then(|index| self.pieces.get(index)) else { return 0 };
        let shown = self.text.get(copy.clone()).unwrap_or_default();
        if shown != HIDDEN {
            copy.start + offset.min(range.end) - range.start
        } else if offset >= range.end || (side == CutSide::End && offset > range.start) {
            copy.end
        } else {
            copy.start
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    /// The excerpt of a text of which nothing is hidden.
    fn public(text: &str, places: &[Range<usize>]) -> Excerpt {
        let file = SourceFile::new("a.json".into(), text.into());
        let lines = Lines { text, hidden: &[], starts: file.line_starts() };
        Excerpt::around(&file.name, &lines, places, |from, to| text.get(from..to).unwrap_or_default().chars().count())
    }

    /// The text of the excerpt, what each place covers in it, and line and column of each, from 1.
    fn excerpt(text: &str, places: &[Range<usize>]) -> (String, Vec<String>, Vec<(usize, usize)>) {
        let excerpt = public(text, places);
        let covered = excerpt.spans().map(|it| excerpt.text[it.offset()..it.offset() + it.len()].to_owned()).collect();
        let header = |span: SourceSpan| {
            let contents = excerpt.read_span(&span, 0, 0).unwrap();
            (contents.line() + 1, contents.column() + 1)
        };
        let headers = excerpt.spans().map(header).collect();
        (excerpt.text.clone(), covered, headers)
    }

    fn excerpt_of(text: &str, place: Range<usize>) -> (String, Vec<String>, Vec<(usize, usize)>) {
        excerpt(text, std::slice::from_ref(&place))
    }

    #[test]
    fn short_lines_are_shown_whole_with_one_more_on_both_sides() {
        let text = "one\r\ntwo\r\nthree\nfour\nfive\n";
        let (shown, covered, headers) = excerpt_of(text, 10..15);
        assert_eq!((shown.as_str(), covered, headers), ("two\nthree\nfour\n", vec!["three".to_owned()], vec![(3, 1)]));
    }

    #[test]
    fn a_long_line_is_cut_around_the_place_and_between_characters() {
        for filler in ["x", "é", "語", "😀"] {
            let (before, after) = (filler.repeat(70_000), filler.repeat(70_000));
            let text = format!("{before}HERE{after}");
            let (shown, covered, headers) = excerpt_of(&text, before.len()..before.len() + 4);
            assert_eq!(covered, ["HERE"]);
            assert_eq!(headers, [(1, 70_001)]);
            assert_eq!(shown, format!("…{}HERE{}…", filler.repeat(40), filler.repeat(116)));
        }
    }

    #[test]
    fn two_places_of_a_long_line_are_both_shown() {
        let text = format!("{}AAA{}BBB{}", "x".repeat(1_000), "y".repeat(100_000), "z".repeat(1_000));
        let (shown, covered, headers) = excerpt(&text, &[101_003..101_006, 1_000..1_003]);
        assert_eq!(covered, ["BBB", "AAA"]);
        assert_eq!(headers, [(1, 101_004), (1, 1_001)]);
        assert_eq!(shown.matches('…').count(), 3, "{shown}");
        assert!(shown.chars().count() < 400, "{shown}");
    }

    #[test]
    fn a_place_that_is_a_long_line_is_cut() {
        let text = "x".repeat(200_000);
        let (shown, covered, headers) = excerpt_of(&text, 0..text.len());
        assert_eq!((covered[0].len(), headers), (120, vec![(1, 1)]));
        assert_eq!(shown, format!("{}…", "x".repeat(120)));
    }

    #[test]
    fn a_place_of_many_lines_is_cut_with_its_context() {
        let text = "line\n".repeat(10_000);
        let (shown, covered, headers) = excerpt_of(&text, 10..text.len());
        assert_eq!(headers, [(3, 1)]);
        assert_eq!(shown, format!("{}…\n", "line\n".repeat(1 + MOST_LINES)));
        assert_eq!(covered, ["line\n".repeat(MOST_LINES)]);
    }

    #[test]
    fn places_that_are_far_apart_have_excerpts_of_their_own() {
        let text: String = (1..=100).map(|number| format!("line {number:03}\n")).collect();
        let excerpt = public(&text, &[0..4, 450..454]);
        let lines: Vec<(usize, usize)> = excerpt.blocks.iter().map(|block| (block.first, block.lines)).collect();
        assert_eq!(lines, [(0, 2), (49, 3)]);
        assert_eq!(excerpt.text, "line 001\nline 002\nline 050\nline 051\nline 052\n");
    }

    #[test]
    fn a_word_is_in_place_of_what_is_hidden_and_a_place_in_it_covers_the_word() {
        let text = "metadata: {name: shop, labels: {a: é, b: hunter2}, oops: 1}\n";
        let at = |part: &str| text.find(part).unwrap()..text.find(part).unwrap() + part.len();
        let places = [at("hunter2"), at("unter"), at("oops")];
        let excerpt = Excerpt::new(&SourceFile::new("a.yaml".into(), text.into()), &places);
        assert_eq!(excerpt.text, "metadata: {name: shop, labels: {a: (hidden), b: (hidden)}, oops: (hidden)}\n");
        let covered: Vec<&str> = excerpt.spans().map(|it| &excerpt.text[it.offset()..it.offset() + it.len()]).collect();
        assert_eq!(covered, ["(hidden)", "(hidden)", "oops"]);
        assert_eq!(excerpt.marks[2].column, 51);
    }

    #[test]
    fn no_place_is_out_of_bounds_and_no_character_is_split() {
        let long = "é".repeat(300);
        for text in ["", "\n", "é", "\r\n\r\n", "a\u{1b}[31mb\n", long.as_str(), &format!("{long}\n{long}")] {
            for start in 0..text.len() + 2 {
                for end in [start, start + 1, start + 2, text.len(), text.len() + 5] {
                    let (shown, ..) = excerpt_of(text, start..end.max(start));
                    assert!(!shown.contains('\u{1b}'), "{shown:?}");
                }
            }
        }
    }
}
