//! An endpoint that reuses its memory for a new connection equals a new endpoint.

use std::sync::Arc;

use posthaste_tcp::{Endpoint, profile};
use posthaste_units::{Instant, Span};

use crate::pair::{Application, EndpointPair, Fate};

/// The whole state of an endpoint, as text.
fn all_of(endpoint: &Endpoint) -> String {
    format!("{endpoint:#?}")
}

#[test]
fn nothing_of_the_last_connection_is_left() {
    let now = Instant::from_nanos(77);
    for name in profile::names() {
        let profile = Arc::new(profile::named(name).expect("listed"));
        let mut pair = EndpointPair::new([&profile, &profile], [7, 9], Span::from_millis(10));
        pair.applications = [Application::new(300, 20_000), Application::new(20_000, 300)];
        pair.run(Span::from_millis(400), |_, number| Fate {
            lost: number % 7 == 6,
            ..Fate::default()
        });
        for end in &mut pair.ends {
            end.relisten(&profile, 5);
            assert_eq!(all_of(end), all_of(&Endpoint::listen(&profile, 5)));
            end.leave(now);
            end.reconnect(&profile, 6, now);
            assert_eq!(all_of(end), all_of(&Endpoint::connect(&profile, 6, now)));
        }
    }
}
