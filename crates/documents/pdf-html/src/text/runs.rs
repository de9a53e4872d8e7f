//! Runs of a line that are written the other way: numbers and names among Arabic or Hebrew, and the reverse.

use std::ops::Range;

use super::line::{Line, Mark};
use super::script::Way;

/// Neighbours in a line that are written one way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Run {
    pub(crate) marks: Range<usize>,
    /// Whether they are written against their line.
    pub(crate) is_against: bool,
}

/// The runs of a line, in the order of reading. What may go either way goes with its line, unless it stands between
/// two that do not.
pub(crate) fn runs(line: &Line) -> Vec<Run> {
    let against = if line.is_from_right { Way::FromLeft } else { Way::FromRight };
    let mut runs: Vec<Run> = Vec::new();
    // Where marks that may go either way began, after some that are against the line.
    let mut undecided: Option<usize> = None;
    for (at, mark) in line.marks.iter().enumerate() {
        let way = Way::of(&mark.text);
        let is_after_against = runs.last().is_some_and(|run| run.is_against);
        if way == Way::Either && is_after_against {
            undecided.get_or_insert(at);
            continue;
        }
        let is_against = way == against;
        let between = undecided.take();
        match (runs.last_mut(), between) {
            (Some(last), _) if last.is_against == is_against => last.marks.end = at + 1,
            (_, between) => runs.push(Run { marks: between.unwrap_or(at)..at + 1, is_against }),
        }
    }
    if let Some(from) = undecided {
        runs.push(Run { marks: from..line.marks.len(), is_against: false });
    }
    runs
}

/// Marks as in a line of their own that is written the other way, where that line begins in theirs, and its width.
pub(crate) fn turned(marks: &[Mark]) -> (Vec<Mark>, f32, f32) {
    let from = marks.iter().map(|mark| mark.from).fold(f32::MAX, f32::min);
    let to = marks.iter().map(|mark| mark.from + mark.width).fold(from, f32::max);
    let turned = |(at, mark): (usize, &Mark)| Mark {
        from: to - mark.from - mark.width,
        is_after_space: mark.is_after_space && at > 0,
        ..mark.clone()
    };
    (marks.iter().enumerate().map(turned).collect(), from, to - from)
}

#[cfg(test)]
mod tests {
    use ode_pdf::trace::Content;

    use super::*;

    fn line(text: &str, is_from_right: bool) -> Line {
        let mark = |(at, letter): (usize, char)| Mark {
            traced: None,
            text: letter.to_string(),
            is_only_shown: false,
            spot: None,
            is_foreign: false,
            from: at as f32,
            width: 1.0,
            down: 0.0,
            size: 10.0,
            colour: [0, 0, 0, 255],
            is_after_space: false,
            content: Content::default(),
        };
        let marks: Vec<Mark> = text.chars().enumerate().map(mark).collect();
        let width = marks.len() as f32;
        Line {
            start: (0.0, 0.0),
            angle: 0.0,
            marks,
            is_from_right,
            is_vertical: false,
            is_before_space: false,
            width,
            stretch: 1.0,
        }
    }

    #[test]
    fn runs_end_where_the_way_of_writing_changes() {
        let check = |text: &str, is_from_right: bool, expected: &[(usize, bool)]| {
            let found: Vec<(usize, bool)> = runs(&line(text, is_from_right))
                .into_iter()
                .map(|run| (run.marks.len(), run.is_against))
                .collect();
            assert_eq!(found, expected, "{text}");
        };
        check("one, two", false, &[(8, false)]);
        check("\u{5d0}\u{5d1}1.5.", true, &[(2, false), (3, true), (1, false)]);
        check("\u{5d0}.\u{5d1}", true, &[(3, false)]);
        check("a\u{5d0}\u{5d1}-b", false, &[(1, false), (2, true), (2, false)]);
        check("", false, &[]);
    }

    #[test]
    fn marks_are_counted_from_the_other_side() {
        let line = line("123", true);
        let (marks, from, width) = turned(&line.marks[1..]);
        assert_eq!((from, width), (1.0, 2.0));
        assert_eq!(marks.iter().map(|mark| mark.from).collect::<Vec<_>>(), [1.0, 0.0]);
    }
}
