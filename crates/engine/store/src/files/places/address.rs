//! Addresses of callers' files: `s3://bucket/some/key` and `file:///some/path`.

use ode_job::Owner;
use std::fmt;
use std::str::FromStr;

/// Longer ones are no addresses: S3 takes keys of up to 1,024 bytes.
const BYTES_MAX: usize = 1100;
/// How one is written.
pub(super) const FORM: &str =
    "write it like s3://bucket/path or file:///path, where no part is empty, one dot or two.";
/// Stands for the id of a job's owner in a root.
const OWNER: &str = "{owner}";

/// An address, part by part. No part is empty, `.` or `..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// None for local files.
    pub(super) bucket: Option<String>,
    pub(super) parts: Vec<String>,
}

impl Address {
    /// Whether it lies below a root, as far as `owner` may go.
    pub(super) fn is_below(&self, root: &Address, owner: Owner) -> bool {
        let is_same = |(of_root, own): (&String, &String)| match of_root.as_str() {
            OWNER => owner != Owner::Operator && *own == owner.key().to_string(),
            plain => plain == own,
        };
        self.bucket == root.bucket
            && self.parts.len() > root.parts.len()
            && root.parts.iter().zip(&self.parts).all(is_same)
    }

    /// The parts as the key of an object, or a path below `/`.
    pub(super) fn path(&self) -> String {
        self.parts.join("/")
    }

    /// The parts before the first that is filled in.
    pub(super) fn fixed_path(&self) -> String {
        let fixed = self.parts.iter().take_while(|part| *part != OWNER);
        fixed.fold(String::new(), |path, part| format!("{path}/{part}"))
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || FORM.to_owned();
        if text.len() > BYTES_MAX || text.chars().any(char::is_control) || text.contains('\\') {
            return Err(wrong());
        }
        let (bucket, path) = match (text.strip_prefix("s3://"), text.strip_prefix("file:///")) {
            (Some(rest), _) => {
                let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
                let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c);
                if bucket.len() < 3 || bucket.len() > 63 || !bucket.chars().all(is_plain) {
                    return Err("a bucket's name has 3 to 63 small letters, digits, dots and hyphens.".into());
                }
                (Some(bucket.to_owned()), path)
            }
            (None, Some(path)) => (None, path),
            (None, None) => return Err(wrong()),
        };
        let path = path.strip_suffix('/').unwrap_or(path);
        let parts: Vec<String> =
            if path.is_empty() { Vec::new() } else { path.split('/').map(str::to_owned).collect() };
        if parts.iter().any(|part| part.is_empty() || part == "." || part == "..") {
            return Err(wrong());
        }
        Ok(Address { bucket, parts })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.bucket {
            Some(bucket) => write!(f, "s3://{bucket}/{}", self.path()),
            None => write!(f, "file:///{}", self.path()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn only_what_lies_below_a_root_is_reached() {
        fn check(root: &str, address: &str, expected: bool) {
            let root: Address = root.parse().unwrap();
            let owner = Owner::Organisation(Uuid::from_u128(7));
            let is_below = address.parse::<Address>().is_ok_and(|address| address.is_below(&root, owner));
            assert_eq!(is_below, expected, "{address} below {root}");
        }
        check("s3://inbox", "s3://inbox/doc.pdf", true);
        check("s3://inbox", "s3://inbox", false);
        check("s3://inbox", "s3://inbox-other/doc.pdf", false);
        check("s3://inbox", "S3://inbox/doc.pdf", false);
        check("s3://inbox/new", "s3://inbox/new/a/b.pdf", true);
        check("s3://inbox/new", "s3://inbox/newer/b.pdf", false);
        check("s3://inbox/new", "s3://inbox/new/../old/b.pdf", false);
        check("s3://inbox/new", "s3://inbox//new/b.pdf", false);
        check("file:///srv/in", "file:///srv/in/a.pdf", true);
        check("file:///srv/in", "file:///srv/in/../../etc/passwd", false);
        check("file:///srv/in", "file:///etc/passwd", false);
        check("file:///srv/in", "file://host/srv/in/a.pdf", false);
        check("file:///srv/in", "s3://srv/in/a.pdf", false);
        for other in
            ["http://169.254.169.254/latest", "https://example.com/a.pdf", "/srv/in/a.pdf", "", "s3://"]
        {
            check("file:///srv/in", other, false);
            check("s3://inbox", other, false);
        }
        check("s3://inbox/{owner}", &format!("s3://inbox/{}/a.pdf", Uuid::from_u128(7)), true);
        check("s3://inbox/{owner}", &format!("s3://inbox/{}/a.pdf", Uuid::from_u128(8)), false);
        check("s3://inbox/{owner}", "s3://inbox/{owner}/a.pdf", false);
    }

    #[test]
    fn an_address_reads_back() {
        for text in ["s3://inbox/a b/ü?#%20.pdf", "file:///srv/a.pdf"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
    }
}
