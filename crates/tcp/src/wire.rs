//! Segments as IP packets, and back.
