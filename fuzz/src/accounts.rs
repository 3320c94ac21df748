//! Requests and replies about accounts: what is read is written so that it reads back, and memory is in proportion.

use posthaste_broker_client::accounts::{
    AccountChange, ChargeRecord, ChargeReport, NewAccount, ReportReply, fault_of_account_name,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::within;

/// Bytes that may be allocated for each byte read: a short charge is a record of some 100 bytes, in a growing list.
const PER_BYTE: usize = 100;

/// Bytes that may be allocated whatever the length.
const FIXED: usize = 16 << 10;

/// Any bytes as each kind of message.
pub fn accounts(bytes: &[u8]) {
    round_trip::<ChargeReport>(bytes);
    round_trip::<ReportReply>(bytes);
    round_trip::<AccountChange>(bytes);
    round_trip::<ChargeRecord>(bytes);
    if let Some(account) = round_trip::<NewAccount>(bytes)
        && fault_of_account_name(&account.name).is_none()
    {
        let name = &account.name;
        assert!(
            name.len() <= 64 && name.parse::<std::net::IpAddr>().is_err(),
            "{name}"
        );
        assert!(!name.contains([',', '"', ' ', '\n', '/', ':']), "{name}");
    }
}

/// Reads a message and writes it again.
fn round_trip<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(
    bytes: &[u8],
) -> Option<T> {
    let read = within("accounts", bytes.len(), PER_BYTE, FIXED, || {
        serde_json::from_slice::<T>(bytes)
    });
    let read = read.ok()?;
    let again = serde_json::to_vec(&read).expect("what is read can be written");
    let twice: T = serde_json::from_slice(&again).expect("what is written can be read");
    assert_eq!(twice, read);
    Some(read)
}
