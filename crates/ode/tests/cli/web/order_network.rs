//! Orders whose calls are cut off while they are sent, and events that come twice, in the wrong order, forged, late or never.

use super::client::until;
use super::orders::Shop;
use crate::harness::{Ode, on_both};
use crate::serve::Serving;
use ode_job::JobId;
use serde_json::json;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

on_both!(
    a_worker_that_dies_while_it_sends_a_call_leaves_one_order,
    events_that_come_twice_late_forged_or_never_all_end_alike,
);

/// The two calls that change something, by the end of the line that they begin with.
const CALLS: [&str; 2] = ["/orders HTTP", "/confirm HTTP"];

fn a_worker_that_dies_while_it_sends_a_call_leaves_one_order(ode: &Ode) {
    let shop = Shop::open(ode, &["--no-fetch"]);
    let jobs = CALLS.map(|call| {
        let job = shop.exported();
        shop.order(job);
        let half = Half::start(&shop.url(), call);
        let doomed =
            Serving::start(shop.quick_command().env("ODE_PRINTFUL_URL", &half.url).env("ODE_LOG", "error"));
        until("half of the call to be sent", || half.is_there.load(Ordering::Relaxed));
        drop(doomed);
        job
    });
    let _worker = shop.quick_worker();
    jobs.into_iter().zip(CALLS).for_each(|(job, call)| shop.assert_once(job, call));
}

/// A way to the provider on which half of a call stays.
struct Half {
    url: String,
    is_there: Arc<AtomicBool>,
}

impl Half {
    fn start(provider: &str, call: &'static str) -> Self {
        let provider = provider.trim_start_matches("http://").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let is_there = Arc::new(AtomicBool::new(false));
        let told = is_there.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(&provider) else { return };
                let (back, front) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut &back, &mut &front));
                let told = told.clone();
                std::thread::spawn(move || pass_half(&client, &server, call, &told));
            }
        });
        Half { url, is_there }
    }
}

/// Passes on what comes, but of a call only half of what comes first.
fn pass_half(mut client: &TcpStream, mut server: &TcpStream, call: &str, told: &AtomicBool) {
    let mut piece = [0; 16 << 10];
    let mut is_cut = false;
    while let Ok(length @ 1..) = client.read(&mut piece) {
        let is_it = String::from_utf8_lossy(&piece[..length]).contains(call);
        let passed = if is_it { length / 2 } else { length };
        if !is_cut && server.write_all(&piece[..passed]).is_err() {
            return;
        }
        is_cut |= is_it;
        if is_cut {
            told.store(true, Ordering::Relaxed);
        }
    }
}

fn events_that_come_twice_late_forged_or_never_all_end_alike(ode: &Ode) {
    const FAULTS: [&str; 5] = ["hook-twice", "hook-reordered", "hook-forged", "hook-lost", "hook-replayed"];
    let shop = Shop::open(ode, &["--no-fetch"]);
    let (_web, base) = shop.web();
    let jobs = FAULTS.map(|_| shop.exported());
    let _worker = shop.worker(&base, &["--order-look", "0.5"]);
    for (job, kind) in jobs.into_iter().zip(FAULTS) {
        let name = job.0.simple().to_string();
        let fault = json!({ "kind": kind, "on": "hook", "times": 20, "seconds": 0.4, "external_id": name });
        shop.fault(&fault.to_string());
        shop.order(job);
    }
    jobs.iter().for_each(|job| drop(shop.until(*job, "ordered")));
    for job in jobs {
        shop.act(job, "ship");
        shop.act(job, "deliver");
    }
    let steps = |job: JobId| ode.with_store(async |store| store.events(job).await.unwrap());
    for (job, fault) in jobs.into_iter().zip(FAULTS) {
        shop.until(job, "fulfilled");
        let ends = steps(job).iter().filter(|event| event.to_state == ode_print::machine::FULFILLED).count();
        assert_eq!((shop.told(job, "charge"), ends), (1, 1), "{fault}");
    }
}
