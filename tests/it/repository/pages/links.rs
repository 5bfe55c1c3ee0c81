//! Every link between the pages leads somewhere: to a file or folder of the repository, and to a heading of a page.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use regex::Regex;

use super::{Page, assert_none, pages};
use crate::support::program::REPOSITORY;

/// The pictures, which a test of the dashboard takes, and the largest of them.
const IMAGES: &str = "docs/images";
const MOST_BYTES: usize = 120 * 1024;
/// The index of the pages in `docs`.
const INDEX: &str = "docs/README.md";
/// The page that names the code of each decision.
const DECISIONS: &str = "docs/decisions.md";

/// The targets of the links outside of code, with the numbers of their lines.
fn links(page: &Page) -> Vec<(usize, String)> {
    let code = Regex::new("`[^`]*`").unwrap();
    let target =
        Regex::new(r#"\]\(<?([^()<>\s]+)>?(?: "[^"]*")?\)|^\[[^\]]+\]:\s+(\S+)|(?:href|src)="([^"]+)""#).unwrap();
    let mut found = Vec::new();
    for (number, line) in page.parts().1 {
        for link in target.captures_iter(&code.replace_all(line, "")) {
            found.extend(link.iter().skip(1).flatten().map(|part| (number, part.as_str().to_owned())));
        }
    }
    found
}

/// The anchors of a page: those of its headings, as GitHub makes them, and those in HTML.
fn anchors(page: &Page) -> BTreeSet<String> {
    let link = Regex::new(r"\[([^\]]*)\]\([^)]*\)").unwrap();
    let html = Regex::new(r#"<a (?:id|name)="([^"]+)""#).unwrap();
    let (mut found, mut counts) = (BTreeSet::new(), BTreeMap::<String, usize>::new());
    for (_, line) in page.parts().1 {
        found.extend(html.captures_iter(line).map(|anchor| anchor[1].to_owned()));
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if !(1..=6).contains(&level) || !heading.starts_with(' ') {
            continue;
        }
        let text = link.replace_all(heading.trim(), "$1").to_lowercase();
        let kept = text.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        let anchor = kept.collect::<String>().replace(' ', "-");
        let count = counts.entry(anchor.clone()).or_default();
        found.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
        *count += 1;
    }
    found
}

/// Why a link leads nowhere.
fn fault(page: &Page, link: &str, all: &BTreeMap<String, BTreeSet<String>>) -> Option<String> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let root = fs::canonicalize(REPOSITORY).unwrap();
    let from = root.join(&page.name);
    let target = if path.is_empty() { from } else { from.parent().unwrap().join(path) };
    let Ok(target) = fs::canonicalize(&target) else { return Some("no such file".to_owned()) };
    let Ok(name) = target.strip_prefix(&root) else { return Some("outside the repository".to_owned()) };
    if anchor.is_empty() {
        return None;
    }
    match all.get(name.to_str().unwrap()) {
        Some(anchors) if anchors.contains(anchor) => None,
        Some(_) => Some("no such heading".to_owned()),
        None => Some("not a page".to_owned()),
    }
}

#[test]
fn links_lead_somewhere() {
    let pages = pages("");
    let all: BTreeMap<String, BTreeSet<String>> = pages.iter().map(|page| (page.name.clone(), anchors(page))).collect();
    let (mut offenders, mut count) = (Vec::new(), 0);
    for page in &pages {
        for (number, link) in links(page) {
            if ["https://", "http://", "mailto:"].iter().any(|scheme| link.starts_with(scheme)) {
                continue;
            }
            count += 1;
            offenders.extend(fault(page, &link, &all).map(|why| format!("{}:{number}: {link}: {why}", page.name)));
        }
    }
    assert_none("links that lead nowhere", &offenders);
    assert!(count > 50, "only {count} links");
}

#[test]
fn the_code_that_decisions_name_is_there() {
    let named = Regex::new(r"`((?:src|tests|examples)/[^`{]*)(?:\{([^}]*)\}([^`]*))?`").unwrap();
    let (text, mut count, mut offenders) = (Page::read(DECISIONS).text, 0, Vec::new());
    for found in named.captures_iter(&text) {
        let choices = found.get(2).map_or("", |choices| choices.as_str()).split(',');
        let end = found.get(3).map_or("", |end| end.as_str());
        for path in choices.map(|choice| format!("{}{choice}{end}", &found[1])) {
            count += 1;
            offenders.extend((!fs::exists(format!("{REPOSITORY}/{path}")).unwrap()).then_some(path));
        }
    }
    assert_none(&format!("files and folders in {DECISIONS} that do not exist"), &offenders);
    assert!(count > 100, "only {count} paths");
}

#[test]
fn the_index_has_every_page() {
    let index = Page::read(INDEX);
    let linked: BTreeSet<String> = links(&index).into_iter().map(|(_, link)| format!("docs/{link}")).collect();
    let missing =
        pages("docs").into_iter().map(|page| page.name).filter(|name| name != INDEX && !linked.contains(name));
    assert_none(&format!("pages that {INDEX} does not link"), &missing.collect::<Vec<_>>());
}

#[test]
fn pictures_are_shown_and_described() {
    let picture = Regex::new(r"!\[([^\]]*)\]\(([^)]+)\)").unwrap();
    let root = fs::canonicalize(REPOSITORY).unwrap();
    let (mut offenders, mut shown) = (Vec::new(), BTreeSet::new());
    for page in pages("") {
        for (number, line) in page.parts().1 {
            for found in picture.captures_iter(line) {
                if found[1].split_whitespace().count() < 4 {
                    offenders.push(format!("{}:{number}: {} has no description", page.name, &found[2]));
                }
                shown.extend(fs::canonicalize(root.join(&page.name).parent().unwrap().join(&found[2])));
            }
        }
    }
    for entry in fs::read_dir(root.join(IMAGES)).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        if !shown.contains(&path) || !bytes.starts_with(b"\x89PNG") || bytes.len() > MOST_BYTES {
            offenders.push(format!("{}: not shown, not a PNG file, or too large: {}", path.display(), bytes.len()));
        }
    }
    assert_none("pictures", &offenders);
    assert!(!shown.is_empty(), "no page shows a picture");
}
