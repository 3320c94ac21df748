//! Two keepers on one store.

use super::{Kept, all_at_once, put_valid, soon, wait};
use crate::store::tests::{World, over_all_stores, withdraw};
use crate::store::{Condition, Write};

over_all_stores! {
    two_keepers_come_to_the_same,
}

fn two_keepers_come_to_the_same(world: &World) {
    let both = [Kept::of(world), Kept::of(world)];
    let writes = |first: usize| -> Vec<Write> {
        let write = |number: usize| {
            let name = format!("{}", (number * 7 + first) % 50);
            match number % 3 {
                0 => withdraw(&name, Condition::Any),
                _ => put_valid(&name),
            }
        };
        (0..400).map(write).collect()
    };
    std::thread::scope(|scope| {
        for (first, kept) in both.iter().enumerate() {
            scope.spawn(move || {
                for some in writes(first).chunks(20) {
                    for outcome in wait(all_at_once(&kept.keeper, some.to_vec())) {
                        outcome.unwrap();
                    }
                }
            });
        }
    });
    let last = world.open().load(&mut |_, _| ()).unwrap();
    soon(|| both.iter().all(|kept| kept.registry.seen().number == last));
    assert_eq!(both[0].offers(), both[1].offers());
    assert!(!both[0].offers().is_empty());
}
