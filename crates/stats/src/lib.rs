//! What can honestly be said about a set of measured times.
