//! A row of the specification: what is given, what is asked, and what must come back.
//!
//! A row is a short story of calls. `given` makes something and remembers its id under a name; `send` and `call` are
//! what the row is about, and what follows them says what the answer must be. In paths, headers and bodies `{name}`
//! stands for what was remembered; `{base}` is the base URL, `{n}` a number that no other row has, and `{admin}`,
//! `{editor}`, `{viewer}` are the owners of the three tokens. In an expected answer an unknown `{ak_}` stands for any
//! identifier with that prefix and is remembered, `{time}` for a time, `{token}` for a token, `{pem}` for a certificate.

use edgewright::server::{Endpoint, endpoints};
use serde_json::{Value, json};

use super::samples;

/// One line of the specification.
#[derive(Clone)]
pub(crate) struct Row {
    pub name: String,
    pub steps: Vec<Step>,
}

/// One call of a row, and what its answer must be.
#[derive(Clone)]
pub(crate) struct Step {
    pub method: String,
    pub path: String,
    pub token: String,
    pub body: Content,
    pub headers: Vec<(String, String)>,
    pub without: Vec<String>,
    pub expect: Expect,
    pub says: Vec<String>,
    pub hides: Vec<String>,
    pub shows: Vec<(String, Value)>,
    pub carries: Vec<(String, String)>,
    pub lacks: Vec<String>,
    pub keeps: Vec<(String, Captured)>,
}

/// What is sent.
#[derive(Clone)]
pub(crate) enum Content {
    Nothing,
    Json(Value),
    Bytes(Vec<u8>),
}

/// What must come back.
#[derive(Clone)]
pub(crate) enum Expect {
    /// Any success: the call only prepares the row.
    Given,
    /// A status, and the body key for key.
    Success(u16, Option<Value>),
    /// A refusal with these faults: code and field.
    Failure(u16, Vec<(String, String)>),
}

/// What is remembered of an answer.
#[derive(Clone)]
pub(crate) enum Captured {
    Field(String),
    Header(String),
}

/// Begins a row. Its name is a sentence that the calls prove.
pub(crate) fn row(name: impl Into<String>) -> Row {
    Row { name: name.into(), steps: Vec::new() }
}

/// The path of the route that [`Row::route`] makes.
pub(crate) const ROUTE: &str = "/edges/https/{edge}/routes/{route}";

impl Row {
    /// Makes something as the admin, and remembers its id.
    pub(crate) fn given(self, name: &str, call: &str, body: Value) -> Self {
        self.send(call, body).keep(name, "/id")
    }

    /// An HTTPS edge called `{edge}`.
    pub(crate) fn edge(self) -> Self {
        self.given("edge", "POST /edges/https", json!({}))
    }

    /// An HTTPS edge called `{edge}` with a route called `{route}`.
    pub(crate) fn route(self) -> Self {
        let body = json!({"match_type": "path_prefix", "match": "/"});
        self.edge().given("route", "POST /edges/https/{edge}/routes", body)
    }

    /// A certificate authority called `{ca}`.
    pub(crate) fn ca(self) -> Self {
        self.given("ca", "POST /certificate_authorities", json!({"ca_pem": samples::STAFF_CA}))
    }

    /// A call with a JSON body.
    pub(crate) fn send(self, call: &str, body: Value) -> Self {
        self.step(call, Content::Json(body))
    }

    /// A call without a body.
    pub(crate) fn call(self, call: &str) -> Self {
        self.step(call, Content::Nothing)
    }

    /// A call with a body that need not be JSON, declared as JSON unless a header says otherwise.
    pub(crate) fn send_bytes(self, call: &str, body: impl Into<Vec<u8>>) -> Self {
        self.step(call, Content::Bytes(body.into()))
    }

    /// A call whose query is refused, at a parameter unless the endpoint has none.
    pub(crate) fn refuses_query(self, call: &str, parameter: &str) -> Self {
        self.call(call).fails(400, "PARAMETER", parameter)
    }

