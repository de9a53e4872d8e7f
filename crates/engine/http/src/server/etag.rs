//! What a browser or a program has already, by the tag that it was given with it.

use axum::http::{HeaderMap, header};

/// Whether a request names this tag among those of what it has: what it has is still right then. Weak and strong tags count
/// alike, since nobody puts a file together by them here, and proxies make the ones of the others (RFC 9110, 13.1.2).
pub fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let lines = headers.get_all(header::IF_NONE_MATCH).into_iter().filter_map(|line| line.to_str().ok());
    // None of our tags has a comma in it.
    lines
        .flat_map(|line| line.split(','))
        .map(str::trim)
        .any(|known| known == "*" || opaque(known) == opaque(tag))
}

fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_tag_is_known_as_proxies_and_browsers_write_it() {
        fn check(lines: &[&'static str], expected: bool) {
            let lines = lines.iter().map(|line| (header::IF_NONE_MATCH, HeaderValue::from_static(line)));
            let headers: HeaderMap = lines.collect();
            for tag in ["\"ab\"", "W/\"ab\""] {
                assert_eq!(is_known(&headers, tag), expected, "{tag} in {headers:?}");
            }
        }
        check(&["\"ab\""], true);
        check(&["W/\"ab\""], true);
        check(&["\"x\", W/\"ab\""], true);
        check(&["\"x\"", "\"ab\""], true);
        check(&["*"], true);
        check(&["\"x\""], false);
        check(&["ab"], false);
        check(&[], false);
    }
}
