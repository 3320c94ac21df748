//! Ten questions about the papers, each with the figure that answers it.
//!
//! The report opens with them. Each figure composes its answer from the records of the run.

use crate::records::Records;
use crate::{broker, compression, diffserv, overload, packet_loss, pricing};

/// A question and its figure.
pub(crate) struct Answer {
    /// The question, as a reader of the paper would ask it.
    pub(crate) question: &'static str,
    /// Id of the figure.
    pub(crate) figure: &'static str,
    /// One or two sentences with this run's numbers and the paper's.
    pub(crate) say: fn(&Records) -> String,
}

/// All questions, in the order of the report.
pub(crate) const ANSWERS: [Answer; 10] = [
    Answer {
        question: "How many bytes does a Web service cost, compared with a page of the same content?",
        figure: overload::fig_05::FIGURE.id,
        say: overload::fig_05::answer,
    },
    Answer {
        question: "Does a server keep its throughput when it is asked for more than it can serve?",
        figure: overload::fig_09::FIGURE.id,
        say: overload::fig_09::answer,
    },
    Answer {
        question: "Does compression help an overloaded server?",
        figure: overload::fig_11::FIGURE.id,
        say: overload::fig_11::answer,
    },
    Answer {
        question: "Does it matter which packet of a reply is lost?",
        figure: packet_loss::fig_06::FIGURE.id,
        say: packet_loss::fig_06::answer,
    },
    Answer {
        question: "Would adaptive duplicate ACKs, the proposal of the paper, have helped?",
        figure: packet_loss::remedies_compared::FIGURE.id,
        say: packet_loss::remedies_compared::answer,
    },
    Answer {
        question: "When does a handheld gain from compressed replies?",
        figure: compression::fig_50::FIGURE.id,
        say: compression::fig_50::answer,
    },
    Answer {
        question: "Can the server decide by its load for whom to compress?",
        figure: compression::fig_53::FIGURE.id,
        say: compression::fig_53::answer,
    },
    Answer {
        question: "What does a broker cost that compares offers for each request?",
        figure: broker::fig_59::FIGURE.id,
        say: broker::fig_59::answer,
    },
    Answer {
        question: "Do replies gain that are marked for the network by the priority in their request?",
        figure: diffserv::fig_65::FIGURE.id,
        say: diffserv::fig_65::answer,
    },
    Answer {
        question: "Do prices protect a server that is asked for more than it can do?",
        figure: pricing::prices_2026::FIGURE.id,
        say: pricing::prices_2026::answer,
    },
];

/// Returns the answer of `figure` from its records. `None` if the figure answers no question, or if a number is
/// missing.
pub(crate) fn sentence(figure: &str, records: &Records) -> Option<String> {
    let answer = ANSWERS.iter().find(|answer| answer.figure == figure)?;
    let sentence = (answer.say)(records);
    let known = !sentence.is_empty() && !sentence.contains("NaN");
    known.then_some(sentence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FIGURES;

    #[test]
    fn without_data_nothing_is_answered_and_nothing_has_improved() {
        let none = Records::new();
        for figure in FIGURES {
            assert_eq!(sentence(figure.id, &none), None, "{}", figure.id);
            let checks = (figure.checks)(&none);
            let improved = checks.iter().find(|check| check.better);
            assert_eq!(improved, None, "{}", figure.id);
        }
    }

    #[test]
    fn every_question_has_a_figure() {
        for answer in &ANSWERS {
            let is_there = FIGURES.iter().any(|figure| figure.id == answer.figure);
            assert!(is_there, "{}", answer.figure);
        }
    }
}
