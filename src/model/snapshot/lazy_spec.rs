//! The Spec of a resource in a snapshot. A store holds far more resources than one run reads, so a Spec that was read
//! from a record is decoded when it is first used, and compared by its stored form before that.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::model::diagnostics::{Code, Fault, Faults};
use crate::model::json::JsonError;
use crate::model::key::Key;
use crate::model::kind::Kind;
use crate::model::module::{SharedModule, Slot};
use crate::model::reference::Reference;
use crate::model::resource::any_resource::{AccessList, AnyResource, ViewContext};
use crate::model::secrets::Secrets;
use crate::model::secrets::secret_spans::SecretSpans;

/// A blake3 hash of a Spec's stored form.
pub(crate) type Digest = blake3::Hash;

/// A Spec, decoded or in its stored form, and the resources that it references. Cheap to clone; clones share the
/// decoded Spec.
#[derive(Clone)]
pub struct LazySpec(Arc<Forms>);

struct Forms {
    kind: Kind,
    references: Box<[Key]>,
    spec: OnceLock<Arc<dyn AnyResource>>,
    stored: OnceLock<SpecForm>,
    /// Few are ever asked for.
    digest: OnceLock<Box<Digest>>,
}

/// The stored form of a Spec.
#[derive(Clone)]
pub(crate) struct SpecForm {
    /// JSON with revealed secrets.
    text: Zeroizing<Box<str>>,
    secrets: StoredSecrets,
}

impl SpecForm {
    /// Serializes a Spec.
    fn new(spec: &dyn AnyResource) -> Result<Self, JsonError> {
        let places = SecretSpans::default();
        let text = String::from_utf8(spec.to_bytes(Secrets::Located(&places))?).map_err(JsonError::new)?;
        let secrets = StoredSecrets::At(places.into_inner().into_boxed_slice());
        Ok(Self { text: Zeroizing::new(text.into_boxed_str()), secrets })
    }

    /// JSON with revealed secrets.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The places of the secrets as JSON texts with quotes, or none if they are not known or lost.
    pub(crate) fn secrets(&self) -> Option<&[Range<usize>]> {
        match &self.secrets {
            StoredSecrets::At(places) => Some(places),
            StoredSecrets::Unknown | StoredSecrets::Lost => None,
        }
    }
}

/// The state of the secrets in a stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoredSecrets {
    /// Unknown: a version that did not encrypt secrets wrote the record.
    Unknown,
    /// The places of the secrets, as JSON texts with quotes.
    At(Box<[Range<usize>]>),
    /// The secrets can no longer be decrypted, and masks are in their places. Only an earlier state can have lost secrets.
    Lost,
}

impl LazySpec {
    /// Wraps a decoded Spec.
    pub fn new(spec: Arc<dyn AnyResource>) -> Self {
        let mut references = Vec::new();
        spec.references(&mut |reference| references.push(reference.target));
        let content = Forms::new(spec.kind(), references);
        Self(Arc::new(Forms { spec: OnceLock::from(spec), ..content }))
    }

    /// Wraps a Spec in its stored form, which must come from [`LazySpec::stored`].
    pub(crate) fn from_stored(kind: Kind, references: Vec<Key>, text: &str, secrets: StoredSecrets) -> Self {
        let content = Forms::new(kind, references);
        let stored = SpecForm { text: Zeroizing::new(text.into()), secrets };
        Self(Arc::new(Forms { stored: OnceLock::from(stored), ..content }))
    }

    /// The Spec. If its stored form cannot be decoded, a stand-in that reports [`Code::StoreCorrupt`] whenever it is
    /// written, shown or changed.
    pub fn spec(&self) -> &Arc<dyn AnyResource> {
        self.0.spec.get_or_init(|| {
            let kind = self.0.kind;
            let place = match self.0.stored.get().map(|stored| (kind.info().restore)(&stored.text)) {
                Some(Ok(spec)) => return spec,
                Some(Err(error)) => format!("line {}, column {}", error.line(), error.column()),
                None => "no content".into(),
            };
            Arc::new(UndecodableSpec { kind, place })
        })
    }

    /// The resources that the Spec references, its modules included.
    pub fn references(&self) -> &[Key] {
        &self.0.references
    }

    /// The stored form: JSON with revealed secrets.
    pub fn stored(&self) -> Result<&str, JsonError> {
        self.form().map(|form| &**form.text)
    }

    /// The state of the secrets in the stored form.
    pub(crate) fn secrets(&self) -> Result<&StoredSecrets, JsonError> {
        self.form().map(|form| &form.secrets)
    }

    /// Whether secrets of this Spec, or of its resource, can no longer be decrypted.
    pub(crate) fn has_lost_secrets(&self) -> bool {
        self.0.stored.get().is_some_and(|stored| stored.secrets == StoredSecrets::Lost)
    }

