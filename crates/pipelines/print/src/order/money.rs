//! Amounts of money.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// An amount in hundredths of a currency. Written as `12.50`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money(pub i64);

/// A text that is no amount.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an amount. Write it like 12.50.")]
pub struct NotMoney(String);

/// Amounts with more digits are none that a poster costs.
const DIGITS_MAX: usize = 12;

impl FromStr for Money {
    type Err = NotMoney;

    fn from_str(text: &str) -> Result<Self, NotMoney> {
        let not_money = || NotMoney(text.chars().take(DIGITS_MAX * 2).collect());
        let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        let is_number = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
        if whole.is_empty() || whole.len() > DIGITS_MAX || !is_number(whole) || !is_number(part) {
            return Err(not_money());
        }
        // Providers write more decimals than a currency has, all of them zero.
        if part.len() > 2 && part[2..].bytes().any(|digit| digit != b'0') {
            return Err(not_money());
        }
        let cents: i64 = format!("{part:0<2}")[..2].parse().map_err(|_| not_money())?;
        let whole: i64 = whole.parse().map_err(|_| not_money())?;
        Ok(Money(whole * 100 + cents))
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

impl Serialize for Money {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_read_exactly_or_not_at_all() {
        fn check(text: &str, cents: Option<i64>) {
            assert_eq!(text.parse::<Money>().ok(), cents.map(Money), "{text}");
        }
        check("12.50", Some(1250));
        check("12.5", Some(1250));
        check("12", Some(1200));
        check("0.01", Some(1));
        check("12.5000", Some(1250));
        check("12.505", None);
        check("-1", None);
        check("", None);
        check(".5", None);
        check("1e3", None);
        check("99999999999999", None);
        assert_eq!(Money(1205).to_string(), "12.05");
    }
}
