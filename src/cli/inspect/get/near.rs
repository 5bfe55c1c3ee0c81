//! The help for a resource that does not exist: the one that may be meant, or how to find it.

use super::kinds::{kinds, name_of, parse_kind, plurals, short_name_of};
use super::reader::{ResourceReader, full_name, names_on_server, own_name};
use crate::cli::command_prelude::*;
use crate::model::Entry;

/// The most parents below which a server is asked for names: each takes a request.
const MOST_PARENTS: usize = 20;

impl ResourceReader {
    /// The help for a name, alone or after that of a parent, that no resource of any kind has.
    pub(super) fn near_name(&self, name: &str) -> String {
        let names = self.names_like(name).unwrap_or_default();
        let similar = names.iter().map(String::as_str).filter(|known| is_similar(name, known));
        suggest(name, similar, near_kind_and_name(name))
    }

    /// The help for an id or name that no resource of a kind has below these parents, of which `of` names one.
    pub(super) fn near_name_below(&self, kind: Kind, of: Option<&str>, parents: &[Option<Id>], wanted: &str) -> String {
        let names = self.names_below(kind, parents).unwrap_or_default();
        let whole = |near: &str| of.map_or_else(|| near.to_owned(), |of| format!("{of}/{near}"));
        match nearest(wanted, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{}`?", printable(&whole(near))),
            None => format!("list them with `edgewright get {}`", plural(name_of(kind))),
        }
    }

    /// The names that can be similar to one, with those of their parents if it has one. A server is asked for those below the
    /// most similar parent only.
    fn names_like(&self, name: &str) -> Result<Vec<String>, Failure> {
        if let ResourceReader::Store(_, snapshot) = self {
            let has_parent = name.contains('/');
            let known = |entry: &Entry| if has_parent { full_name(snapshot, entry) } else { own_name(entry) };
            return Ok(snapshot.iter().filter_map(|entry| known(entry)).collect());
        }
        let mut names = Vec::new();
        for kind in kinds() {
            match (kind.info().parent, name.split_once('/')) {
                (None, None) => names.extend(self.names_below(kind, &[None])?),
                (Some(of), Some((parent, _))) => {
                    let parents = self.names_below(of, &[None])?;
                    if let Some(near) = nearest(parent, parents.iter().map(String::as_str)) {
                        names.extend(self.names(kind, &format!("{near}/"))?);
                    }
                }
                _ => {}
            }
        }
        Ok(names)
    }

    /// The names of the resources of a kind below these parents, and the ids that clients choose; those of another revision of
    /// a server are not known.
    fn names_below(&self, kind: Kind, parents: &[Option<Id>]) -> Result<Vec<String>, Failure> {
        let client = match self {
            ResourceReader::Store(_, snapshot) => {
                let is_chosen = kind.info().implicit || kind.info().prefix.is_empty();
                let id = |entry: &Entry| is_chosen.then(|| entry.key.id.to_string());
                let entries = snapshot.iter().filter(|it| it.key.kind == kind && parents.contains(&it.key.parent));
                return Ok(entries.flat_map(|entry| own_name(entry).into_iter().chain(id(entry))).collect());
            }
            ResourceReader::Server(_, Some(_)) => return Ok(Vec::new()),
            ResourceReader::Server(client, None) => client,
        };
        let mut names = Vec::new();
        for parent in parents.iter().take(MOST_PARENTS) {
            let collection = Key { kind, parent: parent.clone(), id: Id::new("") }.collection_path();
            names.extend(names_on_server(client, &collection)?.into_values().filter(|name| !name.is_empty()));
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// The help for what is neither an id nor a name: a kind may be meant.
pub(super) fn near_kind(word: &str) -> String {
    match parse_kind(word) {
        Ok(kind) => format!("also name the resource, as in `{} NAME`", name_of(kind)),
        Err(unknown) => unknown.diagnostics.into_iter().find_map(|it| it.help).unwrap_or_default(),
    }
}

/// The help for what is not near to any name: its kind may be missing or misspelt.
fn near_kind_and_name(name: &str) -> String {
    let (kind, rest) = name.split_once('/').map_or((name, None), |(kind, rest)| (kind, Some(rest)));
    let all = plurals();
    let near = nearest(kind, all.iter().map(String::as_str)).and_then(|near| parse_kind(near).ok());
    match (near, rest) {
        (Some(kind), Some(rest)) => format!("did you mean `{}/{}`?", short_name_of(kind), printable(rest)),
        (Some(_), None) => near_kind(name),
        (None, _) => {
            "name a resource as `KIND/NAME`, a route as `EDGE/ROUTE`, or by its ID; `edgewright get KIND` lists them"
                .to_owned()
        }
    }
}

/// Whether two names are similar part by part: a parent in common does not make the names below it similar.
fn is_similar(one: &str, another: &str) -> bool {
    let is_near = |(one, another): (&str, &str)| nearest(one, [another]).is_some();
    one.matches('/').count() == another.matches('/').count() && one.split('/').zip(another.split('/')).all(is_near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_similar_part_by_part() {
        assert!(is_similar("storefrnot/checkout", "storefront/checkout"));
        assert!(!is_similar("storefront/crat", "storefront/home"));
        assert!(!is_similar("storefront", "storefront/home"));
    }

    #[test]
    fn a_misspelt_kind_is_found_before_a_name() {
        assert_eq!(near_kind_and_name("egde/shop"), "did you mean `edge/shop`?");
        assert_eq!(near_kind_and_name("egdes"), "did you mean `edges`?");
        assert_eq!(near_kind_and_name("edges"), "also name the resource, as in `https-edge NAME`");
        assert!(near_kind_and_name("nothing").starts_with("name a resource as `KIND/NAME`"));
    }
}
