//! The client against gateways that do everything a gateway should not.

use super::*;
use ode_job::FailureKind;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

const XML: &str =
    "<?xml version=\"1.0\"?>\n<invoice><total currency=\"EUR\">1.00</total><empty/></invoice>\n";

/// A gateway that takes one connection and does this with it; the address, and what the behaviour hands out.
fn gateway<T: Send + 'static>(
    behave: impl FnOnce(&mut TcpStream) -> T + Send + 'static,
) -> (String, mpsc::Receiver<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let outcome = behave(&mut stream);
        // Nobody may be interested.
        let _ = tell.send(outcome);
    });
    (address, told)
}

/// Reads a request to its end.
fn hear(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    let mut room = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if body.len() >= length.parse().unwrap() {
                return text;
            }
        }
        let count = stream.read(&mut room).unwrap();
        assert_ne!(count, 0, "the request ends early: {text}");
        request.extend_from_slice(&room[..count]);
    }
}

/// Hears a request, says this, and hangs up.
fn says(answer: impl Into<Vec<u8>>) -> impl FnOnce(&mut TcpStream) + Send + 'static {
    let answer = answer.into();
    move |stream| {
        hear(stream);
        // The other side may hang up first.
        let _ = stream.write_all(&answer);
    }
}

/// Stays until the other side hangs up.
fn wait(stream: &mut TcpStream) {
    let _ = stream.read(&mut [0; 16]);
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
}

fn with_xml(body: &str) -> String {
    answer("200 OK", "content-type: application/xml\r\n", body)
}

fn with_problem(status: &str, code: &str, detail: &str) -> String {
    let body = format!("{{\"code\":\"{code}\",\"detail\":\"{detail}\",\"status\":1,\"more\":[]}}");
    answer(status, "content-type: application/problem+json\r\n", &body)
}

/// Long enough for a busy machine.
const PLENTY: Duration = Duration::from_secs(30);
/// What a gateway that takes too long is given.
const LITTLE: Duration = Duration::from_millis(150);

fn process(address: &str, total: Duration) -> Result<Vec<u8>, Failure> {
    let limits = ClientLimits { total, connect: PLENTY, answer_bytes: 100_000, ..ClientLimits::default() };
    let client = GatewayClient::new(address, limits).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let call = runtime.block_on(client.process(Bytes::from_static(b"%PDF-"), "auto", Some(Output::Ubl)));
    call.outcome.map(|processed| processed.xml)
}

#[track_caller]
fn check(
    total: Duration,
    behave: impl FnOnce(&mut TcpStream) + Send + 'static,
    code: ErrorCode,
    kind: FailureKind,
) -> Failure {
    let (address, _told) = gateway(behave);
    let failure = process(&address, total).unwrap_err();
    assert_eq!((failure.code, failure.kind), (code, kind), "{failure:?}");
    assert!(failure.detail.is_some(), "{failure:?}");
    failure
}

const PASSES: FailureKind = FailureKind::Retryable { after: None };

#[test]
fn xml_is_handed_on_as_it_is() {
    for types in ["application/xml", "text/xml; charset=utf-8", "Application/XML"] {
        let headers = format!("content-type: {types}\r\n");
        let (address, _told) = gateway(says(answer("200 OK", &headers, XML)));
        assert_eq!(process(&address, PLENTY).unwrap(), XML.as_bytes());
    }
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/xml\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{XML}\r\n0\r\n\r\n",
        XML.len()
    );
    let (address, _told) = gateway(says(chunked));
    assert_eq!(process(&address, PLENTY).unwrap(), XML.as_bytes());
}

#[test]
fn the_form_holds_what_was_given_and_nothing_else() {
    let (address, told) = gateway(|stream| {
        let request = hear(stream);
        stream.write_all(with_xml(XML).as_bytes()).unwrap();
        request
    });
    process(&format!("{address}/behind/"), PLENTY).unwrap();
    let request = told.recv().unwrap();
    assert!(request.starts_with("POST /behind/process HTTP/1.1\r\n"), "{request}");
    let boundary = request.split("boundary=").nth(1).unwrap().lines().next().unwrap();
    let body = request.split_once("\r\n\r\n").unwrap().1.replace(boundary, "B");
    let disposition = "Content-Disposition: form-data; name=";
    let expected = format!(
        "--B\r\n{disposition}\"mapping\"\r\n\r\nauto\r\n--B\r\n{disposition}\"output\"\r\n\r\nubl\r\n\
         --B\r\n{disposition}\"file\"; filename=\"document.pdf\"\r\nContent-Type: application/pdf\r\n\r\n\
         %PDF-\r\n--B--\r\n"
    );
    assert_eq!(body, expected);
}

