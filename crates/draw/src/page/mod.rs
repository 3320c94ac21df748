//! A page: one HTML file with everything in it, for a screen, a phone or paper.
//!
//! The page is complete without scripts; the one it carries adds a choice of theme and a legend
//! that hides series. It asks nothing of any network; pictures ([`Block::Picture`]) are files beside it. What stands in a
//! page is data ([`Block`]), so that callers write no HTML; `markup` turns it into HTML. What a sentence claims is left to
//! the callers.

mod markup;

use crate::bars::Bars;
use crate::chart::Chart;
use crate::drawing::Plot;

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
    /// The label of a box that, when ticked, hides the folded sections that are not [marked](Section::marked).
    pub filter: Option<String>,
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
    /// A few words beside the heading.
    pub remark: String,
    /// Closed until its heading is chosen.
    pub folded: bool,
    /// Stays on the page when its filter is on.
    pub marked: bool,
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
    /// Other than expected, and better.
    Better(&'static str),
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
    /// A drawing in files beside the page, loaded when it comes into view.
    Picture(Picture),
    /// Questions, each with its answer and a small drawing.
    Answers(Vec<Answer>),
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

/// A drawing in files beside the page.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// The drawing in words, for readers who cannot see it.
    pub description: String,
    /// Relative address of the file for wide screens.
    pub wide: String,
    /// Relative address of the file for phones.
    pub narrow: String,
}

/// A question and its answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The question.
    pub question: String,
    /// The answer in one sentence.
    pub sentence: String,
    /// What the answer was read from, drawn small.
    pub plot: Option<Plot>,
    /// Words and address of the section with the details.
    pub source: (String, String),
}

/// A sentence and whether it holds.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Whether it holds.
    pub state: State,
    /// The sentence, with its numbers.
    pub sentence: String,
    /// The reason why it does not hold; may be empty.
    pub reason: String,
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
