//! Passwords in URLs.

use std::ops::Range;

/// The place of the password of each URL in a text, in order. User information without a colon is one, too.
pub(crate) fn url_passwords(text: &str) -> Vec<Range<usize>> {
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find("://")) {
        let start = at + found + "://".len();
        let rest = text.get(start..).unwrap_or_default();
        let run = rest.find(|c: char| c.is_whitespace() || "\"'<>`".contains(c)).unwrap_or(rest.len());
        let run = rest.get(..run).unwrap_or_default();
        // The next URL of the same run is a part of this one, so each byte is read once.
        at = start + run.len();
        let Some((userinfo, _)) = run.rsplit_once('@') else { continue };
        let password = userinfo.find(':').map_or(0, |colon| colon + 1);
        let secret = userinfo.get(password..).unwrap_or_default();
        let port = secret.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_port = port.len() < secret.len() && port.starts_with(['/', '?', '#']);
        let is_path = password == 0 && secret.contains(['/', '?', '#']);
        if secret.is_empty() || is_port || is_path {
            continue;
        }
        places.push(start + password..start + userinfo.len());
    }
    places
}
