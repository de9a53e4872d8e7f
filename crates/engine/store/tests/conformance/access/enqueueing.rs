//! Jobs made in SQL, by `ode_enqueue`.

use super::guest::{Guest, WORDS, assert_denied, enqueue, id_of, number, owner, run};
use crate::harness::{
    claim, claim_one, finish, history, job, organisation, postgres_database, record, worker,
};
use crate::machines::{lane, pipeline};
use jiff::Timestamp;
use ode_job::{Ended, Phase};
use ode_print::sql::{FrozenMap, print_map};
use ode_store::Wake;
use sqlx::Connection as _;
use std::time::Duration;
use uuid::Uuid;

#[tokio::test]
async fn an_organisation_makes_jobs_for_itself_only() {
    let mut database = postgres_database().await;
    let (ours, theirs) = (id_of(organisation()), id_of(organisation()));
    let guest = Guest::new(&mut database, 1).await;
    for pipeline in pipeline::ALL {
        let mut tx = guest.of(ours).await;
        let own = format!("'{pipeline}', 'plain', organisation_id => '{ours}', priority => 7");
        let id = enqueue(&mut tx, &own).await.unwrap();
        let words = if [pipeline::XML, pipeline::SCRIPT].contains(pipeline) { 2 } else { 1 };
        assert_eq!(number(&mut tx, WORDS, &[id.0]).await, words, "{pipeline}");
        tx.commit().await.unwrap();
        let record = record(&database.store, id).await;
        assert_eq!((record.organisation_id, record.priority), (Some(ours), 7));
        assert_eq!(record.phase, Phase::Ready, "{pipeline}");
    }
    for somebody in [format!("organisation_id => '{theirs}'"), "organisation_id => NULL".into()] {
        let mut tx = guest.of(ours).await;
        assert_denied(enqueue(&mut tx, &format!("'xml', 'plain', {somebody}")).await);
    }
    let mut nobody = guest.pool.begin().await.unwrap();
    let own = format!("'xml', 'plain', organisation_id => '{ours}'");
    assert_denied(enqueue(&mut nobody, &own).await);
    drop(nobody);
    assert_eq!(number(owner(&mut database), "SELECT count(*) FROM jobs", &[]).await, 4);
    guest.leave(&mut database).await;
}

