//! A client of the html service: asks for conversions, waits for them and fetches their files.

use bytes::Bytes;
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::Duration;

/// What went wrong, for whoever called.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The service cannot be reached, or broke off.
    #[error("The service at {0} cannot be reached: {1}. Check --url, and that it runs.")]
    Unreached(String, String),
    /// It refused, and said why.
    #[error("{detail} ({code})")]
    Refused {
        code: String,
        /// What happened and what to do next.
        detail: String,
        /// The status of the answer.
        status: u16,
    },
    /// It answered something that is not understood.
    #[error("The service answered something that this version does not understand: {0}")]
    Strange(String),
    /// A file is not what its digest says.
    #[error("{0} did not arrive as it was stored: its digest differs. Fetch it again.")]
    Damaged(String),
}

/// The service at one address, under one key. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    key: String,
}

/// What is to be converted.
#[derive(Debug, Clone)]
pub enum Document {
    /// It lies where the service can fetch it.
    At(String),
    /// It is sent along.
    Content { name: String, bytes: Bytes },
}

/// How it is to be converted.
#[derive(Debug, Clone, Default)]
pub struct Order {
    /// The caller's own id for it.
    pub external_id: String,
    /// How, as JSON.
    pub config: Option<String>,
    /// Where the files are to appear as well.
    pub output: Option<String>,
    /// Higher goes first.
    pub priority: i32,
}

/// A job that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Submitted {
    pub job_id: String,
    pub status: String,
}

/// A job as far as a client looks at it. The rest is in `all`.
#[derive(Debug, Clone)]
pub struct Job {
    /// `pending`, `processing`, `completed` or `failed`.
    pub status: String,
    /// Everything the service says of it.
    pub all: Value,
}

impl Job {
    /// Whether nothing more will happen by itself.
    pub fn has_ended(&self) -> bool {
        self.status == "completed" || self.status == "failed"
    }
}

/// A file of a result.
#[derive(Debug, Clone, Deserialize)]
pub struct Asset {
    /// Its name, relative to the page.
    pub path: String,
    /// Its digest.
    pub content_hash: String,
    /// Where it is fetched.
    url: String,
}

/// How long one answer may take.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Jobs are looked at this often at first, then less and less.
const LOOK_FIRST: Duration = Duration::from_millis(100);
const LOOK_MAX: Duration = Duration::from_secs(2);

impl Client {
    /// The service at this address, such as `https://ode.example`.
    pub fn new(url: &str, key: &str) -> Result<Self, Error> {
        let base: Url = url
            .parse()
            .map_err(|_| Error::Strange(format!("{url} is not an address like https://ode.example")))?;
        let http = reqwest::Client::builder().timeout(TIMEOUT).build();
        let http = http.map_err(|error| Error::Unreached(url.to_owned(), error.to_string()))?;
        Ok(Client { http, base, key: key.to_owned() })
    }

    /// Asks for a conversion. The same request sent again is answered with the same job.
    pub async fn submit(&self, document: &Document, order: &Order) -> Result<Submitted, Error> {
        let request = self.request(Method::POST, "/v1/jobs")?;
        let request = match document {
            Document::At(address) => {
                let mut body = json!({
                    "external_id": order.external_id, "input_s3_path": address, "priority": order.priority,
                });
                if let Some(output) = &order.output {
                    body["output_s3_prefix"] = output.as_str().into();
                }
                if let Some(config) = &order.config {
                    let config: Value = serde_json::from_str(config)
                        .map_err(|error| Error::Strange(format!("--config: {error}")))?;
                    body["config"] = config;
                }
                request.header("content-type", "application/json").body(body.to_string())
            }
            Document::Content { name, bytes } => {
                let (kind, body) = form(name, bytes, order);
                request.header("content-type", kind).body(body)
            }
        };
        self.json(request).await
    }

    /// Asks for many conversions at once, each as the service takes them; answers what became of each.
    pub async fn submit_many(&self, jobs: &[Value]) -> Result<Value, Error> {
        let request =
            self.request(Method::POST, "/v1/jobs/batch")?.header("content-type", "application/json");
        self.json(request.body(json!({ "jobs": jobs }).to_string())).await
    }

