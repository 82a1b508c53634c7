//! The message of a mail: its headers, and a text and an HTML part.

use lettre::{
    Address, Message,
    message::{
        Mailbox, MultiPart,
        header::{HeaderName, HeaderValue},
    },
};

use crate::format::email::Letter;

const UNSUBSCRIBE: HeaderName = HeaderName::new_from_ascii_str("List-Unsubscribe");
const UNSUBSCRIBE_POST: HeaderName = HeaderName::new_from_ascii_str("List-Unsubscribe-Post");
const AUTO_SUBMITTED: HeaderName = HeaderName::new_from_ascii_str("Auto-Submitted");

/// Returns the message. Its `id` is the same each time that the mail is sent, so that mail programs can show it once. The
/// link to unsubscribe works with one click (RFC 8058).
pub(super) fn message(
    from: &Mailbox,
    to: &Address,
    id: &str,
    unsubscribe: &str,
    letter: Letter,
) -> Result<Vec<u8>, lettre::error::Error> {
    let link = format!("<{unsubscribe}>");
    // It is ASCII, and must not be folded within the link.
    let link = HeaderValue::dangerous_new_pre_encoded(UNSUBSCRIBE, link.clone(), link);
    let one_click = "List-Unsubscribe=One-Click".to_owned();
    let message = Message::builder()
        .from(from.clone())
        .to(Mailbox::from(to.clone()))
        .subject(letter.subject)
        .message_id(Some(format!("<{id}@{}>", from.email.domain())))
        .raw_header(link)
        .raw_header(HeaderValue::new(UNSUBSCRIBE_POST, one_click))
        .raw_header(HeaderValue::new(
            AUTO_SUBMITTED,
            "auto-generated".to_owned(),
        ))
        .multipart(MultiPart::alternative_plain_html(letter.text, letter.html))?;
    Ok(message.formatted())
}

#[cfg(test)]
mod tests {
    use super::{Letter, message};

    fn lines(letter: Letter) -> Vec<String> {
        let from = "Earshot <alerts@example.org>".parse().unwrap();
        let to = "ada@example.com".parse().unwrap();
        let link = format!(
            "https://earshot.example/mail/unsubscribe/{}",
            "ab".repeat(150)
        );
        let message = message(&from, &to, "1.ab", &link, letter).unwrap();
        assert!(message.is_ascii(), "8BITMIME would be needed");
        let text = String::from_utf8(message).unwrap();
        text.split("\r\n").map(str::to_owned).collect()
    }

    #[test]
    fn message_has_the_headers_of_a_mail_that_can_be_unsubscribed() {
        let lines = lines(Letter {
            subject: "Which kettle? ☕".to_owned(),
            text: "text – a".to_owned(),
            html: "<p>html – b</p>".to_owned(),
        });
        let has = |line: &str| lines.iter().any(|other| other == line);
        assert!(
            has("From: \"Earshot\" <alerts@example.org>")
                || has("From: Earshot <alerts@example.org>")
        );
        assert!(has("To: ada@example.com"));
        assert!(has("Message-ID: <1.ab@example.org>"));
        assert!(has("List-Unsubscribe-Post: List-Unsubscribe=One-Click"));
        let link = "List-Unsubscribe: <https://earshot.example/mail/unsubscribe/abab";
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with(link) && line.ends_with("ab>"))
        );
        assert!(lines.iter().any(|line| line.starts_with("Subject: ")));
    }

    #[test]
    fn subject_cannot_add_a_header() {
        let lines = lines(Letter {
            subject: "a\r\nBcc: eve@example.com\r\n\r\nb".to_owned(),
            text: "Bcc: eve@example.com".to_owned(),
            html: String::new(),
        });
        let head = lines.iter().take_while(|line| !line.is_empty());
        assert!(head.clone().count() > 5);
        for line in head {
            assert!(!line.to_ascii_lowercase().starts_with("bcc"), "{line}");
        }
    }
}
