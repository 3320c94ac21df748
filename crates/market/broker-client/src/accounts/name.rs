//! Names of accounts and subjects of certificates.
//!
//! The name of an account is a client's name in quotes and logs. It begins with a letter, so that it is never an
//! address, and needs no quoting in any format.

/// Maximum length of an account's name, in bytes.
pub const LONGEST_NAME: usize = 64;

/// Maximum length of a certificate's subject, in bytes.
pub const LONGEST_SUBJECT: usize = 1_024;

/// Error in the name of an account, in words; `None` if valid.
pub fn fault_of_account_name(name: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_name = begins && name.len() <= LONGEST_NAME && name.bytes().all(is_plain);
    (!is_name).then(|| {
        let shown: String = name.chars().take(LONGEST_NAME).collect();
        format!(
            "{shown:?} is not a name of an account: write a letter, then up to {} letters, digits, -, _ or .",
            LONGEST_NAME - 1
        )
    })
}

/// Error in the subject of a certificate, in words; `None` if valid.
///
/// Another text would be the subject of no certificate, such as a name alone, or the whole line of OpenSSL.
pub fn fault_of_subject(subject: &str) -> Option<String> {
    let is_line = subject.len() <= LONGEST_SUBJECT && !subject.contains(char::is_control);
    let first = subject.split_once('=').map(|(first, _)| first);
    let is_subject = is_line && first.is_some_and(is_attribute) && first != Some("subject");
    (!is_subject).then(|| {
        "this is not the subject of a certificate: write the text that `openssl x509 -noout -subject -nameopt RFC2253` \
         shows after subject=, such as CN=ada,O=Books"
            .to_owned()
    })
}

/// True for the type of an attribute (RFC 4514, section 3): a name, or numbers with dots.
fn is_attribute(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    text.starts_with(|first: char| first.is_ascii_alphanumeric()) && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_an_address_and_needs_no_quotes() {
        for good in ["a", "Ada-2_b.c", &"a".repeat(LONGEST_NAME)] {
            assert_eq!(fault_of_account_name(good), None, "{good}");
        }
        let long = "a".repeat(LONGEST_NAME + 1);
        for bad in [
            "", "1", "10.0.0.1", "::1", "-a", "a b", "a,b", "a\n", "ä", &long,
        ] {
            assert!(fault_of_account_name(bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn a_subject_is_a_line_that_begins_with_an_attribute() {
        for good in ["CN=Ada,O=Bücher", "2.5.4.97=VAT+CN=a", "serialNumber=1"] {
            assert_eq!(fault_of_subject(good), None, "{good}");
        }
        let long = format!("CN={}", "a".repeat(LONGEST_SUBJECT));
        let wrong = ["", "CN=a\nb", &long, "ada", "=ada", "@SUM(1)=2"];
        for bad in wrong
            .into_iter()
            .chain(["subject=CN=ada", "subject= CN = ada"])
        {
            let message = fault_of_subject(bad).unwrap();
            assert!(message.contains("after subject="), "{bad:?}");
        }
    }
}
