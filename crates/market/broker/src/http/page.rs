//! Status page for people: the state of the broker, and the offers with their prices.
//!
//! The page is data of the crate `draw`, which escapes all text: names come from providers. It works without scripts.
//! On a phone each offer is shown as a block of lines instead of a row. Module `status` collects the state.

use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use posthaste_draw::{Block, Cell, Page, Section, Table, Unit};
use posthaste_qos::index::{Found, Index};
use posthaste_qos::{Definition, Info, Offer};

use super::lookup::LISTED;

/// Maximum number of offers on the page, over all types.
const OFFERS: usize = 200;
/// Maximum number of interface types on the page.
const TYPES: usize = 100;
/// Maximum number of promises shown per offer.
const PROMISES: usize = 8;
/// Maximum number of characters of a provider's name or text. The linked offer has the full text.
const LETTERS: usize = 60;
/// Reload interval of the page, in seconds.
pub(super) const REFRESH: &str = "15";

/// Characters that a path segment does not escape (RFC 3986, section 2.3).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// The same for a query, which may also contain some delimiters unescaped (RFC 3986, section 3.4).
const QUERY: &AsciiSet = &SEGMENT.remove(b':').remove(b'/').remove(b'?').remove(b'@');

/// State of a broker, as text.
pub(super) struct BrokerStatus {
    /// Number of the last change applied to the offers.
    pub(super) change: u64,
    /// Label and sentence: in step with the source, or the time out of step.
    pub(super) step: (&'static str, String),
    /// Sentences on the answers given and on the UDDI registry.
    pub(super) remarks: Vec<String>,
    /// Broker that this one follows.
    pub(super) follows: Option<String>,
    /// Section with the measurements of gateways.
    pub(super) measured: Option<Section>,
}

/// Renders the page for the state and the offers in `index` at time `now`, as one HTML document.
pub(super) fn html(state: &BrokerStatus, index: &Index, now: Timestamp) -> String {
    let style = concat!("<style>", include_str!("page.css"), "</style></head>");
    page(state, index, now).html().replacen("</head>", style, 1)
}

fn page(state: &BrokerStatus, index: &Index, now: Timestamp) -> Page {
    let mut kinds: Vec<&str> = index.kinds().collect();
    kinds.sort_unstable();
    Page {
        title: "posthaste broker".to_owned(),
        lead: format!(
            "{} of {}, as of change {}.",
            counted(index.len(), "offer"),
            counted(kinds.len(), "type"),
            state.change
        ),
        opening: opening(state),
        sections: [Some(offers(index, &kinds, now)), state.measured.clone()]
            .into_iter()
            .flatten()
            .collect(),
        footer: format!(
            "posthaste {}. This page loads again every {REFRESH} s.",
            env!("CARGO_PKG_VERSION")
        ),
        ..Page::default()
    }
}

fn opening(state: &BrokerStatus) -> Vec<Block> {
    let mut blocks = vec![Block::Labelled(
        state.step.0.to_owned(),
        state.step.1.clone(),
    )];
    blocks.extend(state.remarks.iter().cloned().map(Block::Text));
    let links = [
        ("JSON", "/openapi.json"),
        ("SOAP", "/soap?wsdl"),
        ("Changes", "/v1/changes"),
        ("Accounts", "/accounts"),
        ("Metrics", "/metrics"),
    ];
    let links = links.map(|(text, address)| (text.to_owned(), address.to_owned()));
    let followed = state.follows.iter();
    let followed = followed.map(|upstream| ("Followed broker".to_owned(), upstream.clone()));
    blocks.push(Block::Links(links.into_iter().chain(followed).collect()));
    blocks
}

/// Section with the offers of each type.
fn offers(index: &Index, kinds: &[&str], now: Timestamp) -> Section {
    let mut section = Section::new("Offers");
    let text = if kinds.is_empty() {
        "There are none yet. The command posthaste offers put publishes some."
    } else {
        "Each type's cheapest offers first. Prices in other currencies are compared at this broker's rates; they \
         are shown as they were offered."
    };
    section.blocks.push(Block::Text(text.to_owned()));
    let shown = kinds.len().min(TYPES);
    let listed = &kinds[..shown];
    let counts: Vec<usize> = listed.iter().map(|kind| index.len_of(kind)).collect();
    let all = listed.iter().zip(shares(&counts, OFFERS));
    section.sections = all
        .map(|(kind, most)| of_type(index, kind, most, now))
        .collect();
    if kinds.len() > shown {
        let mut others = Section::new(format!("{} more types", number(kinds.len() - shown)));
        others
            .blocks
            .push(query(format!("offset={shown}&limit={}", LISTED.1)));
        section.sections.push(others);
    }
    section
}

/// Divides `room` rows among the types in equal shares. A type gets no more rows than it has offers.
fn shares(counts: &[usize], mut room: usize) -> Vec<usize> {
    let mut shares = vec![0; counts.len()];
    let mut smallest: Vec<usize> = (0..counts.len()).collect();
    smallest.sort_by_key(|index| counts[*index]);
    for (done, index) in smallest.into_iter().enumerate() {
        shares[index] = counts[index].min(room / (counts.len() - done));
        room -= shares[index];
    }
    debug_assert!(
        shares
            .iter()
            .zip(counts)
            .all(|(share, count)| share <= count),
        "a row without an offer"
    );
    shares
}

/// The `most` cheapest offers of a type, the number of all, and the query for all.
fn of_type(index: &Index, kind: &str, most: usize, now: Timestamp) -> Section {
    let mut section = Section::new(clipped(kind));
    let mut table = Table::new([
        "Offer",
        "Provider",
        "Price",
        "Quality of service",
        "Expires in",
    ]);
    let found: Vec<Found<'_>> = index.offers(kind).take(most).collect();
    // The index removes expired offers once a second.
    let holds = |found: &&Found<'_>| found.offer.expires > now;
    let rows = found.iter().filter(holds);
    table.rows = rows.map(|found| row(kind, found, now)).collect();
    section.blocks.push(Block::Table(table));
    let all = index.len_of(kind);
    if all > found.len() {
        let text = format!(
            "The cheapest {} of {}. All of them, at most {} with each query:",
            number(found.len()),
            counted(all, "offer"),
            number(LISTED.1)
        );
        section.blocks.push(Block::Text(text));
        let kind = utf8_percent_encode(kind, QUERY);
        section
            .blocks
            .push(query(format!("type={kind}&limit={}", LISTED.1)));
    }
    section
}

fn query(query: String) -> Block {
    let address = format!("/v1/offers?{query}");
    Block::Links(vec![(format!("GET {address}"), address)])
}

fn row(kind: &str, Found { provider, offer }: &Found<'_>, now: Timestamp) -> Vec<Cell> {
    let [kind, owner, name] =
        [kind, provider, &offer.name].map(|name| utf8_percent_encode(name, SEGMENT));
    let price = offer.qos.price.map(|price| price.to_string());
    vec![
        Cell::text(clipped(&offer.name)).link(format!("/v1/offers/{kind}/{owner}/{name}")),
        Cell::text(clipped(provider)),
        Cell::number(price.unwrap_or_default()),
        Cell::text(quality(&offer.qos)),
        Cell::number(left(offer, now)),
    ]
}

/// Promises of an offer, as text.
fn quality(qos: &Definition) -> String {
    let mut promises = Vec::new();
    promised(&qos.default, "", &mut promises);
    for (operation, info) in &qos.operations {
        promised(info, &format!("{}: ", clipped(operation)), &mut promises);
    }
    if !qos.contracts.is_empty() {
        promises.push(format!(
            "monitored by {}",
            counted(qos.contracts.len(), "contract")
        ));
    }
    let more = promises.len().saturating_sub(PROMISES);
    promises.truncate(PROMISES);
    if more > 0 {
        promises.push(format!("{more} more"));
    }
    if promises.is_empty() {
        "nothing promised".to_owned()
    } else {
        promises.join(", ")
    }
}

/// Promises for one operation, or for all operations that are not named.
fn promised(info: &Info, operation: &str, promises: &mut Vec<String>) {
    let Info {
        server,
        transport,
        security,
    } = info;
    let custom = server.custom.iter();
    let custom = custom.map(|custom| format!("{} {}", clipped(&custom.name), custom.value.get()));
    let server_values = [
        server
            .processing_time
            .map(|time| format!("processing time at most {time}")),
        server
            .requests_per_second
            .map(|rate| format!("throughput at least {rate}")),
        server
            .reliability
            .map(|share| format!("reliability {share}")),
        server
            .availability
            .map(|share| format!("availability {share}")),
    ];
    let server_values = server_values.into_iter().flatten().chain(custom);
    let priorities = [
        ("delay", transport.delay),
        ("jitter", transport.jitter),
        ("throughput", transport.throughput),
        ("packet loss", transport.packet_loss),
    ];
    let priorities = priorities
        .into_iter()
        .filter_map(|(name, priority)| Some(format!("{name} priority {}", priority?.get())));
    let own = transport.custom.iter();
    let own =
        own.map(|custom| format!("{} priority {}", clipped(&custom.name), custom.value.get()));
    let groups = security.iter().flat_map(|group| &group.protocols);
    let protocols = groups.map(|protocol| clipped(&protocol.name));
    let values = server_values.chain(priorities).chain(own).chain(protocols);
    promises.extend(values.map(|value| format!("{operation}{value}")));
}

/// Time until the offer expires, in its two largest units.
fn left(offer: &Offer, now: Timestamp) -> String {
    let seconds = offer.expires.as_second().saturating_sub(now.as_second());
    let parts = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let mut rest = seconds.max(0);
    let parts = parts.map(|(unit, size)| {
        let count = rest / size;
        rest %= size;
        (count, unit)
    });
    let first = parts
        .iter()
        .position(|(count, _)| *count > 0)
        .unwrap_or(parts.len() - 1);
    let largest = parts
        .iter()
        .skip(first)
        .take(2)
        .filter(|(count, unit)| *count > 0 || *unit == "s");
    let texts: Vec<String> = largest
        .map(|(count, unit)| format!("{count}\u{a0}{unit}"))
        .collect();
    texts.join(" ")
}

pub(super) fn clipped(name: &str) -> String {
    match name.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", number(count))
}

/// A count with commas.
fn number(count: usize) -> String {
    Unit::Count.exact(count as f64)
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use posthaste_qos::{Ontologies, Rates};

    use super::*;

    fn offer(name: &str, cents: u32, seconds: i64) -> Offer {
        let expires = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
        serde_json::from_value(serde_json::json!({
            "name": name,
            "expires": expires,
            "qos": {
                "defaultQoSInfo": { "serverQoSMetrics": { "processingTime": 100, "availability": 0.999 } },
                "price": { "amount": format!("{}.{:02}", cents / 100, cents % 100), "currency": "EUR" },
            },
        }))
        .unwrap()
    }

    fn html(index: &Index) -> String {
        let state = BrokerStatus {
            change: 7,
            step: ("In step", "with its store.".to_owned()),
            remarks: Vec::new(),
            follows: None,
            measured: None,
        };
        super::html(&state, index, Timestamp::UNIX_EPOCH)
    }

    fn index(offers: &[(&str, &str, Offer)]) -> Index {
        let mut index = Index::new(Rates::new("EUR".parse().unwrap()), Ontologies::default());
        for (kind, provider, offer) in offers {
            index.put(kind, provider, offer).unwrap();
        }
        index
    }

    #[test]
    fn offers_stand_by_price_with_their_promises() {
        let page = html(&index(&[
            ("books", "ada", offer("Gold", 40, 125)),
            ("books", "bob", offer("Silver", 5, 7_300)),
        ]));
        assert!(
            page.contains("2 offers of 1 type, as of change 7."),
            "{page}"
        );
        let index = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}: {page}"));
        assert!(index(">Silver<") < index(">Gold<"));
        for text in [
            "0.05 EUR",
            "processing time at most 100ms, availability 99.9%",
            "2\u{a0}min 5\u{a0}s",
            "2\u{a0}h 1\u{a0}min",
        ] {
            index(text);
        }
    }

