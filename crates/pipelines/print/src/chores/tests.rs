//! Following an order against a simulated provider, which tells what it was made to do.

use super::follow::SOON;
use super::{FollowOrders, Reconcile};
use crate::machine;
use crate::order::{
    Attention, OrderHandler, OrderPolicy, OrderStep, Outcome, PAGE, Pace, Printful, PrintfulSettings,
    Provider,
};
use crate::request::{Money, OrderAsk, Recipient};
use crate::sql::{self, OrderRecord, following};
use ode_job::{Artifact, Claimed, Ended, JobId, Lane, NewJob, WorkerId};
use ode_printful_sim::{Entry, Fault, Options, Simulator, Switches};
use ode_store::sql::{micros, params};
use ode_store::{ClaimRequest, Finish};
use ode_worker::trial::Trial;
use ode_worker::{Chore as _, ChoreError};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use uuid::Uuid;

/// An installation with one order, which is placed.
struct Placed {
    trial: Trial,
    sim: Simulator,
    chore: FollowOrders,
    job: JobId,
}

const SIZE_OF_FILE: i64 = 1;

impl Placed {
    async fn open() -> Self {
        Self::with_faults(&[]).await
    }

    /// Where the order is placed in spite of these faults.
    async fn with_faults(faults: &[&str]) -> Self {
        Self::with(Duration::from_secs(10), faults).await
    }

    /// Where a call may take this long.
    async fn with_timeout(timeout: Duration) -> Self {
        Self::with(timeout, &[]).await
    }

    async fn with(timeout: Duration, faults: &[&str]) -> Self {
        let trial = Trial::open(&crate::DECLARATION).await.unwrap();
        let options = Options {
            fetch_files: false,
            file_delay: Duration::ZERO,
            rate_per_minute: 0,
            // A confirmation too many is charged for.
            switches: Switches { confirm_once: false, ..Switches::default() },
            ..Options::default()
        };
        let sim = Simulator::start(TcpListener::bind("127.0.0.1:0").await.unwrap(), options).unwrap();
        let settings = PrintfulSettings {
            url: format!("http://{}", sim.address()),
            token: "token".into(),
            store: None,
            timeout,
        };
        for fault in faults {
            sim.add_fault(fault.parse::<Fault>().unwrap());
        }
        let pace = Pace { calls_a_minute: 1_000_000, ..Pace::default() };
        let provider = Arc::new(Provider::new(Printful::new(&settings).unwrap(), pace));
        let policy = OrderPolicy { provider_pause: Duration::from_millis(10), ..OrderPolicy::default() };
        let handler = OrderHandler::new(
            provider.clone(),
            Arc::new(|sha256: &str| format!("http://nowhere/{sha256}")),
            policy,
        );
        let chore = FollowOrders::new(provider, policy, Duration::from_secs(3600));
        let job = exported(&trial).await;
        let organisation = Uuid::new_v4();
        sql::set_spend_cap(trial.store.sql(), organisation, "USD", Money(6_000), Money(60_000))
            .await
            .unwrap();
        sql::ask_order(&trial.store, job, organisation, &ask()).await.unwrap();
        let placed = Placed { trial, sim, chore, job };
        placed.place(&handler).await;
        placed
    }

    async fn place(&self, handler: &OrderHandler) {
        // The simulator takes a moment to have the file.
        for _ in 0..100 {
            let claimed = claim(&self.trial, machine::ORDER).await;
            let tried = self.trial.run(handler, &claimed).await;
            let is_placed = tried.result.is_ok();
            let ended = match tried.result {
                Ok(_) => Ended::Succeeded,
                Err(failure) => Ended::Failed(failure),
            };
            self.trial.store.finish(vec![Finish::new(claimed, ended)]).await.unwrap();
            if is_placed {
                assert_eq!(self.charges(), 1);
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            self.trial.store.promote_due().await.unwrap();
        }
        panic!("the order was not placed");
    }

    /// The provider, or somebody in its dashboard, does something to the order, and everybody hears of it.
    async fn act(&self, what: &str) {
        let url = format!("http://{}/sim/orders/@{}/{what}", self.sim.address(), self.job.0.simple());
        let answer = reqwest::Client::new().post(url).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 204);
        self.hear().await;
    }

    /// Makes the order due.
    async fn hear(&self) {
        let external_id = self.job.0.simple().to_string();
        let digest = Uuid::new_v4().simple().to_string().repeat(2);
        assert!(
            sql::note_event(self.trial.store.sql(), &digest, "order_updated", Some(&external_id))
                .await
                .unwrap()
        );
    }

