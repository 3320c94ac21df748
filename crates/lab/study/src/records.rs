//! Measurements of a study: named tables, named numbers and the parameters of the run.
//!
//! Records are written once and read for every drawing, so a drawing shows only recorded values. All tables go into one
//! `records.csv` (first column: the table), everything else into the manifest. A missing name is no error when reading:
//! values that a stopped run did not measure read as NaN, and charts state the number of omitted values.

use std::collections::BTreeMap;
use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

/// The records of one study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    tables: BTreeMap<String, RecordTable>,
    numbers: BTreeMap<String, f64>,
    parameters: BTreeMap<String, String>,
    error: Option<String>,
}

/// Rows under named columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordTable {
    columns: Vec<String>,
    rows: Vec<Vec<RecordValue>>,
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordValue {
    /// A number. NaN if there is none.
    Number(f64),
    /// Text.
    Text(String),
}

/// Content of a column of a written table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Holds {
    /// Numbers only.
    Number,
    /// Text, or text and numbers.
    Text,
}

/// The columns of a written table, in order.
pub type Columns = Vec<(String, Holds)>;

/// Records on their way to another process: the table file, and what is needed to read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentRecords {
    csv: String,
    columns: BTreeMap<String, Columns>,
    /// `None` stands for NaN.
    numbers: BTreeMap<String, Option<f64>>,
    parameters: BTreeMap<String, String>,
}

/// Records that cannot be read or sent.
#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    /// Not readable as CSV.
    #[error(transparent)]
    Csv(#[from] csv::Error),
    /// A row or a cell that the manifest does not describe.
    #[error("records.csv, record {record}: {violation}; run the figure again")]
    Mismatch {
        /// Number of the record, from one, without the header.
        record: usize,
        /// Description of the mismatch.
        violation: String,
    },
    /// Records of a study that ended early.
    #[error("{0}")]
    CutShort(String),
}

impl From<f64> for RecordValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<u64> for RecordValue {
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

impl From<&str> for RecordValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for RecordValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl RecordValue {
    fn printed(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

impl RecordTable {
    /// A table without rows.
    pub fn new<const N: usize>(columns: [&str; N]) -> Self {
        Self {
            columns: columns.map(str::to_owned).to_vec(),
            rows: Vec::new(),
        }
    }

    /// A table whose number of columns is not known at compile time.
    pub fn with<'a>(columns: impl Iterator<Item = &'a str>) -> Self {
        Self {
            columns: columns.map(str::to_owned).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row. Missing cells become NaN. Cells without a column are dropped.
    pub fn push(&mut self, row: impl IntoIterator<Item = RecordValue>) {
        let mut row: Vec<RecordValue> = row.into_iter().collect();
        row.resize(self.columns.len(), RecordValue::Number(f64::NAN));
        self.rows.push(row);
    }

    /// The rows.
    pub fn rows(&self) -> impl Iterator<Item = RecordRow<'_>> {
        self.rows
            .iter()
            .map(|cells| RecordRow { table: self, cells })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn columns(&self) -> Columns {
        let holds = |column: usize| {
            let text = self
                .rows
                .iter()
                .any(|row| matches!(row[column], RecordValue::Text(_)));
            if text { Holds::Text } else { Holds::Number }
        };
        let named = self.columns.iter().enumerate();
        named
            .map(|(column, name)| (name.clone(), holds(column)))
            .collect()
    }
}

/// A row of a table.
#[derive(Clone, Copy, Debug)]
pub struct RecordRow<'a> {
    table: &'a RecordTable,
    cells: &'a [RecordValue],
}

impl<'a> RecordRow<'a> {
    fn cell(&self, column: &str) -> Option<&'a RecordValue> {
        let index = self.table.columns.iter().position(|name| name == column)?;
        self.cells.get(index)
    }

    /// Returns the number in `column`, or NaN.
    pub fn number(&self, column: &str) -> f64 {
        match self.cell(column) {
            Some(RecordValue::Number(number)) => *number,
            Some(RecordValue::Text(text)) => text.parse().unwrap_or(f64::NAN),
            None => f64::NAN,
        }
    }

    /// Returns the text in `column`, or an empty string.
    pub fn text(&self, column: &str) -> &'a str {
        match self.cell(column) {
            Some(RecordValue::Text(text)) => text,
            _ => "",
        }
    }
}

impl Records {
    /// Empty records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores `table` under `name`.
    pub fn set_table(&mut self, name: &str, table: RecordTable) {
        self.tables.insert(name.to_owned(), table);
    }

