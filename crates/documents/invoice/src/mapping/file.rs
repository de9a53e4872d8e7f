//! A mapping file as it is written: the TOML keys, nothing worked out yet. A key that is not here is refused.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::values::Kind;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingFile {
    /// Version of this format; always 1.
    pub schema: u32,
    /// Name without version: letters, digits, `_`.
    pub name: String,
    /// Version of the mapping, from 1.
    pub version: u32,
    /// Whether and how it takes part.
    #[serde(default)]
    pub status: Status,
    /// Mapping (by id) whose fields, tables, checks and locale are used where this one has none.
    pub extends: Option<String>,
    #[serde(default = "invoice")]
    pub kind: String,
    /// One line about the layout, for people.
    #[serde(default)]
    pub about: String,
    /// Which documents it is for.
    #[serde(default)]
    pub r#match: MatchFile,
    /// How numbers and dates are written.
    #[serde(default)]
    pub locale: LocaleFile,
    /// Labels that belong to no field but must not be taken for a shorter one.
    #[serde(default)]
    pub ignore: Texts,
    /// Header values.
    #[serde(default)]
    pub fields: BTreeMap<String, FieldFile>,
    #[serde(default)]
    pub tables: Vec<TableFile>,
    /// Arithmetic that must hold.
    #[serde(default)]
    pub checks: Vec<CheckFile>,
    /// Documents with known values.
    #[serde(default)]
    pub tests: Vec<TestFile>,
}

fn invoice() -> String {
    "invoice".into()
}

/// Whether a mapping takes part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Only when asked for by name, and in shadow runs.
    #[default]
    Draft,
    /// In shadow runs beside the live version, until it is trusted.
    Canary,
    /// For everybody.
    Live,
    /// For nobody.
    Retired,
}

/// Which documents a mapping is for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatchFile {
    /// Each must be on the page.
    #[serde(default)]
    pub all: Vec<WeightedText>,
    /// The more of these, the better.
    #[serde(default)]
    pub any: Vec<WeightedText>,
    /// None may be on the page.
    #[serde(default)]
    pub none: Texts,
    /// How many of `any` are needed.
    #[serde(default = "one")]
    pub min_any: usize,
    /// Taken only where no other mapping fits.
    #[serde(default)]
    pub fallback: bool,
}

fn one() -> usize {
    1
}

/// A term and how much it counts.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedText {
    /// The term.
    pub text: String,
    pub weight: f32,
}

/// How numbers, dates and money are written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocaleFile {
    /// `1.234,56`, `1,234.56` or `auto`.
    pub numbers: Option<NumbersFile>,
    /// `day-first`, `month-first` or `auto`.
    pub dates: Option<DatesFile>,
    /// Default and marks.
    #[serde(default)]
    pub currency: CurrencyFile,
    /// Words that tell where a document is from, and what follows for what is written there in several ways.
    #[serde(default)]
    pub hints: Vec<HintFile>,
}

/// Words that tell where a document is from.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HintFile {
    /// Any of these speaks for it; where several hints do, the one with most of its words on the page counts.
    pub any: Texts,
    /// Order of day and month, where the document's own dates leave it open.
    pub dates: Option<DatesFile>,
    /// Mark to code, for marks that several currencies share.
    #[serde(default)]
    pub marks: BTreeMap<String, String>,
}

/// A sample number says it best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum NumbersFile {
    /// Decided by the document's own numbers.
    #[serde(rename = "auto")]
    Auto,
    /// Decimal comma.
    #[serde(rename = "1.234,56")]
    Comma,
    /// Decimal point.
    #[serde(rename = "1,234.56")]
    Point,
}

/// Order of day and month in figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DatesFile {
    /// Decided by the document's own dates, else day first.
    Auto,
    /// 31/12/2025.
    DayFirst,
    /// 12/31/2025.
    MonthFirst,
}

/// Currency where it is not printed, and marks beyond the common ones.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurrencyFile {
    /// Code to assume.
    pub default: Option<String>,
    /// Mark to code.
    #[serde(default)]
    pub marks: BTreeMap<String, String>,
}

