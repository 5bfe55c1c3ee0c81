//! Annotations of GitHub: a line for each diagnostic.

use edgewright::{
    Code, Diagnostic,
    report::{Format, Severity},
};

use super::{invalid, of_diagnostics, place, rendered, told};

#[test]
fn github_annotations_are_escaped() {
    let text = "0123456789\nabc: def\n";
    let escaped = place("./a,b:c.yaml", text, "234");
    let diagnostics = [
        Diagnostic::error(Code::Syntax, "100% wrong\r\nnext: a,b").help("mend it").at(escaped),
        Diagnostic {
            severity: Severity::Warning,
            related: Box::new([(place("b.yaml", text, "def"), "first here".to_owned())]),
            ..Diagnostic::error(Code::Tag, "over two lines").at(place("a.yaml", text, "9\nab"))
        },
        Diagnostic::error(Code::EmptySource, "no manifest"),
    ];
    let told = rendered(Format::Github, &of_diagnostics(&diagnostics));
    let expected = [
        "::error file=a%2Cb%3Ac.yaml,line=1,col=3,endLine=1,endColumn=5,title=ERR_EDGEWRIGHT_SYNTAX::100%25 wrong\\r\\nnext: a,b%0Amend it",
        "::warning file=a.yaml,line=1,endLine=2,title=ERR_EDGEWRIGHT_TAG::over two lines%0Ab.yaml:2:6: first here",
        "::error title=ERR_EDGEWRIGHT_EMPTY_SOURCE::no manifest",
        "::notice title=edgewright validate::the manifests are invalid: 1 file, 2 errors, 1 warning",
    ];
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn github_has_a_line_for_each_diagnostic() {
    let planned = invalid();
    let told = told(Format::Github, &planned);
    assert_eq!(told.lines().count(), planned.diagnostics.len() + 1);
    let errors = told.lines().filter(|line| line.starts_with("::error file=tests/invalid/")).count();
    assert_eq!(errors, planned.diagnostics.len());
}
