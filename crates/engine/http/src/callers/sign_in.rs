//! Signing in: a browser that showed an API key once speaks for the key's owner, until the cookie is too old, or the key
//! is revoked. The cookie names the key and holds nothing of its secret.

use crate::callers::session::Signer;
use jiff::{SignedDuration, Timestamp};

/// After this the key is to be shown again: a working day.
const LASTS: SignedDuration = SignedDuration::from_hours(12);
const PURPOSE: &str = "sign-in";

/// A browser that showed a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    key_id: String,
    at: Timestamp,
}

impl SignIn {
    pub fn new(key_id: &str, now: Timestamp) -> Self {
        SignIn { key_id: key_id.to_owned(), at: now }
    }

    /// What a cookie says, if we made it and it is not too old.
    pub fn read(cookie: &str, signer: &Signer, now: Timestamp) -> Option<Self> {
        let (text, signature) = cookie.rsplit_once('.')?;
        let (at, key_id) = text.split_once('.')?;
        if !signer.is_signed(PURPOSE, text, signature) {
            return None;
        }
        let at = Timestamp::from_second(at.parse().ok()?).ok()?;
        (now.duration_since(at) < LASTS).then(|| SignIn { key_id: key_id.to_owned(), at })
    }

    /// The value of its cookie.
    pub fn cookie(&self, signer: &Signer) -> String {
        let text = format!("{}.{}", self.at.as_second(), self.key_id);
        let signature = signer.sign(PURPOSE, &text);
        format!("{text}.{signature}")
    }

    /// The key that was shown.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// How long a browser should keep the cookie.
    pub fn max_age_seconds() -> i64 {
        LASTS.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_signed_in_is_known_for_a_day_and_nobody_else_is() {
        let signer = Signer::new(vec![7; 32]);
        let now: Timestamp = "2026-11-15T09:30:00Z".parse().unwrap();
        let sign_in = SignIn::new("0123456789ab", now);
        let cookie = sign_in.cookie(&signer);
        assert_eq!(SignIn::read(&cookie, &signer, now), Some(sign_in));
        assert_eq!(SignIn::read(&cookie, &signer, now + LASTS), None, "it is over");
        assert_eq!(SignIn::read(&cookie, &Signer::new(vec![8; 32]), now), None);
        for wrong in ["", "..", &cookie[1..], &cookie.replace("89ab", "89ac")] {
            assert_eq!(SignIn::read(wrong, &signer, now), None, "{wrong}");
        }
    }
}
