//! A table of words and numbers, and how something stands: data that pages render.

/// State of something: always a symbol and a word, never a colour alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As expected.
    Pass(&'static str),
    /// Different from the expectation, and better.
    Better(&'static str),
    /// Failed.
    Fail(&'static str),
    /// Notable, but not a failure.
    Note(&'static str),
    /// Not available yet.
    Pending(&'static str),
}

/// A table with a heading row.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Caption; may be empty.
    pub caption: String,
    /// Heading row.
    pub head: Vec<String>,
    /// Rows.
    pub rows: Vec<Vec<Cell>>,
}

/// Alignment of a cell's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// Left: text.
    #[default]
    Left,
    /// Right, with digits of equal width: numbers.
    Right,
}

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    /// Text.
    pub text: String,
    /// Alignment.
    pub align: Align,
    /// Relative address of a link.
    pub link: Option<String>,
    /// State, shown before the text.
    pub state: Option<State>,
}

impl Cell {
    /// Creates a cell with text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Creates a cell with a formatted number.
    pub fn number(text: impl Into<String>) -> Self {
        Self {
            align: Align::Right,
            ..Self::text(text)
        }
    }

    /// Creates a cell with a state.
    pub fn state(state: State) -> Self {
        Self {
            state: Some(state),
            ..Self::default()
        }
    }

    /// Makes the cell a link.
    pub fn link(mut self, address: impl Into<String>) -> Self {
        self.link = Some(address.into());
        self
    }
}

impl Table {
    /// Creates a table without rows.
    pub fn new<T: Into<String>>(head: impl IntoIterator<Item = T>) -> Self {
        Self {
            head: head.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}
