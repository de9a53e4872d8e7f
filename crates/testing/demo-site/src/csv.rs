//! A menu as a CSV file: a heading with the names of the columns, then a row for each item.

use crate::world::{Item, cents};

/// Rows of a file; a menu with more is a mistake.
const ROWS_MAX: usize = 5_000;

/// A row, as an item or with what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) item: Result<Item, String>,
}

/// The rows below the heading, or why there are none.
pub(crate) fn menu(text: &str) -> Result<Vec<Row>, String> {
    let mut records = records(text.trim_start_matches('\u{feff}')).into_iter();
    let heading =
        records.next().ok_or("The file is empty. Choose a file with a heading and a row for each item.")?;
    let heading: Vec<String> = heading.iter().map(|name| name.trim().to_lowercase()).collect();
    let column = |name: &str| heading.iter().position(|known| known == name);
    let (Some(name), Some(price)) = (column("name"), column("price")) else {
        return Err(
            "The heading must name the columns name and price; category and description may follow.".into()
        );
    };
    let (category, description) = (column("category"), column("description"));
    let rows: Vec<Row> = records
        .map(|record| {
            let field = |at: Option<usize>| at.and_then(|at| record.get(at)).map_or("", |field| field.trim());
            let item = Item {
                name: field(Some(name)).into(),
                category: field(category).into(),
                description: field(description).into(),
                price_cents: 0,
            };
            Row { name: item.name.clone(), item: priced(item, field(Some(price))) }
        })
        .collect();
    match rows.len() {
        0 => Err("The file has a heading and no rows. Add a row for each item.".into()),
        count if count > ROWS_MAX => {
            Err(format!("The file has {count} rows; split it into files of {ROWS_MAX}."))
        }
        _ => Ok(rows),
    }
}

fn priced(item: Item, price: &str) -> Result<Item, String> {
    if item.name.is_empty() {
        return Err("The name is missing".into());
    }
    let price_cents = cents(price).ok_or_else(|| format!("The price \"{price}\" is not an amount"))?;
    Ok(Item { price_cents, ..item })
}

/// Records by RFC 4180, and with bare line feeds; empty lines are none.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut is_quoted, mut letters) = (false, text.chars().peekable());
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut field)),
            '\r' if !is_quoted => {}
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            other => field.push(other),
        }
    }
    record.push(field);
    records.push(record);
    records.retain(|record| record.iter().any(|field| !field.trim().is_empty()));
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_an_item_or_says_what_is_wrong() {
        let rows =
            menu("Name,Price,Category\r\n\"Pizza, \"\"large\"\"\",12.5,Mains\n\nTea,free,Drinks\n,3,\n")
                .unwrap();
        let item = rows[0].item.clone().unwrap();
        assert_eq!(
            (item.name.as_str(), item.price_cents, item.category.as_str()),
            ("Pizza, \"large\"", 1250, "Mains")
        );
        assert_eq!(rows[1].item, Err("The price \"free\" is not an amount".into()));
        assert_eq!(rows[2].item, Err("The name is missing".into()));
    }

    #[test]
    fn a_file_without_its_columns_is_refused() {
        assert!(menu("").is_err());
        assert!(menu("name,price\n").is_err());
        assert!(menu("dish,cost\nTea,3\n").is_err());
    }
}
