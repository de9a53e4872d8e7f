//! What an organisation sees: its own rows and nothing else, whatever it says and whatever tables it makes.

use super::guest::{Guest, WORDS, assert_denied, cancel, enqueue, furnish, id_of, number, owner, run};
use crate::harness::config;
use crate::harness::{history, job, organisation, postgres_database};
use crate::machines::pipeline;
use ode_job::Owner;
use ode_store::Store;
use sqlx::{Connection as _, Row as _};
use uuid::Uuid;

/// What an organisation sees of itself when it has been furnished: relation, whose it is, and how much.
const SEEN: [(&str, &str, i64); 18] = [
    ("jobs", "organisation_id = $1", 7),
    ("job_past", "organisation_id = $1", 3),
    ("job_live", "owner = $1", 4),
    ("script_jobs", "organisation_id = $1", 4),
    ("script_jobs_failed_summary", "organisation_id = $1", 1),
    ("print_jobs", "id IN (SELECT id FROM jobs WHERE organisation_id = $1)", 1),
    ("job_artifact", "job_id IN (SELECT id FROM jobs WHERE organisation_id = $1)", 1),
    ("job_log", "job_id IN (SELECT id FROM jobs WHERE organisation_id = $1)", 1),
    ("job_key", "owner = $1", 4),
    ("documents", "organisation_id = $1", 1),
    ("checks", "job_id IN (SELECT id FROM jobs WHERE organisation_id = $1)", 1),
    ("revisions", "job_id IN (SELECT id FROM jobs WHERE organisation_id = $1)", 1),
    ("training_samples", "job_id IN (SELECT id FROM jobs WHERE organisation_id = $1)", 1),
    ("job_download", "job_id IN (SELECT id FROM jobs WHERE organisation_id = $1)", 1),
    ("user_maps", "organisation_id = $1", 1),
    ("printable_maps", "organisation_id = $1", 1),
    ("map_print", "job_id IN (SELECT id FROM jobs WHERE organisation_id = $1)", 1),
    ("print_job_events", "print_job_id IN (SELECT id FROM jobs WHERE organisation_id = $1)", 1),
];

#[tokio::test]
async fn an_organisation_sees_its_own_and_nothing_else() {
    let mut database = postgres_database().await;
    let (ours, theirs) = (organisation(), organisation());
    for owner in [ours, theirs, Owner::Session(Uuid::new_v4()), Owner::Operator] {
        furnish(&database.store, owner).await;
    }
    let guest = Guest::new(&mut database, 1).await;
    for owner in [ours, theirs] {
        let mut tx = guest.of(id_of(owner)).await;
        for (relation, own, expected) in SEEN {
            let seen = number(&mut tx, &format!("SELECT count(*) FROM {relation}"), &[]).await;
            let own = format!("SELECT count(*) FROM {relation} WHERE {own}");
            let own = number(&mut tx, &own, &[id_of(owner)]).await;
            assert_eq!((seen, own), (expected, expected), "{relation}: seen, and own");
        }
        let counted = "SELECT sum(count)::bigint FROM script_jobs_queue_status";
        assert_eq!(number(&mut tx, counted, &[]).await, 4);
        let done = "SELECT sum(completed_count)::bigint FROM script_jobs_metrics";
        assert_eq!(number(&mut tx, done, &[]).await, 1);
    }
    guest.leave(&mut database).await;
}

#[tokio::test]
async fn who_says_no_organisation_sees_nothing() {
    let mut database = postgres_database().await;
    let ours = organisation();
    furnish(&database.store, ours).await;
    furnish(&database.store, Owner::Operator).await;
    let guest = Guest::new(&mut database, 1).await;
    // Never set; set in a transaction that is over; set to nothing.
    for attempt in 0..3 {
        let mut tx = guest.pool.begin().await.unwrap();
        if attempt == 2 {
            run(&mut tx, "SET LOCAL ode.organisation = ''", &[]).await.unwrap();
        }
        for (relation, ..) in SEEN {
            let seen = number(&mut tx, &format!("SELECT count(*) FROM {relation}"), &[]).await;
            assert_eq!(seen, 0, "{relation}, attempt {attempt}");
        }
        drop(tx);
        guest.of(id_of(ours)).await.commit().await.unwrap();
    }
    guest.leave(&mut database).await;
}

