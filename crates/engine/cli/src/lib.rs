//! Shared by commands: settings, tables, dates, colours where they help, errors that say what to do next, JSON documents, and
//! how a process listens and stops. Data goes to standard output, messages to standard error.

mod bar;
pub mod document;
pub mod files;
mod options;
pub mod process;
mod settings;

pub use bar::Bar;
pub use options::{SandboxArgs, seconds};
pub use settings::{Schema, Settings, no_database};

use jiff::Timestamp;
use ode_job::Phase;
use std::ffi::OsStr;
use std::io::{ErrorKind, IsTerminal, Write as _};
use std::process::ExitCode;

/// Writes data. A reader that left early, as in `ode jobs list | head -1`, has had enough: that is no error,
/// and the command ends as it would have.
pub fn print(text: &str) -> anyhow::Result<()> {
    print_bytes(text.as_bytes())
}

/// The same for what may be no text.
pub fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            anyhow::bail!("Standard output cannot be written: {error}. Send it somewhere else.")
        }
        _ => Ok(()),
    }
}

/// Writes one line of data.
pub fn line(text: impl std::fmt::Display) -> anyhow::Result<()> {
    print(&format!("{text}\n"))
}

/// Prints a value as JSON.
pub fn json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    line(serde_json::to_string_pretty(value)?)
}

/// Says something to whoever is there.
pub fn tell(text: impl std::fmt::Display) {
    // Nobody may be: then there is nobody to tell that either.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// What was asked for cannot be, however often it is tried: the command line has to be changed. Told like any error;
/// the command ends with the code that it has for any mistake on the command line.
#[derive(Debug)]
pub struct WrongUse(pub String);

impl std::error::Error for WrongUse {}

impl std::fmt::Display for WrongUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a command ends that an error ended.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    // What a new job may not be is a mistake on the command line as well, wherever it is noticed.
    let cause = error.downcast_ref::<ode_store::Error>();
    let is_invalid = matches!(cause, Some(ode_store::Error::Invalid(_)));
    if error.is::<WrongUse>() || is_invalid { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// Says what went wrong, and where to read more.
pub fn error(error: &anyhow::Error) {
    let message = sentence(error);
    let cause = error.chain().find_map(|cause| cause.downcast_ref::<ode_store::Error>());
    match cause.map(ode_store::Error::code) {
        Some(code) => tell(format!("error: {message} ({code})\n\n`ode explain {code}` says more.")),
        None => tell(format!("error: {message}")),
    }
}

/// An error and its causes as one line.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(|cause| plain(&cause.to_string())) {
        if message.is_empty() {
            message = cause;
        } else if !message.contains(&cause) {
            // Some errors repeat their cause in their own words, which is then not said twice.
            message = format!("{message}: {cause}");
        }
    }
    message
}

/// Text as it may be shown: on one line, without what would steer somebody's terminal, and without the
/// numbers that the system gives its errors.
fn plain(text: &str) -> String {
    let text = printable(text);
    match text.split_once(" (os error ") {
        Some((before, rest)) => match rest.split_once(')') {
            Some((_, after)) => format!("{before}{}", plain(after)),
            None => text,
        },
        None => text,
    }
}

/// Names and messages come from outside; a control character must not steer somebody's terminal.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Whether colours are wanted there.
pub fn is_coloured(stream: &impl IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name);
    wants_colour(set("NO_COLOR").as_deref(), set("CLICOLOR_FORCE").as_deref(), stream.is_terminal())
}

/// See <https://no-color.org> and <https://bixense.com/clicolors>.
fn wants_colour(no_color: Option<&OsStr>, force: Option<&OsStr>, is_terminal: bool) -> bool {
    let is_forced = force.is_some_and(|force| !force.is_empty() && force != "0");
    no_color.is_none_or(OsStr::is_empty) && (is_terminal || is_forced)
}

/// A table with aligned columns, without lines: it can be read, grepped and cut.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<Cell>>,
}

/// One field, and how it is shown.
#[derive(Debug, Clone)]
pub struct Cell {
    text: String,
    colour: Option<&'static str>,
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Cell { text: printable(text.as_ref()), colour: None }
    }
}

impl Cell {
    /// The start of a text that may be long.
    pub fn start(text: &str, chars_max: usize) -> Self {
        match text.char_indices().nth(chars_max) {
            Some(_) => Cell::from(text.chars().take(chars_max - 1).chain(['…']).collect::<String>()),
            None => Cell::from(text),
        }
    }

