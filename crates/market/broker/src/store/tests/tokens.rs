//! Tokens in a store.

use super::{TestStore, at, later};
use crate::store::StoreError;
use crate::token::{Grant, Hash, TokenRole};

super::over_all_stores! {
    a_token_is_followed_by_the_next_without_a_gap,
    no_two_tokens_are_the_same,
}

fn a_token_is_followed_by_the_next_without_a_gap(world: &TestStore) {
    let mut store = world.open();
    let mut grant = |token: &str, now| {
        let hash = Hash::from_token(token);
        let number = store
            .grant(TokenRole::Gateway, "Bücher & Söhne", hash, now)
            .unwrap();
        Grant {
            number,
            provider: "Bücher & Söhne".to_owned(),
            hash,
            role: TokenRole::Gateway,
        }
    };
    let (old, new) = (grant("old", at()), grant("new", later(1)));
    assert_ne!(old.number, new.number);
    assert_eq!(world.open().grants().unwrap(), [old.clone(), new.clone()]);
    assert!(store.revoke(old.number, later(2)).unwrap());
    assert!(
        !store.revoke(old.number, later(3)).unwrap(),
        "it was revoked before"
    );
    assert!(!store.revoke(99, later(3)).unwrap(), "there is none");
    assert_eq!(store.grants().unwrap(), std::slice::from_ref(&new));
    let tokens = world.open().tokens().unwrap();
    let listed: Vec<_> = tokens
        .iter()
        .map(|token| (&token.grant, token.made, token.revoked))
        .collect();
    assert_eq!(
        listed,
        [(&old, at(), Some(later(2))), (&new, later(1), None)]
    );
}

fn no_two_tokens_are_the_same(world: &TestStore) {
    let mut store = world.open();
    let role = TokenRole::Provider;
    store
        .grant(role, "a", Hash::from_token("token"), at())
        .unwrap();
    let again = store.grant(role, "b", Hash::from_token("token"), at());
    assert!(
        matches!(again, Err(StoreError::Unavailable(_))),
        "{again:?}"
    );
    assert_eq!(store.grants().unwrap().len(), 1);
}