#[tokio::test]
async fn the_engines_own_tables_are_closed() {
    let mut database = postgres_database().await;
    let ours = organisation();
    let ids = furnish(&database.store, ours).await;
    let guest = Guest::new(&mut database, 1).await;
    let closed = [
        "job_journal",
        "job_events",
        "worker",
        "api_key",
        "owner",
        "ode_schema",
        "blob_trash",
        "chore",
        "spend_caps",
        "provider_events",
        "provider_turns",
        "print_order_steps",
        "seal_key",
        "script_secret",
        "script_checkpoint",
        "script_order",
        "script_need",
        "script_turn",
    ];
    for relation in closed {
        let mut tx = guest.of(id_of(ours)).await;
        assert_denied(run(&mut tx, &format!("SELECT 1 FROM {relation}"), &[]).await);
    }
    for statement in [
        "DELETE FROM job_past WHERE id = $1",
        "UPDATE job_past SET result = '{}' WHERE id = $1",
        "UPDATE job_live SET organisation_id = NULL WHERE id = $1",
        "UPDATE job_live SET priority = 1000 WHERE id = $1",
        "INSERT INTO job_past SELECT * FROM job_past WHERE id <> $1",
        "UPDATE job_artifact SET bytes = 2 WHERE job_id = $1",
        "DELETE FROM job_log WHERE job_id = $1",
        "UPDATE job_key SET job_id = NULL WHERE job_id = $1",
        "UPDATE job_journal SET actor = 'me' WHERE $1 = ANY (jobs)",
        "DELETE FROM job_live WHERE id = $1",
        "INSERT INTO job_live SELECT * FROM job_live WHERE id <> $1",
        "INSERT INTO job_key (kind, owner, key, job_id) VALUES ('dedupe', ode_organisation(), 'k', $1)",
        "INSERT INTO job_journal (seq, event, to_state, actor, jobs) VALUES (9, 'failed', 'failed', 'me', ARRAY[$1])",
        "DELETE FROM worker WHERE id = $1",
        "DELETE FROM checks WHERE job_id = $1",
        "UPDATE revisions SET after_value = 'c' WHERE job_id = $1",
        "DELETE FROM training_samples WHERE job_id = $1",
        "UPDATE retention_policy SET source_micros = 1 WHERE $1 IS NOT NULL",
        "INSERT INTO worker (id, host, pid, version, alive_until) VALUES ($1, '', 1, '', now())",
        "UPDATE print_orders SET cost_max_cents = 1 WHERE job_id = $1",
        "UPDATE spend_caps SET month_cents = 1 WHERE organisation_id = $1",
        "UPDATE printable_maps SET user_id = $1",
        "DELETE FROM printable_maps WHERE id <> $1",
        "DELETE FROM user_maps WHERE id <> $1",
        "INSERT INTO map_print (job_id, printable_map_id) SELECT $1, id FROM printable_maps",
        "UPDATE user_maps SET organisation_id = $1",
        "INSERT INTO user_maps (id, organisation_id, name, data) SELECT $1, $1, name, data FROM user_maps",
        "INSERT INTO printable_maps (id, organisation_id, data, sha256) SELECT $1, $1, data, sha256 FROM printable_maps",
    ] {
        let mut tx = guest.of(id_of(ours)).await;
        assert_denied(run(&mut tx, statement, &[ids[3].0]).await);
    }
    guest.leave(&mut database).await;
}

#[tokio::test]
async fn a_history_is_told_to_those_who_may_see_the_job() {
    let mut database = postgres_database().await;
    let (ours, theirs) = (organisation(), organisation());
    let own = furnish(&database.store, ours).await;
    let foreign = furnish(&database.store, theirs).await;
    let guest = Guest::new(&mut database, 1).await;
    let mut tx = guest.of(id_of(ours)).await;
    let told = "SELECT event_type, from_state, to_state, actor, meta ->> 'code' FROM ode_history($1)";
    let told = sqlx::query(told).bind(own[2].0).fetch_all(&mut *tx).await.unwrap();
    let words: Vec<String> = told.iter().map(|row| row.get("event_type")).collect();
    assert_eq!(words, history(&database.store, own[2]).await);
    assert_eq!(told[3].get::<Option<String>, _>(4).as_deref(), Some("NOT_PDF"));
    assert_eq!(number(&mut tx, WORDS, &[foreign[2].0]).await, 0);
    assert_eq!(number(&mut tx, WORDS, &[Uuid::now_v7()]).await, 0);
    drop(tx);
    let mut nobody = guest.pool.begin().await.unwrap();
    assert_eq!(number(&mut nobody, WORDS, &[own[2].0]).await, 0);
    drop(nobody);
    assert_eq!(number(owner(&mut database), WORDS, &[own[2].0]).await, 4, "the owner reads all");
    guest.leave(&mut database).await;
}

