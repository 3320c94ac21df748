//! Plans of runs from messages: what is read is valid, within its limits, and written the same.

use posthaste_load::{Pace, Plan};

use crate::within;

/// Bytes that may be allocated for each byte read: a row of data is a map, a file of a schema has its tables.
const PER_BYTE: usize = 2_048;

/// Bytes that may be allocated whatever the length: a schema may import files that are known without it.
const FIXED: usize = 8 << 20;

/// Any bytes as a plan.
pub fn plan(bytes: &[u8]) {
    let read = within("plan", bytes.len(), PER_BYTE, FIXED, || {
        serde_json::from_slice::<Plan>(bytes)
    });
    let plan = match read {
        Ok(plan) => plan,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    plan.validate().expect("a plan that was read is valid");
    let form = serde_json::to_vec(&plan).expect("what is read can be written");
    let again: Plan = serde_json::from_slice(&form).expect("what is written can be read");
    let twice = serde_json::to_vec(&again).expect("what is read can be written");
    assert!(twice == form, "it is written in another way");
    assert!(plan.threads > 0 && plan.connection_limit > 0 && !plan.requests.is_empty());
    let total: f64 = plan.requests.iter().map(|request| request.weight).sum();
    assert!(total.is_finite() && total > 0.0, "the weights have no sum");
    assert_eq!(again.length(), plan.length());
    assert_eq!(again.expected(), plan.expected());
    assert_eq!(
        plan.expected().is_none(),
        matches!(plan.pace, Pace::Closed { .. })
    );
}
