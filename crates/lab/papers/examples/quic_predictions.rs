//! Prints docs/papers/quic-predictions.md.

fn main() {
    match posthaste_papers::quic_predictions() {
        Ok(page) => print!("{page}"),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    }
}
