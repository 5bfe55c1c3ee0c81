//! Fields that all login modules share (Session module fields).

use serde::{Deserialize, Deserializer};

use crate::model::diagnostics::check::is_token;
use crate::model::diagnostics::{Code, Fault, Faults};
use crate::syntax::text::printable;

/// The default prefix of session cookie names (D14).
pub(crate) const COOKIE_PREFIX: &str = "edgewright.";

/// The pattern of a cookie prefix, for the schemas. An empty prefix means the default.
pub(crate) const COOKIE_PREFIX_PATTERN: &str = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]*$";

/// Deserializes a cookie prefix; an empty one means the default.
pub(crate) fn cookie_prefix<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let given = String::deserialize(deserializer)?;
    Ok(if given.is_empty() { COOKIE_PREFIX.into() } else { given })
}

/// Checks a cookie prefix (D69). It becomes part of a `Set-Cookie` header: `a; Domain=example.com` would end the name and
/// add an attribute.
pub(crate) fn check_cookie_prefix(faults: &mut Faults, prefix: &str) {
    if !prefix.is_empty() && !is_token(prefix) {
        let message = format!("`{}` cannot start a cookie name", printable(prefix));
        let fault = Fault::new(Code::InvalidFormat, message).at("cookie_prefix");
        faults.report(fault.help("use only letters, digits and !#$%&'*+-.^_`|~ (RFC 6265)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_prefix_can_start_a_cookie_name() {
        let fits = |prefix: &str| regex::Regex::new(COOKIE_PREFIX_PATTERN).is_ok_and(|it| it.is_match(prefix));
        let faults = |prefix: &str| {
            let mut faults = Faults::new();
            check_cookie_prefix(&mut faults, prefix);
            faults.into_vec()
        };
        for good in ["", "shop.", "__Host-shop_", "a|b~"] {
            assert!(faults(good).is_empty() && fits(good), "{good}");
        }
        for bad in ["a; Domain=example.com", "a=b", "a b", "a,", "\"a\"", "a\r\nSet-Cookie: b", "é", "(a)", "a/", "\t"]
        {
            assert_eq!(faults(bad).len(), 1, "{bad}");
            assert!(!fits(bad), "{bad}");
        }
    }
}
