//! The study: one file per figure of the papers, their checks and the report.
//!
//! [`FIGURES`] is the single list; the selection, the report's index and the tables of figures derive from it.
//! [`reproduce`] runs studies and writes records. [`draw`] makes pictures, checks and the report from records alone.
//! Each figure's file defines its measurement. Crates below this one create and answer the traffic.

mod answers;
mod check;
mod drawing;
mod estimate;
mod figure;
mod folder;
pub mod lab;
mod manifest;
mod measuring;
mod options;
mod outcome;
mod overload;
mod packet_loss;
mod papers;
mod progress;
mod records;
mod report;
mod run;
mod side_by_side;
mod sweep;
#[cfg(test)]
mod tiny;
mod wsqos;

pub use check::{Check, Kind};
pub use drawing::draw;
pub use figure::{
    Conditions, Failure, Figure, Listed, Needs, Plot, SelectError, Study, list, select,
};
pub use manifest::{Ended, Machine, Manifest};
pub use options::Options;
pub use outcome::{Drawn, Outcome, RunError};
pub use papers::{ALIASES, PAPERS, PLANNED, Planned};
pub use progress::{Board, Console, Progress, Silent};
pub use records::{Columns, Holds, Records, RecordsError, Row, Table, Value};
pub use run::{reproduce, reproduce_part};

/// All figures of this release, in the order of the report.
pub const FIGURES: &[&Figure] = &[
    &overload::fig_05::FIGURE,
    &overload::fig_06::FIGURE,
    &overload::fig_07::FIGURE,
    &overload::fig_08::FIGURE,
    &overload::fig_09::FIGURE,
    &overload::fig_10::FIGURE,
    &overload::fig_11::FIGURE,
    &packet_loss::fig_02::FIGURE,
    &packet_loss::fig_03::FIGURE,
    &packet_loss::fig_04::FIGURE,
    &packet_loss::fig_05::FIGURE,
    &packet_loss::fig_06::FIGURE,
    &packet_loss::fig_07::FIGURE,
    &packet_loss::fig_08::FIGURE,
    &packet_loss::fig_09::FIGURE,
    &packet_loss::fig_10::FIGURE,
    &packet_loss::fig_11::FIGURE,
    &packet_loss::fig_12::FIGURE,
    &packet_loss::fig_13::FIGURE,
    &packet_loss::loss_2_percent::FIGURE,
    &packet_loss::late_loss_2026::FIGURE,
    &packet_loss::model_2026::FIGURE,
    &packet_loss::remedies_compared::FIGURE,
    &wsqos::table_4::FIGURE,
    &wsqos::fig_47::FIGURE,
    &wsqos::fig_48::FIGURE,
    &wsqos::fig_49::FIGURE,
    &wsqos::fig_50::FIGURE,
    &wsqos::fig_51::FIGURE,
    &wsqos::fig_52::FIGURE,
    &wsqos::fig_53::FIGURE,
    &wsqos::fig_54::FIGURE,
    &wsqos::table_5::FIGURE,
    &wsqos::policies_2026::FIGURE,
    &wsqos::codecs_2026::FIGURE,
    &wsqos::promises_2026::FIGURE,
    &wsqos::fig_56::FIGURE,
    &wsqos::fig_57::FIGURE,
    &wsqos::fig_58::FIGURE,
    &wsqos::fig_59::FIGURE,
    &wsqos::fig_60::FIGURE,
    &wsqos::lookups_2026::FIGURE,
    &wsqos::changes_2026::FIGURE,
    &wsqos::fig_62::FIGURE,
    &wsqos::fig_63::FIGURE,
    &wsqos::fig_64::FIGURE,
    &wsqos::fig_65::FIGURE,
    &wsqos::fig_66::FIGURE,
    &wsqos::fig_68::FIGURE,
    &wsqos::fig_69::FIGURE,
    &wsqos::fig_70::FIGURE,
    &wsqos::prices_2026::FIGURE,
];
