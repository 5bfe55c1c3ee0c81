//! Who looks at the pages: how people sign in and out, and the cookie that remembers it. A form counts only from a page of this
//! server ([`origin_check`]).

pub(super) mod cookie;
pub(super) mod origin_check;
pub(super) mod provider_sign_in;
pub(super) mod sign_in;