#[test]
fn who_takes_too_long_is_left_and_asked_again_later() {
    let silent = |stream: &mut TcpStream| {
        hear(stream);
        wait(stream);
    };
    check(LITTLE, silent, ErrorCode::GwTimeout, PASSES);
    let only_a_head = |stream: &mut TcpStream| {
        hear(stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/xml\r\ncontent-length: 9\r\n\r\n")
            .unwrap();
        wait(stream);
    };
    check(LITTLE, only_a_head, ErrorCode::GwTimeout, PASSES);
    let half_a_head = |stream: &mut TcpStream| {
        hear(stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-ty").unwrap();
        wait(stream);
    };
    check(LITTLE, half_a_head, ErrorCode::GwTimeout, PASSES);
    // The limit is on the whole, so that a byte now and then does not help.
    let trickle = |stream: &mut TcpStream| {
        hear(stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/xml\r\ncontent-length: 90000\r\n\r\n")
            .unwrap();
        while stream.write_all(b"<").is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    check(LITTLE, trickle, ErrorCode::GwTimeout, PASSES);
}

#[test]
fn a_broken_connection_is_tried_again() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let failure = process(&format!("http://{nobody}"), PLENTY).unwrap_err();
    assert_eq!((failure.code, failure.kind), (ErrorCode::Gw5xx, PASSES), "{failure:?}");

    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/xml\r\n";
    let cases = [
        String::new(),
        "HTTP/1.1 200 OK\r\ncontent-ty".to_owned(),
        format!("{head}content-length: 5000\r\n\r\n{XML}"),
        format!("{head}transfer-encoding: chunked\r\n\r\n5\r\n<invo"),
        format!("{head}transfer-encoding: chunked\r\n\r\nnonsense\r\n"),
        "SSH-2.0-OpenSSH_9.2\r\n".to_owned(),
        "HTTP/1.1 2000 Very OK\r\n\r\n".to_owned(),
    ];
    for case in cases {
        check(PLENTY, says(case), ErrorCode::Gw5xx, PASSES);
    }
    // Hung up on before it was heard, which resets the connection.
    check(PLENTY, |stream| drop(stream.read(&mut [0; 1])), ErrorCode::Gw5xx, PASSES);
}

#[test]
fn an_answer_without_end_is_not_read_to_its_end() {
    let declared = "HTTP/1.1 200 OK\r\ncontent-type: application/xml\r\ncontent-length: 1000000000\r\n\r\n<";
    let failure = check(PLENTY, says(declared), ErrorCode::Gw5xx, PASSES);
    assert!(failure.detail.unwrap().contains("longer than 100000 bytes"));
    let endless = |stream: &mut TcpStream| {
        hear(stream);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/xml\r\n\r\n").unwrap();
        while stream.write_all(&[b' '; 4096]).is_ok() {}
    };
    let failure = check(PLENTY, endless, ErrorCode::Gw5xx, PASSES);
    assert!(failure.detail.unwrap().contains("longer than 100000 bytes"));
}

#[test]
fn nobody_is_followed_elsewhere() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let headers = format!("location: http://{}/process\r\n", elsewhere.local_addr().unwrap());
        check(PLENTY, says(answer(status, &headers, "")), ErrorCode::Gw5xx, PASSES);
    }
    assert_eq!(elsewhere.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn what_is_not_xml_is_no_answer() {
    for types in ["text/html", "application/json", "application/xmlish", ""] {
        let headers = format!("content-type: {types}\r\n");
        check(PLENTY, says(answer("200 OK", &headers, XML)), ErrorCode::Gw5xx, PASSES);
    }
    check(PLENTY, says(answer("200 OK", "", XML)), ErrorCode::Gw5xx, PASSES);
    check(PLENTY, says(answer("204 No Content", "", "")), ErrorCode::Gw5xx, PASSES);
    let deep = "<a>".repeat(10_000) + &"</a>".repeat(10_000);
    for body in [
        "",
        "  ",
        "not at all",
        "{\"ok\": true}",
        "<html><br></html>",
        "<invoice><total>1.00</total>",
        "<a/><b/>",
        "<a/>more",
        "<!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]><a>&b;</a>",
        &deep,
    ] {
        let failure = check(PLENTY, says(with_xml(body)), ErrorCode::Gw5xx, PASSES);
        assert!(failure.detail.unwrap().starts_with("The gateway's XML "), "{body}");
    }
    // Packed, which nobody asked for, and in another alphabet than it says.
    for bytes in [b"\x1f\x8b\x08\x00".as_slice(), b"<a>\xe4</a>", b"\xff\xfe<\0a\0/\0>\0"] {
        let mut answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/xml\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n",
            bytes.len()
        )
        .into_bytes();
        answer.extend_from_slice(bytes);
        check(PLENTY, says(answer), ErrorCode::Gw5xx, PASSES);
    }
}

#[test]
fn a_status_decides_whether_to_try_again() {
    let rejected = ["400 Bad Request", "415 Unsupported Media Type", "422 Unprocessable Content"];
    for status in rejected {
        check(PLENTY, says(answer(status, "", "no")), ErrorCode::Gw4xx, FailureKind::Rejected);
    }
    let passing = [
        // A wrong address, or a proxy in between: nothing that the document could help.
        "401 Unauthorized",
        "403 Forbidden",
        "404 Not Found",
        "405 Method Not Allowed",
        "413 Content Too Large",
        "408 Request Timeout",
        "425 Too Early",
        "429 Too Many Requests",
        "500 Internal Server Error",
        "502 Bad Gateway",
        "503 Service Unavailable",
        "504 Gateway Timeout",
    ];
    for status in passing {
        check(PLENTY, says(answer(status, "", "no")), ErrorCode::Gw5xx, PASSES);
    }
}

#[test]
fn a_gateway_that_wants_to_be_left_alone_is() {
    let check = |after: &str, seconds: Option<u64>| {
        for status in ["503 Service Unavailable", "429 Too Many Requests"] {
            let headers = format!("retry-after: {after}\r\n");
            let kind = FailureKind::Retryable { after: seconds.map(Duration::from_secs) };
            let failure = check(PLENTY, says(answer(status, &headers, "")), ErrorCode::Gw5xx, kind);
            let told = seconds.map(|seconds| format!("Retry-After {seconds} s")).unwrap_or_default();
            assert!(failure.detail.unwrap().contains(&told));
        }
    };
    check("7", Some(7));
    check("0", Some(0));
    // Not for ever, and not in words.
    check("999999999", Some(3600));
    check("-1", None);
    check("Fri, 31 Dec 2027 23:59:59 GMT", None);
}

#[test]
fn what_an_ode_gateway_says_about_the_document_is_carried_on() {
    let check = |status: &str, code: &str, expected: ErrorCode, kind: FailureKind| {
        let answer = with_problem(status, code, "Page 7 is torn.");
        let failure = check(PLENTY, says(answer), expected, kind);
        assert!(failure.detail.unwrap().contains("Page 7 is torn."));
        failure.message
    };
    for (status, code, expected) in [
        ("415 Unsupported Media Type", "NOT_PDF", ErrorCode::NotPdf),
        ("413 Content Too Large", "TOO_LARGE", ErrorCode::TooLarge),
        ("422 Unprocessable Content", "UNREADABLE", ErrorCode::Unreadable),
        ("422 Unprocessable Content", "UNKNOWN_MAPPING", ErrorCode::UnknownMapping),
        ("422 Unprocessable Content", "NO_MAPPING", ErrorCode::NoMapping),
        ("422 Unprocessable Content", "NO_TEXT", ErrorCode::NoText),
    ] {
        assert_eq!(check(status, code, expected, FailureKind::Rejected), "Page 7 is torn.");
    }
    check("503 Service Unavailable", "BUSY", ErrorCode::Busy, PASSES);
    // A code that is not about the document, or does not fit the status, is not believed.
    check("400 Bad Request", "INVALID", ErrorCode::Gw4xx, FailureKind::Rejected);
    check("403 Forbidden", "DISK_FULL", ErrorCode::Gw4xx, FailureKind::Rejected);
    check("404 Not Found", "NO_SUCH_CODE", ErrorCode::Gw4xx, FailureKind::Rejected);
    check("500 Internal Server Error", "NOT_PDF", ErrorCode::Gw5xx, PASSES);
    check("500 Internal Server Error", "UNKNOWN", ErrorCode::Gw5xx, PASSES);
}

#[test]
fn a_problem_document_that_is_none_leaves_the_status_standing() {
    for body in ["", "no", "[]", "{\"code\": 7}", &"x".repeat(200_000)] {
        let answer = answer("422 Unprocessable Content", "content-type: application/problem+json\r\n", body);
        check(PLENTY, says(answer), ErrorCode::Gw4xx, FailureKind::Rejected);
    }
}

#[test]
fn an_address_that_cannot_be_called_is_refused() {
    for address in
        ["", "127.0.0.1:8000", "ftp://a", "file:///etc/passwd", "http://", "http://a/?b=c", "data:,a"]
    {
        let refused = GatewayClient::new(address, ClientLimits::default()).unwrap_err();
        assert_eq!(refused, GatewayAddressError::Unusable, "{address}");
    }
    assert!(GatewayClient::new("https://gateway.example/ode", ClientLimits::default()).is_ok());
}

#[test]
fn a_gateways_word_on_mapping_and_pages_is_read_and_bounded() {
    let headers = |mapping: &str| {
        format!("content-type: application/xml\r\node-mapping: {mapping}\r\node-pages: 7\r\n")
    };
    let call = |mapping: &str| {
        let (address, _told) = gateway(says(answer("200 OK", &headers(mapping), XML)));
        let client = GatewayClient::new(&address, ClientLimits::default()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(client.process(Bytes::from_static(b"%PDF-"), "auto", None))
    };
    let told = call("a_v1");
    assert_eq!(told.status, Some(200));
    let processed = told.outcome.unwrap();
    assert_eq!((processed.mapping.as_deref(), processed.pages), (Some("a_v1"), Some(7)));
    assert_eq!(call(&"a".repeat(300)).outcome.unwrap().mapping, None);
}

#[test]
fn the_address_is_shown_without_a_password() {
    let client =
        GatewayClient::new("http://me:secret@127.0.0.1:8000/behind/", ClientLimits::default()).unwrap();
    assert_eq!(client.address(), "http://127.0.0.1:8000/behind");
}
