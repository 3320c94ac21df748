//! What the shell rooms share: serving, TLS, cores, signals and a graceful end.
