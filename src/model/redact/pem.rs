//! PEM blocks: only public ones may be shown.

use std::ops::Range;

use super::{
    fields::Fields,
    mask::{Mask, lines},
    shape,
};

const BEGIN: &str = "-----BEGIN";
const END: &str = "-----END";
/// The labels of public blocks.
const PUBLIC: &[&str] =
    &["CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE", "CERTIFICATE REQUEST", "PUBLIC KEY"];

/// Hides private blocks, and returns the ranges of public ones.
pub(super) fn hide(text: &str, fields: &Fields, mask: &mut Mask) -> Vec<Range<usize>> {
    let mut public = Vec::new();
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find(BEGIN)) {
        let start = at + found;
        let block = text.get(start..).unwrap_or_default();
        let body = block.get(BEGIN.len()..).unwrap_or_default();
        let label = body.split(['-', '\n', '\r']).next().unwrap_or_default().trim();
        if PUBLIC.contains(&label) {
            // A block that starts before this one ends is a separate block.
            let next = body.find(BEGIN).map_or(block.len(), |next| BEGIN.len() + next);
            let length = length(block.get(..next).unwrap_or_default(), fields);
            public.push(start..start + length);
            at = start + length;
        } else {
            let length = length(block, fields);
            mask.hide(start..start + length);
            at = start + length;
        }
    }
    public
}

/// The length of the block at the start of a text, up to its last line or the next field of the manifest.
fn length(block: &str, fields: &Fields) -> usize {
    let field = lines(block).skip(1).find(|(_, line)| {
        let content = line.get(shape::indentation(line)..).unwrap_or_default();
        shape::key(content).is_some_and(|word| fields.knows(word))
    });
    let field = field.map_or(block.len(), |(start, _)| start);
    let end = block.find(END).map(|end| {
        let rest = block.get(end..).unwrap_or_default();
        let label = rest.get(END.len()..).unwrap_or_default();
        let line = rest.find('\n').unwrap_or(rest.len());
        let closed = label.find("-----").map_or(line, |dashes| END.len() + dashes + 5);
        end + closed.min(line)
    });
    end.unwrap_or(field).min(field).max(BEGIN.len())
}
