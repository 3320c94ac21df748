//! Pages: one HTML file with everything in it, for a screen, a phone or paper.
//!
//! A page is complete without scripts. Its script adds a choice of theme and a legend that hides series. It loads
//! nothing from a network, except pictures ([`Block::Picture`]), which are files next to it. The content is data
//! ([`Block`]), so that callers write no HTML; `markup` converts it. Callers are responsible for the claims.

mod markup;

use crate::bars::Bars;
use crate::chart::Chart;
use crate::drawing::Plot;
use crate::table::{State, Table};

/// A whole page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Title, in the heading and in the browser's tab.
    pub title: String,
    /// A sentence or two below the title.
    pub lead: String,
    /// Blocks above the table of contents.
    pub opening: Vec<Block>,
    /// Sections, listed in a table of contents if there are several.
    pub sections: Vec<Section>,
    /// Label of a checkbox that hides the folded sections that are not [marked](Section::marked).
    pub filter: Option<String>,
    /// Last line: the program that made the page.
    pub footer: String,
}

/// A part of a page with a heading.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// State, shown next to the heading and in the table of contents.
    pub state: Option<State>,
    /// Short remark next to the heading.
    pub remark: String,
    /// Closed until the reader selects its heading.
    pub folded: bool,
    /// Stays visible when the filter is on.
    pub marked: bool,
    /// Content.
    pub blocks: Vec<Block>,
    /// Subsections, one level deeper, not in the table of contents.
    pub sections: Vec<Section>,
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
    /// A chart, with its numbers in a collapsed table.
    Chart(Box<Chart>),
    /// A bar chart, with its numbers in a collapsed table.
    Bars(Box<Bars>),
    /// A drawing in files next to the page, loaded when it comes into view.
    Picture(Picture),
    /// Questions, each with its answer and a small drawing.
    Answers(Vec<Answer>),
    /// Statements that hold or do not hold.
    Verdicts(Vec<Verdict>),
    /// Text to type or copy.
    Code(String),
    /// Links side by side: text and relative address.
    Links(Vec<(String, String)>),
    /// A summary and blocks that it expands to.
    Details(String, Vec<Block>),
}

/// A key figure.
#[derive(Clone, Debug, Default)]
pub struct Card {
    /// Label.
    pub label: String,
    /// Value with its unit.
    pub value: String,
    /// Remark below, such as an interval or a comparison. May be empty.
    pub remark: String,
}

/// A drawing in files next to the page.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// Description for readers who cannot see the drawing.
    pub description: String,
    /// Relative address of the file for wide screens.
    pub wide: String,
    /// Relative address of the file for phones.
    pub narrow: String,
}

/// A question and its answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Question.
    pub question: String,
    /// Answer in one sentence.
    pub sentence: String,
    /// Data of the answer, as a small plot.
    pub plot: Option<Plot>,
    /// Text and address of the section with the details.
    pub source: (String, String),
}

/// A statement and its result.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Result.
    pub state: State,
    /// Statement, with its numbers.
    pub sentence: String,
    /// Reason of a negative result; may be empty.
    pub reason: String,
}

impl Section {
    /// Creates a section without content.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }

    /// Anchor of this section within its page, if no other section has the same title.
    pub fn anchor(&self) -> String {
        format!("#{}", markup::slug(&self.title))
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
    fn a_filter_hides_folded_sections_without_a_mark() {
        let folded = |title: &str, marked| Section {
            folded: true,
            marked,
            ..Section::new(title)
        };
        let page = Page {
            sections: vec![folded("Holds", false), folded("Differs", true)],
            filter: Some("Only what differs".into()),
            ..Page::default()
        };
        let html = page.html();
        assert!(html.contains("id=\"filter\""));
        let hidden = html
            .split_once("<details id=\"s-holds\"")
            .expect("a section")
            .1;
        let (first, second) = hidden
            .split_once("<details id=\"s-differs\"")
            .expect("a section");
        assert!(first.contains("data-plain"));
        assert!(
            !second
                .split_once('>')
                .expect("a tag")
                .0
                .contains("data-plain")
        );
    }

    #[test]
    fn a_page_asks_for_nothing() {
        let html = Page::default().html();
        for outside in ["src=", "http:", "https:", "@import", "url(", "<link"] {
            assert!(!html.contains(outside), "{outside}");
        }
    }
}
