//! Links from a source to the pages of its forge: templates of URLs in the configuration (D116).
//!
//! Commits and paths come from manifests and histories of others, so each is encoded before it becomes part of a URL, and none
//! can choose its host. What is no commit has no link, such as the ID of uncommitted changes.

use crate::model::key::segment;
use crate::reconcile::prelude::*;
use crate::store::CommitPrefix;

/// The placeholders of templates.
const COMMIT: &str = "{commit}";
const PATH: &str = "{path}";
const LINE: &str = "{line}";
/// The most bytes of a template.
const MOST_BYTES: usize = 1000;

/// The templates of a source; empty if there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ForgeLinks {
    commit_url: String,
    file_url: String,
}

impl ForgeLinks {
    /// Checks the templates `commit_url` and `file_url`. The path of a fault is the field.
    pub(crate) fn new(commit_url: String, file_url: String) -> Result<Self, Fault> {
        check("commit_url", &commit_url, &[COMMIT], &[])?;
        check("file_url", &file_url, &[COMMIT, PATH], &[LINE])?;
        Ok(Self { commit_url, file_url })
    }

    /// The page of a commit.
    pub(crate) fn commit(&self, commit: &str) -> Option<String> {
        let is_known = !self.commit_url.is_empty() && CommitPrefix::parse(commit).is_some();
        is_known.then(|| self.commit_url.replace(COMMIT, commit))
    }

    /// The page of a line of a file at a commit.
    pub(crate) fn file(&self, commit: &str, path: &str, line: Option<u64>) -> Option<String> {
        if self.file_url.is_empty() || path.is_empty() || CommitPrefix::parse(commit).is_none() {
            return None;
        }
        let path: Vec<String> = path.split('/').map(|part| segment(part).to_string()).collect();
        let url = self.file_url.replace(COMMIT, commit).replace(LINE, &line.unwrap_or(1).to_string());
        Some(url.replace(PATH, &path.join("/")))
    }
}

/// Checks a template that must have some texts in braces and can have others.
fn check(field: &str, template: &str, required: &[&str], optional: &[&str]) -> Result<(), Fault> {
    if template.is_empty() {
        return Ok(());
    }
    let fault = |message: String, help: &str| Err(Fault::new(Code::InvalidFormat, message).at(field).help(help));
    let example = "write it like https://forge.example.com/shop/commit/{commit} or \
                   https://forge.example.com/shop/blob/{commit}/{path}#L{line}";
    let after_scheme = template.strip_prefix("https://").or_else(|| template.strip_prefix("http://"));
    let (host, page) = after_scheme.and_then(|rest| rest.split_once('/')).unwrap_or_default();
    let is_url = template.len() <= MOST_BYTES && template.bytes().all(|byte| byte.is_ascii_graphic());
    // Nobody has a password in a link that everybody sees.
    if !is_url || host.is_empty() || host.contains(['{', '}', '@', '?', '#']) {
        return fault(format!("`{field}` must be an https:// or http:// URL with a path"), example);
    }
    if let Some(missing) = required.iter().find(|name| !page.contains(**name)) {
        return fault(format!("`{field}` must contain `{missing}`"), example);
    }
    let rest = required.iter().chain(optional).fold(page.to_owned(), |rest, name| rest.replace(name, ""));
    if rest.contains(['{', '}']) {
        let known: Vec<String> = required.iter().chain(optional).map(|name| format!("`{name}`")).collect();
        return fault(format!("`{field}` can have only {} in braces", known.join(", ")), example);
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const COMMIT_ID: &str = "4f2a9c51d0b7e38642f1a5c9e0d3b7864f2a9c51";

    #[test]
    fn a_link_has_the_commit_the_path_and_the_line() {
        let links = ForgeLinks::new(
            "https://forge.example.com/shop/commit/{commit}".to_owned(),
            "https://forge.example.com/shop/blob/{commit}/{path}#L{line}".to_owned(),
        );
        let links = links.unwrap();
        assert_eq!(links.commit(COMMIT_ID).unwrap(), format!("https://forge.example.com/shop/commit/{COMMIT_ID}"));
        let file = |path: &str, line| links.file(COMMIT_ID, path, line);
        let base = format!("https://forge.example.com/shop/blob/{COMMIT_ID}");
        assert_eq!(file("edge/one.yaml", Some(4)).unwrap(), format!("{base}/edge/one.yaml#L4"));
        let hostile = file("a b/\"><script>?#{commit}{line}", None).unwrap();
        assert_eq!(hostile, format!("{base}/a%20b/%22%3E%3Cscript%3E%3F%23%7Bcommit%7D%7Bline%7D#L1"));
        for none in ["", "HEAD", "../../evil", &format!("{COMMIT_ID}-dirty"), "4f2a9c"] {
            assert_eq!((links.commit(none), links.file(none, "a", None)), (None, None), "{none}");
        }
        assert_eq!(ForgeLinks::default().commit(COMMIT_ID), None);
    }

    #[test]
    fn a_template_is_a_url_whose_host_nobody_else_chooses() {
        for wrong in [
            "forge.example.com/{commit}",
            "javascript:alert({commit})",
            "https://{commit}/",
            "https://forge.example.com?{commit}",
            "https://me:secret@forge.example.com/{commit}",
            "https:///{commit}",
            "https://forge.example.com/",
            "https://forge.example.com/{commit}/{path}",
            "https://forge.example.com/{commit}/{",
            "https://forge.example.com/ {commit}",
        ] {
            let fault = ForgeLinks::new(wrong.to_owned(), String::new()).unwrap_err();
            assert_eq!(fault.path.to_string(), "/commit_url", "{wrong}");
        }
        assert!(ForgeLinks::new(String::new(), "https://forge.example.com/{commit}".to_owned()).is_err());
        assert!(ForgeLinks::new(String::new(), "https://forge.example.com/{commit}/{path}".to_owned()).is_ok());
    }
}
