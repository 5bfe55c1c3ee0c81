//! The stored form of a Spec for a single use. A commit of many resources does not keep it beside each Spec: together they
//! are as large as the state.

use std::ops::Range;

use zeroize::Zeroize;

use super::{LazySpec, Stored, StoredSecrets};
use crate::model::{
    json::JsonError,
    secrets::{secret::Secrets, secret_spans::SecretPlaces},
};

/// The stored form of a Spec.
pub(crate) struct SpecForm<'s>(FormSource<'s>);

enum FormSource<'s> {
    /// The Spec had it already.
    Kept(&'s Stored),
    Made(MadeForm),
}

struct MadeForm {
    text: String,
    secrets: Vec<Range<usize>>,
}

impl Drop for MadeForm {
    fn drop(&mut self) {
        if !self.secrets.is_empty() {
            self.text.zeroize();
        }
    }
}

impl<'s> SpecForm<'s> {
    /// Serializes a Spec, unless it has its stored form.
    pub(super) fn of(spec: &'s LazySpec) -> Result<Self, JsonError> {
        if let Some(stored) = spec.0.stored.get() {
            return Ok(Self(FormSource::Kept(stored)));
        }
        let places = SecretPlaces::default();
        let text = String::from_utf8(spec.spec().to_bytes(Secrets::Located(&places))?).map_err(JsonError::new)?;
        Ok(Self(FormSource::Made(MadeForm { text, secrets: places.into_inner() })))
    }

    /// JSON with revealed secrets.
    pub(crate) fn text(&self) -> &str {
        match &self.0 {
            FormSource::Kept(stored) => &stored.text,
            FormSource::Made(made) => &made.text,
        }
    }

    /// The places of the secrets as JSON texts with quotes, or none if they are not known or lost.
    pub(crate) fn secrets(&self) -> Option<&[Range<usize>]> {
        match &self.0 {
            FormSource::Kept(Stored { secrets: StoredSecrets::At(places), .. }) => Some(places),
            FormSource::Kept(_) => None,
            FormSource::Made(made) => Some(&made.secrets),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::Kind;

    fn spec(kind: Kind, text: &str) -> LazySpec {
        LazySpec::new((kind.info().restore)(text).unwrap())
    }

    #[test]
    fn a_form_for_one_use_is_the_stored_form_and_is_not_kept() {
        for text in [
            r#"{"match":"/a","description":"b"}"#,
            r#"{"match":"/a","webhook_verification":{"provider":"github","secret":"hunt\"er2"}}"#,
        ] {
            let spec = spec(Kind::HttpsEdgeRoute, text);
            let made = spec.form_once().unwrap();
            assert!(spec.0.stored.get().is_none());
            let StoredSecrets::At(places) = spec.secrets().unwrap() else { return assert!(made.secrets().is_none()) };
            assert_eq!((made.text(), made.secrets()), (spec.stored().unwrap(), Some(&**places)));
            let kept = spec.form_once().unwrap();
            assert_eq!((kept.text(), kept.secrets()), (made.text(), made.secrets()));
        }
    }
}
