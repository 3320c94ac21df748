//! The load generator: arrivals that never wait for the server, and accounting that adds up.