/// How one header value is found.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldFile {
    /// Labels, any of which leads to the value.
    #[serde(default)]
    pub anchor: Texts,
    /// Where the value stands from the label, best first.
    #[serde(default)]
    pub r#where: Wheres,
    /// A pattern searched in every row; its first group is the value.
    pub find: Option<String>,
    /// The part of the found text that is the value; the first group, if there is one.
    pub take: Option<String>,
    /// Texts that the value must not match.
    #[serde(default)]
    pub not: Texts,
    /// Other fields whose value it cannot have: a seller is not its own buyer.
    #[serde(default)]
    pub unlike: Texts,
    /// How well founded a value must be (0 to 1) unless a check confirms it; below that the field stays blank.
    #[serde(default)]
    pub sure: f32,
    /// Which of several.
    #[serde(default)]
    pub pick: Pick,
    #[serde(default, rename = "type")]
    pub kind: Kind,
    /// A part of the page.
    pub zone: Option<ZoneFile>,
    /// Found by the shape of the page: as the one who sells or the one who buys.
    pub party: Option<Side>,
    /// Which line of a block, cell or zone.
    pub line: Option<LineFile>,
    /// How many lines are joined, from `line` on.
    #[serde(default = "one")]
    pub lines: usize,
    /// Whether the value may take several lines set tightly beside its label.
    #[serde(default)]
    pub wraps: bool,
    /// The part of the document between two headings.
    pub within: Option<WithinFile>,
    /// Which page: a number, negative from the end.
    pub page: Option<i32>,
    /// How many lines down (below, block) a value may stand.
    pub reach: Option<f32>,
    pub value: Option<String>,
    /// Printed text to code.
    #[serde(default)]
    pub codes: BTreeMap<String, String>,
    /// The business term it answers.
    pub to: Option<String>,
    /// Whether its absence is a finding.
    #[serde(default)]
    pub required: bool,
    /// Whether the rule of the mapping that this one extends is a further way.
    #[serde(default)]
    pub inherit: bool,
    /// Whether nothing is read, also not as the mapping that this one extends does.
    #[serde(default)]
    pub blank: bool,
    /// Further ways, tried after this one.
    #[serde(default)]
    pub or: Vec<FieldFile>,
}

/// Direction from a label to its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Where {
    /// Behind it on the same line.
    Right,
    /// Under it.
    Below,
    /// Over it.
    Above,
    /// Before it on the same line.
    Left,
    /// In the cell that drawn rules make around it.
    SameCell,
    /// In the lines under it, up to a gap.
    Block,
}

/// Who is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The one who wrote the invoice.
    Seller,
    /// The one who pays it.
    Buyer,
}

/// Which candidate is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pick {
    /// The one with the best reasons, the earlier of equals.
    #[default]
    Best,
    /// The first in reading order.
    First,
    /// The last in reading order.
    Last,
    /// The greatest.
    Max,
    /// The least.
    Min,
    /// The one that is found most often.
    Most,
    /// The only one: where the page has two different ones, none is taken.
    Only,
}

/// A box in percent of a page.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneFile {
    /// Page, from 1; negative from the end.
    #[serde(default = "first_page")]
    pub page: i32,
    /// Left, top, right, bottom in percent.
    pub r#box: [f32; 4],
}

fn first_page() -> i32 {
    1
}

/// Which line is meant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LineFile {
    /// By count, from 1; negative from the end.
    Number(i32),
    /// Set in the largest type.
    LargestFont,
    /// The first one in bold.
    Bold,
    /// The first one that names a company by its legal form.
    Company,
    /// The first line of a postal address: a block that holds a postal code and a town.
    Addressee,
}

/// The part of a document between two headings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WithinFile {
    /// Headings that open it.
    pub from: Texts,
    /// Headings that close it.
    #[serde(default)]
    pub to: Texts,
    /// Only the column under the heading, up to the next piece of text beside it.
    #[serde(default)]
    pub column: bool,
}

/// How a table is found and cut.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableFile {
    /// Name in the result.
    #[serde(default = "lines_name")]
    pub name: String,
    /// The business group it answers.
    pub to: Option<String>,
    pub columns: Vec<ColumnFile>,
    /// Instead of headings: a pattern for one row, whose named groups are the columns.
    pub pattern: Option<String>,
    /// Labels at the start of a line that end it.
    #[serde(default)]
    pub until: Texts,
    /// Patterns of lines that are left out: carried-over sums, page numbers, group headings.
    #[serde(default)]
    pub skip: Texts,
    /// How rows are told apart.
    #[serde(default)]
    pub row: RowFile,
    /// How many headings must be there; by default six of ten.
    pub min_columns: Option<usize>,
    /// Whether it goes on over pages that repeat no headings.
    #[serde(default = "yes")]
    pub continues: bool,
    /// Only the part of the document between two headings.
    pub within: Option<WithinFile>,
}

fn lines_name() -> String {
    "lines".into()
}

fn yes() -> bool {
    true
}

