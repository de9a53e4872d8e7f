//! The html service over HTTP, as other systems meet it: the real binary on both databases.

mod conversions;
mod crashes;
mod examples;
mod redis;
mod requests;
mod s3;
mod webhooks;

use crate::convert::invoice;
use crate::harness::Ode;
use crate::serve::{Answer, Serving};
use crate::web::client::{Client, form, until};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Everything in one process, with a place for documents and one for results, and a program with a key.
pub(super) struct Site {
    pub(super) serving: Serving,
    pub(super) client: Client,
    input: std::path::PathBuf,
    pub(super) output: std::path::PathBuf,
}

impl Site {
    pub(super) fn start(ode: &Ode) -> Self {
        Site::start_with(ode, &[])
    }

    pub(super) fn start_with(ode: &Ode, more: &[&str]) -> Self {
        let (input, output) = (ode.path("inbox"), ode.path("outbox"));
        std::fs::create_dir_all(&input).unwrap();
        std::fs::create_dir_all(&output).unwrap();
        let mut command = ode.command(["serve", "--listen", "127.0.0.1:0", "--gateway", "off"]);
        command.arg("--input-root").arg(&input).arg("--output-root").arg(&output).args(more);
        let serving = Serving::start(&mut command);
        let client = Client::program(&serving, &key(ode, "acme"));
        Site { serving, client, input, output }
    }

    /// Puts a document where documents are fetched from; answers its address.
    pub(super) fn put(&self, name: &str, content: &[u8]) -> String {
        std::fs::write(self.input.join(name), content).unwrap();
        format!("file://{}/{name}", self.input.display())
    }

    pub(super) fn prefix(&self, name: &str) -> String {
        format!("file://{}/{name}", self.output.display())
    }
}

/// A key of an organisation.
pub(crate) fn key(ode: &Ode, organisation: &str) -> String {
    ode.json(["keys", "create", "--organisation", organisation])["key"].as_str().unwrap().to_owned()
}

impl Client {
    pub(super) fn submit(&self, request: &Value) -> Answer {
        self.send("POST", "/v1/jobs", "application/json", request.to_string().as_bytes())
    }

    /// Asks for a conversion; answers the job's id.
    #[track_caller]
    pub(super) fn submitted(&self, request: &Value) -> String {
        let answer = self.submit(request);
        assert_eq!(answer.code(), 202, "{answer:?}");
        answer.json()["job_id"].as_str().unwrap().to_owned()
    }

    pub(super) fn submit_file(&self, content: &[u8], fields: &[(&str, &str)]) -> Answer {
        self.send("POST", "/v1/jobs", crate::web::client::FORM, &form(&[("a.pdf", content)], fields))
    }

    pub(super) fn job(&self, id: &str) -> Value {
        let answer = self.get(&format!("/v1/jobs/{id}"));
        assert_eq!(answer.code(), 200, "{answer:?}");
        answer.json()
    }

    /// Waits until it has ended; answers the job.
    #[track_caller]
    pub(super) fn ended(&self, id: &str) -> Value {
        let mut job = Value::Null;
        until("the job ends", || {
            job = self.job(id);
            job["status"] == "completed" || job["status"] == "failed"
        });
        job
    }
}

/// A request for a document at this address.
pub(super) fn request(external_id: &str, address: &str) -> Value {
    json!({ "external_id": external_id, "input_s3_path": address })
}

/// The digest of a file, as it is told.
pub(super) fn sha256(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}

/// A document of one page with this number on it.
pub(super) fn pdf(number: &str) -> Vec<u8> {
    invoice(number)
}
