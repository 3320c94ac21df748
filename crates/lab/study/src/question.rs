//! Questions about the papers, each with the figure that answers it.
//!
//! The report opens with them. Each figure composes its answer from the records of the run.

use crate::records::Records;

/// A question and its figure.
pub struct PaperQuestion {
    /// The question, as a reader of the paper would ask it.
    pub question: &'static str,
    /// Id of the figure.
    pub figure: &'static str,
    /// Composes one or two sentences with this run's numbers and the paper's.
    pub answer: fn(&Records) -> String,
}

impl PaperQuestion {
    /// Returns the answer from the records of its figure. `None` if a number is missing.
    pub fn sentence(&self, records: &Records) -> Option<String> {
        let sentence = (self.answer)(records);
        let known = !sentence.is_empty() && !sentence.contains("NaN");
        known.then_some(sentence)
    }
}
