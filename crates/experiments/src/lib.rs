//! The study: one file per figure of the papers, their checks and the report.
