//! English-like prose from random numbers: titles, descriptions, reviews.
//!
//! A small grammar over [`crate::vocabulary`]. The used share of its lists (`width`) determines the compressibility: the
//! papers' replies shrink 2.4 to 3.2 times, and the generated ones must match.

use posthaste_units::Stream;
use rand::RngExt as _;

use crate::vocabulary;

/// The vocabulary, split once.
pub(crate) struct Prose {
    nouns: Vec<&'static str>,
    adjectives: Vec<&'static str>,
    verbs: Vec<&'static str>,
    adverbs: Vec<&'static str>,
    places: Vec<&'static str>,
    first: Vec<&'static str>,
    last: Vec<&'static str>,
    houses: Vec<&'static str>,
    subjects: Vec<&'static str>,
}

/// Sentence templates. Capital letters are slots, all other text is literal.
///
/// N noun, A adjective, V verb, D adverb, P place, F first name, L last name, Y year.
const SENTENCES: &[&str] = &[
    "The A N V the N, and the N V a A N.",
    "In P, a A N D V the N of the L family.",
    "F L, a A N, V what the N D V.",
    "It is a A account of how one N V another N, A and A.",
    "By Y the N of P had become a A N, which nobody V.",
    "Every N here V a N; the A one D V the N.",
    "No N V the A N as D as this.",
    "What the N V, the N V again, D and without a N.",
    "L writes about the N and the N as if each were a A N.",
    "The A chapters on P are A, those on the N D A.",
    "Whoever V the N will find the N A, but the A N at the end V much.",
    "Between the N and the N there is a A N that V the whole book.",
    "When F V the N, a N from P V it D.",
    "I had expected a A N and was given a A, A N.",
    "One N in Y V the N, and from then on the N D V its A N.",
    "The prose is A, the N A, and the N of P never less than A.",
    "One N V, a N V, and D the A N is over.",
    "It V the N behind the A N and V the reader to the N.",
    "Rarely is a book on the N so A; none V its N so D.",
    "His A N and her A N meet in P, where the N V both.",
    "Readers who liked the earlier N may miss its N; I did not.",
    "Somewhere past page Y my N gave way to a A N.",
    "Would that more authors V a N this D!",
    "L knows P well, yet the N there remains A.",
    "Borrowed from F, lent to L, and still it V a N each time.",
    "Nothing prepares you for the N; everything V it.",
    "Translated D, it loses some N but keeps that A N.",
    "My copy came with a N, A maps, and an index that V every N.",
    "Not even the N can excuse such A treatment of N or N.",
    "Skip the preface: F L V its A N too D.",
    "Halfway through, some N from P D V our A N.",
    "They quarrel over a N until, D, one N V them all.",
    "Compared with Y, when L wrote, any N now seems A.",
    "How the A N V her N I shall not say.",
    "Five stars for its N, two for that A N, none for the N.",
    "Both N and N are drawn from life; only F is A.",
    "A N, A N, A N: L V all D.",
    "A, A and D A, F L V A N.",
    "P, Y: A N V N, N V A N.",
    "F V A N; L V A N; N D V both.",
    "A N V A N D, as N V N.",
    "N, N, N and A N: D A, D A.",
    "L V N from P to P, A N by A N.",
    "D, F L V P, Y, with A N.",
];

impl Prose {
    pub(crate) fn new() -> Self {
        let split = |list: &'static str| list.split_whitespace().collect();
        Self {
            nouns: split(vocabulary::NOUNS),
            adjectives: split(vocabulary::ADJECTIVES),
            verbs: split(vocabulary::VERBS),
            adverbs: split(vocabulary::ADVERBS),
            places: split(vocabulary::PLACES),
            first: split(vocabulary::FIRST),
            last: split(vocabulary::LAST),
            houses: split(vocabulary::HOUSES),
            subjects: split(vocabulary::SUBJECTS),
        }
    }

    pub(crate) fn title(&self, random: &mut Stream) -> String {
        let shape = pick(
            &[
                "The A N",
                "The N of N",
                "The N of P",
                "N and N",
                "The A N and the N",
                "Letters from P",
                "One A N in P",
            ],
            1.0,
            random,
        );
        let title = self.fill(shape, 1.0, random);
        title
            .split(' ')
            .map(|word| {
                if matches!(word, "of" | "and" | "the" | "in" | "from") {
                    word.to_owned()
                } else {
                    capital(word)
                }
            })
            .collect::<Vec<_>>()
            .join(" ")
    }

