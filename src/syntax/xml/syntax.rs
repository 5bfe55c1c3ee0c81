//! The characters, names and references of XML 1.0 and its namespaces.

/// White space.
pub(super) const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// Whether a document may contain a character (XML 1.0, production 2).
pub(super) fn is_char(c: char) -> bool {
    if c < ' ' { SPACE.contains(&c) } else { !matches!(c, '\u{fffe}' | '\u{ffff}') }
}

/// Whether a text is a name without a colon (Namespaces in XML, production 4).
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(is_name_start) && text.chars().all(is_name_char)
}

fn is_name_start(c: char) -> bool {
    c.is_ascii_alphabetic()
        || matches!(c, '_'
            | '\u{c0}'..='\u{d6}'
            | '\u{d8}'..='\u{f6}'
            | '\u{f8}'..='\u{2ff}'
            | '\u{370}'..='\u{37d}'
            | '\u{37f}'..='\u{1fff}'
            | '\u{200c}'..='\u{200d}'
            | '\u{2070}'..='\u{218f}'
            | '\u{2c00}'..='\u{2fef}'
            | '\u{3001}'..='\u{d7ff}'
            | '\u{f900}'..='\u{fdcf}'
            | '\u{fdf0}'..='\u{fffd}'
            | '\u{10000}'..='\u{effff}')
}

fn is_name_char(c: char) -> bool {
    is_name_start(c)
        || c.is_ascii_digit()
        || matches!(c, '-' | '.' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

/// The prefix, empty if there is none, and the local part of a qualified name.
pub(super) fn qualified(name: &str) -> Option<(&str, &str)> {
    match name.split_once(':') {
        Some((prefix, local)) => (is_name(prefix) && is_name(local)).then_some((prefix, local)),
        None => is_name(name).then_some(("", name)),
    }
}

/// The character of the reference `&…;`. Without a DTD, only the five predefined entities exist.
pub(super) fn reference(name: &str) -> Option<char> {
    let number = match name {
        "amp" => return Some('&'),
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        _ => name.strip_prefix('#')?,
    };
    let (digits, radix) = number.strip_prefix('x').map_or((number, 10), |digits| (digits, 16));
    // The number parser would accept a sign.
    let digits = Some(digits).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    char::from_u32(u32::from_str_radix(digits, radix).ok()?).filter(|c| is_char(*c))
}

/// The first unknown reference in a text; an `&` without a `;` is identified by the text after it.
pub(super) fn bad_reference(text: &str) -> Option<&str> {
    text.split('&').skip(1).find_map(|part| match part.split_once(';') {
        Some((name, _)) if reference(name).is_some() => None,
        Some((name, _)) => Some(name),
        None => Some(part),
    })
}

/// Normalizes an attribute value: resolves references, and replaces whitespace with spaces (XML 1.0, section 3.3.3).
pub(super) fn normalized(value: &str) -> String {
    let plain = |text: &str| text.replace("\r\n", " ").replace(['\r', '\n', '\t'], " ");
    let mut parts = value.split('&');
    let mut text = plain(parts.next().unwrap_or_default());
    for (name, rest) in parts.filter_map(|part| part.split_once(';')) {
        text.extend(reference(name));
        text.push_str(&plain(rest));
    }
    text
}