    /// Stores `number` under `name`.
    pub fn set_number(&mut self, name: &str, number: f64) {
        self.numbers.insert(name.to_owned(), number);
    }

    /// Marks the records as incomplete: `error` ended the study early.
    pub fn cut_short(&mut self, error: &impl ToString) {
        self.error = Some(error.to_string());
    }

    /// The error that ended the study early.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Stores the parameter `name` as text.
    pub fn set_parameter(&mut self, name: &str, value: impl ToString) {
        self.parameters.insert(name.to_owned(), value.to_string());
    }

    /// Returns the table called `name`. Without rows if there is none.
    pub fn table(&self, name: &str) -> &RecordTable {
        static NONE: RecordTable = RecordTable {
            columns: Vec::new(),
            rows: Vec::new(),
        };
        self.tables.get(name).unwrap_or(&NONE)
    }

    /// Returns the number called `name`, or NaN.
    pub fn number(&self, name: &str) -> f64 {
        self.numbers.get(name).copied().unwrap_or(f64::NAN)
    }

    /// The parameters, by name.
    pub fn parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    /// The records for another process. Returns an error if the study ended early.
    pub fn to_sent(&self) -> Result<SentRecords, RecordsError> {
        if let Some(error) = &self.error {
            return Err(RecordsError::CutShort(error.clone()));
        }
        let mut csv = Vec::new();
        self.write_csv(&mut csv)?;
        Ok(SentRecords {
            csv: String::from_utf8(csv).expect("cells are text"),
            columns: self.columns(),
            numbers: self.finite_numbers(),
            parameters: self.parameters.clone(),
        })
    }

    /// The records of another process.
    pub fn from_sent(sent: SentRecords) -> Result<Self, RecordsError> {
        let numbers = sent.numbers.into_iter();
        let numbers = numbers.map(|(name, number)| (name, number.unwrap_or(f64::NAN)));
        Self::read_csv(
            sent.csv.as_bytes(),
            &sent.columns,
            numbers.collect(),
            sent.parameters,
        )
    }

    /// The named numbers. `None` stands for those that are not finite.
    pub(crate) fn finite_numbers(&self) -> BTreeMap<String, Option<f64>> {
        let numbers = self.numbers.iter();
        numbers
            .map(|(name, number)| (name.clone(), Some(*number).filter(|n| n.is_finite())))
            .collect()
    }

    pub(crate) fn columns(&self) -> BTreeMap<String, Columns> {
        let tables = self.tables.iter();
        tables
            .map(|(name, table)| (name.clone(), table.columns()))
            .collect()
    }

    /// Writes all tables as one CSV. The first column is the table's name; the columns of all tables follow.
    pub(crate) fn write_csv(&self, to: impl Write) -> Result<(), csv::Error> {
        let mut all: Vec<&str> = Vec::new();
        for column in self.tables.values().flat_map(|table| &table.columns) {
            if !all.contains(&&**column) {
                all.push(column);
            }
        }
        let mut writer = csv::Writer::from_writer(to);
        writer.write_record(["table"].iter().chain(&all))?;
        for (name, table) in &self.tables {
            for row in table.rows() {
                let cells = all
                    .iter()
                    .map(|column| row.cell(column).map(RecordValue::printed));
                let cells = cells.map(Option::unwrap_or_default);
                writer.write_record([name.clone()].into_iter().chain(cells))?;
            }
        }
        writer.flush().map_err(csv::Error::from)
    }

