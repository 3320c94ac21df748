//! A page: one HTML file with everything in it, for a screen, a phone or paper.
//!
//! The page is complete without scripts; the one it carries adds a choice of theme and a legend
//! that hides series. It asks nothing of any network. What stands in a page is data
//! ([`Block`]), so that callers write no HTML; what a sentence claims is left to them.

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::bars::Bars;
use crate::chart::Chart;
use crate::ink;

/// A whole page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The title, in the heading and in the browser's tab.
    pub title: String,
    /// A sentence or two beneath the title.
    pub lead: String,
    /// What stands above the table of contents.
    pub opening: Vec<Block>,
    /// The sections, in the table of contents when there is more than one.
    pub sections: Vec<Section>,
    /// A line at the end: what made the page.
    pub footer: String,
}

/// A part of a page with a heading.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// How it stands, shown beside the heading and in the table of contents.
    pub state: Option<State>,
    /// What is in it.
    pub blocks: Vec<Block>,
    /// Sections within, one level deeper and not in the table of contents.
    pub sections: Vec<Section>,
}

/// How something stands: always a symbol and a word, never a colour alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As it should be.
    Pass(&'static str),
    /// Not as it should be.
    Fail(&'static str),
    /// Worth knowing, no failure.
    Note(&'static str),
    /// Not there yet.
    Pending(&'static str),
}

/// A piece of a page.
#[derive(Clone, Debug)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// A paragraph after a bold word or two: "What differs".
    Labelled(String, String),
    /// Key figures side by side.
    Cards(Vec<Card>),
    /// A table.
    Table(Table),
    /// A chart, with its numbers in a table that can be opened.
    Chart(Box<Chart>),
    /// A chart of bars, with its numbers in a table that can be opened.
    Bars(Box<Bars>),
    /// Sentences that hold or do not.
    Verdicts(Vec<Verdict>),
    /// Something to type or to copy.
    Code(String),
    /// Links side by side: words and a relative address.
    Links(Vec<(String, String)>),
    /// What opens when its summary is chosen.
    Details(String, Vec<Block>),
}

/// A key figure.
#[derive(Clone, Debug, Default)]
pub struct Card {
    /// What it is.
    pub label: String,
    /// The figure with its unit.
    pub value: String,
    /// A remark beneath: an interval, a comparison. May be empty.
    pub remark: String,
}

/// A sentence and whether it holds.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Whether it holds.
    pub state: State,
    /// The sentence, with its numbers.
    pub sentence: String,
}

/// A table with a heading row.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What it shows; may be empty.
    pub caption: String,
    /// The heading row.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

/// How a cell's words stand in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// At the left: words.
    #[default]
    Left,
    /// At the right, in figures of equal width: numbers.
    Right,
}

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// What it says.
    pub words: String,
    /// On which side.
    pub align: Align,
    /// Where it leads, as a relative address.
    pub link: Option<String>,
    /// How it stands; shown before the words.
    pub state: Option<State>,
}

impl Cell {
    /// Words.
    pub fn text(words: impl Into<String>) -> Self {
        Self {
            words: words.into(),
            ..Self::default()
        }
    }

    /// A number, already printed.
    pub fn number(words: impl Into<String>) -> Self {
        Self {
            align: Align::Right,
            ..Self::text(words)
        }
    }

    /// A state.
    pub fn state(state: State) -> Self {
        Self {
            state: Some(state),
            ..Self::default()
        }
    }

    /// The same cell as a link.
    pub fn link(mut self, address: impl Into<String>) -> Self {
        self.link = Some(address.into());
        self
    }
}

impl Table {
    /// A table without rows.
    pub fn new<T: Into<String>>(head: impl IntoIterator<Item = T>) -> Self {
        Self {
            head: head.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}

impl Section {
    /// A section without content.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }

    /// The address of this section within its page, when no other has the same title.
    pub fn anchor(&self) -> String {
        format!("#{}", slug(&self.title))
    }
}

impl State {
    fn parts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Pass(word) => ("pass", "✓", word),
            Self::Fail(word) => ("fail", "✗", word),
            Self::Note(word) => ("note", "≠", word),
            Self::Pending(word) => ("pending", "…", word),
        }
    }

    fn badge(self) -> Markup {
        let (class, symbol, word) = self.parts();
        html! {
            span class=(format!("state {class}")) {
                span aria-hidden="true" { (symbol) } " " (word)
            }
        }
    }
}

impl Page {
    /// The page as one HTML document.
    pub fn html(&self) -> String {
        let anchors = &mut Anchors::default();
        let sections: Vec<(Markup, Markup)> = self
            .sections
            .iter()
            .map(|section| section_markup(section, 2, anchors))
            .collect();
        html! {
            (DOCTYPE)
            html lang="en-GB" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) }
                    style { (PreEscaped(ink::chart_style())) (PreEscaped(include_str!("page.css"))) }
                }
                body {
                    a class="skip" href="#content" { "To the content" }
                    header {
                        h1 { (self.title) }
                        @if !self.lead.is_empty() { p class="lead" { (self.lead) } }
                    }
                    main id="content" {
                        (blocks(&self.opening))
                        @if self.sections.len() > 1 {
                            nav aria-label="Contents" class="contents" {
                                ol { @for (entry, _) in &sections { li { (entry) } } }
                            }
                        }
                        @for (_, section) in &sections { (section) }
                    }
                    footer { p { (self.footer) } }
                    script { (PreEscaped(include_str!("page.js"))) }
                }
            }
        }
        .into_string()
    }
}

