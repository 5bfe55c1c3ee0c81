//! What the pages say is true: `commands` runs their commands, `links` follows their links, and their manifests are valid.
//!
//! A comment on the line before a block changes how it is run. `<!-- test: skip -->` leaves it out. `<!-- test: wait -->` repeats it
//! until its output is what the next block shows: a person is slower than a server. `<!-- test: stop -->` first stops everything that
//! runs in the background, as Ctrl-C does.

mod commands;
mod links;

use std::{fs, path::Path};

use crate::support::program::{Folder, REPOSITORY, copy};

const SKIP: &str = "<!-- test: skip -->";
const WAIT: &str = "<!-- test: wait -->";
const STOP: &str = "<!-- test: stop -->";
/// How many blocks of one page may be skipped.
const MOST_SKIPS: usize = 2;
const KIB: usize = 1024;
/// The largest pages, in KiB. Generated pages of the reference have no limit.
const SHORT_PAGES: [(&str, usize); 2] = [("README.md", 12), ("CHANGELOG.md", 12)];
const MOST_KIB: usize = 40;

/// A Markdown file.
struct Page {
    /// Its path in the repository.
    name: String,
    text: String,
}

/// A fenced block of a page.
struct Block {
    language: String,
    text: String,
    /// The comments about it.
    markers: Vec<String>,
    /// Whether nothing stands between the block before and this one.
    is_next: bool,
}

impl Block {
    fn has(&self, marker: &str) -> bool {
        self.markers.iter().any(|it| it == marker)
    }

    fn is_shell(&self) -> bool {
        matches!(self.language.as_str(), "sh" | "bash" | "console" | "shell")
    }

    fn is_yaml(&self) -> bool {
        matches!(self.language.as_str(), "yaml" | "yml")
    }
}

impl Page {
    fn read(name: &str) -> Self {
        let text =
            fs::read_to_string(Path::new(REPOSITORY).join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { name: name.to_owned(), text }
    }

    /// Whether the program writes the page: what it has is tested where it comes from.
    fn is_generated(&self) -> bool {
        let says_so = |line: &str| line.to_lowercase().contains("generated");
        self.name.starts_with("docs/reference/") && self.text.lines().take(8).any(says_so)
    }

    fn blocks(&self) -> Vec<Block> {
        self.parts().0
    }

    /// The fenced blocks, and all other lines with their numbers.
    fn parts(&self) -> (Vec<Block>, Vec<(usize, &str)>) {
        let (mut blocks, mut prose) = (Vec::<Block>::new(), Vec::new());
        let (mut fence, mut markers, mut is_next) = (String::new(), Vec::new(), false);
        for (number, line) in (1..).zip(self.text.lines()) {
            let trimmed = line.trim();
            let info = trimmed.trim_start_matches('`');
            let ticks = trimmed.len() - info.len();
            if !fence.is_empty() {
                if info.is_empty() && ticks >= fence.len() {
                    fence.clear();
                    is_next = true;
                } else {
                    let text = &mut blocks.last_mut().unwrap().text;
                    text.push_str(line);
                    text.push('\n');
                }
            } else if ticks >= 3 && !info.contains('`') {
                let language = info.split_whitespace().next().unwrap_or_default().to_owned();
                let markers = std::mem::take(&mut markers);
                blocks.push(Block { language, text: String::new(), markers, is_next });
                fence = "`".repeat(ticks);
            } else if trimmed.starts_with("<!-- test:") {
                let is_known = [SKIP, WAIT, STOP].contains(&trimmed);
                assert!(is_known, "{}:{number}: there is no such marker: {trimmed}", self.name);
                markers.push(trimmed.to_owned());
            } else {
                let is_late = !trimmed.is_empty() && markers.iter().any(|it| *it != STOP);
                assert!(!is_late, "{}:{number}: the marker stands before no block", self.name);
                is_next &= trimmed.is_empty();
                prose.push((number, line));
            }
        }
        assert!(fence.is_empty() && markers.is_empty(), "{}: a block is not closed, or a marker has none", self.name);
        (blocks, prose)
    }
}

/// The Markdown files below a folder of the repository, by name; all for an empty name.
fn pages(folder: &str) -> Vec<Page> {
    let root = Path::new(REPOSITORY);
    let is_kept = |entry: &walkdir::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        entry.depth() == 0 || (!name.starts_with('.') && !["target", "node_modules"].contains(&name.as_ref()))
    };
    let walk = walkdir::WalkDir::new(root.join(folder)).sort_by_file_name().into_iter().filter_entry(is_kept);
    let files = walk.map(Result::unwrap).filter(|entry| entry.path().extension().is_some_and(|it| it == "md"));
    files.map(|entry| Page::read(entry.path().strip_prefix(root).unwrap().to_str().unwrap())).collect()
}

/// All but the stories of the scenarios, which have a test of their own.
fn written_pages() -> Vec<Page> {
    pages("").into_iter().filter(|page| !page.name.starts_with("tests/")).collect()
}

fn assert_none(what: &str, offenders: &[String]) {
    assert!(offenders.is_empty(), "{what}:\n{}", offenders.join("\n"));
}

#[test]
fn manifests_are_valid() {
    let (mut offenders, mut count) = (Vec::new(), 0);
    for page in written_pages().iter().filter(|page| !page.is_generated()) {
        let folder = Folder::new();
        for part in ["certs", "secrets", "saml"] {
            let from = Path::new(REPOSITORY).join("examples/storefront").join(part);
            copy(&from, &folder.path(&format!("each/{part}")));
            copy(&from, &folder.path(&format!("all/{part}")));
        }
        let (mut all, mut refused) = (String::new(), Vec::new());
        for block in page.blocks().iter().filter(|block| block.is_yaml() && !block.has(SKIP)) {
            if !block.text.contains("apiVersion: edgewright/") {
                let parsed: Result<serde_yaml::Value, _> = serde_yaml::from_str(&block.text);
                offenders.extend(parsed.err().map(|error| format!("{}: {error}\n{}", page.name, block.text)));
                continue;
            }
            count += 1;
            folder.write("each/page.yaml", &block.text);
            let run = folder.run("validate each");
            if run.code != 0 {
                refused.push(run.err);
            }
            all += &format!("---\n{}", block.text);
        }
        // A block may name what another one declares.
        if !refused.is_empty() {
            folder.write("all/page.yaml", &all);
            let run = folder.run("validate all");
            if run.code != 0 {
                offenders.push(format!("{}: each:\n{}\nall:\n{}", page.name, refused.join("\n"), run.err));
            }
        }
    }
    assert_none("blocks that are not valid", &offenders);
    assert!(count > 0, "no page shows a manifest");
}

#[test]
fn pages_are_short() {
    let mut offenders = Vec::new();
    for page in written_pages().iter().filter(|page| !page.is_generated()) {
        let short = SHORT_PAGES.iter().find(|(name, _)| *name == page.name);
        let most = short.map_or(MOST_KIB, |(_, most)| *most);
        if page.text.len() > most * KIB {
            offenders.push(format!("{}: {} bytes, at most {most} KiB", page.name, page.text.len()));
        }
    }
    assert_none("pages that are too long", &offenders);
}

#[test]
fn hardly_anything_is_skipped() {
    let mut offenders = Vec::new();
    for page in written_pages() {
        let skipped = page.blocks().iter().filter(|block| block.has(SKIP)).count();
        if skipped > MOST_SKIPS {
            offenders.push(format!("{}: {skipped}", page.name));
        }
    }
    assert_none(&format!("pages with more than {MOST_SKIPS} blocks that are skipped"), &offenders);
}
