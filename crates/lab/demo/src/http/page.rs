//! Initial page. Its controls are generated from the tables that validate them.

use maud::{DOCTYPE, Markup, html};
use posthaste_compression::{Policy, Wish};
use posthaste_units::Dscp;
use serde::Serialize;

use crate::controls::{
    AdmissionPolicy, CAPACITY, COMPRESSIONS, ClientNetwork, Controls, KINDS, MARKS, MOST_BUDGET,
    MOST_DEMAND,
};

/// Seconds shown by a chart, as in the script.
const SHOWN: u32 = 180;
/// Labels of the time axis, at equal distances. The script draws a tick at each.
const TIME: [&str; 4] = ["180 s", "120 s", "60 s ago", "now"];
/// CSS class of the area below a line.
const AREA: &str = "area";
/// Outcomes of requests: name in the script and style sheet, and label for visitors.
const OUTCOMES: [(&str, &str); 4] = [
    ("served", "served"),
    ("dear", "price above maximum"),
    ("away", "rejected: no capacity"),
    ("failed", "failed"),
];

/// A chart of the whole system.
struct PageChart {
    id: &'static str,
    title: &'static str,
    about: &'static str,
    /// Labels of its scale, from top to bottom.
    scale: [&'static str; 3],
    keys: &'static [LegendEntry],
}

/// An entry of a legend.
struct LegendEntry {
    name: &'static str,
    unit: &'static str,
    /// CSS classes of the shapes that the script draws for it.
    classes: &'static [&'static str],
}

const FIGURES: [PageChart; 4] = [
    PageChart {
        id: "load",
        title: "Load",
        about: "Busy share of the shop",
        scale: ["100 %", "50 %", "0 %"],
        keys: &[LegendEntry {
            name: "busy",
            unit: "% of time",
            classes: &[AREA, "line"],
        }],
    },
    PageChart {
        id: "price",
        title: "Price",
        about: "For a request, set by the gateway",
        scale: ["1.00", "0.50", "0.00"],
        keys: &[
            LegendEntry {
                name: "price",
                unit: "EUR",
                classes: &[AREA, "line"],
            },
            LegendEntry {
                name: "maximum of a kind of client",
                unit: "EUR",
                classes: &["budget"],
            },
        ],
    },
    PageChart {
        id: "times",
        title: "Response",
        about: "Of served requests, logarithmic",
        scale: ["10 s", "100 ms", "1 ms"],
        keys: &[
            LegendEntry {
                name: "p50",
                unit: "ms",
                classes: &["line"],
            },
            LegendEntry {
                name: "p99",
                unit: "ms",
                classes: &["second"],
            },
        ],
    },
    PageChart {
        id: "compressed",
        title: "Compressed",
        about: "By the gateway",
        scale: ["100 %", "50 %", "0 %"],
        keys: &[LegendEntry {
            name: "compressed",
            unit: "% of replies",
            classes: &[AREA, "line"],
        }],
    },
];

/// The page, to be filled by the script. Screen readers do not announce values that change every second.
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
                        @for shown in &FIGURES { (figure(shown)) }
                    }
                    section #clients aria-label="Clients" {
                        @for (number, name) in KINDS.iter().enumerate() { (kind(number, name)) }
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
                    @for choice in AdmissionPolicy::ALL { (option(&choice, choice.label())) }
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

fn figure(shown: &PageChart) -> Markup {
    html! {
        figure.card id=(shown.id) {
            figcaption {
                h2 { (shown.title) }
                output aria-live="off" {}
                p { (shown.about) }
            }
            (chart(&shown.scale))
            ul.legend {
                @for LegendEntry { name, unit, classes } in shown.keys {
                    li {
                        svg.sample aria-hidden="true" viewBox="0 0 28 12" {
                            @for class in *classes {
                                path class=(class) d=(if *class == AREA { "M0 6H28V12H0Z" } else { "M0 6H28" }) {}
                            }
                        }
                        (name) ", " (unit)
                    }
                }
            }
        }
    }
}

/// A plot that the script fills, with its two axes.
fn chart(scale: &[&str]) -> Markup {
    html! {
        div.chart {
            ul.scale aria-hidden="true" { @for mark in scale { li { (mark) } } }
            svg aria-hidden="true" viewBox=(format!("0 0 {SHOWN} 100")) preserveAspectRatio="none" {}
            ol.time aria-hidden="true" { @for mark in TIME { li { (mark) } } }
        }
    }
}

fn kind(number: usize, name: &str) -> Markup {
    let id = |part: &str| format!("{part}-{number}");
    html! {
        article.card.kind aria-labelledby=(id("name")) {
            h2 id=(id("name")) { (name) "s" }
            p.about { "Requests per second, by outcome" }
            // The script sets the top of the scale.
            (chart(&["", "0"]))
            dl { @for (class, meaning) in OUTCOMES { div class=(class) { dt { (meaning) } dd { "0/s" } } } }
            p.times { output aria-live="off" {} }
            div.field {
                label for=(id("budget")) { "Pays" }
                output id=(id("budget-value")) for=(id("budget")) {}
                // One step above the maximum budget means any price.
                input id=(id("budget")) type="range" min="0" max=(MOST_BUDGET + 5) step="5";
            }
            div.field {
                label for=(id("network")) { "Network" }
                select id=(id("network")) { @for network in ClientNetwork::ALL { (option(&network, network.label())) } }
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

/// An option with the value used in JSON.
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
    fn every_chart_has_a_time_axis_and_a_legend() {
        let page = page();
        let charts = page.matches("class=\"chart\"").count();
        assert_eq!(charts, FIGURES.len() + KINDS.len());
        assert_eq!(page.matches("<li>60 s ago</li>").count(), charts);
        for legend in [
            "busy, % of time",
            "maximum of a kind of client, EUR",
            "p99, ms",
            "compressed, % of replies",
        ] {
            assert!(page.contains(legend), "{legend}");
        }
        let outcomes = page.matches("<dt>price above maximum</dt>").count();
        assert_eq!(outcomes, KINDS.len());
    }

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
