//! `docs/state-machine.md` shows the machines as they are in the code: its tables and diagrams are written here.
//!
//! The page is prose with marked blocks in it. The prose is written by hand; what stands between the marks is
//! rendered from [`Pipeline::machine`]. Run with `ODE_BLESS=1` to write the blocks anew after a change.

use crate::PIPELINES;
use ode_job::{Edge, Machine, Phase, Pipeline, State};
use std::fs;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/state-machine.md");

#[test]
fn the_page_shows_the_machines_as_they_are() {
    let page = fs::read_to_string(PAGE).expect("docs/state-machine.md can be read");
    let mut fresh = page.clone();
    for (name, block) in blocks() {
        fresh = with_block(&fresh, &name, &block);
    }
    if std::env::var_os("ODE_BLESS").is_some() {
        fs::write(PAGE, fresh).expect("docs/state-machine.md can be written");
        return;
    }
    let stale = page.lines().zip(fresh.lines()).find(|(shown, true_now)| shown != true_now);
    assert!(
        page == fresh,
        "docs/state-machine.md no longer shows the machines. First difference (shown, true now): {stale:?}\n\
         Read what changed, then write the page anew: ODE_BLESS=1 cargo test -p ode --test pipelines"
    );
}

/// Every block of the page, by name.
fn blocks() -> Vec<(String, String)> {
    let mut blocks = vec![("phases".to_owned(), phases()), ("lanes".to_owned(), lanes())];
    for pipeline in PIPELINES.iter().copied() {
        let machine = pipeline.machine();
        blocks.push((pipeline.to_string(), [diagram(pipeline), states(machine), steps(machine)].join("\n")));
    }
    blocks
}

/// The page with one block replaced.
fn with_block(page: &str, name: &str, block: &str) -> String {
    let (open, close) = (format!("<!-- {name}: from the code -->\n"), format!("<!-- end of {name} -->\n"));
    let parts = page.split_once(&open).and_then(|(before, rest)| Some((before, rest.split_once(&close)?.1)));
    let (before, after) = parts.unwrap_or_else(|| panic!("the page has no place for {name}: {open}{close}"));
    format!("{before}{open}\n{block}\n{close}{after}")
}

fn phases() -> String {
    let names = PIPELINES.iter().map(|pipeline| format!(" {pipeline} |")).collect::<String>();
    let mut table = format!("| phase |{names}\n| --- |{}\n", " --- |".repeat(PIPELINES.len()));
    for phase in Phase::ALL {
        table += &format!("| `{phase}` |");
        for pipeline in PIPELINES.iter().copied() {
            let standings = pipeline.machine().states.iter().filter(|standing| standing.phase == *phase);
            let states: Vec<_> = standings.map(|standing| code(standing.state)).collect();
            let shown = if states.is_empty() { "–".to_owned() } else { states.join(", ") };
            table += &format!(" {shown} |");
        }
        table += "\n";
    }
    table
}

fn lanes() -> String {
    let mut table = String::from("| lane | pipeline | waits in | runs in |\n| --- | --- | --- | --- |\n");
    for lane in PIPELINES.iter().flat_map(|pipeline| pipeline.lanes()) {
        let (ready, running) = (code(lane.ready_state()), code(lane.running_state()));
        table += &format!("| `{lane}` | {} | {ready} | {running} |\n", lane.pipeline());
    }
    table
}

fn diagram(pipeline: Pipeline) -> String {
    let machine = pipeline.machine();
    let mut lines = vec![format!("    [*] --> {}: created", machine.initial)];
    for (from, to) in joined(machine.edges) {
        let events = machine.edges.iter().filter(|edge| (edge.from, edge.to) == (from, to));
        let events: Vec<_> = events.map(|edge| edge.event.as_str()).collect();
        lines.push(format!("    {from} --> {to}: {}", events.join(", ")));
    }
    let ended = machine.states.iter().filter(|standing| pipeline.is_terminal(standing.state));
    lines.extend(ended.map(|standing| format!("    {} --> [*]", standing.state)));
    format!("```mermaid\nstateDiagram-v2\n{}\n```\n", lines.join("\n"))
}

/// The pairs of states that some event joins, each once, in the order of the machine.
fn joined(edges: &[Edge]) -> Vec<(State, State)> {
    let mut pairs = Vec::new();
    for edge in edges {
        if !pairs.contains(&(edge.from, edge.to)) {
            pairs.push((edge.from, edge.to));
        }
    }
    pairs
}

fn states(machine: &Machine) -> String {
    let mut table = String::from("| state | phase | lane |\n| --- | --- | --- |\n");
    for standing in machine.states {
        let lane = standing.lane.map_or("none".to_owned(), |lane| format!("`{lane}`"));
        table += &format!("| {} | {} | {lane} |\n", code(standing.state), standing.phase);
    }
    table
}

fn steps(machine: &Machine) -> String {
    let mut table = String::from("| from | event | to |\n| --- | --- | --- |\n");
    table += &format!("| (nothing) | `created` | {} |\n", code(machine.initial));
    for edge in machine.edges {
        table += &format!("| {} | `{}` | {} |\n", code(edge.from), edge.event, code(edge.to));
    }
    table
}

fn code(state: State) -> String {
    format!("`{state}`")
}
