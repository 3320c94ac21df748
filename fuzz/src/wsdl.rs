//! A service's description: every operation either says why it cannot be called, or makes requests
//! that are read as they were meant.

use posthaste_soap::wsdl::{self, EnvelopeError, Field, Input, Operation, Wrapper};
use posthaste_soap::{Refusal, Request};

use crate::envelope::GENEROUS;
use crate::within;

/// Bytes that may be allocated for each byte read: an element of twelve bytes repeats the
/// namespace of its schema, at most 1 KiB, in several places.
const PER_BYTE: usize = 600;

/// Bytes that may be allocated whatever the length: what may be linked, and first buffers.
const FIXED: usize = 80 << 20;

/// A value that needs every kind of escaping.
const VALUE: &str = " a<b>&\"'\r\n\té]]>\u{1F4DA} ";

/// Operations of one description that are called, and fields of one operation that are filled in.
const CALLED: usize = 64;

/// Any bytes as a description.
pub fn wsdl(bytes: &[u8]) {
    let read = within("wsdl::read", bytes.len(), PER_BYTE, FIXED, || {
        wsdl::read(bytes)
    });
    let description = match read {
        Ok(description) => description,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let ports = || {
        description
            .services
            .iter()
            .flat_map(|service| &service.ports)
    };
    assert!(ports().next().is_some(), "a description has a port");
    for port in ports() {
        for operation in port.operations.iter().take(CALLED) {
            assert_eq!(operation.version, port.version);
            assert!(
                description
                    .find(&operation.name, Some(port.version))
                    .is_ok()
            );
            call(operation);
        }
    }
}

fn call(operation: &Operation) {
    let version = operation.version;
    match &operation.input {
        Input::Unusable(reason) => {
            assert!(!reason.is_empty());
            let refused = operation.envelope(version, &[]);
            assert!(matches!(refused, Err(EnvelopeError::Unusable { .. })));
        }
        Input::Empty => {
            let text = operation
                .envelope(version, &[])
                .expect("nothing is asked for");
            let read = Request::read(&text, version, &GENEROUS, &[]);
            assert_eq!(read.err(), Some(Refusal::EmptyBody));
        }
        Input::Wrapper(wrapper) if wrapper.fields.len() <= CALLED => fill(operation, wrapper),
        Input::Wrapper(_) => {}
    }
}

/// Gives every plain field a value and compares what arrives.
fn fill(operation: &Operation, wrapper: &Wrapper) {
    let version = operation.version;
    let mut names: Vec<&str> = wrapper
        .fields
        .iter()
        .filter(|field| field.kind.is_some())
        .map(|field| &*field.name)
        .collect();
    names.sort_unstable();
    names.dedup();
    let given = |field: &Field| names.contains(&&*field.name);
    let values: Vec<(&str, &str)> = names.iter().map(|name| (*name, VALUE)).collect();
    let made = operation.envelope(version, &values);

    let structured = |field: &Field| {
        field.kind.is_none() && (given(field) || !(field.optional || field.nillable))
    };
    if wrapper.fields.iter().any(structured) {
        assert!(
            matches!(made, Err(EnvelopeError::Structured { .. })),
            "{made:?}"
        );
        return;
    }
    let text = made.unwrap_or_else(|error| panic!("{error}: {operation:?}"));
    let request = Request::read(&text, version, &GENEROUS, &[])
        .unwrap_or_else(|refusal| panic!("{refusal}: {text}"));
    assert!(
        request.operation.is(&wrapper.namespace, &wrapper.name),
        "{text}"
    );
    let sent = wrapper
        .fields
        .iter()
        .filter(|field| given(field) || !field.optional);
    let sent: Vec<(&str, &str, &str)> = sent
        .map(|field| {
            let value = if given(field) { VALUE } else { "" };
            (
                field.namespace.as_deref().unwrap_or_default(),
                &*field.name,
                value,
            )
        })
        .collect();
    let arrived = request.fields.iter();
    let arrived: Vec<(&str, &str, &str)> = arrived
        .map(|field| {
            let text = field.text.as_deref().expect("a plain field has a text");
            (&*field.name.namespace, field.name.local, text)
        })
        .collect();
    assert_eq!(arrived, sent, "{text}");

    let unknown = operation.envelope(version, &[("no such field", "")]);
    assert!(matches!(unknown, Err(EnvelopeError::Unknown { .. })));
}
