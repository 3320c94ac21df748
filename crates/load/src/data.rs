//! Rows of a CSV file that fill the placeholders of requests.
//!
//! A placeholder is an identifier; the name of a column may be any text: see [`placeholder`].

use std::collections::BTreeMap;
use std::io::Read;

use minijinja::Value;
use thiserror::Error;

/// Rows with named columns, held in memory and used in turn.
#[derive(Clone, Debug, Default)]
pub struct Data {
    columns: Vec<String>,
    rows: Vec<Value>,
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
    pub const fn none() -> Self {
        Self {
            columns: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Reads CSV. The first line names the columns.
    pub fn read(from: impl Read) -> Result<Self, DataError> {
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .from_reader(from);
        let columns: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
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
        let row = |record: csv::StringRecord| {
            let cells = record.iter().map(str::to_owned);
            let cells = placeholders.iter().cloned().zip(cells);
            Value::from(cells.collect::<BTreeMap<_, _>>())
        };
        let rows = reader
            .into_records()
            .map(|record| record.map(row))
            .collect::<Result<Vec<Value>, _>>()?;
        if rows.is_empty() {
            return Err(DataError::Empty);
        }
        Ok(Self { columns, rows })
    }

    /// Names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Placeholders of the columns.
    pub(crate) fn placeholders(&self) -> Vec<String> {
        self.columns
            .iter()
            .map(|column| placeholder(column))
            .collect()
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Returns the row for the request of this number. Starts again after the last row.
    pub(crate) fn row(&self, number: u64) -> Value {
        match self.len() {
            0 => Value::UNDEFINED,
            rows => self.rows[(number % rows) as usize].clone(),
        }
    }
}

/// Returns the placeholder of a column: its name, with `_` for each character other than ASCII letters, digits and `_`,
/// and with `_` before a leading digit.
pub(crate) fn placeholder(column: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = column.chars().map(plain).collect();
    match name.starts_with(|c: char| c.is_ascii_digit()) {
        true => format!("_{name}"),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_used_in_turn() {
        let data = Data::read("a,b\n1, 2\n3,4\n".as_bytes()).unwrap();
        assert_eq!(data.row(0).get_attr("b").unwrap().as_str(), Some("2"));
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
