//! Lists of positions and delays as text.

/// Lists ascending numbers. Shortens runs of three or more: "3 and 9 to 11". "none" for an empty list.
pub(super) fn listed(numbers: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let runs = numbers.chunk_by(|before, after| before + 1 == *after);
    for run in runs {
        match run {
            [first, _, .., last] => parts.push(format!("{first} to {last}")),
            few => parts.extend(few.iter().map(u32::to_string)),
        }
    }
    match parts.as_slice() {
        [] => "none".to_owned(),
        [only] => only.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn runs_of_positions_are_shortened() {
        assert_eq!(listed(&[]), "none");
        assert_eq!(listed(&[9, 10, 11]), "9 to 11");
        assert_eq!(listed(&[3, 9, 10, 11]), "3 and 9 to 11");
        assert_eq!(listed(&[2, 3, 7]), "2, 3 and 7");
    }
}
