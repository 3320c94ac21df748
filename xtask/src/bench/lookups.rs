//! The best offer found by our index and by databases that are asked for each request, in turns, by the study.

use crate::bench::figures::claims;
use crate::bench::{Bench, Figure};
use crate::postgres::Postgres;
use crate::trouble::Outcome;

/// Beside SQLite and PostgreSQL, whose answers have to be ours.
pub(crate) fn lookups(bench: &Bench) -> Outcome<Vec<Figure>> {
    let postgres = Postgres::start(&bench.site)?;
    let url = format!("{}/postgres", postgres.socket_url());
    let variables = [("POSTHASTE_POSTGRES", url.as_str())];
    claims(bench, &["wsqos/lookups-2026"], &variables)
}