    /// Returns the Spec with known secrets, unless they are lost. All of a Spec that cannot be decoded is secret.
    pub(crate) fn with_known_secrets(&self) -> Self {
        let Some(SpecForm { text, secrets: StoredSecrets::Unknown }) = self.0.stored.get() else { return self.clone() };
        let known = Self::new(Arc::clone(self.spec()));
        if known.form().is_ok() {
            return known;
        }
        let whole = StoredSecrets::At(std::iter::once(0..text.len()).collect());
        Self::from_stored(self.0.kind, self.references().to_vec(), text, whole)
    }

    /// The number of secrets: at least one if that is not known.
    pub(crate) fn secret_count(&self) -> usize {
        match self.with_known_secrets().secrets() {
            Ok(StoredSecrets::At(places)) => places.len(),
            _ => 1,
        }
    }

    /// The stored form for a single use. A commit of many resources does not keep it with each Spec: together they are
    /// as large as the state.
    pub(crate) fn form_once(&self) -> Result<Cow<'_, SpecForm>, JsonError> {
        match self.0.stored.get() {
            Some(stored) => Ok(Cow::Borrowed(stored)),
            None => SpecForm::new(self.spec().as_ref()).map(Cow::Owned),
        }
    }

    fn form(&self) -> Result<&SpecForm, JsonError> {
        if let Some(stored) = self.0.stored.get() {
            return Ok(stored);
        }
        let stored = SpecForm::new(self.spec().as_ref())?;
        Ok(self.0.stored.get_or_init(|| stored))
    }

    /// The digest of the stored form.
    pub fn digest(&self) -> Result<Digest, JsonError> {
        if let Some(digest) = self.0.digest.get() {
            return Ok(**digest);
        }
        let digest = blake3::hash(self.stored()?.as_bytes());
        Ok(**self.0.digest.get_or_init(|| Box::new(digest)))
    }

    /// Whether both are the same kind and value. Equal stored forms prove it. Different ones do not: an earlier version may
    /// have written the same Spec in another form.
    pub fn same(&self, spec: &Arc<dyn AnyResource>) -> bool {
        let undecoded = self.0.spec.get().is_none();
        if undecoded && self.0.kind == spec.kind() && self.is_stored_as(spec.as_ref()) {
            // The stored form would be decoded to the same value.
            let _ = self.0.spec.set(Arc::clone(spec));
            return true;
        }
        Arc::ptr_eq(self.spec(), spec) || self.spec().same(spec.as_ref())
    }

    /// Whether a Spec would have the same stored form.
    fn is_stored_as(&self, spec: &dyn AnyResource) -> bool {
        let Ok(stored) = self.form() else { return false };
        let Ok(text) = spec.to_bytes(Secrets::Revealed) else { return false };
        let is_same = stored.text.as_bytes() == text.as_slice();
        // Nothing needs to be erased from a text that equals one without secrets.
        let is_public = is_same && matches!(&stored.secrets, StoredSecrets::At(places) if places.is_empty());
        if !is_public {
            drop(Zeroizing::new(text));
        }
        is_same
    }
}

impl Forms {
    fn new(kind: Kind, references: Vec<Key>) -> Self {
        let references = references.into_boxed_slice();
        Self { kind, references, spec: OnceLock::new(), stored: OnceLock::new(), digest: OnceLock::new() }
    }
}

impl fmt::Debug for LazySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spec().fmt(f)
    }
}

/// A placeholder for a Spec that cannot be decoded, so that the rest of the store can still be served and nothing
/// overwrites the resource.
#[derive(Debug, Clone)]
struct UndecodableSpec {
    kind: Kind,
    place: String,
}

impl UndecodableSpec {
    fn error(&self) -> JsonError {
        JsonError::new(self.message())
    }

    fn message(&self) -> String {
        format!("the stored {} cannot be decoded ({})", self.kind, self.place)
    }
}

impl AnyResource for UndecodableSpec {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn check(&self, faults: &mut Faults) {
        faults.report(Fault::new(Code::StoreCorrupt, self.message()));
    }

    fn same(&self, _other: &dyn AnyResource) -> bool {
        false
    }

    fn to_json(&self, _secrets: Secrets<'_>) -> Result<Map<String, Value>, JsonError> {
        Err(self.error())
    }

    fn to_bytes(&self, _secrets: Secrets<'_>) -> Result<Vec<u8>, JsonError> {
        Err(self.error())
    }

    fn view_json(&self, _at: &ViewContext<'_>, _secrets: Secrets<'_>) -> Result<Vec<u8>, JsonError> {
        Err(self.error())
    }

    fn references(&self, _visit: &mut dyn FnMut(Reference)) {}

