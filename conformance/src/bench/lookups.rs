//! Lookups of the best offer, by our index and by databases queried for each request, in turns, in the study.

use crate::bench::figures::claims;
use crate::bench::{Bench, Figure};
use crate::error::Outcome;
use crate::postgres::Postgres;

/// Compared with SQLite and PostgreSQL, whose answers must equal ours.
pub(crate) fn lookups(bench: &Bench) -> Outcome<Vec<Figure>> {
    let postgres = Postgres::start(&bench.site)?;
    let url = format!("{}/postgres", postgres.socket_url());
    let variables = [("POSTHASTE_POSTGRES", url.as_str())];
    claims(bench, &["wsqos/lookups-2026"], &variables)
}
