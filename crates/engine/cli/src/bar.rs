//! How far it is, for a person who watches.

use std::ffi::OsStr;
use std::io::{IsTerminal as _, Write as _};

/// A progress bar on standard error, where that is a terminal and there is more than one step.
#[derive(Debug)]
pub struct Bar {
    done: usize,
    count: usize,
    is_shown: bool,
}

impl Bar {
    const WIDTH: usize = 30;

    /// Shows an empty one.
    pub fn new(count: usize) -> Self {
        // A terminal that cannot take a line back would get a line for each step.
        let is_dumb = std::env::var_os("TERM").as_deref() == Some(OsStr::new("dumb"));
        let bar = Bar { done: 0, count, is_shown: count > 1 && !is_dumb && std::io::stderr().is_terminal() };
        bar.show();
        bar
    }

    pub fn step(&mut self) {
        self.set(self.done + 1);
    }

    /// So many are done.
    pub fn set(&mut self, done: usize) {
        self.done = done.min(self.count);
        self.show();
    }

    fn show(&self) {
        if self.is_shown {
            // Nobody may be there to see it.
            let _ = write!(std::io::stderr(), "{}", self.text());
        }
    }

    fn text(&self) -> String {
        let full = Self::WIDTH * self.done / self.count;
        format!("{}{} {}/{}", "█".repeat(full), "░".repeat(Self::WIDTH - full), self.done, self.count)
    }

    /// Makes way for a line of text.
    pub fn clear(&self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fills_from_the_left() {
        fn check(done: usize, full: usize) {
            let text = Bar { done, count: 4, is_shown: false }.text();
            assert_eq!((text.matches('█').count(), text.matches('░').count()), (full, 30 - full));
            assert!(text.ends_with(&format!(" {done}/4")), "{text}");
        }
        check(0, 0);
        check(1, 7);
        check(4, 30);
    }
}
