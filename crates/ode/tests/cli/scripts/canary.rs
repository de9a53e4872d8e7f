//! A secret that is in no other place in the world is sent along, and looked for everywhere afterwards.

use super::Site;
use crate::harness::{Ode, on_both, postgres_dump};
use serde_json::json;
use std::fs;
use std::path::Path;
use uuid::Uuid;

on_both!(a_secret_is_nowhere_but_under_seal);

fn a_secret_is_nowhere_but_under_seal(ode: &Ode) {
    // With characters that every encoding writes in another way.
    let canary = format!("Cana\"ry<&>/ü+{}", Uuid::new_v4().simple());
    let site = Site::start(ode);
    let listening = site.client.with("Accept", "text/event-stream");
    for how in ["well", "refuse", "part", "wait"] {
        let input = json!({ "email": format!("{canary}@corner.example"), "password": canary, "how": how });
        let id = site.client.asked_script(&json!({ "input": input, "timeout_ms": 3000 }));
        if how == "wait" {
            site.client.script_is(&id, "in_progress");
            // While it runs, nothing that others can read of a process shows it either.
            hunt(&canary, "a process", &processes());
        }
        let ended = match how {
            "well" | "part" => "completed",
            "refuse" => "failed",
            _ => "timed_out",
        };
        let job = site.client.script_is(&id, ended);
        hunt(&canary, "the job", job.to_string().as_bytes());
        for part in ["logs", "events", "artifacts"] {
            hunt(&canary, part, listening.get(&format!("/v1/scripts/jobs/{id}/{part}")).body.as_bytes());
        }
        hunt(&canary, "the list", site.client.get("/v1/scripts/jobs").body.as_bytes());
        hunt(&canary, "the jobs", site.client.get("/api/jobs").body.as_bytes());
    }
    if ode.url().starts_with("postgres") {
        hunt(&canary, "the database", &postgres_dump(&ode.url()));
    }
    let said = site.serving.stop(rustix::process::Signal::TERM);
    hunt(&canary, "the program's own log", (said.stdout + &said.stderr).as_bytes());
    // The database of SQLite is among them, with what it wrote ahead.
    look_through(&canary, &ode.data());
}

/// Fails if the secret, or what an encoding makes of it, is in here.
#[track_caller]
fn hunt(canary: &str, place: &str, text: &[u8]) {
    for (name, form) in forms(canary) {
        let is_there = text.windows(form.len()).any(|part| part == form.as_slice());
        assert!(!is_there, "the secret is in {place}, as {name}");
    }
}

/// What the secret may look like.
fn forms(canary: &str) -> Vec<(&'static str, Vec<u8>)> {
    let bytes = canary.as_bytes();
    let hex = hex::encode(bytes);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let url = bytes.iter().map(|byte| match plain(*byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    let url: String = url.collect();
    let json = serde_json::to_string(canary).unwrap();
    let html = canary.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    // The part that is random is enough to find it by, whatever became of the rest.
    let tail = canary.rsplit('+').next().unwrap().to_owned();
    let mut forms = vec![
        ("it is", bytes.to_vec()),
        ("its tail", tail.into_bytes()),
        ("hexadecimal", hex.clone().into_bytes()),
        ("HEXADECIMAL", hex.to_uppercase().into_bytes()),
        ("part of an address", url.into_bytes()),
        ("JSON", json.trim_matches('"').as_bytes().to_vec()),
        ("HTML", html.into_bytes()),
    ];
    // Base64 depends on what stands before: of each of the three ways, the part that all of it decides.
    for shift in 0..3_usize {
        let padded = [&vec![b' '; shift][..], bytes].concat();
        let text = base64(&padded);
        let from = (shift * 8).div_ceil(6);
        let until = padded.len() / 3 * 4;
        forms.push(("base64", text[from..until].to_vec()));
    }
    forms
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |number: u32| DIGITS[(number & 63) as usize];
    let group = |part: &[u8]| {
        let number =
            part.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        [18, 12, 6, 0].map(|shift| digit(number >> shift))
    };
    bytes.chunks(3).flat_map(group).collect()
}

/// What other users of the machine can read of our processes, and what only we can.
fn processes() -> Vec<u8> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let is_process = entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok());
        for file in ["cmdline", "environ"].into_iter().filter(|_| is_process) {
            // One that has just ended has nothing to show.
            found.extend(fs::read(entry.path().join(file)).unwrap_or_default());
        }
    }
    found
}

#[track_caller]
fn look_through(canary: &str, folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            look_through(canary, &path);
        } else {
            hunt(canary, &path.display().to_string(), &fs::read(&path).unwrap_or_default());
        }
    }
}