    fn step(mut self, call: &str, body: Content) -> Self {
        let (method, path) = call.split_once(' ').unwrap();
        self.steps.push(Step {
            method: method.into(),
            path: path.into(),
            token: "{admin_token}".into(),
            body,
            headers: Vec::new(),
            without: Vec::new(),
            expect: Expect::Given,
            says: Vec::new(),
            hides: Vec::new(),
            shows: Vec::new(),
            carries: Vec::new(),
            lacks: Vec::new(),
            keeps: Vec::new(),
        });
        self
    }

    fn last(mut self, change: impl FnOnce(&mut Step)) -> Self {
        change(self.steps.last_mut().unwrap());
        self
    }

    /// Who calls: `editor`, `viewer`, or a token.
    pub(crate) fn by(self, who: &str) -> Self {
        let token = if ["admin", "editor", "viewer"].contains(&who) { format!("{{{who}_token}}") } else { who.into() };
        self.last(|step| step.token = token)
    }

    /// A header of the call, in the place of the usual one of that name.
    pub(crate) fn with(self, header: &str, value: &str) -> Self {
        self.last(|step| {
            step.without.push(header.to_lowercase());
            step.headers.push((header.into(), value.into()));
        })
    }

    /// Leaves a header out that every request carries.
    pub(crate) fn without(self, header: &str) -> Self {
        self.last(|step| step.without.push(header.to_lowercase()))
    }

    /// The answer has exactly this body.
    pub(crate) fn answers(self, status: u16, body: Value) -> Self {
        self.last(|step| step.expect = Expect::Success(status, Some(body)))
    }

    /// The answer has this status.
    pub(crate) fn succeeds(self, status: u16) -> Self {
        self.last(|step| step.expect = Expect::Success(status, None))
    }

    /// The answer is a refusal, and the body's field at fault is named by its JSON pointer (empty: no one field is).
    pub(crate) fn fails(self, status: u16, code: &str, field: &str) -> Self {
        self.last(|step| step.expect = Expect::Failure(status, vec![(code.into(), field.into())]))
    }

    /// Another fault in the same refusal.
    pub(crate) fn also(self, code: &str, field: &str) -> Self {
        self.last(|step| {
            if let Expect::Failure(_, faults) = &mut step.expect {
                faults.push((code.into(), field.into()));
            }
        })
    }

    /// The answer's text contains this.
    pub(crate) fn says(self, text: &str) -> Self {
        self.last(|step| step.says.push(text.into()))
    }

    /// The answer's text does not contain this.
    pub(crate) fn hides(self, text: &str) -> Self {
        self.last(|step| step.hides.push(text.into()))
    }

    /// The answer has this value at a JSON pointer.
    pub(crate) fn shows(self, pointer: &str, value: Value) -> Self {
        self.last(|step| step.shows.push((pointer.into(), value)))
    }

    /// The answer has a header with this value; other headers of the name may be there too.
    pub(crate) fn carries(self, header: &str, value: &str) -> Self {
        self.last(|step| step.carries.push((header.into(), value.into())))
    }

    /// The answer has no header of this name.
    pub(crate) fn lacks(self, header: &str) -> Self {
        self.last(|step| step.lacks.push(header.into()))
    }

    /// Remembers the text at a JSON pointer of the answer.
    pub(crate) fn keep(self, name: &str, pointer: &str) -> Self {
        self.last(|step| step.keeps.push((name.into(), Captured::Field(pointer.into()))))
    }

    /// Remembers the answer's ETag.
    pub(crate) fn keep_etag(self, name: &str) -> Self {
        self.last(|step| step.keeps.push((name.into(), Captured::Header("etag".into()))))
    }
}

impl Step {
    /// The endpoint that is called, if there is one.
    pub(crate) fn endpoint(&self) -> Option<Endpoint> {
        endpoints().into_iter().find(|endpoint| {
            let path = self.path.split('?').next().unwrap_or_default();
            let (here, there): (Vec<_>, Vec<_>) = (path.split('/').collect(), endpoint.path.split('/').collect());
            let fits = |(here, there): (&&str, &&str)| here == there || (there.starts_with('{') && !here.is_empty());
            self.method == endpoint.method && here.len() == there.len() && here.iter().zip(&there).all(fits)
        })
    }
}
