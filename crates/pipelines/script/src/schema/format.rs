//! The formats of text that a schema may ask for.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Email,
    Uri,
    Date,
    DateTime,
    Uuid,
}

impl Format {
    const ALL: [(&str, Self, &str); 5] = [
        ("email", Self::Email, "an e-mail address"),
        ("uri", Self::Uri, "a whole address, such as https://example.com/menu"),
        ("date", Self::Date, "a date, such as 2026-11-15"),
        ("date-time", Self::DateTime, "a date with a time and a zone, such as 2026-11-15T20:00:00Z"),
        ("uuid", Self::Uuid, "a UUID"),
    ];

    pub(super) fn read(name: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(known, _, _)| *known == name);
        let names = Self::ALL.map(|(known, _, _)| known).join(", ");
        found.map(|(_, format, _)| *format).ok_or_else(|| {
            format!("the format `{name}` is not checked here; there are {names}, and `pattern`")
        })
    }

    pub(super) fn holds(self, text: &str) -> bool {
        match self {
            Self::Email => is_email(text),
            Self::Uri => is_uri(text),
            Self::Date => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
            Self::DateTime => text.parse::<jiff::Timestamp>().is_ok(),
            Self::Uuid => uuid::Uuid::try_parse(text).is_ok(),
        }
    }

    pub(super) fn in_words(self) -> &'static str {
        Self::ALL.iter().find(|(_, format, _)| *format == self).map_or("", |(_, _, words)| words)
    }
}

/// What can be an address at all; whether there is a mailbox only a letter tells.
fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.rsplit_once('@') else { return false };
    let is_plain =
        |part: &str| !part.is_empty() && !part.chars().any(|c| c.is_whitespace() || c.is_control());
    is_plain(name) && is_plain(host) && !host.starts_with('.') && !host.ends_with('.') && text.len() <= 254
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    is_scheme && !rest.is_empty() && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}
