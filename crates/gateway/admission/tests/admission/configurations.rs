//! Valid and invalid configurations of controllers and limits.

use posthaste_admission::{Controller, Limiter};

#[test]
fn controllers_and_limits_are_read_by_name() {
    for name in ["steps", "proportional-integral", "rajomon"] {
        let text = format!(r#"{{"policy": "{name}", "most": "2.50"}}"#);
        let read: Controller = serde_json::from_str(&text).expect("a controller");
        assert_eq!(read.name(), name);
        assert_eq!(read.check(), Ok(()));
        let written = serde_json::to_string(&read).expect("JSON");
        assert_eq!(
            serde_json::from_str::<Controller>(&written).expect("again"),
            read
        );
        let unknown = format!(r#"{{"policy": "{name}", "mots": "2.50"}}"#);
        let error = serde_json::from_str::<Controller>(&unknown).expect_err("no such key");
        assert!(error.to_string().contains("`mots`"), "{error}");
    }
    for name in ["gradient", "aimd"] {
        let read: Limiter =
            serde_json::from_str(&format!(r#"{{"policy": "{name}"}}"#)).expect("a limit");
        assert_eq!(read.name(), name);
        assert_eq!(read.check(), Ok(()));
    }
    let error =
        serde_json::from_str::<Controller>(r#"{"policy": "guess"}"#).expect_err("no such policy");
    assert!(
        error.to_string().contains("proportional-integral"),
        "{error}"
    );
}

#[test]
fn parameters_that_cannot_work_are_named() {
    let wrong = [
        (r#"{"policy": "steps", "low": "90%"}"#, "low"),
        (r#"{"policy": "steps", "up": "0"}"#, "up"),
        (r#"{"policy": "steps", "window": "0"}"#, "window"),
        (
            r#"{"policy": "proportional-integral", "integral": -1}"#,
            "integral",
        ),
        (
            r#"{"policy": "proportional-integral", "tick": "0.00"}"#,
            "tick",
        ),
        (r#"{"policy": "rajomon", "threshold": "0"}"#, "threshold"),
        (r#"{"policy": "rajomon", "most": "0"}"#, "most"),
    ];
    for (text, key) in wrong {
        let controller: Controller = serde_json::from_str(text).expect("a controller");
        let error = controller.check().expect_err(text).to_string();
        assert!(error.starts_with(key), "{error}");
    }
}
