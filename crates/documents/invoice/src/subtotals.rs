//! Lines that only repeat what other lines say: printed subtotals and groups with their parts.

use rust_decimal::Decimal;

use crate::write::amount::sum;

/// Past this many lines the search, whose time grows with the cube, is not worth it.
const LINES_MAX: usize = 200;

/// The totals to leave out, each the sum of at least two neighbours directly before or after it, so that the rest
/// is whole; none if there is no such set, or none is needed.
pub(crate) fn subtotals(totals: &[Decimal], is_whole: impl Fn(Decimal) -> bool) -> Option<Vec<usize>> {
    let mut left: Vec<usize> =
        if totals.len() > LINES_MAX { Vec::new() } else { (0..totals.len()).collect() };
    let mut found = Vec::new();
    while let Some(at) = (0..left.len()).find(|at| repeats_neighbours(totals, &left, *at)) {
        found.push(left.remove(at));
        if is_whole(sum(left.iter().map(|at| totals[*at]))) {
            return Some(found);
        }
    }
    None
}

fn repeats_neighbours(totals: &[Decimal], left: &[usize], at: usize) -> bool {
    let wanted = totals[left[at]];
    let mut before = left[..at].iter().rev().copied();
    let mut after = left[at + 1..].iter().copied();
    !wanted.is_zero() && (adds_up(totals, &mut before, wanted) || adds_up(totals, &mut after, wanted))
}

/// Whether a run of at least two of these, from the first on, adds up to what is wanted.
fn adds_up(totals: &[Decimal], run: &mut dyn Iterator<Item = usize>, wanted: Decimal) -> bool {
    let mut sum_so_far = Decimal::ZERO;
    run.enumerate().any(|(index, at)| {
        sum_so_far = sum([sum_so_far, totals[at]]);
        index > 0 && sum_so_far == wanted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(totals: &[i64], whole: i64, expected: Option<&[usize]>) {
        let totals: Vec<Decimal> = totals.iter().map(|total| Decimal::from(*total)).collect();
        let found = subtotals(&totals, |rest| rest == Decimal::from(whole));
        assert_eq!(found.as_deref(), expected, "{totals:?}");
    }

    #[test]
    fn groups_are_found_before_and_after_their_parts_and_inside_each_other() {
        check(&[600, 450, 1050], 1050, Some(&[2]));
        check(&[216, 30, 60, 126, 90, 36], 216, Some(&[0, 3]));
        check(&[10, 20, 30, 40], 70, Some(&[2]));
    }

    #[test]
    fn lines_that_merely_do_not_add_up_stay() {
        check(&[10, 20, 30, 40], 90, None);
        check(&[50, 50], 50, None);
        check(&[0, 0, 0], 0, None);
        check(&[], 1, None);
        check(&[7], 1, None);
    }
}
