//! The rules on the fields of a request.

use blake3::Hash;

use super::{files, review, wire::ReconciliationRequest};
use crate::model::Path;
use crate::model::decode::Decoded;
use crate::model::diagnostics::fault::add_new_faults;
use crate::reconcile::{LintLevels, check_new_source};
use crate::routing::TracedRequest;
use crate::server::handler_prelude::*;
use crate::server::operations::planned_change::empty_expectation;

/// A valid request, and the meaning of its fields.
pub(super) struct CheckedRequest {
    /// The request, without its allowed labels.
    pub(super) request: ReconciliationRequest,
    /// The digests of its files, in their order.
    pub(super) digests: Vec<Hash>,
    pub(super) to_trace: Option<TracedRequest>,
    pub(super) lints: LintLevels,
}

impl CheckedRequest {
    /// Checks a decoded request, and returns all of its faults if it has some.
    pub(super) fn new((request, mut found): Decoded<ReconciliationRequest>) -> Result<Self, ApiError> {
        let Some(mut request) = request else { return Err(ApiError::from_faults(found)) };
        let mut faults = Vec::new();
        faults.extend(check_new_source(&request.source).err().map(|fault| fault.at("source")));
        check_commit(&request, &mut faults);
        check_file_names(&request, &mut faults);
        let digests = files::digests(&request.files, &mut faults);
        let to_trace = review::checked(&request, &mut faults);
        faults.extend(empty_expectation(request.expect.as_deref(), request.dry_run));
        for (key, hash) in &request.token_hashes {
            if !files::is_hash(hash.expose()) {
                let fault = Fault::new(Code::InvalidFormat, "a hash must be 64 lower-case hexadecimal digits");
                faults.push(fault.at(["token_hashes", key.as_str()]));
            }
        }
        let lints = LintLevels::named(&request.lints, request.allowed_labels.take()).unwrap_or_else(|fault| {
            faults.push(fault.under(&Path::from("lints")));
            LintLevels::default()
        });
        let lints = LintLevels { certificate_expiry_days: request.certificate_expiry_days, ..lints };
        if request.assume_values && !request.dry_run {
            let fault = Fault::new(Code::NotAllowed, "assumed values cannot be applied").at("assume_values");
            faults.push(fault.help("set `dry_run`, or send the values"));
        }
        add_new_faults(&mut found, faults);
        ApiError::check(found)?;
        Ok(Self { request, digests, to_trace, lints })
    }
}

fn check_commit(request: &ReconciliationRequest, faults: &mut Vec<Fault>) {
    let of_commit = [
        ("commit", &request.commit, 255),
        ("commit_author_name", &request.commit_author_name, 1024),
        ("commit_author_email", &request.commit_author_email, 1024),
        ("commit_message", &request.commit_message, 1024),
    ];
    for (name, value, most) in of_commit {
        if value.len() > most || value.contains(char::is_control) {
            let message = format!("`{name}` must be at most {most} bytes without control characters");
            faults.push(Fault::new(Code::InvalidFormat, message).at(name));
        }
    }
}

fn check_file_names(request: &ReconciliationRequest, faults: &mut Vec<Fault>) {
    let mut names = BTreeMap::new();
    for (at, file) in request.files.iter().enumerate() {
        let path = Path::from(("files", at)).join("name");
        if file.name.is_empty() || file.name.len() > 4096 {
            faults.push(Fault::new(Code::InvalidFormat, "a file name must have 1 to 4096 bytes").at(path));
        } else if let Some(first) = names.insert((file.older, file.name.as_str()), at) {
            let fault = Fault::new(Code::DuplicateName, format!("duplicate file name (same as file {first})"));
            faults.push(fault.at(path));
        }
    }
}
