//! The frame of every page: the head, the navigation, the box for a trace, and the headers of the response.

use axum::response::Redirect;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::server::prelude::*;
use crate::syntax::text::escaped_lines;

/// The content type of pages.
pub(super) static HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
/// The policy of the pages: code, styles and requests only from here, and forms that are sent only here. Trusted types keep
/// the script from turning text into markup.
static POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
);
/// The sections of the navigation: the name, and the path below the dashboard.
const SECTIONS: [(&str, &str); 9] = [
    ("Overview", ""),
    ("Sources", "sources"),
    ("Edges", "edges"),
    ("Routes", "routes"),
    ("Revisions", "revisions"),
    ("Certificates", "certificates"),
    ("Trace", "trace"),
    ("Keys", "keys"),
    ("Server", "server"),
];

/// The content of a page inside the layout.
pub(super) struct PageContent {
    /// The title.
    pub title: String,
    /// The name of the page in the navigation.
    pub section: &'static str,
    /// The content.
    pub body: Markup,
}

/// The reader of a page, as its frame shows them.
pub(super) struct PageReader {
    /// The name of the one who is signed in.
    pub name: String,
    /// The text that the form to sign out has.
    pub form_token: String,
    /// The revision that the page shows.
    pub revision: u64,
}

/// A page for somebody who is signed in. `root` is the path of the dashboard, relative to that of the page, and a live page
/// follows changes.
pub(super) fn page(root: &str, reader: &PageReader, content: &PageContent, is_live: bool) -> Markup {
    let PageContent { title, section, body } = content;
    let PageReader { name: who, form_token, revision } = reader;
    shown(&html! {
        (DOCTYPE)
        html lang="en" {
            (head(root, title, is_live))
            body {
                a.skip href="#content" { "Skip to the content" }
                header.top {
                    p.brand { a href=(root) { "edgewright" } }
                    form.trace role="search" aria-label="Trace a request" action={ (root) "trace" } method="get" {
                        label { span.hidden { "URL to trace" }
                            input type="search" name="url" placeholder="example.com/a" title="A host, with a path if it matters" required
                                autocomplete="off" spellcheck="false"; }
                        button { "Where does it go?" }
                    }
                    form.user action={ (root) "sign-out" } method="post" {
                        input type="hidden" name="form_token" value=(form_token);
                        span { (who) }
                        button { "Sign out" }
                    }
                }
                nav.sections aria-label="Sections" {
                    ul {
                        @for (name, path) in SECTIONS {
                            li {
                                a href={ (root) (path) } aria-current=[(name == *section).then_some("page")] { (name) }
                            }
                        }
                    }
                }
                main id="content" tabindex="-1" {
                    h1 { (title) }
                    div id="live" { (body) }
                }
                footer {
                    p { "Revision " span id="revision" { (revision) } ". Secrets are never shown here. "
                        span id="live-state" role="status" {} }
                }
            }
        }
    })
}

/// The page to sign in: `form` is what it offers.
pub(super) fn outside(root: &str, title: &str, form: &Markup) -> Markup {
    shown(&html! {
        (DOCTYPE)
        html lang="en" {
            (head(root, title, false))
            body.outside {
                main id="content" {
                    p.brand { "edgewright" }
                    h1 { (title) }
                    (form)
                }
            }
        }
    })
}

/// A whole page as browsers get it: what others wrote shows as it is and not as a direction mark in it wants, and without API
/// tokens. No template has such characters itself, so no text on any page is missed.
fn shown(page: &Markup) -> Markup {
    PreEscaped(escaped_lines(&page.0))
}

/// A sentence of the program as markup: what is between backticks is code. All of it is escaped, and others may have written any
/// part of it.
pub(super) fn prose(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd number of backticks makes an even number of parts.
    if parts.len().is_multiple_of(2) {
        return html! { (text) };
    }
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @if at % 2 == 0 { (part) } @else if part.is_empty() { "``" } @else { code { (part) } }
        }
    }
}

fn head(root: &str, title: &str, is_live: bool) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) " · edgewright" }
            link rel="icon" type="image/svg+xml" href={ (root) "icon.svg" };
            link rel="stylesheet" href={ (root) "style.css" };
            @if is_live {
                script src={ (root) "script.js" } type="module" data-live={ (root) "live" } {}
            }
        }
    }
}

/// The response with a page.
pub(super) fn response(status: StatusCode, html: String) -> Response {
    let mut response = (status, Body::from(html)).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HTML.clone());
    with_policy(response)
}

/// Leads a browser to another page.
pub(super) fn redirect(to: &str) -> Response {
    with_policy(Redirect::to(to).into_response())
}

/// A response with the headers of all pages.
pub(super) fn with_policy(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY.clone());
    headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // With `no-referrer`, a browser does not tell the origin of a form.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_others_are_escaped() {
        let hostile = "<script>alert(1)</script>\"'&a\u{202e}b\rc ew_ak_1_Zirnp3rqEUFId13vm5Ms2LsUY6D";
        let text = || html! { p title=(hostile) { (hostile) } pre { "- one\n" "+ two\n" } };
        let reader = PageReader { name: hostile.to_owned(), form_token: hostile.to_owned(), revision: 7 };
        let content = PageContent { title: hostile.to_owned(), section: "Overview", body: text() };
        for page in [page("./", &reader, &content, true), outside("./", hostile, &text())] {
            let page = page.into_string();
            assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert(1)"), "{page}");
            assert!(!page.contains("style=\"") && !page.contains(" onclick"), "{page}");
            assert!(!page.contains(['\u{202e}', '\r']) && !page.contains("Zirnp3"), "{page}");
            assert!(page.matches("&amp;a\\u{202e}b\\rc ew_ak_1_***").count() > 1, "{page}");
            assert!(page.contains("<pre>- one\n+ two\n</pre>"), "{page}");
        }
    }

    #[test]
    fn what_is_between_backticks_is_code_and_never_markup() {
        for (text, expected) in [
            ("`a` is required", "<code>a</code> is required"),
            ("set `a`, or `b`", "set <code>a</code>, or <code>b</code>"),
            ("`<b>` & `\"`", "<code>&lt;b&gt;</code> &amp; <code>&quot;</code>"),
            ("`a` `<i>", "`a` `&lt;i&gt;"),
            ("found ``", "found ``"),
            ("", ""),
        ] {
            assert_eq!(prose(text).into_string(), expected);
        }
    }
}
