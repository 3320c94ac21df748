//! The reference service: books by ISBN as SOAP, page and JSON, with a capacity that can be set.
