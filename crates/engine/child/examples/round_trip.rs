//! What one child per document costs: `cargo run --release -p ode-child --example round_trip [RUNS [BALLAST_MIB]]`.
//!
//! The ballast is memory that the supervisor's process holds while it starts children.
//! The child is this program itself; it reads an input of 100 KB, writes 20 KB of output and answers.

use ode_child::child::{Reporter, serve};
use ode_child::{Failure, Input, Outcome, Program, Sandbox, Spares, Spec, Supervisor, Waiting, Work};
use std::process::ExitCode;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("child") {
        return serve(|| Ok(()), |(), payload: String, reporter| convert(&payload, reporter));
    }
    let number = |index| std::env::args().nth(index)?.parse::<u32>().ok();
    let runs = number(1).unwrap_or(300);
    let ballast = std::hint::black_box(vec![1_u8; number(2).unwrap_or(0) as usize * 1024 * 1024]);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let measured = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(measure(runs)));
    drop(ballast);
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn convert(payload: &str, reporter: &mut Reporter) -> std::result::Result<usize, Failure> {
    let failed = |error: std::io::Error| Failure::rejected("io", error.to_string());
    let document = reporter.input().map_err(failed)?;
    reporter.artifact("result.xml", &document[..20_000]).map_err(failed)?;
    Ok(document.len() + payload.len())
}

async fn measure(runs: u32) -> Result<()> {
    let supervisor = Supervisor::new()?;
    let spec = Spec::own(Program::this_binary(["child"])?);
    let open = Spec { sandbox: Sandbox::Off, ..spec.clone() };
    println!("{runs} runs each; milliseconds");
    println!("{:24} {:>7} {:>7} {:>7} {:>7}", "", "p50", "p95", "max", "cpu");
    for (name, spec) in [("new child, sandbox", &spec), ("new child, no sandbox", &open)] {
        let before = cpu()?;
        let mut times = Vec::new();
        for _ in 0..runs {
            let started = Instant::now();
            run(supervisor.start(spec).await?).await?;
            times.push(started.elapsed());
        }
        show(name, times, (cpu()? - before) / runs);
    }
    let spares = Spares::new(supervisor, spec, 2);
    let before = cpu()?;
    let mut times = Vec::new();
    for _ in 0..runs {
        // Time to start the next, as between two documents on a machine that is not overloaded.
        tokio::time::sleep(Duration::from_millis(15)).await;
        let started = Instant::now();
        run(spares.take().await?).await?;
        times.push(started.elapsed());
    }
    show("waiting child, sandbox", times, (cpu()? - before) / runs);
    Ok(())
}

async fn run(child: Waiting) -> Result<()> {
    let work = Work::new(&"payload")?.with_input(Input::Bytes(vec![b'x'; 100_000].into()));
    let report = child.run(work, |_| (), std::future::pending()).await?;
    match report.outcome {
        Outcome::Finished(_) => Ok(()),
        other => Err(format!("the child ended as {other:?}").into()),
    }
}

/// Processor time of this process and of the children it has reaped.
fn cpu() -> Result<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(4);
    let ticks = fields.map(str::parse::<u32>).sum::<std::result::Result<u32, _>>()?;
    Ok(Duration::from_millis(10) * ticks)
}

fn show(name: &str, mut times: Vec<Duration>, cpu: Duration) {
    times.sort();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    println!("{name:24} {:7.2} {:7.2} {:7.2} {:7.2}", at(0.5), at(0.95), at(1.0), cpu.as_secs_f64() * 1e3);
}
