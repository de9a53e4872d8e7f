//! What people read: tables, dates, colours where they help, and errors that say what to do next.
//! Data goes to standard output, talk to standard error.

use jiff::Timestamp;
use ode_job::Phase;
use std::io::IsTerminal as _;

/// Lets `ode jobs list | head` end quietly instead of with a panic about a closed pipe.
pub(crate) fn restore_broken_pipe() {
    std::panic::set_hook(Box::new({
        let default = std::panic::take_hook();
        move |info| {
            let said = info.payload().downcast_ref::<String>().map(String::as_str).unwrap_or_default();
            if said.contains("Broken pipe") {
                std::process::exit(0);
            }
            default(info);
        }
    }));
}

/// Prints an error and where to read more.
pub(crate) fn error(error: &anyhow::Error) {
    let mut message = error.to_string();
    for cause in error.chain().skip(1) {
        message.push_str(": ");
        message.push_str(&cause.to_string());
    }
    let code =
        error.chain().find_map(|cause| cause.downcast_ref::<ode_store::Error>()).map(ode_store::Error::code);
    match code {
        Some(code) => eprintln!("error: {message} ({code})\n\n`ode explain {code}` says more."),
        None => eprintln!("error: {message}"),
    }
}

fn is_coloured() -> bool {
    std::env::var_os("NO_COLOR").is_none() && std::io::stdout().is_terminal()
}

/// A table with aligned columns, without lines: it can be read, grepped and cut.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
}

/// One field, and how it is shown.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    colour: Option<&'static str>,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        // Names come from outside; a control character must not steer somebody's terminal.
        let text = text.into().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Cell { text, colour: None }
    }
}

impl Cell {
    /// A state, coloured by what it means.
    pub(crate) fn state(text: &str, phase: Phase) -> Self {
        let colour = match phase {
            Phase::Done => Some("32"),
            Phase::Failed => Some("31"),
            Phase::Running => Some("36"),
            Phase::Cancelled | Phase::Held => Some("2"),
            Phase::Ready => None,
        };
        Cell { text: text.into(), colour }
    }

    /// Good or bad news.
    pub(crate) fn news(text: &str, is_good: bool) -> Self {
        Cell { text: text.into(), colour: Some(if is_good { "32" } else { "31" }) }
    }
}

impl Table {
    /// A table with these headings.
    pub(crate) fn new<const N: usize>(headings: [&str; N]) -> Self {
        Table { rows: vec![headings.into_iter().map(Cell::from).collect()] }
    }

    /// Adds a row.
    pub(crate) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        self.rows.push(cells.into());
    }

    /// Prints it.
    pub(crate) fn print(&self) {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].text.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(&widths) {
                let padding = " ".repeat(width - cell.text.chars().count() + 2);
                match cell.colour.filter(|_| is_coloured()) {
                    Some(colour) => line.push_str(&format!("\x1b[{colour}m{}\x1b[0m{padding}", cell.text)),
                    None => line.push_str(&format!("{}{padding}", cell.text)),
                }
            }
            println!("{}", line.trim_end());
        }
    }
}

/// A moment, to the second, in UTC.
pub(crate) fn moment(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// How long ago a moment is, roughly.
pub(crate) fn ago(at: Timestamp) -> String {
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

/// Prints a value as JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}
