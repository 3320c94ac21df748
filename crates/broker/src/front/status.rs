//! For those who watch over a broker: the page, the counters, and whether it is well.

use hyper::StatusCode;
use maud::{DOCTYPE, Markup, html};
use posthaste_serve::exposition;

use super::Front;
use super::problem::Problem;
use super::reply::Reply;
use crate::metrics;
use crate::uddi::Directory;

/// Types of interface that the page lists.
const SHOWN: usize = 100;

impl Front {
    /// The page that a person reads.
    pub(super) fn status(&self) -> Reply {
        let house = &*self.house;
        let seen = house.registry.seen();
        let mut kinds: Vec<(&str, usize)> = seen
            .index
            .kinds()
            .map(|kind| (kind, seen.index.len_of(kind)))
            .collect();
        kinds.sort_unstable();
        let (found, none) = house.metrics.answers();
        let of = match &house.follows {
            Some(upstream) => html! { a href=(upstream) { (upstream) } ", which it follows" },
            None => html! { "its store" },
        };
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta http-equiv="refresh" content="5";
                    title { "posthaste broker" }
                    style { "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#222}" "td,th{text-align:left;padding:.15rem 1.5rem .15rem 0}td.n{text-align:right}.late{color:#a00}" }
                }
                body {
                    h1 { "posthaste broker" }
                    p {
                        (seen.index.len()) " offers of " (kinds.len()) " types of interface, as of change " (seen.number) ". "
                        (found) " questions answered with an offer, " (none) " with the reasons against what there is."
                    }
                    @match house.registry.age() {
                        Some(age) => p.late { "Out of step with " (of) " for " (age.as_secs()) " s: what is told here is that old." @if house.follows.is_none() { " Nothing can be published." } },
                        None => p { "In step with " (of) "." },
                    }
                    @if let Some(directory) = &house.directory { (registry(directory)) }
                    table {
                        tr { th { "Type of interface" } th { "Offers" } }
                        @for (kind, count) in kinds.iter().take(SHOWN) {
                            tr { td { (kind) } td.n { (count) } }
                        }
                    }
                    @if kinds.len() > SHOWN { p { "and " (kinds.len() - SHOWN) " more types" } }
                    p {
                        a href="/openapi.json" { "JSON" } ", " a href="/soap?wsdl" { "SOAP" } ", "
                        a href="/v1/changes" { "the stream of changes" } ", " a href="/metrics" { "metrics" }
                    }
                }
            }
        };
        Reply::new(
            StatusCode::OK,
            "text/html; charset=utf-8",
            page.into_string(),
        )
    }

    /// The counters.
    pub(super) fn metrics(&self) -> Reply {
        Reply::new(
            StatusCode::OK,
            exposition::MEDIA_TYPE,
            metrics::text(&self.house),
        )
    }

    /// 200 while lookups see what is in the store; also where nothing can be published on a full disk.
    pub(super) fn health(&self) -> Result<Reply, Problem> {
        match self.house.registry.trouble() {
            None => Ok(Reply::new(
                StatusCode::OK,
                "text/plain; charset=utf-8",
                "ok\n",
            )),
            Some(trouble) => Err(Problem::later(trouble)),
        }
    }
}

/// What is known of the registry of services.
fn registry(directory: &Directory) -> Markup {
    let states = directory.states();
    let [(_, taken), others @ ..] = states.services;
    let others: u64 = others.iter().map(|(_, count)| count).sum();
    html! {
        p {
            "The registry " a href=(directory.location) { (directory.location) } " names " (taken) " services of "
            (states.kinds) " types that are fetched from, " (others) " that are not, and " (states.trusted) " trusted providers"
            @match states.age {
                Some(age) => { ", as of " (age.as_secs()) " s ago." },
                None => { ": it has not told all of it yet." },
            }
        }
        @if let Some(words) = states.trouble { p.late { "It does not answer: " (words) ". What is known stands." } }
    }
}
