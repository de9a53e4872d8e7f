//! What only a child shows that serves from its main thread, as the product's children do and the parts of a test
//! harness do not: the stack of the main thread, and that Landlock binds the whole process.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

use ode_child::child::serve;
use ode_child::{Outcome, PROTOCOL_VARIABLE, Program, Report, Spec, Supervisor, Work};
use std::process::ExitCode;

const MIB: usize = 1024 * 1024;
const NAME: &str = "a_child_on_its_main_thread";

fn main() -> ExitCode {
    if std::env::var_os(PROTOCOL_VARIABLE).is_some() {
        return serve(
            || Ok(threads()),
            |threads, bytes: usize, _| {
                recurse(std::ptr::from_ref(&bytes).addr(), bytes);
                Ok(threads)
            },
        );
    }
    // What test runners ask of a test binary.
    if std::env::args().any(|argument| argument == "--list") {
        if !std::env::args().any(|argument| argument == "--ignored") {
            println!("{NAME}: test");
        }
        return ExitCode::SUCCESS;
    }
    if cfg!(target_os = "linux") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(has_the_promised_stack());
    }
    println!("test {NAME} ... ok");
    ExitCode::SUCCESS
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

/// Calls itself until the stack is so deep, by the addresses of its frames.
fn recurse(top: usize, bytes: usize) {
    let frame = std::hint::black_box([1_u8; 4096]);
    if top.saturating_sub(frame.as_ptr().addr()) < bytes {
        recurse(top, bytes);
    }
    std::hint::black_box(frame);
}

async fn has_the_promised_stack() {
    match run(50 * MIB).await.outcome {
        Outcome::Finished(threads) => assert_eq!(threads.get(), "1", "threads before the sandbox"),
        other => panic!("{other:?}"),
    }
    let deeper = run(80 * MIB).await.outcome;
    assert!(matches!(deeper, Outcome::Crashed(_)), "{deeper:?}");
}

async fn run(bytes: usize) -> Report {
    let spec = Spec::own(Program::this_binary([""; 0]).unwrap());
    let waiting = Supervisor::new().unwrap().start(&spec).await.unwrap();
    waiting.run(Work::new(&bytes).unwrap(), |_| (), std::future::pending()).await.unwrap()
}
