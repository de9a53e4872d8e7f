//! `ode`, with the pipelines that it comes with.

use std::process::ExitCode;

fn main() -> ExitCode {
    ode::run(ode::PIPELINES.to_vec())
}
