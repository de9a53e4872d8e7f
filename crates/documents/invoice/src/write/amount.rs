//! Decimals as the standards want them written, and arithmetic on them that cannot overflow.

use rust_decimal::{Decimal, RoundingStrategy};

use super::codes;

/// Money with the decimals of its currency.
pub(crate) fn money(value: Decimal, currency: &str) -> String {
    let (decimals_min, decimals_max) = codes::decimals(currency);
    let mut rounded = round(value, decimals_max).normalize();
    if rounded.scale() < decimals_min || (rounded.scale() > 0 && decimals_min == 0) {
        // A value too large for more digits keeps those it has: the schemas ask for a decimal, not for its length.
        rounded.rescale(decimals_min.max(if decimals_min == 0 { decimals_max } else { 0 }));
    }
    plain(rounded)
}

/// A quantity, a price or a percentage, without needless zeros.
pub(crate) fn plain_number(value: Decimal) -> String {
    plain(value.normalize())
}

fn plain(value: Decimal) -> String {
    if value.is_zero() { value.abs().to_string() } else { value.to_string() }
}

/// Commercial rounding: half a cent goes away from zero.
pub(crate) fn round(value: Decimal, decimals: u32) -> Decimal {
    value.round_dp_with_strategy(decimals, RoundingStrategy::MidpointAwayFromZero)
}

/// The sum, at most the largest number there is.
pub(crate) fn sum(values: impl IntoIterator<Item = Decimal>) -> Decimal {
    values.into_iter().fold(Decimal::ZERO, Decimal::saturating_add)
}

/// `base` × `percent` / 100, to two decimals.
pub(crate) fn share(base: Decimal, percent: Decimal) -> Decimal {
    round(base.saturating_mul(percent).checked_div(Decimal::ONE_HUNDRED).unwrap_or_default(), 2)
}

#[cfg(test)]
mod tests {
    use std::str::FromStr;

    use super::*;

    #[track_caller]
    fn check(value: &str, currency: &str, expected: &str) {
        assert_eq!(money(Decimal::from_str(value).unwrap(), currency), expected, "{value} {currency}");
    }

    #[test]
    fn money_has_the_decimals_of_its_currency() {
        check("252.1", "EUR", "252.10");
        check("3.325", "EUR", "3.33");
        check("-0.004", "EUR", "0.00");
        check("1000.00000", "EUR", "1000.00");
        check("630527000", "IDR", "630527000");
        check("630527000.00", "IDR", "630527000");
        check("12.5", "IDR", "12.50");
        check("1.2345", "KWD", "1.235");
        check("1", "KWD", "1.000");
        check("79228162514264337593543950335", "EUR", "79228162514264337593543950335");
    }

    #[test]
    fn sums_of_absurd_numbers_stop_at_the_largest() {
        assert_eq!(sum([Decimal::MAX, Decimal::MAX]), Decimal::MAX);
        assert_eq!(share(Decimal::MAX, Decimal::MAX), round(Decimal::MAX / Decimal::ONE_HUNDRED, 2));
    }
}
