//! Which jobs of a batch need which: each only earlier ones, so that one of them can always go on.

use crate::request::BatchRequest;
use ode_http::problem::Problem;
use std::collections::{HashMap, HashSet};

/// The jobs of a batch by their names.
pub(super) struct Sequence {
    /// The places of those that have one.
    pub(super) names: HashMap<String, usize>,
}

impl Sequence {
    /// The names of a batch, if each job needs earlier ones only. With `in_order` it needs the one before it, too.
    pub(super) fn read(requests: &[BatchRequest], in_order: bool) -> Result<Self, Problem> {
        let mut names = HashMap::new();
        for (place, name) in
            requests.iter().enumerate().filter_map(|(place, job)| Some((place, job.name.as_ref()?)))
        {
            if let Some(other) = names.insert(name.clone(), place) {
                let detail = format!("jobs[{other}] and jobs[{place}] are both named {name:?}. Rename one.");
                return Err(Problem::invalid(detail).at(format!("jobs[{place}].name")));
            }
        }
        let named = |job: &BatchRequest| -> Vec<Option<usize>> {
            job.request.depends_on.iter().map(|name| names.get(name).copied()).collect()
        };
        let needs = Needs::new(requests.iter().map(named).collect(), in_order);
        let called = |place: usize| match &requests[place].name {
            Some(name) => format!("{name:?}"),
            None => format!("jobs[{place}]"),
        };
        match needs.backward() {
            Some(wrong) => Err(wrong.problem(called)),
            None => Ok(Sequence { names }),
        }
    }
}

/// A need of a job that does not stand before it.
#[derive(Debug, PartialEq, Eq)]
struct Backward {
    job: usize,
    need: usize,
    needed: usize,
    /// From the job over those it needs back to itself, if it needs itself in the end.
    circle: Option<Vec<usize>>,
}

impl Backward {
    fn problem(self, called: impl Fn(usize) -> String) -> Problem {
        let Self { job, need, needed, circle } = self;
        let detail = match circle {
            Some(circle) => {
                let circle: Vec<String> = circle.into_iter().map(&called).collect();
                format!(
                    "The jobs need each other in a circle, so that none could begin: {}. Take one of these needs out.",
                    circle.join(" needs ")
                )
            }
            None => format!(
                "{} needs {}, which stands later in the batch. Put what is needed before what needs it.",
                called(job),
                called(needed)
            ),
        };
        Problem::invalid(detail).at(format!("jobs[{job}].depends_on[{need}]"))
    }
}

/// What the jobs of a batch need, by their places.
struct Needs {
    /// What each job names; those outside of the batch have no place.
    named: Vec<Vec<Option<usize>>>,
    /// What must end before each job, named or not.
    before: Vec<Vec<usize>>,
}

impl Needs {
    /// Those that are named and, with `in_order`, of each job the one before it.
    fn new(named: Vec<Vec<Option<usize>>>, in_order: bool) -> Self {
        let before = |(job, needed): (usize, &Vec<Option<usize>>)| {
            needed.iter().flatten().copied().chain(job.checked_sub(1).filter(|_| in_order)).collect()
        };
        let before = named.iter().enumerate().map(before).collect();
        Needs { named, before }
    }

    /// The first need of a job that is not an earlier one.
    fn backward(&self) -> Option<Backward> {
        for (job, needed) in self.named.iter().enumerate() {
            let later =
                needed.iter().enumerate().find_map(|(need, at)| Some((need, at.filter(|at| *at >= job)?)));
            if let Some((need, needed)) = later {
                let back = self.way(needed, job, &mut HashSet::new());
                let circle = back.map(|back| [vec![job], back].concat());
                return Some(Backward { job, need, needed, circle });
            }
        }
        None
    }

    /// The way from one job over what it needs to another.
    fn way(&self, from: usize, to: usize, seen: &mut HashSet<usize>) -> Option<Vec<usize>> {
        if from == to {
            return Some(vec![to]);
        }
        if !seen.insert(from) {
            return None;
        }
        let rest = self.before[from].iter().find_map(|next| self.way(*next, to, seen))?;
        Some([vec![from], rest].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_needs_earlier_ones_and_a_circle_is_told_as_one() {
        let check = |needs: &[&[usize]], in_order, expected: Option<(usize, Option<&[usize]>)>| {
            let named = needs.iter().map(|of| of.iter().copied().map(Some).collect()).collect();
            let found = Needs::new(named, in_order).backward().map(|wrong| (wrong.job, wrong.circle));
            assert_eq!(
                found,
                expected.map(|(job, circle)| (job, circle.map(<[usize]>::to_vec))),
                "{needs:?}"
            );
        };
        check(&[&[], &[0], &[0, 1]], true, None);
        check(&[&[1], &[]], false, Some((0, None)));
        check(&[&[1], &[]], true, Some((0, Some(&[0, 1, 0]))));
        check(&[&[0]], false, Some((0, Some(&[0, 0]))));
        check(&[&[2], &[0], &[1]], false, Some((0, Some(&[0, 2, 1, 0]))));
        check(&[&[], &[2], &[1, 0]], false, Some((1, Some(&[1, 2, 1]))));
    }
}