/// How rows are told apart.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowFile {
    /// Column that is filled exactly once in every row; by default the last amount.
    pub starts: Option<String>,
    /// Columns whose further lines are joined.
    #[serde(default)]
    pub joins: Texts,
    /// How many lines over the starting one belong to the row where no rule is drawn.
    #[serde(default)]
    pub above: usize,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnFile {
    /// Name in the result.
    pub name: String,
    /// Headings, any of which marks it.
    #[serde(default)]
    pub head: Texts,
    #[serde(default, rename = "type")]
    pub kind: Kind,
    /// The part of the cell that is the value.
    pub take: Option<String>,
    /// How many columns to the right its cell reaches over.
    #[serde(default)]
    pub span: usize,
    /// Which line of the cell.
    pub line: Option<i32>,
    /// A pattern searched in the whole row instead of a cell.
    pub find: Option<String>,
    /// Printed text to code.
    #[serde(default)]
    pub codes: BTreeMap<String, String>,
    /// The business term it answers.
    pub to: Option<String>,
    pub value: Option<String>,
    /// Whether it is the row's number, counted from 1 because none is printed.
    #[serde(default)]
    pub count: bool,
    /// Whether a row without it is no row.
    #[serde(default)]
    pub required: bool,
}

/// Arithmetic that must hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckFile {
    /// `sum(lines.total) == net_total`, `net_total + tax_total == gross_total`.
    pub rule: String,
    /// How far off it may be.
    pub tolerance: Option<String>,
    /// What a failure means.
    #[serde(default)]
    pub on_fail: OnFail,
}

/// What a failed check means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFail {
    /// A person should look.
    #[default]
    Review,
    /// The result must not be used.
    Error,
    /// Only used to choose among candidates.
    Ignore,
}

/// A document with known values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestFile {
    /// Path of the document, from the mapping's folder.
    pub file: String,
    /// Field to printed meaning; `lines` to the count of rows.
    pub expect: BTreeMap<String, Expected>,
}

/// An expected value: written as text or as a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected(pub String);

/// One text or a list of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Texts(pub Vec<String>);

impl Texts {
    /// Those that name no field.
    #[must_use]
    pub fn without_fields(&self) -> Self {
        Self(self.0.iter().filter(|text| !text.starts_with('@')).cloned().collect())
    }

    /// Those that stand for the labels of a field.
    #[must_use]
    pub fn only_fields(&self) -> Self {
        Self(self.0.iter().filter(|text| text.starts_with('@')).cloned().collect())
    }
}

/// One direction or a list of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wheres(pub Vec<Where>);

struct OneOrMany<T>(std::marker::PhantomData<T>);

impl<'de> Visitor<'de> for OneOrMany<String> {
    type Value = Vec<String>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(vec![text.to_owned()])
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(text) = seq.next_element::<String>()? {
            all.push(text);
        }
        Ok(all)
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMany::<String>(std::marker::PhantomData)).map(Self)
    }
}

impl<'de> Deserialize<'de> for Wheres {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = deserializer.deserialize_any(OneOrMany::<String>(std::marker::PhantomData))?;
        let parse = |name: &String| {
            let known = de::value::StrDeserializer::<D::Error>::new(name);
            Where::deserialize(known)
        };
        names.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }
}

impl<'de> Deserialize<'de> for WeightedText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrTable;
        impl<'de> Visitor<'de> for TextOrTable {
            type Value = WeightedText;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or { text = \"…\", weight = 1.0 }")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(WeightedText { text: text.to_owned(), weight: 1.0 })
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                #[derive(Deserialize)]
                #[serde(deny_unknown_fields)]
                struct Weighted {
                    text: String,
                    weight: f32,
                }
                let Weighted { text, weight } =
                    Deserialize::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(WeightedText { text, weight })
            }
        }
        deserializer.deserialize_any(TextOrTable)
    }
}

impl<'de> Deserialize<'de> for LineFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrName;
        impl Visitor<'_> for NumberOrName {
            type Value = LineFile;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a line number, \"largest-font\", \"bold\", \"company\" or \"addressee\"")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
                i32::try_from(number).map(LineFile::Number).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
                i32::try_from(number).map(LineFile::Number).map_err(E::custom)
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
                match name {
                    "largest-font" => Ok(LineFile::LargestFont),
                    "bold" => Ok(LineFile::Bold),
                    "company" => Ok(LineFile::Company),
                    "addressee" => Ok(LineFile::Addressee),
                    _ => Err(E::unknown_variant(name, &["largest-font", "bold", "company", "addressee"])),
                }
            }
        }
        deserializer.deserialize_any(NumberOrName)
    }
}

impl<'de> Deserialize<'de> for Expected {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrNumber;
        impl Visitor<'_> for TextOrNumber {
            type Value = Expected;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a whole number; write amounts as text, \"12.50\"")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Expected(number.to_string()))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Expected(number.to_string()))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Expected(text.to_owned()))
            }
        }
        deserializer.deserialize_any(TextOrNumber)
    }
}
