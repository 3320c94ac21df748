//! Rows of a CSV file that fill the placeholders of requests.
//!
//! A placeholder is an identifier; the name of a column may be any text: see [`placeholder`].

use std::fmt;
use std::io::Read;
use std::sync::Arc;

use minijinja::Value;
use minijinja::value::{Enumerator, Object};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// Rows with named columns, held in memory and used in turn. Copies share the rows.
#[derive(Clone, Debug, Default)]
pub struct Data {
    table: Arc<DataTable>,
}

/// The columns and cells of the data: about the size of the file and a number for each cell.
#[derive(Default)]
struct DataTable {
    columns: Vec<String>,
    placeholders: Vec<String>,
    /// The text of all cells, row by row.
    text: String,
    /// The end of each cell in the text.
    ends: Vec<usize>,
}

/// A row as a value of templates: its attributes are the placeholders.
#[derive(Debug)]
struct DataRow {
    table: Arc<DataTable>,
    number: usize,
}

/// Reasons why a CSV file cannot be used.
#[derive(Debug, Error)]
pub enum DataError {
    /// Not CSV, or not UTF-8. The text names the line.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// Two columns with the same placeholder.
    #[error(
        "the columns {one:?} and {other:?} are both filled in by {{{{{placeholder}}}}}: rename one"
    )]
    Alike {
        /// The first.
        one: String,
        /// The second.
        other: String,
        /// Their placeholder.
        placeholder: String,
    },
    /// No rows.
    #[error("no rows: the first line names the columns, each further line is a row")]
    Empty,
}

impl Data {
    /// Data without columns and rows.
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads CSV (RFC 4180). The first line names the columns. Blanks around a name are removed; those of cells belong
    /// to them.
    pub fn read(from: impl Read) -> Result<Self, DataError> {
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::Headers)
            .from_reader(from);
        let mut table = DataTable::new(reader.headers()?.iter().map(str::to_owned).collect())?;
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record)? {
            for cell in &record {
                table.push(cell);
            }
        }
        if table.ends.is_empty() {
            return Err(DataError::Empty);
        }
        table.text.shrink_to_fit();
        table.ends.shrink_to_fit();
        Ok(Self {
            table: Arc::new(table),
        })
    }

    /// Names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.table.columns
    }

    /// Placeholders of the columns.
    pub(crate) fn placeholders(&self) -> &[String] {
        &self.table.placeholders
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> u64 {
        self.table.rows() as u64
    }

    /// Returns the row for the request of this number. Starts again after the last row.
    pub(crate) fn row(&self, number: u64) -> Value {
        match self.len() {
            0 => Value::UNDEFINED,
            rows => Value::from_object(DataRow {
                table: self.table.clone(),
                number: (number % rows) as usize,
            }),
        }
    }
}

impl DataTable {
    /// A table without rows.
    fn new(columns: Vec<String>) -> Result<Self, DataError> {
        let placeholders: Vec<String> = columns.iter().map(|column| placeholder(column)).collect();
        for (index, placeholder) in placeholders.iter().enumerate() {
            let before = placeholders[..index]
                .iter()
                .position(|one| one == placeholder);
            // A column without a name has no placeholder.
            if let Some(before) = before.filter(|_| !placeholder.is_empty()) {
                return Err(DataError::Alike {
                    one: columns[before].clone(),
                    other: columns[index].clone(),
                    placeholder: placeholder.clone(),
                });
            }
        }
        Ok(Self {
            columns,
            placeholders,
            ..Self::default()
        })
    }

    fn push(&mut self, cell: &str) {
        self.text.push_str(cell);
        self.ends.push(self.text.len());
    }

    fn rows(&self) -> usize {
        self.ends.len().checked_div(self.columns.len()).unwrap_or(0)
    }

    fn cell(&self, row: usize, column: usize) -> &str {
        let index = row * self.columns.len() + column;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[index]]
    }

    fn cells(&self, row: usize) -> impl Iterator<Item = &str> {
        (0..self.columns.len()).map(move |column| self.cell(row, column))
    }
}

impl fmt::Debug for DataTable {
    /// Writes the size instead of the cells, which may be many and secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DataTable({:?}, {} rows)", self.columns, self.rows())
    }
}

impl Object for DataRow {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        let mut placeholders = self.table.placeholders.iter();
        let column = placeholders.position(|placeholder| placeholder == key)?;
        Some(Value::from(self.table.cell(self.number, column)))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let placeholders = self.table.placeholders.iter();
        Enumerator::Values(placeholders.map(|name| Value::from(&**name)).collect())
    }
}

