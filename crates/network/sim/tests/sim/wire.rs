//! The form of totals in messages: exact, canonical and checked.

use posthaste_link::{Loss, Plan};
use posthaste_sim::{Scenario, Totals};
use proptest::prelude::*;

use crate::support::{author, plan, scenario, simulator};

fn lossy() -> Scenario {
    let plan = Plan {
        loss: Some("5%".parse::<Loss>().expect("a loss")),
        ..plan(Some(1000), 20)
    };
    scenario("rfc", [plan.clone(), plan], author())
}

fn count(numbers: impl IntoIterator<Item = u64>) -> Totals {
    let (mut simulator, mut totals) = (simulator(lossy()), Totals::new());
    for number in numbers {
        totals.add(&simulator.play(number));
    }
    totals
}

fn written(totals: &Totals) -> String {
    serde_json::to_string(totals).expect("a form")
}

fn read(form: &str) -> Totals {
    serde_json::from_str(form).unwrap_or_else(|error| panic!("{error}: {form}"))
}

#[test]
fn totals_that_contradict_themselves_are_refused() {
    let totals = count(1..=40);
    let good = written(&totals);
    assert_eq!(read(&good), totals);
    let (time, number) = totals.slowest.expect("answers");
    let slowest = format!(r#""slowest":[{},{number}]"#, time.as_nanos());
    let packets = format!(r#""most_packets":[{},"#, totals.most_packets[0]);
    let touched = format!(r#""touched":{}"#, totals.touched);
    let cases = [
        (r#""connections":40"#, r#""connections":41"#, "endings"),
        (r#""answered":40"#, r#""answered":39"#, "response times"),
        (&slowest, r#""slowest":null"#, "longest"),
        (&slowest, &slowest.replace('[', "[1"), "longest"),
        (&packets, r#""most_packets":[99999,"#, "packets"),
        (&touched, r#""touched":41"#, "losses"),
        (r#""timeouts":"#, r#""timeouts":12345678901234567"#, "2^56"),
        (
            r#""timeouts":"#,
            r#""other":0,"timeouts":"#,
            "unknown field",
        ),
        (
            r#""endings":[40,0"#,
            r#""endings":[40,123456789012345675"#,
            "2^56",
        ),
    ];
    for (part, other, reason) in cases {
        assert!(good.contains(part), "{part} is not in {good}");
        let form = good.replace(part, other);
        let error = serde_json::from_str::<Totals>(&form).expect_err(part);
        assert!(error.to_string().contains(reason), "{part}: {error}");
    }
    let nothing = written(&Totals::new());
    assert_eq!(read(&nothing), Totals::new());
    let error = serde_json::from_str::<Totals>(&nothing.replace(r#""lost":0"#, r#""lost":1"#));
    assert!(
        error
            .expect_err("nothing")
            .to_string()
            .contains("without a connection")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn totals_merge_through_messages_as_without(
        shares in proptest::collection::vec(0usize..3, 60),
        order in Just([2usize, 0, 1]).prop_shuffle(),
    ) {
        let mut merged = Totals::new();
        for part in order {
            let own = (1u64..).zip(&shares).filter(|(_, share)| **share == part);
            let own = count(own.map(|(number, _)| number));
            let form = written(&own);
            let back = read(&form);
            prop_assert_eq!(&back, &own);
            prop_assert_eq!(&written(&back), &form);
            merged.merge(&back);
        }
        prop_assert_eq!(written(&merged), written(&count(1..=60)));
    }
}
