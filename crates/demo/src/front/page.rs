//! The page before anything has happened: what can be changed is listed from the tables that decide about it.

use maud::{DOCTYPE, Markup, html};
use posthaste_units::Dscp;
use posthaste_wsqos::{Policy, Wish};
use serde::Serialize;

use crate::controls::{
    CAPACITY, COMPRESSIONS, Controls, KINDS, MARKS, MOST_BUDGET, MOST_DEMAND, Network, Protection,
};

/// The page; the script fills it. What changes each second is not read aloud.
pub(super) fn page() -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "posthaste demo" }
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/demo.css";
                script src="/demo.js" defer {}
            }
            body {
                a.skip href="#figures" { "Skip to the figures" }
                header {
                    div {
                        h1 { "posthaste" }
                        p {
                            "A bookshop that can answer " (CAPACITY) " requests a second, a gateway that guards it, a broker "
                            "that has its offers, and four kinds of clients on their networks. All of it is real, on this "
                            "machine. Ask for too much and see what happens."
                        }
                    }
                    p #state role="status" { "connecting" }
                }
                main {
                    (controls())
                    div #figures tabindex="-1" {
                        (figure("load", "Load", "How busy the shop is", &["100 %", "50", "0"]))
                        (figure("price", "Price", "EUR for a request; dashes are budgets", &["1.00", "0.50", "0"]))
                        (figure("times", "Response", "time for half, and 99 %, of those served", &["10 s", "100 ms", "1 ms"]))
                        (figure("compressed", "Compressed", "share of replies", &["100 %", "50", "0"]))
                    }
                    section #clients aria-label="Clients" {
                        @for (place, name) in KINDS.iter().enumerate() { (kind(place, name)) }
                    }
                    section #told {
                        section.card aria-labelledby="offers-title" {
                            h2 #offers-title { "Offers at the broker" }
                            table {
                                thead { tr { th scope="col" { "Offer" } th scope="col" { "Provider" } th.n scope="col" { "Price" } th.n scope="col" { "Holds for" } } }
                                tbody #offers {}
                            }
                        }
                        section.card aria-labelledby="marks-title" {
                            h2 #marks-title { "Marked packets" }
                            table {
                                thead { tr { th scope="col" { "DiffServ class" } th.n scope="col" { "Replies" } } }
                                tbody #marks {}
                            }
                        }
                        section.card aria-labelledby="news-title" {
                            h2 #news-title { "What happened" }
                            ol #news role="log" aria-live="polite" tabindex="0" aria-labelledby="news-title" {}
                        }
                    }
                }
                footer {
                    p {
                        "Networks are relays with delay and bandwidth of their profiles, without losses. This page and what it "
                        "looks at take " output #own aria-live="off" { "?" } " of a processor."
                    }
                }
                noscript { p.card { "This page lives by a script of its own server; please allow it." } }
            }
        }
    };
    page.into_string()
}

fn controls() -> Markup {
    let now = Controls::default();
    html! {
        form #controls.card aria-label="Controls" {
            div.field {
                label for="demand" { "Demand" }
                output #demand-value for="demand" {}
                input #demand type="range" min="0" max=(MOST_DEMAND) step="10" value=(now.demand) list="demands";
                datalist #demands { @for mark in [0, CAPACITY, 2 * CAPACITY, 3 * CAPACITY, MOST_DEMAND] { option value=(mark) {} } }
            }
            div.field {
                label for="protection" { "Protection" }
                select #protection {
                    @for choice in Protection::ALL { (option(&choice, choice.label())) }
                }
            }
            div.field {
                label for="compression" { "Compression" }
                select #compression {
                    @for choice in COMPRESSIONS { option value=(choice) { (in_words(choice)) } }
                }
            }
        }
    }
}

/// A chart with its scale: three marks, from the top down.
fn figure(id: &str, title: &str, about: &str, scale: &[&str; 3]) -> Markup {
    html! {
        figure.card id=(id) {
            figcaption {
                h2 { (title) }
                output aria-live="off" {}
                p { (about) }
            }
            div.chart {
                ul.scale aria-hidden="true" { @for mark in scale { li { (mark) } } }
                svg aria-hidden="true" viewBox="0 0 180 100" preserveAspectRatio="none" {}
            }
        }
    }
}

fn kind(place: usize, name: &str) -> Markup {
    let id = |what: &str| format!("{what}-{place}");
    html! {
        article.card.kind aria-labelledby=(id("name")) {
            h2 id=(id("name")) { (name) "s" }
            div.chart { svg aria-hidden="true" viewBox="0 0 180 100" preserveAspectRatio="none" {} }
            dl {
                @for (class, what) in [("served", "served"), ("dear", "too dear"), ("away", "no room"), ("failed", "failed")] {
                    div class=(class) { dt { (what) } dd { "0" } }
                }
            }
            p.times { output aria-live="off" {} }
            div.field {
                label for=(id("budget")) { "Pays" }
                output id=(id("budget-value")) for=(id("budget")) {}
                // One step beyond the highest budget is any price.
                input id=(id("budget")) type="range" min="0" max=(MOST_BUDGET + 5) step="5";
            }
            div.field {
                label for=(id("network")) { "Network" }
                select id=(id("network")) { @for network in Network::ALL { (option(&network, network.label())) } }
            }
            div.field {
                label for=(id("wish")) { "Compression" }
                select id=(id("wish")) { @for wish in Wish::ALL { option value=(wish) { (wish_in_words(wish)) } } }
            }
            div.field {
                label for=(id("mark")) { "Mark" }
                select id=(id("mark")) { @for mark in MARKS { (option(&mark, mark_in_words(mark))) } }
            }
        }
    }
}

/// An option with the value that JSON has.
fn option(value: &impl Serialize, label: &str) -> Markup {
    let value = serde_json::to_value(value).unwrap_or_default();
    html! { option value=(value.as_str().unwrap_or_default()) { (label) } }
}

const fn in_words(policy: Policy) -> &'static str {
    match policy {
        Policy::Never => "never",
        Policy::Always => "always",
        Policy::Threshold => "what the shop's load leaves room for",
        Policy::Ladder => "the same, better where there is plenty",
        Policy::Link => "where the line makes it arrive earlier",
    }
}

const fn wish_in_words(wish: Wish) -> &'static str {
    match wish {
        Wish::Never => "refused",
        Wish::Always => "asked for",
        Wish::IfPossible => "if possible",
        Wish::Unstated => "not mentioned",
    }
}

fn mark_in_words(mark: Dscp) -> &'static str {
    match mark {
        Dscp::EF => "EF (a call)",
        Dscp::AF21 => "AF21 (soon)",
        Dscp::AF11 => "AF11 (much)",
        Dscp::LE => "LE (last)",
        _ => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_outputs_of_controls_are_read_aloud() {
        let page = page();
        let outputs = page.split("<output").skip(1);
        let tags: Vec<&str> = outputs.filter_map(|rest| rest.split('>').next()).collect();
        let (controls, figures): (Vec<_>, Vec<_>) =
            tags.into_iter().partition(|tag| tag.contains(" for="));
        assert_eq!((controls.len(), figures.len()), (5, 9));
        for figure in figures {
            assert!(figure.contains("aria-live=\"off\""), "{figure}");
        }
    }
}
