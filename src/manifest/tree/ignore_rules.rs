//! The files that a folder's `.edgewrightignore` leaves out, in the syntax of gitignore.

use std::{path::Path, sync::Arc};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::model::{Cause, Code, Diagnostic, Place, SourceFile};

/// The name of the file, at the top of a folder of manifests.
pub(super) const IGNORE_FILE: &str = ".edgewrightignore";
/// The size limit of the file: its patterns become one matcher.
pub(super) const MOST_IGNORE_BYTES: u64 = 64 << 10;

/// The patterns of a folder. The default leaves nothing out.
#[derive(Debug, Default)]
pub(super) struct IgnoreRules(Option<Gitignore>);

impl IgnoreRules {
    /// Reads the patterns in a file. `name` is its path to show.
    pub(super) fn read(name: &str, bytes: Vec<u8>) -> Result<Self, Diagnostic> {
        if bytes.len() as u64 > MOST_IGNORE_BYTES {
            let (name, most) = (name.to_owned(), MOST_IGNORE_BYTES >> 10);
            return Err(Diagnostic::error(Code::TooLarge, format!("`{name}` is larger than {most} KiB")));
        }
        let Ok(text) = String::from_utf8(bytes) else {
            let fault = Diagnostic::error(Code::NotUtf8, format!("`{name}` is not UTF-8"));
            return Err(fault.caused_by(Cause::NoContent));
        };
        let file = Arc::new(SourceFile::new(name.to_owned(), text));
        let mut rules = GitignoreBuilder::new("");
        // A bracket without its end is a mistake, and not a name with a bracket.
        rules.allow_unclosed_class(false);
        let mut start = 0;
        for line in file.text.split_inclusive('\n') {
            let pattern = line.trim_end_matches(['\r', '\n']);
            if let Err(error) = rules.add_line(None, pattern) {
                let place = Place { file: Arc::clone(&file), span: start..start + pattern.len() };
                return Err(invalid(&error).at(place));
            }
            start += line.len();
        }
        rules.build().map(|rules| Self(Some(rules))).map_err(|error| invalid(&error))
    }

    /// Whether a path relative to the folder is left out. What is below a folder that is left out is never asked for.
    pub(super) fn leaves_out(&self, inside: &Path, is_folder: bool) -> bool {
        self.0.as_ref().is_some_and(|rules| rules.matched(inside, is_folder).is_ignore())
    }
}

fn invalid(error: &ignore::Error) -> Diagnostic {
    Diagnostic::error(Code::InvalidFormat, format!("invalid pattern: {error}")).help("use the syntax of .gitignore")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_gitignore() {
        let text = "# tools\n/package.json\n*.tmp.yaml\n.github/\nci/**\n!ci/edge.yaml\r\n";
        let rules = IgnoreRules::read(IGNORE_FILE, text.into()).unwrap();
        let is_out = |path: &str, is_folder: bool| rules.leaves_out(Path::new(path), is_folder);
        assert!(is_out("package.json", false) && !is_out("a/package.json", false));
        assert!(is_out("a/b.tmp.yaml", false) && !is_out("a/b.yaml", false));
        assert!(is_out(".github", true) && is_out("ci/a.yaml", false) && !is_out("ci/edge.yaml", false));
        assert!(!IgnoreRules::default().leaves_out(Path::new("a.yaml"), false));
        for pattern in ["[", "a[", "[!", "[z-a]", "a\n!b[\n"] {
            assert!(IgnoreRules::read(IGNORE_FILE, pattern.into()).is_err(), "{pattern}");
        }
        assert!(IgnoreRules::read(IGNORE_FILE, "a\\[b\n[[]\n".into()).is_ok());
        assert!(IgnoreRules::read(IGNORE_FILE, vec![0xff]).is_err());
        assert!(IgnoreRules::read(IGNORE_FILE, vec![b'a'; (64 << 10) + 1]).is_err());
    }
}
