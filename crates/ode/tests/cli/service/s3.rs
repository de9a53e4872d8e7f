//! Everything on S3: storage, documents and results, on a real S3-compatible server.

use super::{key, pdf, request};
use crate::harness::Ode;
use crate::serve::Serving;
use crate::web::client::Client;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Buckets of their own: for documents, for results and for what is ours.
fn buckets() -> Option<(String, [String; 3], PathBuf)> {
    let (Ok(url), Ok(root)) = (std::env::var("ODE_TEST_S3_URL"), std::env::var("ODE_TEST_S3_ROOT")) else {
        eprintln!("skipped: no S3 server. `tests/run` starts one");
        return None;
    };
    let id = Uuid::new_v4().simple();
    let names = ["in", "out", "own"].map(|name| format!("{name}-{id}"));
    names.iter().for_each(|name| std::fs::create_dir(Path::new(&root).join(name)).unwrap());
    Some((url, names, root.into()))
}

#[test]
fn documents_and_results_on_s3() {
    let Some((url, [inputs, outputs, own], root)) = buckets() else { return };
    let ode = Ode::sqlite();
    let mut command =
        ode.command(["serve", "--listen", "127.0.0.1:0", "--gateway", "off", "--s3-endpoint", &url]);
    for (option, bucket) in [("--input-root", &inputs), ("--output-root", &outputs), ("--storage", &own)] {
        command.arg(option).arg(format!("s3://{bucket}"));
    }
    for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"] {
        command.env(name, std::env::var(name).unwrap());
    }
    let serving = Serving::start(&mut command);
    let client = Client::program(&serving, &key(&ode, "acme"));
    std::fs::write(root.join(&inputs).join("doc.pdf"), pdf("RE-4711")).unwrap();
    let mut asked = request("one", &format!("s3://{inputs}/doc.pdf"));
    asked["output_s3_prefix"] = json!(format!("s3://{outputs}/results/one"));
    let id = client.submitted(&asked);
    let job = client.ended(&id);
    assert_eq!(job["status"], "completed", "{job}");
    let folder = root.join(&outputs).join("results/one");
    assert!(std::fs::read_to_string(folder.join("index.html")).unwrap().contains("RE-4711"));
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["job_id"], json!(id));
    // An upload goes to our own bucket, in a form.
    let answer = client.submit_file(&pdf("RE-4712"), &[("external_id", "two")]);
    let second = answer.json()["job_id"].as_str().unwrap().to_owned();
    assert_eq!(client.ended(&second)["status"], "completed");
    let page = Client::stranger(&serving).get(client.job(&second)["links"]["view"].as_str().unwrap());
    assert!(page.body.contains("RE-4712"), "{page:?}");
    for id in [&id, &second] {
        assert_eq!(client.send("DELETE", &format!("/v1/jobs/{id}"), "", b"").code(), 204);
    }
    assert!(!folder.join("manifest.json").exists() && !folder.join("index.html").exists());
    // What is not there, and a bucket that is not open.
    let missing = client.ended(&client.submitted(&request("three", &format!("s3://{inputs}/none.pdf"))));
    assert_eq!(missing["error"]["code"], "NOT_FOUND", "{missing}");
    client.submit(&request("four", &format!("s3://{own}/doc.pdf"))).assert_problem(403, "FORBIDDEN");
}
