//! How SQLite goes about the statements that read scripts by their ids: never by reading all jobs there are.

use crate::harness::config;
use ode_script::sql::BY_ID_STATEMENTS;
use ode_store::sql::params;
use ode_store::trial::sqlite;
use uuid::Uuid;

#[tokio::test]
async fn what_is_asked_about_few_scripts_is_not_looked_for_among_all_jobs() {
    let store = sqlite(config).await;
    let (id, ten) = (Uuid::now_v7(), 10_i64);
    let params = [params![id].to_vec(), params!["key", id, ten].to_vec()];
    for (sql, params) in BY_ID_STATEMENTS.into_iter().zip(params) {
        let explain: &'static str = format!("EXPLAIN QUERY PLAN {sql}").leak();
        let rows = store.sql().read(explain, &params).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.text("detail").unwrap()).collect();
        let reads_all = |line: &&String| line.contains("SCAN job_live") || line.contains("SCAN job_past");
        assert_eq!(plan.iter().find(reads_all), None, "{sql}\n{}", plan.join("\n"));
    }
}
