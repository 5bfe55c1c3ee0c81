//! The dashboard: who gets in and how, what the pages show, and what they never show.

pub(crate) mod accessibility;
pub(crate) mod actions;
pub(crate) mod browser;
pub(crate) mod browser_actions;
pub(crate) mod certificates;
mod gateway;
pub(crate) mod health;
pub(crate) mod pages;
pub(crate) mod plans;
pub(crate) mod provider_sign_in;
pub(crate) mod sessions;
pub(crate) mod sources;

use crate::support::server::{Answer, Server};

/// A browser that is signed in, or not.
pub(crate) struct Browser<'s> {
    pub(crate) server: &'s Server,
    /// The cookie, as the browser sends it.
    pub(crate) cookie: String,
}

impl<'s> Browser<'s> {
    /// A browser without a session.
    pub(crate) fn new(server: &'s Server) -> Self {
        Self { server, cookie: String::new() }
    }

    /// A browser that has signed in with a token.
    pub(crate) fn signed_in(server: &'s Server, token: &str) -> Self {
        let mut browser = Self::new(server);
        let answer = browser.sign_in(token, "");
        assert_eq!((answer.status, answer.header("location")), (303, Some("./")), "{}", answer.text);
        browser
    }

    /// Sends the form to sign in, and keeps the cookie.
    pub(crate) fn sign_in(&mut self, token: &str, next: &str) -> Answer {
        let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
        let answer = self.post("/ui/sign-in", &format!("token={}&next={}", encoded(token), encoded(next)));
        if let Some(cookie) = answer.header("set-cookie") {
            self.cookie = cookie.split(';').next().unwrap().to_owned();
        }
        answer
    }

    /// Sends a form like a browser that shows a page of this server.
    pub(crate) fn post(&self, path: &str, form: &str) -> Answer {
        let origin = format!("http://{}", self.server.address);
        self.post_from(&[("Origin", &origin), ("Sec-Fetch-Site", "same-origin")], path, form)
    }

    /// Sends a form with the headers by which a browser says where it is from.
    pub(crate) fn post_from(&self, from: &[(&str, &str)], path: &str, form: &str) -> Answer {
        let mut headers = vec![("Content-Type".to_owned(), "application/x-www-form-urlencoded".to_owned())];
        headers.extend(from.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        self.send("POST", path, headers, Some(form.as_bytes().to_vec()))
    }

    /// Sends a form of this session.
    pub(crate) fn post_own(&self, path: &str, fields: &str) -> Answer {
        self.post(path, &format!("form_token={}&{fields}", self.form_token()))
    }

    /// The text that every form of the session has.
    pub(crate) fn form_token(&self) -> String {
        let page = self.page("/ui/keys");
        page.split_once("name=\"form_token\" value=\"").unwrap().1.split_once('"').unwrap().0.to_owned()
    }

    /// Gets a page.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.send("GET", path, vec![("Accept".to_owned(), "text/html".to_owned())], None)
    }

    /// Gets a page that must be there.
    pub(crate) fn page(&self, path: &str) -> String {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        answer.text
    }

    fn send(&self, method: &str, path: &str, mut headers: Vec<(String, String)>, body: Option<Vec<u8>>) -> Answer {
        if !self.cookie.is_empty() {
            headers.push(("Cookie".to_owned(), self.cookie.clone()));
        }
        self.server.send(method, path, &headers, body)
    }
}
