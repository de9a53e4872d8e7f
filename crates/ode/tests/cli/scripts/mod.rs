//! Scripts over HTTP, as other systems meet them: the real binary on both databases, with scripts of the test's own.

mod asking;
mod canary;
mod running;

use crate::harness::Ode;
use crate::serve::{Answer, Serving};
use crate::service::key;
use crate::web::client::{Client, until};
use serde_json::{Value, json};

/// Says hello with its payload on stdout, as a careless script would, and does what its payload tells it to.
const RUN: &str = r#"
payload=$(cat)
echo "I was given $payload"
echo "and on stderr $payload" >&2
say() { printf '%s\n' "$1" >&3; }
say '{"t":"hello","protocol":1,"kit":"test","script":"greet@1"}'
say '{"t":"step","id":"login","state":"started"}'
case "$payload" in
*'"checkpoints":{"greeted"'*) say '{"t":"step","id":"login","state":"skipped"}' ;;
*) say '{"t":"step","id":"login","state":"done"}'; say '{"t":"checkpoint","key":"greeted","data":{"n":1}}' ;;
esac
say '{"t":"progress","percent":50,"message":"half way"}'
case "$payload" in
*'"how":"wait"'*) exec sleep 60 ;;
*'"how":"refuse"'*)
    printf 'not a picture' > "$ODE_ARTIFACTS/failure.png"
    printf 'half of it' > "$ODE_ARTIFACTS/draft.csv"
    say '{"t":"artifact","name":"draft.csv","path":"draft.csv"}'
    say '{"t":"step","id":"greet","state":"started"}'
    say '{"t":"artifact","name":"failure.png","kind":"screenshot","path":"failure.png"}'
    say '{"t":"result","success":false,"message":"The password was refused","error":{"code":"login_rejected","stack":"run.sh: line 7"}}'
    exit 0 ;;
*'"how":"part"'*)
    say '{"t":"result","success":true,"partial":true,"message":"Greeted 1 of 2","data":{"greeted":1}}'
    exit 0 ;;
esac
say '{"t":"result","success":true,"message":"Greeted","data":{"greeted":1,"apiKey":"made-4711-key"}}'
"#;

const MANIFEST: &str = r#"
type = "greet"
title = "Say hello"
version = 1
command = ["sh", "run.sh"]
timeout_s = 20
payload = "payload.json"
result = "result.json"
concurrency_key = "{restaurantName}"
[[steps]]
id = "login"
title = "Sign in"
[[steps]]
id = "greet"
title = "Greet"
"#;

/// An installation with scripts, and a program with a key.
pub(super) struct Site {
    pub(super) serving: Serving,
    pub(super) client: Client,
}

impl Site {
    /// Everything in one process.
    pub(super) fn start(ode: &Ode) -> Self {
        Site::with(ode, &["serve", "--listen", "127.0.0.1:0", "--gateway", "off"])
    }

    /// The web side alone: nothing runs.
    pub(super) fn web(ode: &Ode) -> Self {
        ode.ok(["seal", "rotate"]);
        Site::with(ode, &["web", "--listen", "127.0.0.1:0"])
    }

    fn with(ode: &Ode, args: &[&str]) -> Self {
        let folder = ode.path("scripts/greet");
        std::fs::create_dir_all(&folder).unwrap();
        let payload = json!({
            "type": "object",
            "properties": {
                "email": { "type": "string", "x-ode-secret": true },
                "password": { "type": "string", "minLength": 8, "x-ode-secret": true },
                "restaurantName": { "type": "string" },
                "how": { "enum": ["well", "wait", "refuse", "part"] },
            },
            "required": ["email", "password"],
            "additionalProperties": false,
        });
        let result = json!({
            "type": "object",
            "properties": { "greeted": { "type": "integer" }, "apiKey": { "type": "string", "x-ode-secret": true } },
        });
        let files = [
            ("script.toml", MANIFEST.to_owned()),
            ("run.sh", RUN.to_owned()),
            ("payload.json", payload.to_string()),
            ("result.json", result.to_string()),
        ];
        for (name, text) in files {
            std::fs::write(folder.join(name), text).unwrap();
        }
        let mut command = ode.command(args);
        command.arg("--scripts").arg(ode.path("scripts"));
        let serving = Serving::start(&mut command);
        let client = Client::program(&serving, &key(ode, "acme"));
        Site { serving, client }
    }
}

/// What is sent to the script of the tests.
pub(super) fn input(how: &str) -> Value {
    json!({ "email": "owner@corner.example", "password": "SecurePass123!", "how": how })
}

impl Client {
    pub(super) fn post_json(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, "application/json", body.to_string().as_bytes())
    }

    pub(super) fn ask_script(&self, body: &Value) -> Answer {
        self.post_json("/v1/scripts/greet", body)
    }

    /// Asks for a script; answers the job's id.
    #[track_caller]
    pub(super) fn asked_script(&self, body: &Value) -> String {
        let answer = self.ask_script(body);
        assert_eq!(answer.code(), 202, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub(super) fn script(&self, id: &str) -> Value {
        let answer = self.get(&format!("/v1/scripts/jobs/{id}"));
        assert_eq!(answer.code(), 200, "{answer:?}");
        answer.json()
    }

    /// Waits until it stands like that; answers the job.
    #[track_caller]
    pub(super) fn script_is(&self, id: &str, status: &str) -> Value {
        let mut job = Value::Null;
        until(&format!("the script is {status}"), || {
            job = self.script(id);
            job["status"] == status
        });
        job
    }
}
