//! The builder of an operation of the document.

use serde_json::{Map, Value, json};

use crate::model::json::without_nulls;

const NOT_MODIFIED: &str = "Not modified: the client's copy is current (`If-None-Match`).";
const CLIENTS_ETAG: &str = "The ETag of the client's copy.";

/// An operation of the document.
pub(crate) struct OperationDocument {
    fields: Map<String, Value>,
    parameters: Vec<Value>,
    body: Option<Value>,
    successes: Map<String, Value>,
}

impl OperationDocument {
    /// Starts an operation without parameters, body and responses.
    pub(crate) fn new(tag: &str, id: &str, summary: &str, description: &str) -> Self {
        let fields = [
            ("operationId", json!(id)),
            ("summary", json!(summary)),
            ("description", json!(description)),
            ("tags", json!([tag])),
        ];
        Self {
            fields: fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            parameters: Vec::new(),
            body: None,
            successes: Map::new(),
        }
    }

    /// Marks an operation that the API specification lacks.
    pub(crate) fn extension(mut self) -> Self {
        self.fields.insert("x-extension".to_owned(), json!(true));
        self
    }

    /// Makes it an operation without an API key.
    pub(crate) fn without_key(mut self) -> Self {
        self.fields.insert("security".to_owned(), json!([]));
        self
    }

    /// Adds a parameter with what describes it.
    pub(crate) fn parameter(mut self, name: &str, place: &str, described: Value) -> Self {
        let mut parameter = json!({"name": name, "in": place});
        if let (Some(parameter), Value::Object(described)) = (parameter.as_object_mut(), described) {
            parameter.extend(described);
        }
        self.parameters.push(parameter);
        self
    }

    /// Adds query parameters with what describes them.
    pub(crate) fn query(self, parameters: Vec<(&str, Value)>) -> Self {
        parameters.into_iter().fold(self, |operation, (name, described)| operation.parameter(name, "query", described))
    }

    /// Adds a header of the request.
    pub(crate) fn request_header(self, name: &str, description: &str) -> Self {
        self.parameter(name, "header", header(description))
    }

    /// Sets the request body.
    pub(crate) fn body(self, schema: Value, example: Value) -> Self {
        self.with_body(true, schema, Some(example))
    }

    /// Sets a request body that can be left out.
    pub(crate) fn optional_body(self, schema: Value, example: Value) -> Self {
        self.with_body(false, schema, Some(example))
    }

    /// Sets the request body.
    pub(super) fn with_body(mut self, is_required: bool, schema: Value, example: Option<Value>) -> Self {
        let media = without_nulls(json!({"schema": schema, "example": example}));
        self.body = Some(json!({"required": is_required, "content": {"application/json": media}}));
        self
    }

    /// Adds the response with status 200.
    pub(crate) fn ok(self, schema: Value) -> Self {
        self.responds("200", "OK", schema)
    }

    /// Adds a response with a JSON body.
    pub(crate) fn responds(self, status: &str, description: &str, schema: Value) -> Self {
        self.responds_with(status, description, "application/json", schema)
    }

    /// Adds a response with a body of a media type.
    pub(crate) fn responds_with(mut self, status: &str, description: &str, media_type: &str, schema: Value) -> Self {
        let response = json!({"description": description, "content": {media_type: {"schema": schema}}});
        self.successes.insert(status.to_owned(), response);
        self
    }

    /// Adds a response without a body.
    pub(super) fn responds_empty(mut self, status: &str, description: &str) -> Self {
        self.successes.insert(status.to_owned(), json!({"description": description}));
        self
    }

    /// Adds a header to a response.
    pub(crate) fn header(mut self, status: &str, name: &str, description: &str) -> Self {
        if let Some(Value::Object(response)) = self.successes.get_mut(status)
            && let Some(headers) = response.entry("headers").or_insert_with(|| json!({})).as_object_mut()
        {
            headers.insert(name.to_owned(), header(description));
        }
        self
    }

    /// Adds an ETag to the response with status 200.
    pub(crate) fn tagged(self) -> Self {
        self.header("200", "ETag", "The strong ETag of the response.")
    }

    /// Adds an ETag, and the response to a client whose copy is current.
    pub(crate) fn conditional(self) -> Self {
        self.responds_empty("304", NOT_MODIFIED).tagged().request_header("If-None-Match", CLIENTS_ETAG)
    }

    /// Makes it an operation without an API key, whose response has no form that clients know.
    pub(crate) fn open(self, media_type: &str) -> Self {
        let form = if media_type == "text/plain" { "string" } else { "object" };
        self.without_key().responds_with("200", "OK", media_type, json!({"type": form}))
    }

    /// Returns the operation with its errors, by their statuses.
    pub(crate) fn build(self, failures: &str) -> Value {
        let Self { mut fields, parameters, body, successes } = self;
        let refer = |status: &str| (status.to_owned(), json!({"$ref": format!("#/components/responses/{status}")}));
        if !parameters.is_empty() {
            fields.insert("parameters".to_owned(), Value::Array(parameters));
        }
        fields.extend(body.map(|body| ("requestBody".to_owned(), body)));
        let responses = failures.split(' ').map(refer).chain(successes).collect();
        fields.insert("responses".to_owned(), Value::Object(responses));
        Value::Object(fields)
    }
}

/// A header, which is a text. The API specification has none but those of authentication.
fn header(description: &str) -> Value {
    json!({"description": description, "schema": {"type": "string"}, "x-extension": true})
}