    fn fault(&self, fault: &str) {
        self.sim.add_fault(fault.parse::<Fault>().unwrap());
    }

    async fn follow(&self) -> Result<(), ChoreError> {
        let turn = self.trial.take(&self.chore).await.unwrap().expect("nobody else is at it");
        self.chore.run(&turn).await
    }

    fn count(&self, entry: Entry) -> usize {
        self.sim.ledger().iter().filter(|line| line.entry == entry).count()
    }

    fn charges(&self) -> usize {
        self.count(Entry::Charge)
    }

    async fn order(&self) -> OrderRecord {
        sql::order_of(self.trial.store.sql(), self.job).await.unwrap().unwrap()
    }

    /// From what was recorded last to the next look.
    async fn pause(&self) -> jiff::SignedDuration {
        let sql = "SELECT look_at, updated_at FROM print_orders WHERE job_id = $1";
        let rows = self.trial.store.sql().read(sql, params![self.job]).await.unwrap();
        let moment = |column| rows[0].moment(column).unwrap();
        moment("look_at").duration_since(moment("updated_at"))
    }

    /// What was recorded since the order was placed.
    async fn steps(&self) -> Vec<String> {
        let steps = sql::order_steps(self.trial.store.sql(), self.job).await.unwrap();
        let placed = steps.iter().position(|step| step.step == "confirmed").unwrap();
        steps[placed + 1..].iter().map(|step| step.step.clone()).collect()
    }
}

async fn claim(trial: &Trial, lane: Lane) -> Claimed {
    let worker = WorkerId(Uuid::new_v4());
    trial.store.register(worker, "test", "0").await.unwrap();
    let lease = Duration::from_secs(300);
    let request = ClaimRequest { lane, worker, count: 1, after: Uuid::nil(), lease, attempt_timeout: lease };
    trial.store.claim(request).await.unwrap().pop().expect("a job waits")
}

async fn exported(trial: &Trial) -> JobId {
    let job = NewJob::new(machine::PRINT, "map", json!({}));
    trial.store.enqueue(job).await.unwrap();
    let claimed = claim(trial, machine::EXPORT).await;
    let id = claimed.lease.job();
    let artifact = Artifact {
        role: "export".into(),
        name: "map.png".into(),
        storage: "local".into(),
        path: format!("{id}.png"),
        content_type: "image/png".into(),
        bytes: SIZE_OF_FILE,
        sha256: "0".repeat(64),
    };
    let finish = Finish { artifacts: vec![artifact], ..Finish::new(claimed, Ended::Succeeded) };
    trial.store.finish(vec![finish]).await.unwrap();
    id
}

fn ask() -> OrderAsk {
    let recipient =
        json!({ "name": "Ada", "address1": "12 Main St", "city": "Springfield", "country_code": "US" });
    let recipient: Recipient = serde_json::from_value(recipient).unwrap();
    OrderAsk { recipient, variant_id: 1, quantity: 1, shipping: "STANDARD".into(), cost_max: None }
}

#[tokio::test]
async fn an_order_that_fell_back_is_confirmed_once_more_and_both_steps_are_recorded() {
    let placed = Placed::open().await;
    placed.act("draft").await;
    placed.follow().await.unwrap();
    assert_eq!(placed.steps().await, ["confirm_sent", "confirmed"]);
    assert_eq!(placed.charges(), 2, "the first confirmation, and the second");
    let steps = sql::order_steps(placed.trial.store.sql(), placed.job).await.unwrap();
    let intent = steps.iter().rev().find(|step| step.step == "confirm_sent").unwrap();
    assert!(intent.details.as_ref().is_some_and(|details| details["by"].is_string()), "{intent:?}");
    placed.hear().await;
    placed.follow().await.unwrap();
    assert_eq!((placed.charges(), placed.steps().await.len()), (2, 2), "there is nothing more to do");
}

#[tokio::test]
async fn whoever_lost_the_chore_confirms_nothing() {
    let placed = Placed::open().await;
    placed.act("draft").await;
    let turn = placed.trial.take(&placed.chore).await.unwrap().unwrap();
    let other = WorkerId(Uuid::new_v4());
    let lost = "UPDATE chore SET holder = $1 WHERE name = 'orders'";
    placed.trial.store.sql().write(lost, params![other]).await.unwrap();
    assert!(placed.chore.run(&turn).await.is_err());
    assert_eq!((placed.count(Entry::Confirm), placed.charges()), (1, 1));
    assert!(placed.steps().await.is_empty());
}

