//! The cookie by which a browser is known again: a random token that we signed.
//!
//! Nothing about sessions is stored. The owner of a session's jobs is an id that is derived from the token and does
//! not lead back to it; that we made the token, and when, shows in its signature. A value that somebody else chose is
//! no session.

use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// A session that was not used for so long is over. Longer than any file of theirs is kept.
const IDLE: SignedDuration = SignedDuration::from_hours(60 * 24);
/// A cookie older than this is replaced by a newer one for the same session.
const RENEW_AFTER: SignedDuration = SignedDuration::from_hours(24);

/// The secret under which this installation signs.
#[derive(Clone)]
pub struct Signer(Vec<u8>);

impl Signer {
    pub fn new(secret: Vec<u8>) -> Self {
        Signer(secret)
    }

    /// The signature of a text that is only good for `purpose`.
    pub fn sign(&self, purpose: &str, text: &str) -> String {
        hex::encode(self.mac(purpose, text).finalize().into_bytes())
    }

    /// Whether it is that text's signature. Takes as long for one that is nearly right.
    pub fn is_signed(&self, purpose: &str, text: &str, signature: &str) -> bool {
        hex::decode(signature).is_ok_and(|signature| self.mac(purpose, text).verify_slice(&signature).is_ok())
    }

    fn mac(&self, purpose: &str, text: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        mac.update(purpose.as_bytes());
        mac.update(b"\0");
        mac.update(text.as_bytes());
        mac
    }
}

/// A browser that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    token: String,
    issued: Timestamp,
}

const PURPOSE: &str = "session";
const TOKEN_BYTES: usize = 32;

impl Session {
    pub fn fresh(now: Timestamp) -> Result<Self, getrandom::Error> {
        let mut random = [0; TOKEN_BYTES];
        getrandom::fill(&mut random)?;
        Ok(Session { token: hex::encode(random), issued: now })
    }

    /// The session of a cookie, if we made it and it is not over.
    pub fn read(cookie: &str, signer: &Signer, now: Timestamp) -> Option<Self> {
        let (text, signature) = cookie.rsplit_once('.')?;
        let (issued, token) = text.split_once('.')?;
        if token.len() != TOKEN_BYTES * 2 || !signer.is_signed(PURPOSE, text, signature) {
            return None;
        }
        let issued = Timestamp::from_second(issued.parse().ok()?).ok()?;
        (now.duration_since(issued) < IDLE).then(|| Session { token: token.to_owned(), issued })
    }

    /// The value of its cookie.
    pub fn cookie(&self, signer: &Signer) -> String {
        let text = format!("{}.{}", self.issued.as_second(), self.token);
        let signature = signer.sign(PURPOSE, &text);
        format!("{text}.{signature}")
    }

    /// The same session with a newer cookie, when it is time for one.
    pub fn renewed(&self, now: Timestamp) -> Option<Self> {
        (now.duration_since(self.issued) > RENEW_AFTER)
            .then(|| Session { token: self.token.clone(), issued: now })
    }

    /// The id that its jobs carry.
    pub fn id(&self) -> Uuid {
        let digest = Sha256::digest(self.token.as_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }

    /// How long a browser should keep the cookie.
    pub fn max_age_seconds() -> i64 {
        IDLE.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn signer() -> Signer {
        Signer::new(vec![7; 32])
    }

    fn now() -> Timestamp {
        "2026-11-15T09:30:00Z".parse().unwrap()
    }

    #[test]
    fn a_session_is_known_again_by_its_cookie() {
        let session = Session::fresh(now()).unwrap();
        let cookie = session.cookie(&signer());
        assert_eq!(Session::read(&cookie, &signer(), now()), Some(session.clone()));
        assert_eq!(session.id().get_version_num(), 8);
        let later = now() + IDLE - SignedDuration::from_secs(1);
        assert!(Session::read(&cookie, &signer(), later).is_some());
        assert_eq!(Session::read(&cookie, &signer(), now() + IDLE), None, "it is over");
    }

    #[test]
    fn a_newer_cookie_is_for_the_same_jobs() {
        let session = Session::fresh(now()).unwrap();
        assert_eq!(session.renewed(now()), None);
        let newer = session.renewed(now() + RENEW_AFTER + SignedDuration::from_secs(1)).unwrap();
        assert_eq!(newer.id(), session.id());
        assert_ne!(newer.cookie(&signer()), session.cookie(&signer()));
    }

    #[test]
    fn a_value_that_somebody_chose_is_no_session() {
        let cookie = Session::fresh(now()).unwrap().cookie(&signer());
        let other = Signer::new(vec![8; 32]);
        assert_eq!(Session::read(&cookie, &other, now()), None);
        for at in 0..cookie.len() {
            let mut wrong = cookie.clone().into_bytes();
            wrong[at] = if wrong[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(
                Session::read(&String::from_utf8(wrong).unwrap(), &signer(), now()),
                None,
                "character {at}"
            );
        }
        for wrong in ["", ".", "..", "a.b.c", "1.é.ff", &cookie[1..]] {
            assert_eq!(Session::read(wrong, &signer(), now()), None, "{wrong}");
        }
    }

    #[test]
    fn a_signature_is_good_for_its_purpose_only() {
        let signature = signer().sign("link", "a");
        assert!(signer().is_signed("link", "a", &signature));
        assert!(!signer().is_signed("session", "a", &signature));
        assert!(!signer().is_signed("link", "b", &signature));
        assert!(!signer().is_signed("link", "a", "zz"));
    }

    #[test]
    fn tokens_do_not_repeat() {
        let ids: HashSet<Uuid> = (0..10_000).map(|_| Session::fresh(now()).unwrap().id()).collect();
        assert_eq!(ids.len(), 10_000);
    }
}
