//! Orders that fall back to drafts after they were placed: confirmed once more, whatever becomes of the worker meanwhile.

use super::client::until;
use super::orders::Shop;
use crate::harness::{Ode, on_both};
use crate::serve::Serving;
use serde_json::Value;

on_both!(
    a_worker_that_dies_while_it_confirms_again_leaves_one_charge,
    a_refused_second_confirmation_is_shown_to_people,
);

/// A second confirmation that is sent twice is charged for twice.
const CONFIRM_OFTEN: [&str; 2] = ["--no-fetch", "--confirm-often"];

/// Placed orders are asked about all the time.
const OFTEN: [&str; 2] = ["--order-look", "0.2"];

fn follower(shop: &Shop) -> Serving {
    Serving::start(shop.quick_command().args(OFTEN).env("ODE_LOG", "error"))
}

fn steps(ode: &Ode, job: ode_job::JobId) -> Vec<String> {
    let status = ode.json(["print", "status", &job.to_string()]);
    let steps = status["steps"].as_array().unwrap_or_else(|| panic!("{status}"));
    let name = |step: &Value| step["step"].as_str().unwrap().to_owned();
    steps.iter().map(name).collect()
}

fn a_worker_that_dies_while_it_confirms_again_leaves_one_charge(ode: &Ode) {
    let shop = Shop::open(ode, &CONFIRM_OFTEN);
    let points = ["follow-before-intent", "follow-intent", "follow-confirmed", "follow-recorded"];
    for point in points {
        let job = shop.exported();
        let worker = follower(&shop);
        shop.order(job);
        shop.assert_once(job, point);
        drop(worker);
        shop.act(job, "draft");
        let mut command = shop.quick_command();
        let died = command.args(OFTEN).env("ODE_CRASH_AT", point).output().unwrap();
        assert!(!died.status.success(), "{point}: {died:?}");
        let sent = usize::from(point == "follow-confirmed" || point == "follow-recorded");
        assert_eq!(shop.told(job, "charge"), 1 + sent, "{point}");
        let next = follower(&shop);
        until(&format!("{point}: the order to be confirmed again"), || {
            let steps = steps(ode, job);
            steps.iter().filter(|step| *step == "confirm_sent").count() > 1
                && steps.last().is_some_and(|step| step == "confirmed")
        });
        drop(next);
        assert_eq!((shop.told(job, "create"), shop.told(job, "charge")), (1, 2), "{point}");
    }
}

fn a_refused_second_confirmation_is_shown_to_people(ode: &Ode) {
    let shop = Shop::open(ode, &CONFIRM_OFTEN);
    let job = shop.exported();
    let _worker = shop.worker("http://127.0.0.1:9", &OFTEN);
    shop.order(job);
    shop.assert_once(job, "placed");
    shop.fault("400:confirm");
    shop.act(job, "draft");
    until("the refusal to be shown", || {
        let listed = ode.json(["print", "status", "--attention"]);
        listed.to_string().contains("refuses to confirm it: This call is refused")
    });
    assert!(steps(ode, job).ends_with(&["confirm_sent".into(), "attention".into()]));
    assert_eq!(shop.told(job, "charge"), 1);
    // Confirmed in the provider's dashboard.
    shop.act(job, "release");
    until("the matter to end", || ode.json(["print", "status", "--attention"]) == serde_json::json!([]));
    assert_eq!(shop.told(job, "charge"), 1);
}