impl Serialize for Data {
    /// Writes the columns and rows as CSV; an empty text without columns.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error as _;
        let mut text = csv::Writer::from_writer(Vec::new());
        if !self.columns().is_empty() {
            text.write_record(self.columns())
                .map_err(S::Error::custom)?;
        }
        for row in 0..self.table.rows() {
            text.write_record(self.table.cells(row))
                .map_err(S::Error::custom)?;
        }
        let bytes = text.into_inner().map_err(S::Error::custom)?;
        let text = String::from_utf8(bytes).map_err(S::Error::custom)?;
        // A reader skips a byte order mark. Before a name that begins with one there must be another.
        let mark = '\u{feff}';
        if text.starts_with(mark) {
            serializer.serialize_str(&format!("{mark}{text}"))
        } else {
            serializer.serialize_str(&text)
        }
    }
}

impl<'de> Deserialize<'de> for Data {
    /// Reads CSV like [`Data::read`]. An empty text is no data.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.is_empty() {
            return Ok(Self::none());
        }
        Self::read(text.as_bytes()).map_err(D::Error::custom)
    }
}

/// Returns the placeholder of a column: its name, with `_` for each character other than ASCII letters, digits and `_`,
/// and with `_` before a leading digit.
pub(crate) fn placeholder(column: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = column.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        format!("_{name}")
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_used_in_turn() {
        let data = Data::read("a, b\n1,\" 2 \"\n3,4\n".as_bytes()).unwrap();
        assert_eq!(data.row(0).get_attr("b").unwrap().as_str(), Some(" 2 "));
        assert_eq!(data.row(3).get_attr("a").unwrap().as_str(), Some("3"));
        assert!(Data::none().row(7).is_undefined());
    }

    #[test]
    fn every_column_has_a_placeholder_of_its_own() {
        let data = Data::read("ISBN-10,13.isbn,a_b,,\n1,2,3,4,5\n".as_bytes()).unwrap();
        assert_eq!(data.placeholders(), ["ISBN_10", "_13_isbn", "a_b", "", ""]);
        assert_eq!(data.row(0).get_attr("ISBN_10").unwrap().as_str(), Some("1"));
        for alike in ["a-b,c,a_b\n1,2,3\n", "a,,a,\n1,2,3,4\n"] {
            let error = Data::read(alike.as_bytes()).unwrap_err();
            assert!(matches!(error, DataError::Alike { .. }), "{error}");
        }
    }

    /// A table of 100 bytes a row takes little more than its text.
    #[test]
    fn memory_is_bounded_by_the_file() {
        let cells = "a".repeat(48);
        let file = format!("one,other\n{}", format!("{cells},{cells}\n").repeat(1_000));
        let data = Data::read(file.as_bytes()).unwrap();
        let table = &data.table;
        let bytes = table.text.capacity() + table.ends.capacity() * size_of::<usize>();
        assert!(bytes < 3 * file.len() / 2, "{bytes} for {}", file.len());
    }

    #[test]
    fn the_form_of_data_is_read_as_the_same_rows() {
        let files = [
            "a,b\n1, 2\n\"x\"\"y\",\"3,\n4\"\n",
            "a,,13.b,\n1,2,3,4\n",
            "only\n\"\"\nx\n",
            "\u{feff}\u{feff}a\n1\n",
            "\"\"\n\"\"\n",
            "\u{e9},\u{1f600}b\n\u{2028},\0\n",
        ];
        for file in files {
            let data = Data::read(file.as_bytes()).unwrap();
            let form = serde_json::to_string(&data).unwrap();
            let back: Data = serde_json::from_str(&form).unwrap();
            assert_eq!(serde_json::to_string(&back).unwrap(), form, "{file:?}");
            assert_eq!((back.columns(), back.len()), (data.columns(), data.len()));
            for number in 0..data.len() {
                assert_eq!(back.row(number), data.row(number), "{file:?}");
            }
        }
        let none = serde_json::to_string(&Data::none()).unwrap();
        assert_eq!(none, "\"\"");
        assert_eq!(serde_json::from_str::<Data>(&none).unwrap().len(), 0);
        for refused in [r#""a,a\n1,2\n""#, r#""a\n""#, r#""a,b\n1\n""#] {
            assert!(serde_json::from_str::<Data>(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn uneven_and_empty_files_are_refused() {
        let uneven = Data::read("a,b\n1\n".as_bytes()).unwrap_err().to_string();
        assert!(uneven.contains("line: 2"), "{uneven}");
        assert!(matches!(
            Data::read("a\n".as_bytes()),
            Err(DataError::Empty)
        ));
        assert!(Data::read(&b"a\n\xff\n"[..]).is_err());
    }
}