    /// Whether any job is in this state.
    pub async fn has_any(&self, status: &str) -> Result<bool, Error> {
        let path = format!("/v1/jobs?limit=1&status={status}");
        let listed: Value = self.json(self.request(Method::GET, &path)?).await?;
        Ok(listed["jobs"].as_array().is_some_and(|jobs| !jobs.is_empty()))
    }

    pub async fn job(&self, id: &str) -> Result<Job, Error> {
        let all: Value = self.json(self.request(Method::GET, &format!("/v1/jobs/{id}"))?).await?;
        let status = all["status"].as_str().unwrap_or_default().to_owned();
        Ok(Job { status, all })
    }

    /// Waits until a job has ended, or that long.
    pub async fn wait(&self, id: &str, patience: Duration) -> Result<Job, Error> {
        let deadline = tokio::time::Instant::now() + patience;
        let mut pause = LOOK_FIRST;
        loop {
            let job = self.job(id).await?;
            if job.has_ended() || tokio::time::Instant::now() + pause > deadline {
                return Ok(job);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOK_MAX);
        }
    }

    /// The files of a job.
    pub async fn assets(&self, id: &str) -> Result<Vec<Asset>, Error> {
        #[derive(Deserialize)]
        struct Assets {
            assets: Vec<Asset>,
        }
        let listed: Assets = self.json(self.request(Method::GET, &format!("/v1/jobs/{id}/assets"))?).await?;
        Ok(listed.assets)
    }

    /// The content of a file, checked against its digest.
    pub async fn fetch(&self, asset: &Asset) -> Result<Bytes, Error> {
        // A link may lead to an origin of its own, to which the key is not sent.
        let url = self.base.join(&asset.url).map_err(|error| Error::Strange(error.to_string()))?;
        let content = self.bytes(self.http.get(url)).await?;
        let digest = ode_store::sha256_hex(&content);
        if digest == asset.content_hash { Ok(content) } else { Err(Error::Damaged(asset.path.clone())) }
    }

    /// All files of a job as one archive.
    pub async fn archive(&self, id: &str) -> Result<Bytes, Error> {
        self.bytes(self.request(Method::GET, &format!("/v1/jobs/{id}/download"))?).await
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, Error> {
        let url = self.base.join(path).map_err(|error| Error::Strange(error.to_string()))?;
        Ok(self.http.request(method, url).bearer_auth(&self.key))
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Response, Error> {
        let answer = request.send().await.map_err(|error| self.unreached(&error))?;
        if answer.status().is_success() { Ok(answer) } else { Err(refused(answer).await) }
    }

    async fn bytes(&self, request: RequestBuilder) -> Result<Bytes, Error> {
        self.answer(request).await?.bytes().await.map_err(|error| self.unreached(&error))
    }

    async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Error> {
        let body = self.bytes(request).await?;
        serde_json::from_slice(&body).map_err(|error| Error::Strange(error.to_string()))
    }

    fn unreached(&self, error: &reqwest::Error) -> Error {
        let mut cause: &dyn std::error::Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        Error::Unreached(self.base.to_string(), cause.to_string())
    }
}

async fn refused(answer: Response) -> Error {
    let status = answer.status();
    let said: Value =
        answer.bytes().await.ok().and_then(|body| serde_json::from_slice(&body).ok()).unwrap_or_default();
    let text = |name: &str| said[name].as_str().map(str::to_owned);
    match (text("code"), text("detail")) {
        (Some(code), Some(detail)) => Error::Refused { code, detail, status: status.as_u16() },
        _ => Error::Strange(status_line(status)),
    }
}

fn status_line(status: StatusCode) -> String {
    format!("status {status} without a reason. Is this the address of ODE?")
}

/// A document and what is asked of it as a form: its content type and its body.
fn form(name: &str, content: &[u8], order: &Order) -> (String, Vec<u8>) {
    // Random, so that it is in no document.
    let boundary = format!("ode-{}", uuid::Uuid::new_v4().simple());
    let mut body = Vec::with_capacity(content.len() + 1024);
    let mut field = |name: &str, value: &str| {
        let part =
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    };
    field("external_id", &order.external_id);
    field("priority", &order.priority.to_string());
    if let Some(config) = &order.config {
        field("config", config);
    }
    if let Some(output) = &order.output {
        field("output_s3_prefix", output);
    }
    let name: String = name.chars().filter(|c| !c.is_control() && *c != '"').collect();
    let head =
        format!("--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n");
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(content);
    body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}
