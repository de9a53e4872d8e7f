//! Arithmetic checks: sums and differences of fields, columns and numbers on both sides of `==`.

use rust_decimal::Decimal;

/// `left == right`, brought to one side: the terms must add up to nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct Equation {
    /// As written.
    pub text: String,
    /// Terms with their sign.
    pub terms: Vec<(Decimal, Term)>,
}

/// What a check adds up.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// A header value.
    Field(String),
    /// A column's sum.
    Sum {
        table: String,
        column: String,
    },
    Number(Decimal),
}

impl Equation {
    /// Names of the header values in it.
    pub fn fields(&self) -> impl Iterator<Item = &String> {
        self.terms.iter().filter_map(|(_, term)| match term {
            Term::Field(name) => Some(name),
            Term::Sum { .. } | Term::Number(_) => None,
        })
    }

    /// Columns in it.
    pub fn sums(&self) -> impl Iterator<Item = (&String, &String)> {
        self.terms.iter().filter_map(|(_, term)| match term {
            Term::Sum { table, column } => Some((table, column)),
            Term::Field(_) | Term::Number(_) => None,
        })
    }

    /// How far from true, given each term's value; none where one is missing.
    pub fn error(&self, value: &dyn Fn(&Term) -> Option<Decimal>) -> Option<Decimal> {
        let mut sum = Decimal::ZERO;
        for (sign, term) in &self.terms {
            sum = sum.checked_add(sign.checked_mul(value(term)?)?)?;
        }
        Some(sum.abs())
    }
}

/// Reads a check.
pub fn parse(text: &str) -> Result<Equation, String> {
    let (left, right) = text.split_once("==").ok_or("it needs `==`")?;
    let mut terms = side(left, Decimal::ONE)?;
    terms.extend(side(right, Decimal::NEGATIVE_ONE)?);
    Ok(Equation { text: text.trim().to_owned(), terms })
}

fn side(text: &str, sign: Decimal) -> Result<Vec<(Decimal, Term)>, String> {
    let mut terms = Vec::new();
    let mut next_sign = sign;
    let mut word = String::new();
    let mut depth = 0u32;
    for c in text.chars().chain(['+']) {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1).ok_or("a bracket is closed that was never opened")?,
            _ => {}
        }
        if depth == 0 && matches!(c, '+' | '-') {
            if word.trim().is_empty() {
                return Err("something is missing beside an operator".into());
            }
            terms.push((next_sign, term(word.trim())?));
            next_sign = if c == '-' { -sign } else { sign };
            word.clear();
        } else {
            word.push(c);
        }
    }
    if depth > 0 { Err("a bracket is not closed".into()) } else { Ok(terms) }
}

fn term(word: &str) -> Result<Term, String> {
    if let Ok(number) = word.parse() {
        return Ok(Term::Number(number));
    }
    if let Some(inside) = word.strip_prefix("sum(").and_then(|w| w.strip_suffix(')')) {
        let (table, column) = inside.trim().split_once('.').ok_or("sum() needs table.column")?;
        return Ok(Term::Sum { table: table.to_owned(), column: column.to_owned() });
    }
    let is_name = word.chars().all(|c| c.is_alphanumeric() || c == '_');
    if is_name {
        Ok(Term::Field(word.to_owned()))
    } else {
        Err(format!("{word:?} is neither a field nor a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_come_to_one() {
        let equation = parse("sum(lines.total) + charges - 5 == net_total").unwrap();
        assert_eq!(equation.fields().collect::<Vec<_>>(), ["charges", "net_total"]);
        let error = equation.error(&|term| match term {
            Term::Sum { .. } => Some(Decimal::from(100)),
            Term::Number(n) => Some(*n),
            Term::Field(name) => Some(Decimal::from(if name == "charges" { 10 } else { 104 })),
        });
        assert_eq!(error, Some(Decimal::ONE));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["a + b", "a + == b", "sum(a == b", "a ! b == c"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
