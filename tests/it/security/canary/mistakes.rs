//! Every mistake of `mistakes.txt` in every secret field: no report tells the secret, in no format.

use std::{collections::BTreeSet, fs, sync::Mutex};

use edgewright::{
    LintLevels, Sent, SentFile,
    report::{Format, render},
    validate,
};

use super::{
    ENTRY, SecretField,
    mark::{MarkForm, Needles, mark},
    secret_fields,
};
use crate::support::program::{Folder, rounds};

const LIST: &str = include_str!("mistakes.txt");
/// The files that one run of the program checks.
const FILES_OF_A_RUN: usize = 48;
/// A field like another one gets a part of the mistakes.
const PART: usize = 16;
/// The mistakes that the list has at least.
const FEWEST_MISTAKES: usize = 300;
/// The cases that there are at least.
const FEWEST_CASES: usize = 1000;
/// Stands for a byte that is not UTF-8 until the file is written.
const BAD: char = '\u{F8FF}';

/// A mistake of the list.
struct Mistake<'l> {
    name: &'l str,
    form: Form,
    lines: Vec<&'l str>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    /// Lines in a YAML manifest.
    Yaml,
    /// Members in a JSON manifest.
    Json,
    /// A whole file.
    File,
}

fn mistakes() -> Vec<Mistake<'static>> {
    let mut found: Vec<Mistake<'static>> = Vec::new();
    for line in LIST.lines() {
        if let Some(name) = line.strip_prefix("== ") {
            let forms = [("[json] ", Form::Json), ("[file] ", Form::File)];
            let form = forms.iter().find_map(|(sign, form)| Some((name.strip_prefix(sign)?, *form)));
            let (name, form) = form.unwrap_or((name, Form::Yaml));
            found.push(Mistake { name, form, lines: Vec::new() });
        } else if let Some(last) = found.last_mut().filter(|_| !line.starts_with("# --- ")) {
            last.lines.push(line);
        }
    }
    for mistake in &mut found {
        while mistake.lines.last() == Some(&"") {
            mistake.lines.pop();
        }
    }
    found
}

/// A line with the key, the mark and the characters that the list names.
fn filled(line: &str, key: &str, mark: &str) -> String {
    let (first, rest) = key.split_at(1);
    let swapped: String = [&key[..2], &key[3..4], &key[2..3], &key[4..]].concat();
    let mut camel = String::new();
    for part in key.split('_') {
        let (first, rest) = part.split_at(1);
        let part = if camel.is_empty() { part.to_owned() } else { first.to_uppercase() + rest };
        camel.push_str(&part);
    }
    let forms = [
        ("KEY!1", format!("{}{}", &key[..key.len() - 2], &key[key.len() - 1..])),
        ("KEY!2", swapped),
        ("KEY!U", key.to_uppercase()),
        ("KEY!C", first.to_uppercase() + rest),
        ("KEY!D", key.replace('_', "-")),
        ("KEY!M", camel),
        ("KEY!S", key.replace('_', " ")),
        ("KEY!N", key.replace('_', "")),
        ("KEY!E", format!("\\u{:04x}{rest}", first.as_bytes()[0])),
        ("KEY", key.to_owned()),
        ("MARK", mark.to_owned()),
        ("<TAB>", "\t".to_owned()),
        ("<CR>", "\r".to_owned()),
        ("<NUL>", "\0".to_owned()),
        ("<BEL>", "\u{7}".to_owned()),
        ("<ESC>", "\u{1b}".to_owned()),
        ("<DEL>", "\u{7f}".to_owned()),
        ("<NEL>", "\u{85}".to_owned()),
        ("<LS>", "\u{2028}".to_owned()),
        ("<BOM>", "\u{feff}".to_owned()),
        ("<BIDI>", "\u{200f}".to_owned()),
        ("<LONG>", "x".repeat(70_000)),
        ("<BAD>", BAD.to_string()),
    ];
    forms.iter().fold(line.to_owned(), |line, (sign, text)| line.replace(sign, text))
}

/// The manifest with a mistake in the place of a field. A field that nobody knows stands before and behind it, so that
/// an error shows the lines between.
fn manifest(field: &SecretField, mistake: &Mistake<'_>, name: &str, mark: &str) -> String {
    let lines: Vec<String> = mistake.lines.iter().map(|line| filled(line, field.name(), mark)).collect();
    match mistake.form {
        Form::File => lines.join("\n") + "\n",
        Form::Json => {
            let mut open = format!(
                r#"{{"apiVersion": "edgewright/v1", "kind": "{}", "metadata": {{"name": "{name}"}}, "spec": "#,
                field.kind
            );
            let mut close = "}".to_owned();
            for parent in field.parents() {
                if parent == ENTRY {
                    open += "[";
                    close.insert(0, ']');
                } else {
                    open += &format!("{{\"{parent}\": ");
                    close.insert(0, '}');
                }
            }
            format!("{open}{{\n\"unknown_before\": 1,\n{},\n\"unknown_behind\": 1\n}}{close}\n", lines.join("\n"))
        }
        Form::Yaml => {
            let mut text =
                format!("apiVersion: edgewright/v1\nkind: {}\nmetadata: {{name: {name}}}\nspec:\n", field.kind);
            let mut indentation = 2;
            for parent in field.parents() {
                let key = if parent == ENTRY { "- name: a".to_owned() } else { format!("{parent}:") };
                text += &format!("{}{key}\n", " ".repeat(indentation));
                indentation += 2;
            }
            let blank = " ".repeat(indentation);
            text += &format!("{blank}unknown_before: 1\n");
            for line in &lines {
                if let Some(line) = line.strip_prefix('^') {
                    text += line;
                } else {
                    let content = line.trim_start_matches('~');
                    let away = 2 * (line.len() - content.len());
                    text += &" ".repeat(indentation.saturating_sub(away));
                    text += content;
                }
                text.push('\n');
            }
            if !lines.last().is_some_and(|line| line.starts_with(['^', '~'])) {
                text += &format!("{blank}unknown_behind: 1\n");
            }
            text
        }
    }
}

