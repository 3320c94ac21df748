//! Conversion of a page to HTML.

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Answer, Block, Page, Picture, Section, Verdict};
use crate::frame::Format;
use crate::palette;
use crate::table::{Align, Cell, State, Table};

impl State {
    fn parts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Pass(word) => ("pass", "✓", word),
            Self::Better(word) => ("better", "✓", word),
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
    /// Renders the page as one HTML document.
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
                    style { (PreEscaped(palette::chart_style())) (PreEscaped(include_str!("style.css"))) }
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
                        @if let Some(label) = &self.filter {
                            p class="filter" { label { input type="checkbox" id="filter"; " " (label) } }
                        }
                        @for (_, section) in &sections { (section) }
                    }
                    footer { p { (self.footer) } }
                    script { (PreEscaped(include_str!("script.js"))) }
                }
            }
        }
        .into_string()
    }
}

/// Anchors of a page, made unique by numbers.
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

/// Converts `title` to an anchor: lower case, words joined by hyphens, never empty.
pub(super) fn slug(title: &str) -> String {
    let parts = title
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase);
    let parts: Vec<String> = parts.collect();
    format!("s-{}", parts.join("-"))
}

/// Entry of a section in the table of contents, and the section.
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
    let title = html! {
        @match level {
            2 => h2 { (section.title) " " @if let Some(badge) = &badge { (badge) } },
            3 => h3 { (section.title) " " @if let Some(badge) = &badge { (badge) } },
            _ => h4 { (section.title) " " @if let Some(badge) = &badge { (badge) } },
        }
        @if !section.remark.is_empty() { span class="remark" { (section.remark) } }
    };
    let class = format!("level-{level}");
    let within = html! { (blocks(&section.blocks)) @for body in &inner { (body) } };
    let body = html! {
        @if section.folded {
            details id=(anchor) class=(class) data-plain[!section.marked] {
                summary { (title) }
                (within)
            }
        } @else {
            section id=(anchor) class=(class) { (title) (within) }
        }
    };
    (entry, body)
}

fn blocks(blocks: &[Block]) -> Markup {
    html! { @for block in blocks { (block_markup(block)) } }
}

fn block_markup(block: &Block) -> Markup {
    match block {
        Block::Text(content) => html! { p { (content) } },
        Block::Labelled(label, content) => html! { p { strong { (label) } " " (content) } },
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
        Block::Chart(chart) => figure(|format| chart.inline_in(format), &chart.numbers()),
        Block::Bars(bars) => figure(|format| bars.inline_in(format), &bars.numbers()),
        Block::Verdicts(verdicts) => html! {
            ul class="verdicts" { @for verdict in verdicts {
                li { (verdict_markup(verdict)) }
            } }
        },
        Block::Picture(picture) => picture_markup(picture),
        Block::Answers(answers) => html! {
            ol class="answers" { @for answer in answers { li { (answer_markup(answer)) } } }
        },
        Block::Code(code) => html! { pre tabindex="0" { code { (code) } } },
        Block::Links(links) => html! {
            p class="links" { @for (label, address) in links {
                a href=(address) { (label) } " "
            } }
        },
        Block::Details(summary, inner) => html! {
            details { summary { (summary) } (blocks(inner)) }
        },
    }
}

fn verdict_markup(verdict: &Verdict) -> Markup {
    html! {
        (verdict.state.badge()) " "
        span {
            (verdict.sentence)
            @if !verdict.reason.is_empty() { span class="reason" { " " (verdict.reason) } }
        }
    }
}

fn picture_markup(picture: &Picture) -> Markup {
    html! {
        figure {
            a href=(picture.wide) {
                picture {
                    source media="(max-width:40rem)" srcset=(picture.narrow);
                    img loading="lazy" src=(picture.wide) alt=(picture.description);
                }
            }
        }
    }
}

fn answer_markup(answer: &Answer) -> Markup {
    html! {
        div {
            p class="question" { (answer.question) }
            p { (answer.sentence) " " a href=(answer.source.1) { (answer.source.0) } }
        }
        @if let Some(plot) = &answer.plot { (plot.inline_in(Format::Small)) }
    }
}

/// A chart in two sizes, of which the style sheet shows one, with its numbers as text for reading and copying.
fn figure(draw: impl Fn(Format) -> Markup, numbers: &Table) -> Markup {
    const MOST: usize = 400;
    html! {
        figure {
            div class="wide" { (draw(Format::Wide)) }
            div class="narrow" { (draw(Format::Narrow)) }
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
                thead { tr { @for (column, title) in table.head.iter().enumerate() {
                    th scope="col" class=[aligned(column)] { (title) }
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
        @if let Some(address) = &cell.link { a href=(address) { (cell.text) } } @else { (cell.text) }
    }
}