#[tokio::test]
async fn tables_of_the_callers_own_do_not_stand_in_for_the_engines() {
    let mut database = postgres_database().await;
    let (ours, theirs) = (organisation(), organisation());
    let foreign = furnish(&database.store, theirs).await;
    let guest = Guest::new(&mut database, 1).await;
    let mut tx = guest.of(id_of(ours)).await;
    for table in ["job_live", "job_past"] {
        let shadow = format!(
            "CREATE TEMP TABLE {table} (id uuid, organisation_id uuid, worker uuid, state text) ON COMMIT DROP"
        );
        run(&mut tx, &shadow, &[]).await.unwrap();
        run(&mut tx, &format!("GRANT ALL ON {table} TO PUBLIC"), &[]).await.unwrap();
        let pretend = format!("INSERT INTO {table} VALUES ($1, $2, NULL, 'queued')");
        run(&mut tx, &pretend, &[foreign[1].0, id_of(ours)]).await.unwrap();
    }
    for relation in ["job_artifact", "job_log", "checks", "revisions"] {
        assert_eq!(number(&mut tx, &format!("SELECT count(*) FROM {relation}"), &[]).await, 0);
    }
    assert_eq!(number(&mut tx, WORDS, &[foreign[1].0]).await, 0);
    assert_eq!(cancel(&mut tx, foreign[1]).await, Ok(false));
    drop(tx);
    guest.leave(&mut database).await;
}

#[tokio::test]
async fn whoever_takes_the_role_on_sees_no_more_than_its_members() {
    let mut database = postgres_database().await;
    let (ours, theirs) = (organisation(), organisation());
    let foreign = furnish(&database.store, theirs).await;
    let name = format!("SET LOCAL ode.organisation = '{}'", id_of(ours));
    let mut tx = owner(&mut database).begin().await.unwrap();
    for statement in ["SET LOCAL ROLE ode_api", name.as_str()] {
        run(&mut tx, statement, &[]).await.unwrap();
    }
    assert_eq!(number(&mut tx, WORDS, &[foreign[1].0]).await, 0);
    let theirs = format!("'xml', 'plain', organisation_id => '{}'", id_of(theirs));
    assert_denied(enqueue(&mut tx, &theirs).await);
}

#[tokio::test]
async fn who_may_not_create_roles_can_migrate_where_the_role_is() {
    let mut database = postgres_database().await;
    let name = format!("ode_plain_{}", Uuid::new_v4().simple());
    let target = database.url.rsplit_once('/').unwrap().1.to_owned();
    database.store.migrate_down(0).await.unwrap();
    database.sql.run("CREATE ROLE ode_api NOLOGIN", &[]).await.ok();
    for statement in [
        format!("CREATE ROLE {name} LOGIN"),
        format!("ALTER DATABASE {target} OWNER TO {name}"),
        format!("GRANT ALL ON SCHEMA public TO {name}"),
    ] {
        database.sql.run(&statement, &[]).await.unwrap();
    }
    let url = database.url.replace("postgres@", &format!("{name}@"));
    let store = Store::open(config(url)).await.unwrap();
    store.migrate_up().await.unwrap();
    store.enqueue(job(pipeline::XML)).await.unwrap();
    store.migrate_down(0).await.unwrap();
    store.close().await;
    for statement in [
        format!("ALTER DATABASE {target} OWNER TO postgres"),
        format!("REVOKE ALL ON SCHEMA public FROM {name}"),
        format!("DROP ROLE {name}"),
    ] {
        database.sql.run(&statement, &[]).await.unwrap();
    }
}