    /// A state, coloured by what it means.
    pub fn state(text: &str, phase: Phase) -> Self {
        let colour = match phase {
            Phase::Done => Some("32"),
            Phase::Failed => Some("31"),
            Phase::Running => Some("36"),
            Phase::Cancelled | Phase::Held => Some("2"),
            Phase::Ready => None,
        };
        Cell { text: printable(text), colour }
    }

    /// Good or bad news.
    pub fn news(text: &str, is_good: bool) -> Self {
        Cell { text: printable(text), colour: Some(if is_good { "32" } else { "31" }) }
    }
}

impl Table {
    /// A table with these headings.
    pub fn new<const N: usize>(headings: [&str; N]) -> Self {
        Table { rows: vec![headings.into_iter().map(Cell::from).collect()] }
    }

    pub fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(cells.into());
    }

    pub fn print(&self) -> anyhow::Result<()> {
        print(&self.text(is_coloured(&std::io::stdout())))
    }

    fn text(&self, is_coloured: bool) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].text.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                let padding = " ".repeat(width - cell.text.chars().count() + 2);
                match cell.colour.filter(|_| is_coloured) {
                    Some(colour) => line.push_str(&format!("\x1b[{colour}m{}\x1b[0m{padding}", cell.text)),
                    None => line.push_str(&format!("{}{padding}", cell.text)),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// A moment, to the second, in UTC.
pub fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// How long ago a moment is, roughly.
pub fn ago(at: Timestamp) -> String {
    let seconds = Timestamp::now().as_second() - at.as_second();
    match seconds {
        ..0 => format!("in {}", span(-seconds)),
        0 => "now".into(),
        _ => format!("{} ago", span(seconds)),
    }
}

fn span(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context as _, anyhow};
    use ode_job::{Machine, Pipeline, Standing, State};

    #[test]
    fn an_error_is_one_line_that_says_nothing_twice() {
        fn check(error: anyhow::Error, expected: &str) {
            assert_eq!(sentence(&error), expected);
        }
        check(anyhow!("Nothing is there."), "Nothing is there.");
        check(anyhow!("disk\n gone\x1b[31m"), "disk  gone [31m");
        check(
            Err::<(), _>(std::io::Error::from_raw_os_error(98)).context("No place").unwrap_err(),
            "No place: Address already in use",
        );
        check(anyhow!("in (os error 2) and (os error 3) out"), "in and out");
        const WAITING: State = State::new("waiting");
        const MAIL: Pipeline = Pipeline::new(&Machine {
            name: "mail",
            article: "A",
            initial: WAITING,
            is_early_initial: false,
            states: &[Standing::ready(WAITING, "mail")],
            edges: &[],
        });
        let refused = MAIL.next(WAITING, ode_job::Event::Retried);
        check(
            ode_store::Error::from(refused.unwrap_err()).into(),
            "A mail job that is waiting cannot be retried. It has not ended yet.",
        );
    }

    #[test]
    fn colours_are_for_terminals_and_those_who_ask() {
        fn check(no_color: Option<&str>, force: Option<&str>, is_terminal: bool, expected: bool) {
            let is_coloured = wants_colour(no_color.map(OsStr::new), force.map(OsStr::new), is_terminal);
            assert_eq!(is_coloured, expected, "{no_color:?} {force:?} {is_terminal}");
        }
        check(None, None, true, true);
        check(None, None, false, false);
        check(Some(""), None, true, true);
        check(Some("1"), None, true, false);
        check(Some("1"), Some("1"), true, false);
        check(None, Some("1"), false, true);
        check(None, Some("0"), false, false);
    }

    #[test]
    fn tables_line_up_with_and_without_colours() {
        let mut table = Table::new(["A", "B"]);
        table.row([Cell::news("ok", true), Cell::start("abcdef", 4)]);
        table.row(["long".into(), "é\x1b".into()]);
        assert_eq!(table.text(false), "A     B\nok    abc…\nlong  é\n");
        assert_eq!(table.text(true), "A     B\n\x1b[32mok\x1b[0m    abc…\nlong  é\n");
    }

    #[test]
    fn spans_are_rough() {
        fn check(seconds: i64, expected: &str) {
            assert_eq!(span(seconds), expected);
        }
        check(59, "59 s");
        check(60, "1 min");
        check(7200, "2 h");
        check(200_000, "2 d");
    }
}
