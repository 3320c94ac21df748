//! Parsing and formatting of store locations.

use crate::store::StoreUrl;

#[test]
fn a_place_is_written_as_it_is_read() {
    for text in [
        "sqlite:offers.sqlite",
        "sqlite:/var/lib/a b:c.sqlite",
        "sqlite::memory:",
    ] {
        assert_eq!(text.parse::<StoreUrl>().unwrap().to_string(), text);
    }
}

#[cfg(feature = "postgres")]
#[test]
fn the_password_of_a_database_is_not_shown() {
    let url: StoreUrl = "postgresql://broker:secret@db.example:5433/offers?sslmode=disable"
        .parse()
        .unwrap();
    assert_eq!(url.to_string(), "postgres://db.example/offers");
    let url: StoreUrl = "postgres://broker@%2Frun%2Fpostgresql".parse().unwrap();
    assert_eq!(url.to_string(), "postgres:///run/postgresql/broker");
}

#[test]
fn invalid_store_urls_name_the_valid_forms() {
    for text in [
        "",
        "sqlite:",
        "sqlite",
        "offers.sqlite",
        "mysql://a@b/c",
        "memory",
    ] {
        let error = text.parse::<StoreUrl>().unwrap_err().to_string();
        assert_eq!(
            error,
            format!("{text:?} is not a store: write sqlite:FILE or postgres://USER@HOST/DATABASE")
        );
    }
}

#[cfg(not(feature = "postgres"))]
#[test]
fn a_build_without_postgresql_names_the_feature() {
    let error = "postgres://broker@db.example/offers".parse::<StoreUrl>();
    let error = error.unwrap_err().to_string();
    assert!(error.contains("--features postgres"), "{error}");
}

#[cfg(feature = "postgres")]
#[test]
fn an_incomplete_database_url_names_the_lack() {
    for (text, why) in [
        ("postgres://broker@/offers", "it has no host"),
        ("postgres://db.example/offers", "it has no user"),
        ("postgres://broker@db.example:x/offers", "invalid"),
        ("postgres://broker@db.example/offers?colour=red", "colour"),
    ] {
        let error = text.parse::<StoreUrl>().unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
        assert!(
            error.ends_with("write postgres://USER:PASSWORD@HOST:PORT/DATABASE"),
            "{text}: {error}"
        );
    }
}
