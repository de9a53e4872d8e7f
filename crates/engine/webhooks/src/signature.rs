//! Signatures by which a receiver knows that a message is ours, and new.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use uuid::Uuid;

/// What the names of messages begin with.
const MESSAGE: &str = "msg_";

/// The signature of a message: over its id, the second it is sent in, and its body.
pub fn sign(secret: &[u8], id: &str, seconds: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key of any length will do");
    mac.update(format!("{id}.{seconds}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// A message as receivers know it, by the header `webhook-id`.
pub fn message_name(id: Uuid) -> String {
    format!("{MESSAGE}{}", id.simple())
}

/// The id of a message, by its name or written as an id.
pub fn message_id(text: &str) -> Result<Uuid, uuid::Error> {
    text.strip_prefix(MESSAGE).unwrap_or(text).parse()
}

/// A secret as receivers write it down.
pub fn secret_text(secret: &[u8]) -> String {
    format!("whsec_{}", STANDARD.encode(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_known_by_its_name_and_by_its_id() {
        let id = Uuid::from_u128(0x0198_c0de_7a31_7c52_9d2e_5b1f_4d0a_9e77);
        assert_eq!(message_name(id), "msg_0198c0de7a317c529d2e5b1f4d0a9e77");
        for text in [message_name(id), id.to_string()] {
            assert_eq!(message_id(&text), Ok(id), "{text}");
        }
        assert!(message_id("msg_1").is_err());
    }

    #[test]
    fn a_signature_is_what_another_program_computes() {
        let made = std::process::Command::new("python3")
            .args([
                "-c",
                "import hmac,hashlib,base64;print(base64.b64encode(hmac.new(b'0123456789abcdef',\
                 b'msg_1.1614265330.{}',hashlib.sha256).digest()).decode())",
            ])
            .output()
            .unwrap();
        let expected = format!("v1,{}", String::from_utf8(made.stdout).unwrap().trim());
        assert_eq!(sign(b"0123456789abcdef", "msg_1", 1_614_265_330, "{}"), expected);
        assert_eq!(secret_text(b"0123456789abcdef"), "whsec_MDEyMzQ1Njc4OWFiY2RlZg==");
    }
}