    #[test]
    fn names_of_providers_are_escaped() {
        let page = html(&index(&[(
            "<script>alert(1)</script>",
            "\"><img src=x>",
            offer("a/b c?<b>", 1, 60),
        )]));
        for raw in ["<script>alert", "<img", "<b>"] {
            let own = Page::default().html();
            assert_eq!(page.matches(raw).count(), own.matches(raw).count(), "{raw}");
        }
        for escaped in [
            "&lt;script&gt;alert(1)&lt;/script&gt;",
            "&quot;&gt;&lt;img src=x&gt;",
        ] {
            assert!(page.contains(escaped), "{escaped}: {page}");
        }
        let address = "/v1/offers/%3Cscript%3Ealert%281%29%3C%2Fscript%3E/%22%3E%3Cimg%20src%3Dx%3E/a%2Fb%20c%3F%3Cb%3E";
        assert!(page.contains(address), "{page}");
    }

    #[test]
    fn a_large_type_leaves_room_for_others_and_says_how_many_more() {
        let mut offers: Vec<(&str, &str, Offer)> = (0..OFFERS as u32 + 1_000)
            .map(|cents| {
                (
                    "http://example.org/books",
                    "ada",
                    offer(&format!("Offer {cents}"), cents, 60),
                )
            })
            .collect();
        offers.push(("films", "bob", offer("Only", 9, 60)));
        let page = html(&index(&offers));
        assert!(
            page.contains(">Offer 198<") && !page.contains(">Offer 199<"),
            "the cheapest"
        );
        assert!(page.contains(">Only<"));
        assert!(page.contains("The cheapest 199 of 1,200 offers."), "{page}");
        assert!(
            page.contains("href=\"/v1/offers?type=http://example.org/books&amp;limit=10000\""),
            "{page}"
        );
    }