#[tokio::test]
async fn whoever_lost_the_chore_records_nothing_of_what_it_saw() {
    let placed = Placed::open().await;
    placed.act("ship").await;
    let turn = placed.trial.take(&placed.chore).await.unwrap().unwrap();
    let other = WorkerId(Uuid::new_v4());
    let lost = "UPDATE chore SET holder = $1 WHERE name = 'orders'";
    placed.trial.store.sql().write(lost, params![other]).await.unwrap();
    assert!(placed.chore.run(&turn).await.is_err());
    assert_eq!(placed.order().await.shipped_at, None, "what the other process found stands");
}

#[tokio::test]
async fn a_refused_confirmation_is_recorded_and_left_to_a_person() {
    let placed = Placed::open().await;
    placed.act("draft").await;
    placed.fault("400:confirm");
    placed.follow().await.unwrap();
    assert_eq!(placed.steps().await, ["confirm_sent", "attention"]);
    let order = placed.order().await;
    assert_eq!(order.attention, Some(Attention::Refused));
    let message = order.attention_message.unwrap();
    assert!(message.contains("refuses to confirm it: This call is refused. Confirm it"), "{message}");
    placed.hear().await;
    placed.follow().await.unwrap();
    assert_eq!((placed.charges(), placed.order().await.attention), (1, Some(Attention::Refused)));
    // They confirm it elsewhere, which ends the matter.
    placed.act("release").await;
    placed.follow().await.unwrap();
    assert_eq!(placed.steps().await, ["confirm_sent", "attention", "confirmed"]);
    assert_eq!((placed.charges(), placed.order().await.attention), (1, None));
}

#[tokio::test]
async fn a_confirmation_of_which_nobody_can_say_is_looked_up_before_another() {
    for (fault, charges) in [("reset-after:confirm", 2), ("reset-before:confirm", 2)] {
        let placed = Placed::open().await;
        placed.act("draft").await;
        placed.fault(fault);
        placed.follow().await.unwrap();
        assert_eq!(placed.steps().await, ["confirm_sent", "unclear"], "{fault}");
        assert!(placed.pause().await > SOON.try_into().unwrap(), "{fault}: the call may still be on its way");
        placed.hear().await;
        placed.follow().await.unwrap();
        placed.hear().await;
        placed.follow().await.unwrap();
        assert_eq!(placed.charges(), charges, "{fault}");
        assert_eq!(placed.steps().await.last().unwrap(), "confirmed", "{fault}");
    }
}

#[tokio::test]
async fn a_confirmation_that_was_not_taken_is_sent_later() {
    let placed = Placed::open().await;
    placed.act("draft").await;
    placed.fault("429:confirm@5");
    placed.follow().await.unwrap();
    assert_eq!(
        (placed.steps().await, placed.charges()),
        (vec!["confirm_sent".into(), "not_executed".into()], 1)
    );
    assert!(placed.pause().await > SOON.try_into().unwrap(), "the provider asked for a pause");
    placed.hear().await;
    placed.follow().await.unwrap();
    assert_eq!(placed.charges(), 2);
}

