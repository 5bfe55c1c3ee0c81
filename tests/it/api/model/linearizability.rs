//! Whether what concurrent clients saw of one register can have happened in some order, each call at one moment between
//! its request and its answer (Wing and Gong, with Lowe's memory of states that were tried).

use std::collections::HashSet;

/// What a client asked of a register. Values are texts that no other write has, unless the register is a mark.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Get,
    /// Sets the value, whatever it was.
    Put(String),
    /// Sets the value of a register that has none.
    Create(String),
    Delete,
}

/// A call: when it began and ended, on a common clock, and what came back.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub from: u64,
    pub to: u64,
    pub operation: Operation,
    /// The value that the register must have (`If-Match`).
    pub condition: Option<String>,
    pub status: u16,
    /// The value in the answer.
    pub value: Option<String>,
}

/// The value of a register after a call, if the call can have happened now.
fn after(value: Option<&str>, call: &Call) -> Option<Option<String>> {
    let unchanged = value.map(str::to_owned);
    let (status, seen) = (call.status, call.value.as_deref());
    if let Operation::Get = &call.operation {
        let expected = if value.is_some() { 200 } else { 404 };
        return (status == expected && seen == value).then_some(unchanged);
    }
    if call.condition.is_some() && call.condition.as_deref() != value {
        return (status == 412).then_some(unchanged);
    }
    let (expected, becomes) = match (&call.operation, value) {
        (Operation::Put(new), _) => (200, Some(new.clone())),
        (Operation::Create(new), None) => (201, Some(new.clone())),
        (Operation::Create(_), Some(_)) => (409, unchanged),
        (Operation::Delete, Some(_)) => (204, None),
        (Operation::Delete | Operation::Get, _) => (404, unchanged),
    };
    (status == expected).then_some(becomes)
}

/// Whether some order explains all calls of a register that had no value.
pub(super) fn is_linearizable(calls: &[Call]) -> bool {
    let mut tried = HashSet::new();
    let mut open = vec![(vec![false; calls.len()], None::<String>)];
    while let Some((done, value)) = open.pop() {
        let pending: Vec<(usize, &Call)> = calls.iter().enumerate().filter(|(index, _)| !done[*index]).collect();
        // A call that began after another one had ended comes after it.
        let Some(first_end) = pending.iter().map(|(_, call)| call.to).min() else { return true };
        let mut next = Vec::new();
        for (index, call) in pending.into_iter().filter(|(_, call)| call.from <= first_end) {
            if let Some(value) = after(value.as_deref(), call) {
                let mut done = done.clone();
                done[index] = true;
                next.push((done, value));
            }
        }
        next.retain(|state| tried.insert(state.clone()));
        open.extend(next);
    }
    false
}

#[test]
fn an_order_is_found_or_there_is_none() {
    let call = |from, to, operation, status, value: Option<&str>| Call {
        from,
        to,
        operation,
        condition: None,
        status,
        value: value.map(str::to_owned),
    };
    let put = |from, to, value: &str| call(from, to, Operation::Put(value.to_owned()), 200, Some(value));
    let get = |from, to, value: &str| call(from, to, Operation::Get, 200, Some(value));
    assert!(is_linearizable(&[]));
    assert!(is_linearizable(&[put(0, 1, "a"), put(2, 5, "b"), get(3, 4, "a"), get(6, 7, "b")]));
    assert!(!is_linearizable(&[put(0, 1, "a"), put(2, 3, "b"), get(4, 5, "a")]), "a read of what was replaced");
    assert!(
        !is_linearizable(&[put(0, 1, "a"), put(2, 9, "b"), get(3, 4, "b"), get(5, 6, "a")]),
        "a read that goes back"
    );
    let compare = |from, to, known: &str, new: &str| Call { condition: Some(known.to_owned()), ..put(from, to, new) };
    assert!(is_linearizable(&[put(0, 1, "a"), compare(2, 5, "a", "b"), compare(3, 6, "b", "c")]));
    assert!(!is_linearizable(&[put(0, 1, "a"), compare(2, 5, "a", "b"), compare(3, 6, "a", "c")]), "a lost update");
}
