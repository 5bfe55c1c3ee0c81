//! What `/watch` clients and notification targets have in common: which changes they select, and how they see who made them.

use crate::model::decode::one_of;
use crate::model::resource::endpoint_offers::Offer;
use crate::server::prelude::*;

/// Selects changes of resources. An empty set selects everything.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangeFilter {
    /// The kinds of the resources.
    pub kinds: BTreeSet<Kind>,
    /// The sources that own the resources.
    pub sources: BTreeSet<String>,
}

impl ChangeFilter {
    /// Returns whether the changes of a resource are selected. Those of internal kinds never are.
    pub(crate) fn selects(&self, kind: Kind, source: Option<&str>) -> bool {
        is_public(kind.info())
            && (self.kinds.is_empty() || self.kinds.contains(&kind))
            && (self.sources.is_empty() || source.is_some_and(|source| self.sources.contains(source)))
    }
}

/// Returns an author without the manifests that a rollback rejects: only the loops of the server need them (D78).
pub(crate) fn actor(author: &Author) -> Cow<'_, Author> {
    match author {
        Author::Rollback { to, source, rejected: _, through } => {
            let (source, through) = (source.clone(), through.clone());
            Cow::Owned(Author::Rollback { to: *to, source, rejected: Vec::new(), through })
        }
        author => Cow::Borrowed(author),
    }
}

/// Whether clients can read the resources of a kind.
fn is_public(info: &KindInfo) -> bool {
    info.offers.list != Offer::Absent
}

/// The kinds that clients can read.
pub(crate) fn public_kinds() -> impl Iterator<Item = &'static KindInfo> {
    Kind::all().filter(|info| is_public(info))
}

/// Returns the kind with a name, or a fault that suggests the nearest one.
pub(crate) fn kind_named(name: &str, code: Code) -> Result<Kind, Fault> {
    if let Some(info) = public_kinds().find(|info| info.name == name) {
        return Ok(info.kind);
    }
    let names: Vec<&str> = public_kinds().map(|info| info.name).collect();
    Err(Fault::new(code, format!("unknown kind `{}`", printable(name))).help(one_of(name, &names)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_selects_what_matches_all_its_sets() {
        let (edge, route) = (Kind::HttpsEdge, Kind::HttpsEdgeRoute);
        let all = ChangeFilter::default();
        assert!(all.selects(edge, None) && !all.selects(Kind::Owner, None));
        let filter = ChangeFilter { kinds: [edge].into(), sources: ["shop".to_owned()].into() };
        assert!(filter.selects(edge, Some("shop")));
        for (kind, source) in [(route, Some("shop")), (edge, Some("docs")), (edge, None)] {
            assert!(!filter.selects(kind, source), "{kind} {source:?}");
        }
    }

    #[test]
    fn what_a_rollback_rejects_is_not_told() {
        let text = r#"{"by":"rollback","to":3,"source":"shop","rejected":[{"source":"shop","digest":"00"}]}"#;
        let author: Author = serde_json::from_str(text).unwrap();
        let told = serde_json::to_string(&actor(&author)).unwrap();
        assert_eq!(told, r#"{"by":"rollback","to":3,"source":"shop"}"#);
        assert_eq!(*actor(&Author::Local), Author::Local);
    }

    #[test]
    fn an_unknown_kind_gets_the_nearest_known_one() {
        assert_eq!(kind_named("TlsEdge", Code::Parameter).ok(), Some(Kind::TlsEdge));
        let help =
            |name: &str| kind_named(name, Code::Parameter).err().and_then(|fault| fault.help).unwrap_or_default();
        assert_eq!(help("HttpEdge"), "did you mean `HttpsEdge`?");
        assert!(help("x").starts_with("use one of "), "{}", help("x"));
        assert!(kind_named("Owner", Code::Parameter).is_err());
    }
}