    #[test]
    fn small_types_leave_their_share_to_others() {
        assert_eq!(shares(&[300, 2, 1], 200), [197, 2, 1]);
        assert_eq!(shares(&[300, 400], 200), [100, 100]);
        assert_eq!(shares(&[5, 5], 200), [5, 5]);
        assert_eq!(shares(&[], 200), [0; 0]);
    }

    #[test]
    fn more_types_than_have_room_are_a_query() {
        let kinds: Vec<String> = (0..TYPES + 3)
            .map(|kind| format!("type {kind:03}"))
            .collect();
        let offers = kinds
            .iter()
            .map(|kind| (kind.as_str(), "ada", offer("Only", 1, 60)));
        let page = html(&index(&offers.collect::<Vec<_>>()));
        assert!(
            page.contains(">type 099 ") && !page.contains(">type 100 "),
            "{page}"
        );
        assert!(
            page.contains(">3 more types ")
                && page.contains("/v1/offers?offset=100&amp;limit=10000")
        );
    }

    #[test]
    fn an_empty_broker_says_so() {
        assert!(html(&index(&[])).contains("There are none yet"));
    }

    #[test]
    fn expired_offers_are_not_shown() {
        let page = html(&index(&[
            ("books", "ada", offer("Old", 1, 0)),
            ("books", "ada", offer("New", 2, 1)),
        ]));
        assert!(!page.contains(">Old<") && page.contains(">New<"));
    }
}
