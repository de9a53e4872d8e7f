//! The formats of text that a schema may ask for.

use std::net::{Ipv4Addr, Ipv6Addr};

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
            Self::Date => is_date(text),
            Self::DateTime => is_date_time(text),
            Self::Uuid => text.len() == UUID_CHARS && uuid::Uuid::try_parse(text).is_ok(),
        }
    }

    pub(super) fn in_words(self) -> &'static str {
        Self::ALL.iter().find(|(_, format, _)| *format == self).map_or("", |(_, _, words)| words)
    }
}

/// With dashes: no other form that is read has as many.
const UUID_CHARS: usize = 36;
const EMAIL_BYTES_MAX: usize = 254;

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// RFC 3339, with the leap seconds that there may be: the last one of a day in UTC.
fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    is_date(date) && is_time(time).is_some()
}

/// A time with a zone, if it is one.
fn is_time(text: &str) -> Option<()> {
    let (clock, zone) = text.split_at(text.find(['Z', 'z', '+', '-'])?);
    let (clock, fraction) = clock.split_once('.').map_or((clock, "0"), |(clock, fraction)| (clock, fraction));
    let [hour, minute, second] = numbers(clock)?;
    let offset = if zone.eq_ignore_ascii_case("z") {
        0
    } else {
        let [hours, minutes] = numbers(&zone[1..])?;
        let minutes = (hours <= 23 && minutes <= 59).then_some(hours * 60 + minutes)?;
        if zone.starts_with('-') { -minutes } else { minutes }
    };
    let is_last_minute = (hour * 60 + minute - offset).rem_euclid(24 * 60) == 24 * 60 - 1;
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|digit| digit.is_ascii_digit());
    let second_max = if is_last_minute { 60 } else { 59 };
    (hour <= 23 && minute <= 59 && second <= second_max && is_fraction).then_some(())
}

/// Numbers of two digits with colons in between.
fn numbers<const N: usize>(text: &str) -> Option<[i32; N]> {
    let number = |part: &str| {
        let is_number = part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_digit());
        part.parse().ok().filter(|_| is_number)
    };
    text.split(':').map(number).collect::<Option<Vec<i32>>>()?.try_into().ok()
}

/// What can be an address at all (RFC 5321); whether there is a mailbox only a letter tells. Letters beyond ASCII are
/// taken, as mail servers do by now.
fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.rsplit_once('@') else { return false };
    text.len() <= EMAIL_BYTES_MAX && (is_dotted(name) || is_quoted(name)) && is_host(host)
}

fn is_dotted(name: &str) -> bool {
    let is_taken = |c: char| c.is_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c);
    name.split('.').all(|part| !part.is_empty() && part.chars().all(is_taken))
}

fn is_quoted(name: &str) -> bool {
    let Some(quoted) = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) else { return false };
    let mut letters = quoted.chars();
    while let Some(letter) = letters.next() {
        let letter =
            if letter == '\\' { letters.next() } else { Some(letter).filter(|letter| *letter != '"') };
        if letter.is_none_or(char::is_control) {
            return false;
        }
    }
    true
}

fn is_host(host: &str) -> bool {
    if let Some(literal) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return match literal.strip_prefix("IPv6:") {
            Some(address) => address.parse::<Ipv6Addr>().is_ok(),
            None => literal.parse::<Ipv4Addr>().is_ok(),
        };
    }
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.chars().all(|c| c.is_alphanumeric() || c == '-')
    };
    host.split('.').all(is_label)
}

/// RFC 3986; one that says nothing behind its scheme leads nowhere.
fn is_uri(text: &str) -> bool {
    !text.ends_with(':') && fluent_uri::Uri::parse(text).is_ok()
}
