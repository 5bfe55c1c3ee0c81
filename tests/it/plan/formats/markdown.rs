//! Markdown: a comment of a limited length that no text of a manifest breaks out of.

use std::sync::Arc;

use edgewright::{
    Code, Diagnostic, Plan,
    report::{Format, Report},
    resources::{Id, IpRestriction, Key, Kind, Operation},
};

use super::{invalid, of_diagnostics, of_plan, place, rendered, storefront, told};

/// The limit of a Markdown report.
const MOST_CHARACTERS: usize = 65_000;

/// A plan that creates restrictions, each with the given description.
fn restrictions(count: usize, description: &str) -> Plan {
    let sample = storefront().plan.unwrap().changes[0].clone();
    let change = |at: usize| {
        let key = Key::new(Kind::IpRestriction, Id::derived("ipx_", [at.to_string().as_bytes()]));
        let spec = Arc::new(IpRestriction { description: description.to_owned(), ..IpRestriction::default() });
        let mut change = sample.clone();
        change.operations = vec![Operation::Create { key: key.clone(), spec, claim: None, token: None }];
        (change.key, change.name) = (key, format!("office-{at}"));
        change
    };
    Plan { changes: (0..count).map(change).collect(), ..Plan::default() }
}

/// Whether every fence is closed, and by none of the lines inside of it.
fn assert_fences(markdown: &str) {
    let mut open: Option<usize> = None;
    for line in markdown.lines() {
        let text = line.trim_start();
        let run = text.len() - text.trim_start_matches('`').len();
        let fence = run >= 3 && line.len() - text.len() < 4;
        match open {
            None if fence => {
                assert_eq!(&text[run..], "diff");
                open = Some(run);
            }
            Some(length) if fence && run >= length && text.len() == run => open = None,
            Some(_) => assert!(line.starts_with(['+', '-', ' ']), "{line}"),
            None => {}
        }
    }
    assert_eq!(open, None, "a fence stays open");
    assert_eq!(markdown.matches("<details>").count(), markdown.matches("</details>").count());
}

#[test]
fn markdown_is_a_comment() {
    let good = told(Format::Markdown, &storefront());
    let mut lines = good.lines();
    assert_eq!(lines.next(), Some("<!-- edgewright -->"));
    let heading = lines.next().unwrap();
    assert!(heading.starts_with("## edgewright plan: changes are pending — "), "{heading}");
    assert!(heading.ends_with("24 to create, 0 to change, 0 to replace, 0 to delete, 0 unchanged"), "{heading}");
    assert_eq!(good.matches("<details>").count(), 24);
    assert!(good.contains("<details><summary>+ HttpsEdge storefront — POST /edges/https</summary>\n"), "{good}");
    assert_fences(&good);

    let planned = invalid();
    let bad = told(Format::Markdown, &planned);
    assert!(bad.lines().nth(1).unwrap().contains("the manifests are invalid"));
    assert_eq!(bad.matches("\n- **error** <code>").count(), planned.diagnostics.len());
    assert!(bad.contains("<code>tests/invalid/alias.yaml:14:9</code> <code>ERR_EDGEWRIGHT_UNKNOWN_FIELD</code>: "));
}

#[test]
fn markdown_is_cut_between_two_changes() {
    let plan = restrictions(5_000, "first\n```\n````diff\nlast");
    let text = rendered(Format::Markdown, &of_plan(&plan));
    let length = text.chars().count();
    assert!((60_000..=MOST_CHARACTERS).contains(&length), "{length}");
    assert_fences(&text);
    assert!(text.contains("\n`````diff\n"), "a fence is longer than those inside of it");
    let shown = text.matches("<details>").count();
    let last = format!("</details>\n\n… and {} more changes: see the job's log\n", 5_000 - shown);
    assert!(text.ends_with(&last), "{}", &text[text.len() - 200..]);

    let many: Vec<Diagnostic> = (0..5_000).map(|at| Diagnostic::error(Code::Syntax, format!("fault {at}"))).collect();
    let text = rendered(Format::Markdown, &of_diagnostics(&many));
    assert!(text.chars().count() <= MOST_CHARACTERS);
    let shown = text.matches("**error**").count();
    assert!(text.ends_with(&format!("… and {} more diagnostics: see the job's log\n", 5_000 - shown)));
    let both = Report { diagnostics: many, ..of_plan(&plan) };
    let text = rendered(Format::Markdown, &both);
    assert!(text.chars().count() <= MOST_CHARACTERS && text.contains("<details>"));
}

#[test]
fn markdown_cannot_be_broken_out_of() {
    let message = "`<b>|` and @team, #1, <script>, **bold**, [a](b)\n# title";
    let diagnostic = Diagnostic::error(Code::Syntax, message).help("odd ` one").at(place("a|<b>.yaml", "x", "x"));
    let text = rendered(Format::Markdown, &of_diagnostics(&[diagnostic]));
    let item = text.lines().find(|line| line.starts_with("- ")).unwrap();
    assert!(item.ends_with("<br>help: odd &#96; one"), "{item}");
    for raw in ["<b>", "<script>", "@team", " #1", "**bold**", "[a]", "|"] {
        assert!(!item.contains(raw), "{raw}: {item}");
    }
    assert!(item.contains("<code>&#60;b&#62;&#124;</code> and @<!-- -->team"), "{item}");
    assert_eq!(text.matches("\n#").count(), 1, "only the heading is one");
}