#[tokio::test]
async fn an_organisation_prints_its_own_maps_only() {
    let mut database = postgres_database().await;
    let (ours, theirs) = (organisation(), organisation());
    let map = || FrozenMap::new(r#"{"schema":1}"#.into(), None);
    let own = print_map(&database.store, ours, &map(), None, None).await.unwrap().map;
    let others = print_map(&database.store, theirs, &map(), None, None).await.unwrap().map;
    let guest = Guest::new(&mut database, 1).await;
    let print = |map: Uuid| {
        let input = format!("jsonb_build_object('printable_map_id', '{map}')");
        format!("'print', 'map', {input}, organisation_id => '{}'", id_of(ours))
    };
    let mut tx = guest.of(id_of(ours)).await;
    let job = enqueue(&mut tx, &print(own)).await.unwrap();
    tx.commit().await.unwrap();
    let linked = "SELECT count(*) FROM map_print WHERE job_id = $1";
    assert_eq!(number(owner(&mut database), linked, &[job.0]).await, 1);
    for wrong in [others, Uuid::new_v4()] {
        let mut tx = guest.of(id_of(ours)).await;
        let (code, said) = enqueue(&mut tx, &print(wrong)).await.unwrap_err();
        assert_eq!(code, "23503", "{said}");
    }
    guest.leave(&mut database).await;
}

#[tokio::test]
async fn a_job_made_in_sql_shares_the_fate_of_its_transaction() {
    let mut database = postgres_database().await;
    let store = database.store.clone();
    for pipeline in pipeline::ALL {
        let sql = owner(&mut database);
        let mut tx = sql.begin().await.unwrap();
        enqueue(&mut tx, &format!("'{pipeline}', 'plain'")).await.unwrap();
        tx.rollback().await.unwrap();
        assert_eq!(store.counts().await.unwrap(), []);
    }
    let worker = worker(&store).await;
    for (pipeline, lane) in
        pipeline::ALL.iter().zip([lane::XML, lane::HTML, lane::PRINT_EXPORT, lane::SCRIPT])
    {
        let sql = owner(&mut database);
        let mut tx = sql.begin().await.unwrap();
        let input = r#"'{"document": "a.pdf"}', config => '{"zoom": 2}', metadata => '{"a": "ä"}'"#;
        let rest = "external_id => 'x-1', priority => 5, max_retries => 7, timeout_ms => 1000";
        let id = enqueue(&mut tx, &format!("'{pipeline}', 'plain', {input}, {rest}")).await;
        if *pipeline != pipeline::XML {
            assert_eq!(id.unwrap_err().0, "23505", "the operator has one x-1 already");
            continue;
        }
        let id = id.unwrap();
        assert!(claim(&store, lane, worker, 1).await.is_empty(), "claimed before it was committed");
        tx.commit().await.unwrap();
        let record = record(&store, id).await;
        assert_eq!((record.external_id.as_deref(), record.priority), (Some("x-1"), 5));
        assert_eq!((&record.config["zoom"], &record.metadata["a"]), (&2.into(), &"ä".into()));
        let claimed = claim_one(&store, lane, worker).await;
        assert_eq!((claimed.lease.job(), claimed.retries_max), (id, Some(7)));
        assert_eq!(claimed.input["document"], "a.pdf");
        finish(&store, claimed, Ended::Succeeded).await;
        assert_eq!(history(&store, id).await, ["created", "queued", "processing", "complete"]);
    }
}

#[tokio::test]
async fn a_job_made_in_sql_is_like_one_made_by_the_store() {
    let mut database = postgres_database().await;
    let store = database.store.clone();
    for pipeline in pipeline::ALL {
        // Both to the microsecond, which is as fine as the databases are.
        let hour = Timestamp::now().as_microsecond() + 3_600_000_000;
        for later in [None, Timestamp::from_microsecond(hour).ok()] {
            let mut new = job(*pipeline);
            new.run_at = later;
            let by_store = store.enqueue(new).await.unwrap().id();
            let run_at = later.map_or("NULL".to_owned(), |at| format!("'{at}'"));
            let arguments =
                format!("'{pipeline}', 'plain', '{{\"document\": \"a.pdf\"}}', run_at => {run_at}");
            let by_sql = enqueue(owner(&mut database), &arguments).await.unwrap();
            let [mut one, two] = [record(&store, by_store).await, record(&store, by_sql).await];
            assert_eq!(one.queued_at.is_some(), two.queued_at.is_some(), "{pipeline}");
            assert_eq!(by_sql.0.get_version_num(), 7);
            one.id = two.id;
            one.reference.clone_from(&two.reference);
            (one.created_at, one.updated_at, one.queued_at) = (two.created_at, two.updated_at, two.queued_at);
            assert_eq!(one, two, "{pipeline}");
            assert_eq!(history(&store, by_store).await, history(&store, by_sql).await, "{pipeline}");
        }
    }
}

#[tokio::test]
async fn a_job_made_in_sql_wakes_the_workers() {
    let mut database = postgres_database().await;
    let mut wakes = database.store.wakes();
    assert_eq!(wakes.next().await, Wake::Changed, "listening");
    enqueue(owner(&mut database), "'script', 'plain'").await.unwrap();
    let woken = tokio::time::timeout(Duration::from_secs(10), wakes.next()).await.expect("a wake-up");
    assert_eq!(woken, Wake::Ready(lane::SCRIPT));
}

#[tokio::test]
async fn what_cannot_be_accepted_in_sql_is_refused_in_words() {
    let mut database = postgres_database().await;
    let cases = [
        ("'fax', 'plain'", "There is no pipeline called \"fax\". Use one of: xml, html, print, script."),
        ("NULL, 'plain'", "There is no pipeline called"),
        ("'xml', ''", "The type is a name of 1 to 255 characters."),
        ("'xml', 'plain', external_id => ''", "The external_id is a name"),
        ("'xml', 'plain', priority => 5000", "Priority 5000 is out of range; use -1000 to 1000."),
        ("'xml', 'plain', max_retries => 70000", "70000 retries are out of range"),
        ("'xml', 'plain', timeout_ms => 9223372036854775807", "between 1 millisecond and 7 days"),
        ("'xml', 'plain', NULL", "The input is null"),
        ("'xml', 'plain', config => to_jsonb(repeat('x', 102400))", "The config has 102402 bytes"),
        ("'xml', 'plain', to_jsonb(repeat('x', 1048576))", "The input has 1048578 bytes"),
    ];
    for (arguments, message) in cases {
        let refusal = enqueue(owner(&mut database), arguments).await.expect_err(arguments);
        assert!(refusal.1.contains(message), "{arguments}: {refusal:?}");
    }
    assert_eq!(number(owner(&mut database), "SELECT count(*) FROM jobs", &[]).await, 0);
    let look = database.store.look(lane::ALL).await.unwrap();
    assert_eq!((look.due_at, look.ready), (None, vec![]));
}

#[tokio::test]
async fn a_name_that_is_taken_is_refused_with_the_job_that_has_it() {
    let mut database = postgres_database().await;
    let first = enqueue(owner(&mut database), "'xml', 'plain', external_id => 'a'").await.unwrap();
    let away = "SET search_path = pg_catalog";
    run(owner(&mut database), away, &[]).await.unwrap();
    let again = "SELECT public.ode_enqueue('xml', 'plain', external_id => 'a')";
    let (code, message) = run(owner(&mut database), again, &[]).await.unwrap_err();
    assert_eq!(code, "23505");
    assert_eq!(message, format!("The external_id \"a\" is taken by job {first}."));
}

#[tokio::test]
async fn thousands_of_jobs_are_made_by_one_statement() {
    let mut database = postgres_database().await;
    let made = "SELECT count(ode_enqueue('script', 'plain', to_jsonb(n))) FROM generate_series(1, 3000) AS n";
    assert_eq!(number(owner(&mut database), made, &[]).await, 3000);
    let told = "SELECT count(*) FROM job_events";
    assert_eq!(number(owner(&mut database), told, &[]).await, 6000);
    let worker = worker(&database.store).await;
    assert_eq!(claim(&database.store, lane::SCRIPT, worker, 5000).await.len(), 3000);
}
