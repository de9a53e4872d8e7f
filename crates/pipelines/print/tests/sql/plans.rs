//! How SQLite goes about the statements that read orders by their ids: never by reading all jobs there are.

use crate::harness::config;
use ode_print::sql::{BY_ID_STATEMENTS, NEWEST_STATEMENTS};
use ode_store::sql::{Param, params};
use ode_store::trial;
use serde_json::json;
use uuid::Uuid;

#[tokio::test]
async fn what_is_asked_about_few_orders_is_not_looked_for_among_all_jobs() {
    let store = trial::sqlite(config).await;
    let (id, ten) = (Uuid::now_v7(), 10_i64);
    let [one, of_jobs] = BY_ID_STATEMENTS;
    let by_id = [(one, params![id].to_vec()), (of_jobs, vec![Param::rows([json!({ "key": id })])])];
    let newest = NEWEST_STATEMENTS.map(|sql| (sql, params![ten].to_vec()));
    for (sql, params) in by_id.into_iter().chain(newest) {
        let explain: &'static str = format!("EXPLAIN QUERY PLAN {sql}").leak();
        let rows = store.sql().read(explain, &params).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.text("detail").unwrap()).collect();
        let reads_all = |line: &&String| line.contains("SCAN job_live") || line.contains("SCAN job_past");
        assert_eq!(plan.iter().find(reads_all), None, "{sql}\n{}", plan.join("\n"));
    }
}