#[tokio::test]
async fn confirmations_that_were_not_taken_do_not_count() {
    let placed = Placed::open().await;
    let turn = placed.trial.take(&placed.chore).await.unwrap().expect("nobody else is at it");
    let database = placed.trial.store.sql();
    let before = following::standing(database, placed.job).await.unwrap().confirms;
    for (outcome, counted) in [
        (OrderStep::NotExecuted { why: "busy".into() }, 0),
        (OrderStep::Unclear { why: Some("cut off".into()) }, 1),
    ] {
        following::record_intent(&turn, placed.job, SOON).await.unwrap().expect("it is ours");
        assert!(following::record_outcome(&turn, placed.job, &outcome).await.unwrap());
        assert_eq!(
            following::standing(database, placed.job).await.unwrap().confirms,
            before + counted,
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn first_confirmations_that_were_not_taken_do_not_count() {
    for fault in ["429:confirm@0.1", "401:confirm"] {
        let placed = Placed::with_faults(&[fault]).await;
        let steps = sql::order_steps(placed.trial.store.sql(), placed.job).await.unwrap();
        let steps = steps.iter().map(|step| step.step.as_str()).collect::<Vec<_>>().join(" ");
        assert!(steps.contains("confirm_sent not_executed"), "{fault}: {steps}");
        let standing = following::standing(placed.trial.store.sql(), placed.job).await.unwrap();
        assert_eq!(standing.confirms, 1, "{fault}: only one was carried out");
    }
}

#[tokio::test]
async fn an_order_that_keeps_falling_back_is_given_to_a_person() {
    let placed = Placed::open().await;
    for _ in 0..20 {
        placed.act("draft").await;
        placed.follow().await.unwrap();
    }
    assert_eq!(placed.count(Entry::Confirm), 10);
    assert_eq!(placed.order().await.attention, Some(Attention::Failed));
}

#[tokio::test]
async fn an_order_whose_job_is_not_ordered_is_not_confirmed_here() {
    let placed = Placed::open().await;
    placed.act("ship").await;
    placed.act("deliver").await;
    placed.follow().await.unwrap();
    assert_eq!(placed.order().await.state, machine::FULFILLED);
    let due = "UPDATE print_orders SET look_at = {now} WHERE job_id = $1";
    placed.trial.store.sql().write(due, params![placed.job]).await.unwrap();
    placed.act("draft").await;
    placed.follow().await.unwrap();
    assert_eq!((placed.charges(), placed.steps().await.len()), (1, 0));
}

#[tokio::test]
async fn nobody_confirms_while_another_process_may_wait_for_the_answer() {
    let placed = Placed::with_timeout(Duration::from_secs(1)).await;
    placed.act("draft").await;
    let turn = placed.trial.take(&placed.chore).await.unwrap().expect("nobody else is at it");
    following::record_intent(&turn, placed.job, SOON).await.unwrap().expect("it is ours");
    placed.hear().await;
    placed.follow().await.unwrap();
    assert_eq!((placed.charges(), placed.steps().await), (1, vec!["confirm_sent".to_owned()]));
    // The call must have ended by now, and the order is a draft all the same.
    while placed.charges() == 1 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        placed.hear().await;
        placed.follow().await.unwrap();
    }
    assert_eq!(placed.steps().await, ["confirm_sent", "confirm_sent", "confirmed"]);
    assert_eq!(placed.charges(), 2);
}

#[tokio::test]
async fn a_draft_that_is_not_ready_is_asked_about_less_and_less_often() {
    let placed = Placed::open().await;
    placed.act("ship").await;
    placed.act("deliver").await;
    placed.follow().await.unwrap();
    let due = "UPDATE print_orders SET look_at = {now} WHERE job_id = $1";
    placed.trial.store.sql().write(due, params![placed.job]).await.unwrap();
    placed.act("draft").await;
    placed.follow().await.unwrap();
    assert_eq!(placed.order().await.provider_status.as_deref(), Some("draft"));
    assert!(placed.pause().await <= SOON.try_into().unwrap(), "at first it is asked about soon");
    let older = "UPDATE print_orders SET updated_at = {after $2} WHERE job_id = $1";
    let minute = Duration::from_secs(60);
    placed.trial.store.sql().write(older, params![placed.job, -micros(minute)]).await.unwrap();
    placed.hear().await;
    placed.follow().await.unwrap();
    assert!(placed.pause().await >= (minute * 2).try_into().unwrap(), "it has not been ready for a minute");
    let hour = Duration::from_secs(3600);
    placed.trial.store.sql().write(older, params![placed.job, -micros(hour)]).await.unwrap();
    placed.hear().await;
    placed.follow().await.unwrap();
    assert!(placed.pause().await < (hour + minute * 11).try_into().unwrap(), "but not less often than this");
}

#[tokio::test]
async fn a_comparison_that_was_cut_short_goes_on_where_it_was() {
    let placed = Placed::open().await;
    let settings = PrintfulSettings {
        url: format!("http://{}", placed.sim.address()),
        token: "token".into(),
        store: None,
        timeout: Duration::from_secs(10),
    };
    let client = Printful::new(&settings).unwrap();
    let ask = ask();
    let files = json!([{ "type": "default", "url": "http://nowhere/map.png" }]);
    // With the order that is placed, one more than a page holds.
    for number in 0..PAGE {
        let id = format!("other-{number}");
        let request = json!({
            "external_id": id, "shipping": "STANDARD", "recipient": ask.recipient,
            "items": [{ "external_id": id, "variant_id": 1, "quantity": 1, "files": files }],
        });
        assert!(matches!(client.create(&request).await, Outcome::Done(_)));
    }
    // One call, and then none for a minute.
    let sql = placed.trial.store.sql();
    sql.write("DELETE FROM provider_turns", &[]).await.unwrap();
    let pace = Pace { calls_a_minute: 1, ..Pace::default() };
    let chore = Reconcile::new(Arc::new(Provider::new(client, pace)));
    let turn = placed.trial.take(&chore).await.unwrap().expect("nobody else is at it");
    assert!(chore.run(&turn).await.is_err(), "there are two pages");
    sql.write("DELETE FROM provider_turns", &[]).await.unwrap();
    chore.run(&turn).await.unwrap();
}