    fn access_lists(&self) -> Vec<AccessList> {
        Vec::new()
    }

    fn slots(&self) -> &'static [Slot] {
        self.kind.info().slots
    }

    fn with_modules(&self, _modules: &[(&'static Slot, Option<SharedModule>)]) -> Arc<dyn AnyResource> {
        Arc::new(self.clone())
    }

    fn patched(&self, _patch: &dyn AnyResource, _fields: &[String]) -> Result<Arc<dyn AnyResource>, serde_json::Error> {
        Err(self.error().into())
    }

    fn as_stored(&self, _stored: &dyn AnyResource) -> Option<Arc<dyn AnyResource>> {
        None
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::kind::https_edge::HttpsEdge;

    fn edge(description: &str) -> Arc<dyn AnyResource> {
        Arc::new(HttpsEdge { description: description.into(), ..HttpsEdge::default() })
    }

    fn reread(content: &LazySpec) -> LazySpec {
        let stored = content.stored().unwrap_or_default();
        LazySpec::from_stored(Kind::HttpsEdge, Vec::new(), stored, StoredSecrets::Unknown)
    }

    #[test]
    fn a_stored_spec_is_compared_without_decoding_it() {
        let stored = reread(&LazySpec::new(edge("one")));
        assert!(stored.0.spec.get().is_none());
        let one = edge("one");
        assert!(stored.same(&one));
        assert!(Arc::ptr_eq(stored.spec(), &one), "the equal Spec is shared");
        assert!(!stored.same(&edge("two")));
    }

    #[test]
    fn the_same_spec_in_another_form_is_the_same() {
        let stored = r#"{ "description": "one" }"#;
        let other = LazySpec::from_stored(Kind::HttpsEdge, Vec::new(), stored, StoredSecrets::Unknown);
        assert!(other.same(&edge("one")));
    }

    #[test]
    fn a_spec_that_cannot_be_decoded_is_neither_shown_nor_changed_nor_lost() {
        let stored = r#"{"description": 5}"#;
        let broken = LazySpec::from_stored(Kind::HttpsEdge, Vec::new(), stored, StoredSecrets::Unknown);
        let spec = broken.spec();
        assert!(spec.to_json(Secrets::Masked).is_err() && spec.patched(edge("a").as_ref(), &[]).is_err());
        let mut faults = Faults::new();
        spec.check(&mut faults);
        assert_eq!(faults.into_vec().first().map(|fault| fault.code), Some(Code::StoreCorrupt));
        assert_eq!(broken.stored().ok(), Some(r#"{"description": 5}"#));
        assert!(!broken.same(&edge("a")));
        let known = broken.with_known_secrets();
        let whole = StoredSecrets::At(std::iter::once(0..stored.len()).collect());
        assert_eq!((known.stored().ok(), known.secrets().ok()), (Some(stored), Some(&whole)));
    }

    #[test]
    fn the_secrets_of_an_earlier_version_are_found() {
        let unit = r#"{"webhook_verification":{"enabled":true,"provider":"github","secret":"hunt\"er2"}}"#;
        let route = LazySpec::from_stored(Kind::HttpsEdgeRoute, Vec::new(), unit, StoredSecrets::Unknown);
        let known = route.with_known_secrets();
        let (text, Ok(StoredSecrets::At(places))) = (known.stored().unwrap_or_default(), known.secrets()) else {
            return assert!(known.stored().is_err(), "the secrets are not known");
        };
        let found: Vec<Option<&str>> = places.iter().map(|place| text.get(place.clone())).collect();
        assert_eq!(found, [Some(r#""hunt\"er2""#)]);
        let plain = LazySpec::new(edge("a \"secret\""));
        assert_eq!(plain.secrets().ok(), Some(&StoredSecrets::At(Box::default())));
        assert!(!plain.has_lost_secrets());
    }

    #[test]
    fn a_form_for_one_use_is_the_stored_form_and_is_not_kept() {
        for text in [
            r#"{"match":"/a","description":"b"}"#,
            r#"{"match":"/a","webhook_verification":{"provider":"github","secret":"hunt\"er2"}}"#,
        ] {
            let spec = LazySpec::new((Kind::HttpsEdgeRoute.info().restore)(text).unwrap());
            let made = spec.form_once().unwrap();
            assert!(spec.0.stored.get().is_none());
            let StoredSecrets::At(places) = spec.secrets().unwrap() else { return assert!(made.secrets().is_none()) };
            assert_eq!((made.text(), made.secrets()), (spec.stored().unwrap(), Some(&**places)));
            let kept = spec.form_once().unwrap();
            assert_eq!((kept.text(), kept.secrets()), (made.text(), made.secrets()));
        }
    }
}