    pub(crate) fn person(&self, random: &mut Stream) -> String {
        self.fill("F L", 1.0, random)
    }

    pub(crate) fn house(&self, random: &mut Stream) -> String {
        let kind = pick(&["Press", "Books", "House", "Publishing"], 1.0, random);
        format!("{} {kind}", pick(&self.houses, 1.0, random))
    }

    pub(crate) fn subject(&self, random: &mut Stream) -> &'static str {
        pick(&self.subjects, 1.0, random)
    }

    /// Generates sentences of `length` bytes in total, cut after a word; ends in a full stop.
    pub(crate) fn sentences(&self, length: usize, width: f64, random: &mut Stream) -> String {
        let mut text = String::with_capacity(length + 128);
        while text.len() < length {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(&self.fill(pick(SENTENCES, 1.0, random), width, random));
        }
        cut(&text, length).to_owned() + "."
    }

    fn fill(&self, shape: &str, width: f64, random: &mut Stream) -> String {
        let mut text = String::with_capacity(shape.len() * 5);
        for (at, slot) in shape.char_indices() {
            // A capital letter is a slot if it stands alone.
            let alone = |c: Option<char>| c.is_none_or(|c| !c.is_alphabetic());
            let before = shape[..at].chars().next_back();
            let after = shape[at + 1..].chars().next();
            let list = match slot {
                _ if !(slot.is_ascii_uppercase() && alone(before) && alone(after)) => None,
                'N' => Some(&self.nouns),
                'A' => Some(&self.adjectives),
                'V' => Some(&self.verbs),
                'D' => Some(&self.adverbs),
                'P' => Some(&self.places),
                'F' => Some(&self.first),
                'L' => Some(&self.last),
                _ => None,
            };
            match (slot, list) {
                (_, Some(list)) => {
                    let word = pick(list, width, random);
                    agree(&mut text, word);
                    match at {
                        0 => text.push_str(&capital(word)),
                        _ => text.push_str(word),
                    }
                }
                ('Y', None) if alone(before) && alone(after) => {
                    text.push_str(&random.random_range(1500..2000).to_string());
                }
                _ => text.push(slot),
            }
        }
        text
    }
}

/// Returns the longest start of `text` of at most `length` - 1 bytes that ends with a word.
pub(crate) fn cut(text: &str, length: usize) -> &str {
    let Some(most) = length.checked_sub(1).filter(|most| *most < text.len()) else {
        return text.trim_end_matches('.');
    };
    let end = if text.as_bytes()[most] == b' ' {
        most
    } else {
        text[..most].rfind(' ').unwrap_or(most)
    };
    text[..end].trim_end_matches([' ', ',', ';', '.'])
}

/// Changes "a" before a vowel to "an".
fn agree(text: &mut String, word: &str) {
    let article = text.ends_with(" a ") || text == "a " || text == "A " || text.ends_with(". A ");
    if article && word.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']) {
        text.pop();
        text.push_str("n ");
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

fn pick(list: &[&'static str], width: f64, random: &mut Stream) -> &'static str {
    let used = ((list.len() as f64 * width).ceil() as usize).clamp(1, list.len());
    list[random.random_range(0..used)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_units::Seed;

    #[test]
    fn texts_have_the_length_asked_for_and_come_again() {
        let prose = Prose::new();
        for length in [40, 100, 579, 5000] {
            let text = prose.sentences(length, 1.0, &mut Seed(1).stream("t"));
            assert!(
                text.len() <= length && text.len() + 16 > length,
                "{length}: {}",
                text.len()
            );
            assert_eq!(text, prose.sentences(length, 1.0, &mut Seed(1).stream("t")));
            assert!(text.ends_with('.') && !text.contains("  "), "{text}");
        }
    }

    #[test]
    fn articles_agree() {
        let prose = Prose::new();
        let text = prose.sentences(50_000, 1.0, &mut Seed(2).stream("t"));
        for wrong in [" a a", " a e", " a i", " a o", " a u", " an b", " an s"] {
            assert!(!text.contains(wrong), "{wrong:?} in {text:.200}");
        }
    }
}
