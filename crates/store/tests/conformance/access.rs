//! Who may do what in the database itself: the API role, its organisation, and jobs made in SQL.

mod postgres_only {
    use crate::harness::{
        Database, FEATURES, Sql, claim, claim_one, ending, finish, history, job, organisation,
        postgres_database, record, worker,
    };
    use futures_util::future::join_all;
    use jiff::Timestamp;
    use ode_job::script::{Process, Run};
    use ode_job::{
        Artifact, Check, CheckKind, Ended, ErrorCode, Failure, JobId, Lane, LogLevel, NewJob, Owner, Phase,
        Pipeline, Progress, Severity, State, WorkerId,
    };
    use ode_store::{Error, FrozenMap, Revision, Store, Wake};
    use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions, PgRow};
    use sqlx::{AssertSqlSafe, Column as _, Connection as _, Postgres, Row as _, Transaction};
    use std::time::Duration;
    use uuid::Uuid;

    /// A login that is a member of `ode_api` and nothing else.
    struct Guest {
        name: String,
        pool: PgPool,
    }

    impl Guest {
        async fn new(database: &mut Database, connections_max: u32) -> Guest {
            let name = format!("ode_guest_{}", Uuid::new_v4().simple());
            let create = format!("CREATE ROLE {name} LOGIN IN ROLE ode_api");
            database.sql.run(&create, &[]).await.unwrap();
            let url = database.url.replace("postgres@", &format!("{name}@"));
            let pool = PgPoolOptions::new().max_connections(connections_max).connect(&url).await.unwrap();
            Guest { name, pool }
        }

        /// A transaction in the name of an organisation.
        async fn of(&self, organisation: Uuid) -> Transaction<'static, Postgres> {
            let mut tx = self.pool.begin().await.unwrap();
            run(&mut tx, &format!("SET LOCAL ode.organisation = '{organisation}'"), &[]).await.unwrap();
            tx
        }

        async fn leave(self, database: &mut Database) {
            self.pool.close().await;
            database.sql.run(&format!("DROP ROLE {}", self.name), &[]).await.unwrap();
        }
    }

    /// Runs a statement; a refusal is its SQLSTATE and its message.
    async fn run(connection: &mut PgConnection, sql: &str, ids: &[Uuid]) -> Result<u64, (String, String)> {
        let query = sqlx::query(AssertSqlSafe(sql.to_owned()));
        let query = ids.iter().fold(query, |query, id| query.bind(*id));
        let done = query.execute(connection).await;
        done.map(|done| done.rows_affected()).map_err(refusal)
    }

    fn refusal(error: sqlx::Error) -> (String, String) {
        let error = error.into_database_error().expect("the server answers");
        (error.code().unwrap_or_default().into_owned(), error.message().to_owned())
    }

    async fn number(connection: &mut PgConnection, sql: &str, ids: &[Uuid]) -> i64 {
        let query = sqlx::query_scalar(AssertSqlSafe(sql.to_owned()));
        ids.iter().fold(query, |query, id| query.bind(*id)).fetch_one(connection).await.unwrap()
    }

    async fn rows(connection: &mut PgConnection, sql: &str) -> Vec<PgRow> {
        sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_all(connection).await.unwrap()
    }

    /// The connection of the one who owns the tables.
    fn owner(database: &mut Database) -> &mut PgConnection {
        match &mut database.sql {
            Sql::Postgres(connection) => connection,
            Sql::Sqlite(_) => unreachable!("only PostgreSQL has roles"),
        }
    }

    #[track_caller]
    fn assert_denied<T: std::fmt::Debug>(answer: Result<T, (String, String)>) {
        let (code, message) = answer.unwrap_err();
        assert_eq!(code, "42501", "{message}");
    }

    /// Everything an organisation can have: for each pipeline a ready job, a running and an ended script, a
    /// file, a log and a key. Seven jobs.
    async fn furnish(store: &Store, owner: Owner) -> Vec<JobId> {
        let mut ids = Vec::new();
        let worker = worker(store).await;
        for ended in [None, Some(Ended::Succeeded), Some(Ended::Failed(Failure::from(ErrorCode::NotPdf)))] {
            ids.push(store.enqueue(job(Pipeline::Script).owned_by(owner)).await.unwrap().id());
            let claimed = claim_one(store, Lane::Script, worker).await;
            if let Some(ended) = ended {
                let mut end = ending(claimed, ended);
                end.artifacts.push(file(&end.job.lease.job().to_string()));
                store.finish(vec![end]).await.unwrap();
            }
        }
        for pipeline in Pipeline::ALL {
            let key = Some(pipeline.to_string());
            if *pipeline == Pipeline::Print {
                let map = FrozenMap::new(r#"{"schema":1}"#.into(), None);
                ids.push(store.print_map(owner, &map, key, None).await.unwrap().job);
                continue;
            }
            let new = NewJob { idempotency_key: key, ..job(*pipeline).owned_by(owner) };
            ids.push(store.enqueue(new).await.unwrap().id());
            // Out of the way of the next owner's scripts.
            if *pipeline == Pipeline::Script {
                store.cancel(ids[6]).await.unwrap();
            }
        }
        store.add_user_map(owner, "Ours", FEATURES).await.unwrap();
        store.log(ids[0], 1, LogLevel::Info, "a secret").await.unwrap();
        store.record_download(ids[1]).await.unwrap();
        store.add_checks(ids[1], &[check()]).await.unwrap();
        store.revise(ids[1], &correction()).await.unwrap();
        ids
    }

    fn file(path: &str) -> Artifact {
        Artifact {
            role: "result".into(),
            name: "a.txt".into(),
            storage: "local".into(),
            path: path.into(),
            content_type: "text/plain".into(),
            bytes: 1,
            sha256: "0".repeat(64),
        }
    }

    fn check() -> Check {
        Check {
            kind: CheckKind::Content,
            severity: Severity::Info,
            code: "A".into(),
            field: None,
            message: "a secret".into(),
            opinion: None,
        }
    }

    fn correction() -> Revision {
        let (before, after) = (Some("a".into()), Some("b".into()));
        Revision { field: "total".into(), before, after, page: None, area: None, author: None }
    }

    fn id_of(owner: Owner) -> Uuid {
        owner.key()
    }

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

    const WORDS: &str = "SELECT count(*) FROM ode_history($1)";

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

    /// Makes a job in SQL, as the given connection may.
    async fn enqueue(connection: &mut PgConnection, arguments: &str) -> Result<JobId, (String, String)> {
        let sql = AssertSqlSafe(format!("SELECT ode_enqueue({arguments})"));
        let made = sqlx::query_scalar(sql).fetch_one(connection).await;
        made.map(JobId).map_err(refusal)
    }

    #[tokio::test]
    async fn an_organisation_makes_jobs_for_itself_only() {
        let mut database = postgres_database().await;
        let (ours, theirs) = (id_of(organisation()), id_of(organisation()));
        let guest = Guest::new(&mut database, 1).await;
        for pipeline in Pipeline::ALL {
            let mut tx = guest.of(ours).await;
            let own = format!("'{pipeline}', 'plain', organisation_id => '{ours}', priority => 7");
            let id = enqueue(&mut tx, &own).await.unwrap();
            let words = if matches!(pipeline, Pipeline::Xml | Pipeline::Script) { 2 } else { 1 };
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
        let own = database.store.print_map(ours, &map(), None, None).await.unwrap().map;
        let others = database.store.print_map(theirs, &map(), None, None).await.unwrap().map;
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

    /// The way an organisation calls off a job in SQL.
    async fn cancel(tx: &mut PgConnection, id: JobId) -> Result<bool, (String, String)> {
        let done = sqlx::query_scalar("SELECT ode_cancel($1)").bind(id.0).fetch_one(tx).await;
        done.map_err(refusal)
    }

    #[tokio::test]
    async fn an_organisation_calls_off_its_own_waiting_script() {
        let mut database = postgres_database().await;
        let ours = organisation();
        let store = &database.store.clone();
        let queued = store.enqueue(job(Pipeline::Script).owned_by(ours)).await.unwrap().id();
        let mut later = job(Pipeline::Script).owned_by(ours);
        later.run_at = Some(Timestamp::now() + Duration::from_secs(3600));
        let pending = store.enqueue(later).await.unwrap().id();
        let guest = Guest::new(&mut database, 1).await;
        for (id, words) in
            [(queued, &["created", "queued", "cancelled"][..]), (pending, &["created", "cancelled"])]
        {
            let mut tx = guest.of(id_of(ours)).await;
            assert_eq!(cancel(&mut tx, id).await, Ok(true));
            assert_eq!(number(&mut tx, WORDS, &[id.0]).await, words.len() as i64);
            tx.commit().await.unwrap();
            let record = record(store, id).await;
            assert_eq!((record.state, record.phase), (State::Cancelled, Phase::Cancelled));
            assert_eq!(history(store, id).await, words);
            assert!(matches!(store.cancel(id).await, Err(Error::Refused { .. })));
        }
        let worker = worker(store).await;
        assert!(claim(store, Lane::Script, worker, 10).await.is_empty());
        guest.leave(&mut database).await;
    }

    #[tokio::test]
    async fn what_runs_has_ended_or_is_anothers_cannot_be_called_off_in_sql() {
        let mut database = postgres_database().await;
        let (ours, theirs) = (organisation(), organisation());
        let own = furnish(&database.store, ours).await;
        let foreign = furnish(&database.store, theirs).await;
        let waiting = database.store.enqueue(job(Pipeline::Script).owned_by(theirs)).await.unwrap().id();
        let guest = Guest::new(&mut database, 1).await;
        let (running, done, failed, cancelled) = (own[0], own[1], own[2], own[6]);
        for id in [running, done, failed, cancelled, foreign[0], foreign[1], waiting] {
            let before = record(&database.store, id).await;
            let mut tx = guest.of(id_of(ours)).await;
            assert_eq!(cancel(&mut tx, id).await, Ok(false), "{} {}", before.state, id);
            tx.commit().await.unwrap();
            assert_eq!(record(&database.store, id).await, before);
        }
        // Only a script knows the state; the others have failed, as when they are called off in any other way.
        let mut tx = guest.of(id_of(ours)).await;
        assert_eq!(cancel(&mut tx, own[4]).await, Ok(true));
        tx.commit().await.unwrap();
        let called_off = record(&database.store, own[4]).await;
        assert_eq!(called_off.state, State::Failed);
        assert_eq!(called_off.error_code.as_deref(), Some("CANCELLED"));
        assert_eq!(called_off.error_message.as_deref(), Some(ode_job::ErrorCode::Cancelled.sentence()));
        guest.leave(&mut database).await;
    }

    #[tokio::test]
    async fn taking_the_name_off_does_not_make_a_job_disappear() {
        let mut database = postgres_database().await;
        let ours = organisation();
        let waiting = database.store.enqueue(job(Pipeline::Script).owned_by(ours)).await.unwrap().id();
        let guest = Guest::new(&mut database, 1).await;
        let mut tx = guest.of(id_of(ours)).await;
        run(&mut tx, "SET LOCAL ode.organisation = ''", &[]).await.unwrap();
        assert_eq!(cancel(&mut tx, waiting).await, Ok(false));
        tx.commit().await.unwrap();
        assert_eq!(record(&database.store, waiting).await.phase, Phase::Ready);
        guest.leave(&mut database).await;
    }

    /// What people ask these relations, each with the column that says whose a row is; the last ones only count. `{id}` is
    /// a job of another organisation.
    const QUERIES: [(&str, Option<&str>); 12] = [
        ("SELECT * FROM jobs", Some("organisation_id")),
        ("SELECT * FROM script_jobs WHERE status IN ('pending', 'queued') ORDER BY priority DESC, created_at",
            Some("organisation_id")),
        ("SELECT * FROM script_jobs WHERE status = 'in_progress' ORDER BY started_at", Some("organisation_id")),
        ("SELECT * FROM script_jobs WHERE status = 'failed' ORDER BY created_at DESC", Some("organisation_id")),
        ("SELECT * FROM script_jobs WHERE status = 'pending' AND retry_count < max_retries AND next_retry_at IS NOT NULL",
            Some("organisation_id")),
        ("SELECT * FROM script_jobs WHERE job_type = 'plain' AND status = 'queued'", Some("organisation_id")),
        ("SELECT * FROM script_jobs WHERE updated_at > now() - interval '1 hour' ORDER BY updated_at DESC",
            Some("organisation_id")),
        ("SELECT * FROM script_jobs_failed_summary", Some("organisation_id")),
        ("SELECT * FROM script_jobs WHERE id = '{id}'", Some("organisation_id")),
        ("SELECT * FROM script_jobs WHERE job_id = ode_reference('{id}')", Some("organisation_id")),
        ("SELECT coalesce(sum(count), 0)::bigint FROM script_jobs_queue_status", None),
        ("SELECT coalesce(sum(completed_count + failed_count + in_progress_count + queued_count), 0)::bigint
            FROM script_jobs_metrics", None),
    ];

    /// What each organisation has: as many scripts as its number, and one more of each that has ended.
    async fn scripts_of(store: &Store, owner: Owner, waiting: usize) -> JobId {
        let worker = worker(store).await;
        for ended in [Ended::Succeeded, Ended::Failed(Failure::from(ErrorCode::NotPdf))] {
            store.enqueue(job(Pipeline::Script).owned_by(owner)).await.unwrap();
            let claimed = claim_one(store, Lane::Script, worker).await;
            finish(store, claimed, ended).await;
        }
        let jobs = (0..waiting).map(|_| job(Pipeline::Script).owned_by(owner)).collect();
        let ids = store.enqueue_many(jobs).await.unwrap();
        // Out of the way of the next owner's, which are claimed in turn.
        while let [_, ..] = claim(store, Lane::Script, worker, 100).await.as_slice() {}
        ids[0]
    }

    #[tokio::test]
    async fn shared_connections_never_show_anothers_rows() {
        const ORGANISATIONS: usize = 6;
        const TRANSACTIONS: usize = 10_000;
        const CONNECTIONS: u32 = 4;
        let mut database = postgres_database().await;
        let owners: Vec<Owner> = (0..ORGANISATIONS).map(|_| organisation()).collect();
        let mut jobs = Vec::new();
        for (number, owner) in owners.iter().enumerate() {
            jobs.push(scripts_of(&database.store, *owner, number + 1).await);
        }
        let guest = Guest::new(&mut database, CONNECTIONS).await;
        let visit = async |round: usize| {
            let random = Uuid::new_v4().as_u128() as usize;
            let mine = random % (ORGANISATIONS + 1);
            let name = owners.get(mine).map_or(String::new(), |owner| id_of(*owner).to_string());
            let mut tx = guest.pool.begin().await.unwrap();
            // The last one of them says no name at all, on a connection where others have.
            if mine < ORGANISATIONS {
                run(&mut tx, &format!("SET LOCAL ode.organisation = '{name}'"), &[]).await.unwrap();
            }
            let (query, whose) = QUERIES[round % QUERIES.len()];
            let sql = query.replace("{id}", &jobs[(mine + 1) % ORGANISATIONS].to_string());
            match whose {
                Some(column) => {
                    let sql = format!("SELECT {column}::text AS whose FROM ({sql}) AS asked");
                    let seen: Vec<Option<String>> =
                        rows(&mut tx, &sql).await.iter().map(|row| row.get("whose")).collect();
                    let is_own = |whose: &Option<String>| whose.as_deref() == Some(name.as_str());
                    assert!(seen.iter().all(is_own), "round {round}, {query}: {name} saw {seen:?}");
                    let is_of_another = query.contains("{id}");
                    assert!(!is_of_another || seen.is_empty(), "round {round}, {query}: {name} saw {seen:?}");
                }
                None => {
                    let own = if mine < ORGANISATIONS { mine as i64 + 3 } else { 0 };
                    assert_eq!(number(&mut tx, &sql, &[]).await, own, "round {round}, {query}");
                }
            }
            if (random >> 8).is_multiple_of(5) { tx.rollback().await } else { tx.commit().await }.unwrap();
        };
        let walk = async |first: usize| {
            for round in (first..TRANSACTIONS).step_by(8) {
                visit(round).await;
            }
        };
        join_all((0..8).map(walk)).await;
        guest.leave(&mut database).await;
    }

    #[tokio::test]
    async fn scripts_are_found_by_index_however_many_there_were() {
        let mut database = postgres_database().await;
        let sql = owner(&mut database);
        let many = "INSERT INTO job_past (id, created_at, started_at, fence, priority, attempts, retries, pipeline, kind,
                state, created_by, metadata, history, input)
            SELECT ode_new_id(), now() - n * interval '1 hour', now(), 1, 0, 1, 0, 'script', 'kind-' || n % 50, 'completed',
                gen_random_uuid(), jsonb_build_object('restaurant_id', gen_random_uuid()), '', '{}'
            FROM generate_series(1, 5000) AS n";
        run(sql, many, &[]).await.unwrap();
        run(sql, "ANALYZE job_past", &[]).await.unwrap();
        let id = Uuid::now_v7();
        let queries = [
            (format!("job_id = ode_reference('{id}')"), "script_reference"),
            (format!("restaurant_id = '{id}'"), "script_restaurant"),
            (format!("created_by = '{id}' ORDER BY created_at DESC"), "script_creator"),
            ("job_type = 'plain' AND status = 'failed'".to_owned(), "script_type"),
            ("created_at > now() - interval '24 hours'".to_owned(), "script_created"),
            ("updated_at > now()".to_owned(), "script_updated"),
        ];
        for (condition, index) in queries {
            let plan = rows(sql, &format!("EXPLAIN SELECT * FROM script_jobs WHERE {condition}")).await;
            let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
            let index = format!("job_past_{index}");
            assert!(plan.iter().any(|line| line.contains(&index)), "{condition}\n{}", plan.join("\n"));
        }
    }

    #[tokio::test]
    async fn an_ended_script_shows_what_it_ran_as_and_how_far_it_came() {
        let mut database = postgres_database().await;
        let store = database.store.clone();
        let id = store.enqueue(job(Pipeline::Script)).await.unwrap().id();
        let WorkerId(worker) = worker(&store).await;
        let claimed = claim_one(&store, Lane::Script, WorkerId(worker)).await;
        let run = Run {
            process: Some(Process { pid: 4711, start_ticks: 1, boot_id: "b".into() }),
            progress: Progress { percent: 40, message: Some("Row 4".into()), step: 2, steps: 5 },
            ..Run::default()
        };
        store.record_run(&claimed.lease, &run).await.unwrap();
        finish(&store, claimed, Ended::Failed(Failure::from(ErrorCode::ScriptFailed))).await;
        let shown = "SELECT count(*) FROM script_jobs WHERE id = $1 AND status = 'failed' AND worker_id = $2::text
            AND process_pid = 4711 AND progress_percent = 40 AND progress_message = 'Row 4' AND current_step = 2
            AND total_steps = 5 AND timeout_at > started_at AND completed_at >= started_at AND cancelled_at IS NULL
            AND max_retries = 3 AND retry_delay_ms = 5000";
        assert_eq!(number(owner(&mut database), shown, &[id.0, worker]).await, 1);
    }

    #[tokio::test]
    async fn a_person_calls_off_their_own_jobs_only() {
        let mut database = postgres_database().await;
        let ours = organisation();
        let (person, other) = (Uuid::new_v4(), Uuid::new_v4());
        let asked = |by| NewJob { created_by: Some(by), ..job(Pipeline::Script).owned_by(ours) };
        let theirs = database.store.enqueue(asked(other)).await.unwrap().id();
        let own = database.store.enqueue(asked(person)).await.unwrap().id();
        let guest = Guest::new(&mut database, 1).await;
        let mut tx = guest.of(id_of(ours)).await;
        run(&mut tx, &format!("SET LOCAL ode.person = '{person}'"), &[]).await.unwrap();
        assert_eq!(cancel(&mut tx, theirs).await, Ok(false));
        assert_eq!(cancel(&mut tx, own).await, Ok(true));
        tx.commit().await.unwrap();
        guest.leave(&mut database).await;
    }

    #[tokio::test]
    async fn a_job_made_in_sql_shares_the_fate_of_its_transaction() {
        let mut database = postgres_database().await;
        let store = database.store.clone();
        for pipeline in Pipeline::ALL {
            let sql = owner(&mut database);
            let mut tx = sql.begin().await.unwrap();
            enqueue(&mut tx, &format!("'{pipeline}', 'plain'")).await.unwrap();
            tx.rollback().await.unwrap();
            assert_eq!(store.counts().await.unwrap(), []);
        }
        let worker = worker(&store).await;
        for (pipeline, lane) in
            Pipeline::ALL.iter().zip([Lane::Xml, Lane::Html, Lane::PrintExport, Lane::Script])
        {
            let sql = owner(&mut database);
            let mut tx = sql.begin().await.unwrap();
            let input = r#"'{"document": "a.pdf"}', config => '{"zoom": 2}', metadata => '{"a": "ä"}'"#;
            let rest = "external_id => 'x-1', priority => 5, max_retries => 7, timeout_ms => 1000";
            let id = enqueue(&mut tx, &format!("'{pipeline}', 'plain', {input}, {rest}")).await;
            if *pipeline != Pipeline::Xml {
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
        for pipeline in Pipeline::ALL {
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
                (one.created_at, one.updated_at, one.queued_at) =
                    (two.created_at, two.updated_at, two.queued_at);
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
        assert_eq!(woken, Wake::Ready(Lane::Script));
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
        let look = database.store.look(Lane::ALL).await.unwrap();
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
        let made =
            "SELECT count(ode_enqueue('script', 'plain', to_jsonb(n))) FROM generate_series(1, 3000) AS n";
        assert_eq!(number(owner(&mut database), made, &[]).await, 3000);
        let told = "SELECT count(*) FROM job_events";
        assert_eq!(number(owner(&mut database), told, &[]).await, 6000);
        let worker = worker(&database.store).await;
        assert_eq!(claim(&database.store, Lane::Script, worker, 5000).await.len(), 3000);
    }

    /// The columns the original documents give each relation, in their order.
    const DOCUMENTED: [(&str, &str); 6] = [
        (
            "script_jobs",
            "id job_id job_type status input_payload result error_message error_code error_stack retry_count
            max_retries retry_delay_ms next_retry_at progress_percent progress_message current_step total_steps
            created_at started_at completed_at cancelled_at updated_at timeout_at worker_id process_pid
            organisation_id restaurant_id created_by priority metadata",
        ),
        ("script_jobs_queue_status", "job_type status count avg_duration_seconds oldest_job newest_job"),
        (
            "script_jobs_failed_summary",
            "id job_id job_type error_message error_code retry_count max_retries created_at completed_at
            organisation_id",
        ),
        (
            "script_jobs_metrics",
            "job_type completed_count failed_count in_progress_count queued_count success_rate_percent
            avg_duration_seconds",
        ),
        (
            "print_jobs",
            "id printable_map_id state export_file_path export_started_at export_completed_at export_error
            export_retry_count printful_order_id order_started_at order_completed_at order_error order_retry_count
            order_phase needs_attention shipped_at delivered_at created_at updated_at",
        ),
        ("print_job_events", "id print_job_id from_state to_state metadata occurred_at"),
    ];

    #[tokio::test]
    async fn the_documented_relations_have_the_documented_columns() {
        let mut database = postgres_database().await;
        for owner in [organisation(), Owner::Operator] {
            furnish(&database.store, owner).await;
        }
        for (relation, columns) in DOCUMENTED {
            let found = rows(owner(&mut database), &format!("SELECT * FROM {relation}")).await;
            let names: Vec<_> = found[0].columns().iter().map(|column| column.name().to_owned()).collect();
            assert_eq!(names, columns.split_whitespace().collect::<Vec<_>>(), "{relation}");
        }
    }

    #[tokio::test]
    async fn the_documented_queries_are_answered() {
        let mut database = postgres_database().await;
        let ids = furnish(&database.store, organisation()).await;
        let sql = owner(&mut database);
        let export =
            "SELECT pj.id FROM print_jobs pj WHERE pj.state = 'pending_export' ORDER BY pj.created_at";
        let export: Vec<Uuid> = rows(sql, export).await.iter().map(|row| row.get("id")).collect();
        assert_eq!(export, [ids[5].0]);
        let state = "SELECT count(*) FROM print_jobs WHERE id = $1 AND state = 'pending_export'";
        assert_eq!(number(sql, state, &[ids[5].0]).await, 1);
        let metrics =
            &rows(sql, "SELECT *, success_rate_percent::float8 AS rate FROM script_jobs_metrics").await[0];
        let count = |column| metrics.get::<i64, _>(column);
        let counts = ["completed_count", "failed_count", "in_progress_count", "queued_count"].map(count);
        assert_eq!(counts, [1, 1, 1, 0]);
        assert!((metrics.get::<f64, _>("rate") - 50.0).abs() < f64::EPSILON);
        let status = rows(sql, "SELECT status, count FROM script_jobs_queue_status").await;
        let status: Vec<(String, i64)> = status.iter().map(|row| (row.get(0), row.get(1))).collect();
        let expected = [("cancelled", 1), ("completed", 1), ("failed", 1), ("in_progress", 1)];
        assert_eq!(status, expected.map(|(status, count)| (status.to_owned(), count)));
        let failed = &rows(sql, "SELECT * FROM script_jobs_failed_summary").await[0];
        assert_eq!(failed.get::<String, _>("job_id"), ids[2].reference());
        assert_eq!(failed.get::<String, _>("error_code"), "NOT_PDF");
        let cleanup = "SELECT count(*) FROM script_jobs WHERE created_at < now() - INTERVAL '30 days'
            AND status IN ('completed', 'failed', 'cancelled', 'timed_out')";
        assert_eq!(number(sql, cleanup, &[]).await, 0);
    }

    #[tokio::test]
    async fn a_script_shows_when_it_is_tried_again_and_who_runs_it() {
        let mut database = postgres_database().await;
        let store = database.store.clone();
        let id = store.enqueue(job(Pipeline::Script)).await.unwrap().id();
        let WorkerId(worker) = worker(&store).await;
        let claimed = claim_one(&store, Lane::Script, WorkerId(worker)).await;
        store.process(&claimed.lease, 4711).await.unwrap();
        let sql = owner(&mut database);
        let running = "SELECT count(*) FROM script_jobs WHERE id = $1 AND status = 'in_progress'
            AND worker_id = $2::text AND process_pid = 4711 AND timeout_at > started_at
            AND next_retry_at IS NULL";
        assert_eq!(number(sql, running, &[id.0, worker]).await, 1);
        finish(&store, claimed, Ended::Failed(Failure::from(ErrorCode::Unknown))).await;
        let waiting =
            "SELECT count(*) FROM script_jobs WHERE id = $1 AND status = 'pending' AND retry_count = 1
            AND next_retry_at > now() AND next_retry_at < now() + interval '6 seconds'";
        assert_eq!(number(sql, waiting, &[id.0]).await, 1);
    }

    #[tokio::test]
    async fn a_label_that_is_no_id_does_not_spoil_the_view() {
        let mut database = postgres_database().await;
        let restaurant = Uuid::new_v4();
        for label in [restaurant.to_string(), "the corner place".into(), "{}".into()] {
            let mut new = job(Pipeline::Script);
            new.metadata = serde_json::json!({ "restaurant_id": label });
            database.store.enqueue(new).await.unwrap();
        }
        let found = rows(owner(&mut database), "SELECT restaurant_id FROM script_jobs ORDER BY id").await;
        let found: Vec<Option<Uuid>> = found.iter().map(|row| row.get(0)).collect();
        assert_eq!(found, [Some(restaurant), None, None]);
    }

    #[tokio::test]
    async fn a_date_beyond_reason_does_not_spoil_a_list() {
        let mut database = postgres_database().await;
        enqueue(owner(&mut database), "'xml', 'plain', run_at => 'infinity'").await.unwrap();
        assert_eq!(database.store.look(&[]).await.unwrap().due_at, Some(Timestamp::MAX));
        let id = database.store.enqueue(job(Pipeline::Script)).await.unwrap().id();
        let strange = "UPDATE job_live SET created_at = 'infinity' WHERE id = $1";
        run(owner(&mut database), strange, &[id.0]).await.unwrap();
        assert_eq!(record(&database.store, id).await.created_at, Timestamp::MAX);
        let strange = "UPDATE job_live SET created_at = '4000-01-01 BC' WHERE id = $1";
        run(owner(&mut database), strange, &[id.0]).await.unwrap();
        let page =
            database.store.jobs(&ode_store::ListFilter { limit: 10, ..Default::default() }).await.unwrap();
        assert_eq!(page.jobs.len(), 2);
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
        let store = Store::open(ode_store::Config::new(url)).await.unwrap();
        store.migrate_up().await.unwrap();
        store.enqueue(job(Pipeline::Xml)).await.unwrap();
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
}
