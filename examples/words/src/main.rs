//! `ode` with one pipeline more: the one line that adding it takes.

use std::process::ExitCode;

fn main() -> ExitCode {
    ode::run([ode::PIPELINES, &[&ode_words::Words]].concat())
}