    /// Reads the output of [`write_csv`](Self::write_csv). `columns`, `numbers` and `parameters` come from the
    /// manifest.
    pub(crate) fn read_csv(
        from: impl Read,
        columns: &BTreeMap<String, Columns>,
        numbers: BTreeMap<String, f64>,
        parameters: BTreeMap<String, String>,
    ) -> Result<Self, RecordsError> {
        let mut reader = csv::Reader::from_reader(from);
        let head: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
        let mut tables: BTreeMap<String, RecordTable> = BTreeMap::new();
        for (name, columns) in columns {
            let table = RecordTable {
                columns: columns.iter().map(|(name, _)| name.clone()).collect(),
                rows: Vec::new(),
            };
            tables.insert(name.clone(), table);
        }
        for (index, record) in reader.records().enumerate() {
            let record = record?;
            let mismatch = |violation: String| RecordsError::Mismatch {
                record: index + 1,
                violation,
            };
            let name = record.get(0).expect("a record has a field");
            let (Some(table), Some(columns)) = (tables.get_mut(name), columns.get(name)) else {
                return Err(mismatch(format!("the manifest has no table {name:?}")));
            };
            let cell = |(column, holds): &(String, Holds)| {
                let index = head.iter().skip(1).position(|name| name == column);
                let text = index
                    .and_then(|index| record.get(index + 1))
                    .ok_or_else(|| mismatch(format!("no column {column:?}")))?;
                match holds {
                    Holds::Text => Ok(RecordValue::Text(text.to_owned())),
                    Holds::Number => text
                        .parse()
                        .map(RecordValue::Number)
                        .map_err(|_| mismatch(format!("{column} is {text:?}, not a number"))),
                }
            };
            table
                .rows
                .push(columns.iter().map(cell).collect::<Result<_, _>>()?);
        }
        Ok(Self {
            tables,
            numbers,
            parameters,
            error: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Records {
        let mut sweep = RecordTable::new(["kind", "rate", "mean"]);
        sweep.push(["page, \"plain\"".into(), 1.5.into(), 0.1.into()]);
        sweep.push(["service".into(), 2u64.into()]);
        let mut other = RecordTable::new(["rate", "code"]);
        other.push([7.0.into(), "007".into()]);
        let mut records = Records::new();
        records.set_table("sweep", sweep);
        records.set_table("other", other);
        records.set_table("empty", RecordTable::new(["a"]));
        records.set_number("capacity", 1234.5);
        records.set_parameter("timeout", "50ms");
        records
    }

    #[test]
    fn records_are_read_back_as_written() {
        let records = sample();
        let mut csv = Vec::new();
        records.write_csv(&mut csv).unwrap();
        let back = Records::read_csv(
            &*csv,
            &records.columns(),
            records.numbers.clone(),
            records.parameters.clone(),
        )
        .unwrap();
        // Compared as text, because NaN equals nothing, not even itself.
        assert_eq!(format!("{back:?}"), format!("{records:?}"));
        assert_eq!(
            back.table("other").rows().next().unwrap().text("code"),
            "007"
        );
    }

    #[test]
    fn sent_records_equal_written_ones() {
        let mut records = sample();
        records.set_number("unknown", f64::NAN);
        let sent = serde_json::to_string(&records.to_sent().unwrap()).unwrap();
        let back = Records::from_sent(serde_json::from_str(&sent).unwrap()).unwrap();
        assert_eq!(format!("{back:?}"), format!("{records:?}"));
        let written = [&records, &back].map(|records| {
            let mut csv = Vec::new();
            records.write_csv(&mut csv).unwrap();
            csv
        });
        assert_eq!(written[0], written[1]);
    }

    #[test]
    fn records_that_end_early_are_not_sent() {
        let mut records = sample();
        records.cut_short(&"the disk is full");
        let error = records.to_sent().unwrap_err().to_string();
        assert_eq!(error, "the disk is full");
    }

    #[test]
    fn missing_values_are_not_numbers() {
        let records = sample();
        assert!(records.number("none").is_nan());
        assert!(records.table("none").is_empty());
        let row = records.table("sweep").rows().nth(1).unwrap();
        assert!(row.number("mean").is_nan() && row.number("none").is_nan());
        assert_eq!(row.text("none"), "");
    }

    #[test]
    fn a_damaged_file_is_an_error_that_says_where() {
        let records = sample();
        let csv = "table,rate,code\nother,seven,x\n";
        let read = Records::read_csv(
            csv.as_bytes(),
            &records.columns(),
            BTreeMap::new(),
            BTreeMap::new(),
        );
        let error = read.unwrap_err().to_string();
        assert!(
            error.contains("record 1") && error.contains("seven"),
            "{error}"
        );
    }
}
