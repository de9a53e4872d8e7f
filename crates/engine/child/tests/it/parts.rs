//! What this binary does when it is run again as a child. Without the variable that only the tests set, nothing.

use ode_child::child::{Reporter, serve};
use ode_child::{Failure, Level};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read, Write};
use std::process::ExitCode;

/// What a worker is told to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Act {
    /// Answer with this.
    Echo(serde_json::Value),
    /// Answer with the input's length and the sum of its bytes.
    ReadInput,
    /// Say a few things of every kind, then answer.
    Speak,
    /// Fail, to be tried again or not.
    Fail { retryable: bool },
    /// Say that it is about to, then do nothing for ever.
    Hang,
    /// Use the processor for ever.
    Spin,
    /// Use this much memory, then answer.
    Allocate(usize),
    /// Write so much output, then answer.
    Write(usize),
    /// Print so many lines of so many bytes to stdout and stderr, then answer.
    Print { lines: usize, bytes: usize },
    /// Panic.
    Panic,
    /// Abort.
    Abort,
    /// End at once with this code.
    Exit(i32),
    /// Answer with the names of the variables in its environment.
    Environment,
    /// Try to get out, and tell which ways were open.
    Escape(Door),
}

/// What an escape needs to know of the world outside.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Door {
    pub(crate) parent: i32,
    pub(crate) port: u16,
    pub(crate) directory: std::path::PathBuf,
}

#[test]
fn plays_its_part() {
    // A keeper hides what it was told from its program.
    if std::env::var_os("KEEPER").is_some() && std::env::var_os("ODE_CHILD_SETUP").is_some() {
        println!();
        ode_child::keeper::serve();
    }
    let Ok(part) = std::env::var("PART") else { return };
    // The test harness has begun a line.
    println!();
    let code = match part.as_str() {
        "worker" => serve(|| Ok(File::open("/proc/self/status").unwrap()), act),
        "unprepared" => {
            serve(|| Err::<(), _>(Failure::rejected("SETTINGS", "unreadable")), |(), (): (), _| Ok(()))
        }
        "supervisor" => crate::housekeeping::supervises_until_it_is_killed(),
        "accountant" => crate::housekeeping::counts_what_200_runs_leave(),
        raw => speak_raw(raw),
    };
    std::process::exit(i32::from(code != ExitCode::SUCCESS));
}

fn act(leaked: File, act: Act, reporter: &mut Reporter) -> Result<serde_json::Value, Failure> {
    let failed = |error: std::io::Error| Failure::rejected("IO", error.to_string());
    match act {
        Act::Echo(value) => return Ok(value),
        Act::ReadInput => {
            let input = reporter.input().map_err(failed)?;
            let sum: u64 = input.iter().map(|&byte| u64::from(byte)).sum();
            return Ok(serde_json::json!([input.len(), sum]));
        }
        Act::Speak => speak(reporter).map_err(failed)?,
        Act::Fail { retryable: true } => return Err(Failure::retryable("BUSY", "later")),
        Act::Fail { retryable: false } => return Err(Failure::rejected("BROKEN", "never")),
        Act::Hang => {
            reporter.log(Level::Info, "ready").map_err(failed)?;
            loop {
                std::thread::park();
            }
        }
        Act::Spin => loop {
            std::hint::spin_loop();
        },
        Act::Allocate(bytes) => drop(std::hint::black_box(vec![1_u8; bytes])),
        Act::Write(bytes) => write(reporter, bytes).map_err(failed)?,
        Act::Print { lines, bytes } => print(lines, bytes),
        Act::Panic => panic!("as it was told"),
        Act::Abort => std::process::abort(),
        Act::Exit(code) => {
            eprintln!("last words");
            std::process::exit(code)
        }
        Act::Environment => {
            let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
            names.sort_unstable();
            return Ok(names.into());
        }
        Act::Escape(door) => return Ok(crate::sandbox_escape::attempts(&door, leaked, reporter)),
    }
    Ok(serde_json::Value::Null)
}

fn speak(reporter: &mut Reporter) -> std::io::Result<()> {
    reporter.step(2, 4, "half")?;
    reporter.log(Level::Warn, "beware")?;
    reporter.artifact("one", b"first")?;
    reporter.artifact("two", b"")?;
    reporter.artifact("three", b"third")?;
    println!("to stdout");
    eprintln!("to stderr");
    Ok(())
}

fn write(reporter: &mut Reporter, bytes: usize) -> std::io::Result<()> {
    let part = vec![b'x'; 1 << 20];
    for number in 0..bytes.div_ceil(part.len()) {
        reporter.artifact(&number.to_string(), &part)?;
    }
    Ok(())
}

fn print(lines: usize, bytes: usize) {
    let mut line = vec![b'a'; bytes];
    // Not UTF-8, and not to be shown.
    line.extend([0xff, 0x00, b'\n']);
    for _ in 0..lines {
        std::io::stdout().write_all(&line).unwrap();
        std::io::stderr().write_all(&line).unwrap();
    }
}

fn say_raw(text: &str) {
    let mut events = File::options().write(true).open("/dev/fd/3").unwrap();
    events.write_all(text.as_bytes()).unwrap();
}

const RESULT: &str = "{\"t\":\"result\",\"data\":1}\n";
const PROGRESS: &str = "{\"t\":\"progress\",\"percent\":1}\n";

/// Parts that speak for themselves, and mostly out of turn.
fn speak_raw(part: &str) -> ExitCode {
    match part {
        "silent" => {}
        "twice" => say_raw(&RESULT.repeat(2)),
        "after" => say_raw(&format!("{RESULT}{PROGRESS}")),
        "late" => {
            say_raw(RESULT);
            drain_stdin();
            say_raw(PROGRESS);
        }
        "garbage" => say_raw(&"no event\n".repeat(101)),
        "some garbage" => say_raw(&format!("{}{RESULT}", "no event\n".repeat(100))),
        "many events" => flood(PROGRESS),
        "long event" => flood("endless"),
        "no line end" => say_raw(RESULT.trim_end()),
        "unknown" => say_raw(&format!("{{\"t\":\"weather\"}}\n{RESULT}")),
        "bad artifact" => {
            say_raw(&format!("{}{RESULT}", "{\"t\":\"artifact\",\"name\":\"a\",\"offset\":9,\"bytes\":1}\n"))
        }
        // It never reads its payload, which is larger than a pipe, but says more than a pipe holds.
        "deaf" => say_raw(&format!("{}{RESULT}", PROGRESS.repeat(5_000))),
        // It reads its payload only after it has filled its pipe, which somebody has to empty.
        "slow reader" => {
            say_raw(&PROGRESS.repeat(5_000));
            let bytes = drain_stdin();
            say_raw(&format!("{{\"t\":\"result\",\"data\":{bytes}}}\n"));
        }
        "lingering" => {
            say_raw("{\"t\":\"result\",\"data\":\"given\"}\n");
            loop {
                std::thread::park();
            }
        }
        unknown => panic!("there is no part named {unknown}"),
    }
    ExitCode::SUCCESS
}

fn drain_stdin() -> usize {
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).unwrap()
}

/// Says the same until it is ended.
fn flood(text: &str) {
    let mut events = File::options().write(true).open("/dev/fd/3").unwrap();
    let text = text.repeat(1000);
    while events.write_all(text.as_bytes()).is_ok() {}
}
