//! Hides secrets in whatever a program says, in every form that they are likely to take.
//!
//! A secret has few forms that must be searched for: itself, its bytes in other character sets, base64 and hexadecimal digits
//! ([`forms`]). What programs do to text on top of that is undone rather than foreseen: each text is searched as it is, with
//! its escapes read ([`escapes`]), and without what merely breaks digits up ([`gaps`]), in all combinations.

mod escapes;
mod forms;
mod gaps;
mod known;
#[cfg(test)]
mod tests;
mod view;

use known::Known;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use view::View;

/// What stands where a secret was. Nothing of it is left, not its length either.
pub const HIDDEN: &str = "***";
/// A shorter secret would be found everywhere, in words and numbers that have nothing to do with it.
pub const SECRET_CHARS_MIN: usize = 4;
/// How many times over escapes are read: an address within a string within another.
const LAYERS_MAX: usize = 3;
/// A long text is searched in pieces of this size.
const PIECE_BYTES: usize = 64 * 1024;
/// What was shown last is remembered so far: whether a line of digits goes on depends on its beginning.
const CONTEXT_BYTES: usize = 256;

/// Hides the secrets of one run. Cheap to clone; all clones know what is added to one.
///
/// Once there is more to hide than it can search for, it hides everything.
#[derive(Clone, Default)]
pub struct Redactor {
    known: Arc<RwLock<Known>>,
}

/// What was seen in a text.
struct Look {
    /// Where secrets are.
    hidden: Vec<Range<usize>>,
    /// From here on it may be the beginning of a secret.
    sure: usize,
}

impl Redactor {
    /// Hides these secrets.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Value>) -> Self {
        let redactor = Self::default();
        redactor.add_all(secrets);
        redactor
    }

    /// One that can search for no more than this.
    #[cfg(test)]
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self { known: Arc::new(RwLock::new(Known::with_room(bytes))) }
    }

    /// Hides one more from now on: text, or everything in a value.
    pub fn add(&self, value: &Value) {
        self.add_all([value]);
    }

    /// Hides more from now on.
    pub fn add_all<'a>(&self, values: impl IntoIterator<Item = &'a Value>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        values.into_iter().for_each(|value| forms::of_value(value, &mut known));
    }

    /// Hides secrets in bytes that are all there.
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let mut stream = Stream::new(self.clone());
        let mut shown: Vec<u8> = bytes.chunks(PIECE_BYTES).flat_map(|piece| stream.push(piece)).collect();
        shown.extend(stream.rest());
        if stream.has_hidden { shown.into() } else { bytes.into() }
    }

    /// Hides secrets in a text that is all there.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => text.into(),
            Cow::Owned(shown) => String::from_utf8_lossy(&shown).into_owned().into(),
        }
    }

    /// Hides secrets in a value: in its texts, its numbers and the names of its fields.
    pub fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.text(&text).into_owned().into(),
            Value::Number(number) => match self.text(&number.to_string()) {
                Cow::Borrowed(_) => Value::Number(number),
                Cow::Owned(shown) => shown.into(),
            },
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                let shown =
                    |(name, value): (String, Value)| (self.text(&name).into_owned(), self.value(value));
                fields.into_iter().map(shown).collect()
            }
            other @ (Value::Null | Value::Bool(_)) => other,
        }
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.known().is_empty()
    }

    /// Whether there is more to hide than can be searched for.
    pub fn is_overfull(&self) -> bool {
        self.known().is_overfull()
    }

    /// Whether a secret is in there.
    pub fn finds(&self, bytes: &[u8]) -> bool {
        matches!(self.bytes(bytes), Cow::Owned(_))
    }

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Redactor")
    }
}

impl Known {
    /// Looks at a text in every way that may bring a secret to light; more may follow it unless it is all.
    fn look(&self, bytes: &[u8], is_all: bool) -> Look {
        let mut look = Look { hidden: Vec::new(), sure: bytes.len() };
        if self.is_overfull() {
            look.hidden.push(0..bytes.len());
            return look;
        }
        let mut layer = Some(View::plain(bytes));
        for _ in 0..=LAYERS_MAX {
            let Some(view) = layer else { break };
            self.search(&view, &mut look);
            for gaps in [gaps::in_hex(&view.bytes, is_all), gaps::in_base64(&view.bytes, is_all)] {
                if !gaps.is_empty() {
                    self.search(&view.without(&gaps), &mut look);
                }
            }
            layer = view.unescaped(is_all);
        }
        look
    }

    fn search(&self, view: &View<'_>, look: &mut Look) {
        look.hidden.extend(self.find_in(&view.bytes).map(|found| view.place(found)));
        let mut tails = view.bytes.len().saturating_sub(self.longest())..view.bytes.len();
        let unsure = tails.find(|tail| self.is_beginning(&view.bytes[*tail..]));
        look.sure = look.sure.min(unsure.map_or(view.end, |tail| view.place(tail..tail + 1).start));
    }
}

/// Hides secrets in bytes that come piece by piece, however the pieces cut them.
#[derive(Debug)]
pub(crate) struct Stream {
    redactor: Redactor,
    /// The last that was shown, then what may be the beginning of a secret.
    held: Vec<u8>,
    /// How much of it was shown.
    shown: usize,
    has_hidden: bool,
}

impl Stream {
    /// A stream whose secrets are hidden.
    pub(crate) fn new(redactor: Redactor) -> Self {
        Self { redactor, held: Vec::new(), shown: 0, has_hidden: false }
    }

    /// Takes in a piece and gives out what may be shown by now.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        if self.redactor.is_empty() {
            return piece.to_vec();
        }
        self.held.extend_from_slice(piece);
        let look = self.redactor.known().look(&self.held, false);
        self.show(look.hidden, look.sure)
    }

    /// Gives out the rest. The beginning of a secret that was cut off is hidden, too.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let Look { mut hidden, sure } = self.redactor.known().look(&self.held, true);
        let cut_off = sure.max(self.shown)..self.held.len();
        if cut_off.len() >= SECRET_CHARS_MIN {
            hidden.push(cut_off);
        }
        self.show(hidden, self.held.len())
    }

    /// Gives out the rest, which ends here.
    fn rest(&mut self) -> Vec<u8> {
        let look = self.redactor.known().look(&self.held, true);
        self.show(look.hidden, self.held.len())
    }

    /// Gives out what is held up to `sure`, and further where a secret that begins before it ends later.
    fn show(&mut self, mut hidden: Vec<Range<usize>>, sure: usize) -> Vec<u8> {
        hidden.sort_by_key(|range| range.start);
        let mut shown = Vec::with_capacity(sure.saturating_sub(self.shown));
        let mut end = self.shown;
        for range in hidden.into_iter().filter(|range| range.start < sure) {
            if range.end <= end {
                continue;
            }
            // Where two overlap, one mark stands for both.
            if range.start >= end || end == self.shown {
                shown.extend_from_slice(&self.held[end..range.start.max(end)]);
                shown.extend_from_slice(HIDDEN.as_bytes());
            }
            end = range.end;
            self.has_hidden = true;
        }
        shown.extend_from_slice(&self.held[end..sure.max(end)]);
        let end = sure.max(end);
        let forgotten = end.saturating_sub(CONTEXT_BYTES);
        self.held.drain(..forgotten);
        self.shown = end - forgotten;
        shown
    }
}