/// A mistake in a field.
struct Case {
    /// The name of its file.
    file: String,
    title: String,
    text: String,
    /// Whether the mistake is a whole file, which may look like one of another program.
    is_file: bool,
}

/// Every mistake in one field of each name, and a part of them in each other field, where the marks are numbers. A
/// usual run has each fourth of these cases.
fn cases() -> Vec<Case> {
    let mistakes = mistakes();
    assert!(mistakes.len() >= FEWEST_MISTAKES, "only {} mistakes", mistakes.len());
    let mut names = BTreeSet::new();
    let mut cases = Vec::new();
    for (at, field) in secret_fields().iter().enumerate() {
        let first = names.insert(field.name().to_owned());
        for (number, mistake) in mistakes.iter().enumerate() {
            if !first && (at + number) % PART != 0 {
                continue;
            }
            let form = if first { MarkForm::Word } else { MarkForm::Number };
            let (name, mark) = (format!("c{}", cases.len()), mark(form, field.name(), cases.len()));
            let extension = if mistake.form == Form::Json { "json" } else { "yaml" };
            cases.push(Case {
                file: format!("{name}.{extension}"),
                title: format!("{} in {} {}", mistake.name, field.kind, field.path.join(".")),
                text: manifest(field, mistake, &name, &mark),
                is_file: mistake.form == Form::File,
            });
            assert!(mistake.lines.iter().any(|line| line.contains("MARK")), "{}", mistake.name);
        }
    }
    assert!(cases.len() >= FEWEST_CASES, "only {} cases", cases.len());
    cases.into_iter().step_by(rounds(4, 1)).collect()
}

/// Calls a function with parts of the cases, in two threads, and collects what it returns.
fn in_parts(cases: &[Case], check: impl Fn(usize, &[Case]) -> Vec<String> + Sync) -> Vec<String> {
    let parts = Mutex::new(cases.chunks(FILES_OF_A_RUN).enumerate());
    let told = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = parts.lock().unwrap().next();
                    let Some((number, part)) = next else { break };
                    let found = check(number, part);
                    told.lock().unwrap().extend(found);
                }
            });
        }
    });
    told.into_inner().unwrap()
}

/// The excerpts on the terminal come with every format, so each run has another one.
#[test]
fn the_program_tells_no_secret_of_a_mistake() {
    let cases = cases();
    let needles = Needles::of_marks();
    let told = in_parts(&cases, |number, part| {
        let folder = Folder::new();
        fs::create_dir(folder.path("m")).unwrap();
        for case in part {
            let text = case.text.split(BAD).map(str::as_bytes).collect::<Vec<_>>().join(&0xff_u8);
            fs::write(folder.path("m").join(&case.file), text).unwrap();
        }
        let format = Format::ALL[number % Format::ALL.len()];
        let run = folder.run(&format!("validate m --format {}", format.as_str()));
        assert_eq!(run.code, 3, "{}", run.all());
        let mut told = Vec::new();
        // Files of other programs are counted after the first ones.
        let untold: Vec<&Case> = part.iter().filter(|case| !run.err.contains(&format!("m/{}:", case.file))).collect();
        for case in &untold {
            assert!(case.is_file, "no error in {}:\n{}", case.title, case.text);
        }
        let count = format!("{} more error", untold.len());
        assert!(untold.is_empty() || run.err.contains(&count), "not {count}: {}", run.all());
        if let Some(near) = needles.find_in(&run.all()) {
            let of = part.iter().find(|case| near.contains(&case.file));
            let title = of.map_or("one of these", |case| case.title.as_str());
            told.push(format!("{title}, as {}: {near}", format.as_str()));
        }
        told
    });
    assert!(told.is_empty(), "{}", told.join("\n"));
    println!("canary: {} secrets in {} mistakes, none told", cases.len(), mistakes().len());
}

/// Everything that a program gets that embeds the library.
#[test]
fn no_report_tells_the_secret_of_a_mistake() {
    let cases = cases();
    let needles = Needles::of_marks();
    let told = in_parts(&cases, |_, part| {
        let mut told = Vec::new();
        for case in part.iter().filter(|case| !case.text.contains(BAD)) {
            let file = SentFile::new(case.file.clone(), case.text.clone());
            let tree = Sent::new(vec![file], None);
            let report = validate(&tree, &LintLevels::default()).report("validate");
            assert!(report.has_errors(), "{}:\n{}", case.title, case.text);
            for format in Format::ALL {
                if let Some(near) = needles.find_in(&render(format, &report).unwrap()) {
                    told.push(format!("{} as {}: {near}", case.title, format.as_str()));
                }
            }
            if let Some(near) = needles.find_in(&format!("{:?}", report.diagnostics)) {
                told.push(format!("{} for debugging: {near}", case.title));
            }
        }
        told
    });
    assert!(told.is_empty(), "{}", told.join("\n"));
}
