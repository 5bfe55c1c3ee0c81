//! The frame of every page: the head, the navigation, the box for a trace, and the headers of the response.

use maud::{DOCTYPE, Markup, html};

use crate::server::prelude::*;

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

/// The inputs of a page's frame.
pub(super) struct PageFrame<'a> {
    /// The path of the dashboard, relative to that of the page.
    pub root: &'a str,
    pub title: &'a str,
    /// The name of the page in the navigation.
    pub section: &'a str,
    /// The name of the one who is signed in.
    pub who: &'a str,
    /// The text that the form to sign out has.
    pub form_token: &'a str,
    /// The revision that the page shows.
    pub revision: u64,
    /// Whether the page follows changes.
    pub is_live: bool,
}

/// A page for somebody who is signed in.
pub(super) fn page(frame: &PageFrame<'_>, body: &Markup) -> Markup {
    let PageFrame { root, title, section, who, form_token, revision, is_live } = *frame;
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(root, title, is_live))
            body {
                a.skip href="#content" { "Skip to the content" }
                header.top {
                    p.brand { a href=(root) { "edgewright" } }
                    form.trace role="search" aria-label="Trace a request" action={ (root) "trace" } method="get" {
                        label { span.hidden { "URL to trace" }
                            input type="search" name="url" placeholder="shop.example.com/cart" required
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
                                a href={ (root) (path) } aria-current=[(name == section).then_some("page")] { (name) }
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
    }
}

/// The page to sign in: `form` is what it offers.
pub(super) fn outside(root: &str, title: &str, form: &Markup) -> Markup {
    html! {
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
    }
}

/// The page of an error.
pub(super) fn failure(root: &str, status: StatusCode, message: &str) -> Markup {
    let title = status.canonical_reason().unwrap_or("Error");
    outside(
        root,
        title,
        &html! {
            p { (message) }
            p { a href=(root) { "Go to the overview" } " or " a href={ (root) "sign-in" } { "sign in with another token" } "." }
        },
    )
}

/// The page of an error of a form: nothing was changed, or nobody knows. The form is at the same address.
pub(super) fn failed_form(root: &str, status: StatusCode, message: &str) -> Markup {
    let title = status.canonical_reason().unwrap_or("Error");
    outside(
        root,
        title,
        &html! {
            p.error role="alert" { (message) }
            p { a href="" { "Go back and look again" } " or " a href=(root) { "go to the overview" } "." }
        },
    )
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
        let hostile = "<script>alert(1)</script>\"'&";
        let frame = PageFrame {
            root: "./",
            title: hostile,
            section: "Overview",
            who: hostile,
            form_token: hostile,
            revision: 7,
            is_live: true,
        };
        for page in [page(&frame, &html! { p { (hostile) } }), failure("./", StatusCode::NOT_FOUND, hostile)] {
            let page = page.into_string();
            assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert(1)"), "{page}");
            assert!(!page.contains("style=\"") && !page.contains(" onclick"), "{page}");
        }
    }
}