/// Addresses within a page, each used once.
#[derive(Default)]
struct Anchors(BTreeMap<String, usize>);

impl Anchors {
    fn take(&mut self, title: &str) -> String {
        let slug = slug(title);
        let count = self.0.entry(slug.clone()).or_default();
        *count += 1;
        if *count == 1 {
            slug
        } else {
            format!("{slug}-{count}")
        }
    }
}

/// `title` as an address: lower case, words joined by hyphens, never empty.
fn slug(title: &str) -> String {
    let words = title
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase);
    let words: Vec<String> = words.collect();
    format!("s-{}", words.join("-"))
}

/// A section's entry in the table of contents, and the section.
fn section_markup(section: &Section, level: u8, anchors: &mut Anchors) -> (Markup, Markup) {
    let anchor = anchors.take(&section.title);
    let inner: Vec<Markup> = section
        .sections
        .iter()
        .map(|inner| section_markup(inner, level + 1, anchors).1)
        .collect();
    let entry = html! {
        a href=(format!("#{anchor}")) { (section.title) }
        @if let Some(state) = section.state { " " (state.badge()) }
    };
    let badge = section.state.map(State::badge);
    let body = html! {
        section id=(anchor) class=(format!("level-{level}")) {
            @match level {
                2 => h2 { (section.title) " " @if let Some(badge) = &badge { (badge) } },
                3 => h3 { (section.title) " " @if let Some(badge) = &badge { (badge) } },
                _ => h4 { (section.title) " " @if let Some(badge) = &badge { (badge) } },
            }
            (blocks(&section.blocks))
            @for body in &inner { (body) }
        }
    };
    (entry, body)
}

fn blocks(blocks: &[Block]) -> Markup {
    html! { @for block in blocks { (block_markup(block)) } }
}

fn block_markup(block: &Block) -> Markup {
    match block {
        Block::Text(words) => html! { p { (words) } },
        Block::Labelled(label, words) => html! { p { strong { (label) } " " (words) } },
        Block::Cards(cards) => html! {
            dl class="cards" { @for card in cards {
                div {
                    dt { (card.label) }
                    dd class="value" { (card.value) }
                    @if !card.remark.is_empty() { dd class="remark" { (card.remark) } }
                }
            } }
        },
        Block::Table(table) => table_markup(table),
        Block::Chart(chart) => figure(&chart.inline(), &chart.numbers()),
        Block::Bars(bars) => figure(&bars.inline(), &bars.numbers()),
        Block::Verdicts(verdicts) => html! {
            ul class="verdicts" { @for verdict in verdicts {
                li { (verdict.state.badge()) " " span { (verdict.sentence) } }
            } }
        },
        Block::Code(code) => html! { pre tabindex="0" { code { (code) } } },
        Block::Links(links) => html! {
            p class="links" { @for (words, address) in links {
                a href=(address) { (words) } " "
            } }
        },
        Block::Details(summary, inner) => html! {
            details { summary { (summary) } (blocks(inner)) }
        },
    }
}

/// A chart with its numbers for those who cannot see it, or want to copy them.
fn figure(chart: &Markup, numbers: &Table) -> Markup {
    const MOST: usize = 400;
    html! {
        figure {
            (chart)
            @if (1..=MOST).contains(&numbers.rows.len()) {
                figcaption { details { summary { "The numbers" } (table_markup(numbers)) } }
            }
        }
    }
}

fn table_markup(table: &Table) -> Markup {
    let aligned = |column: usize| {
        let first = table.rows.first().and_then(|row| row.get(column));
        class(first.map_or(Align::Left, |cell| cell.align))
    };
    html! {
        div class="table" tabindex="0" role="group" aria-label=(if table.caption.is_empty() { "Table" } else { &table.caption }) {
            table {
                @if !table.caption.is_empty() { caption { (table.caption) } }
                thead { tr { @for (column, words) in table.head.iter().enumerate() {
                    th scope="col" class=[aligned(column)] { (words) }
                } } }
                tbody { @for row in &table.rows {
                    tr { @for cell in row { td class=[class(cell.align)] { (cell_markup(cell)) } } }
                } }
            }
        }
    }
}

fn class(align: Align) -> Option<&'static str> {
    (align == Align::Right).then_some("right")
}

fn cell_markup(cell: &Cell) -> Markup {
    html! {
        @if let Some(state) = cell.state { (state.badge()) " " }
        @if let Some(address) = &cell.link { a href=(address) { (cell.words) } } @else { (cell.words) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_unique_and_words_are_escaped() {
        let page = Page {
            title: "A <b> & \"c\"".into(),
            sections: vec![
                Section::new("Same"),
                Section::new("Same"),
                Section::new("§"),
            ],
            ..Page::default()
        };
        let html = page.html();
        assert!(html.contains("A &lt;b&gt; &amp; &quot;c&quot;"));
        assert!(html.contains("id=\"s-same\"") && html.contains("id=\"s-same-2\""));
        assert!(html.contains("id=\"s-\""));
    }

    #[test]
    fn a_page_asks_for_nothing() {
        let html = Page::default().html();
        for outside in ["src=", "http:", "https:", "@import", "url(", "<link"] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}
