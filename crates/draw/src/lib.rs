//! Charts and pages from data: self-contained SVG and HTML.
