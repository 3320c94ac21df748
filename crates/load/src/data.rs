//! Rows of a CSV file that fill the placeholders of requests.

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

/// Why a CSV file could not be used.
#[derive(Debug, Error)]
pub enum DataError {
    /// Not CSV, or not UTF-8; the text names the line.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// A header and nothing else, or nothing at all.
    #[error("no rows: the first line names the columns, each further line is a row")]
    Empty,
}

impl Data {
    /// No columns and no rows.
    pub const fn none() -> Self {
        Self {
            columns: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// Reads CSV whose first line names the columns.
    pub fn read(from: impl Read) -> Result<Self, DataError> {
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .from_reader(from);
        let columns: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
        let row = |record: csv::StringRecord| {
            let cells = record.iter().map(str::to_owned);
            Value::from(
                columns
                    .iter()
                    .cloned()
                    .zip(cells)
                    .collect::<BTreeMap<_, _>>(),
            )
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

    /// The names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The row for the request of this number; after the last comes the first again.
    pub(crate) fn row(&self, number: u64) -> Value {
        match self.rows.len() as u64 {
            0 => Value::UNDEFINED,
            rows => self.rows[(number % rows) as usize].clone(),
        }
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
