//! Signatures by which a receiver knows that a message is ours, and new.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The signature of a message: over its id, the second it is sent in, and its body.
pub fn sign(secret: &[u8], id: &str, seconds: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key of any length will do");
    mac.update(format!("{id}.{seconds}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// A secret as receivers write it down.
pub fn secret_text(secret: &[u8]) -> String {
    format!("whsec_{}", STANDARD.encode(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

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
