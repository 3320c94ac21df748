//! The nearest valid name, for errors.

/// Similarity below which a name is not suggested.
const LEAST: f64 = 0.75;

/// Maximum number of names in a list.
const MOST: usize = 8;

/// Words about the valid names: the nearest one, or a list if none is near.
pub(crate) fn suggest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    let likeness = |known: &str| strsim::jaro_winkler(name, known);
    let nearest = known
        .iter()
        .map(|known| (likeness(known), *known))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        None => "there is none".to_owned(),
        Some((like, nearest)) if like >= LEAST => format!("the nearest is {nearest}"),
        Some(_) if known.len() > MOST => {
            format!("there are {}, ...", known[..MOST].join(", "))
        }
        Some(_) => format!("there are {}", known.join(", ")),
    }
}
