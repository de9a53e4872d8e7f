//! Imports of menus: read when the file is sent, carried out once its owner has confirmed.

use crate::csv::Row;
use crate::site::Shared;
use crate::world::{Item, Restaurant};
use std::time::Duration;

/// Items stored at a time, and how long the site takes for them: long enough to be seen at work.
const AT_A_TIME: usize = 25;
const PAUSE: Duration = Duration::from_millis(40);

/// Where an import stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Ready,
    Running,
    Done,
}

#[derive(Debug, Clone)]
pub(crate) struct Import {
    pub(crate) stage: Stage,
    pub(crate) rows: Vec<Row>,
    /// What became of each row so far: nothing more, or why it was rejected.
    pub(crate) outcomes: Vec<Option<String>>,
}

impl Import {
    pub(crate) fn new(rows: Vec<Row>) -> Self {
        Import { stage: Stage::Ready, rows, outcomes: Vec::new() }
    }

    pub(crate) fn imported(&self) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.is_none()).count()
    }
}

/// Stores the rows of a confirmed import, some at a time.
pub(crate) async fn carry_out(site: Shared, email: String, slug: String, id: String) {
    while let Some(true) = store_some(&site, &email, &slug, &id) {
        tokio::time::sleep(PAUSE).await;
    }
}

/// Stores the next rows and says whether there are more; nothing where the import is gone.
fn store_some(site: &Shared, email: &str, slug: &str, id: &str) -> Option<bool> {
    let mut world = site.world();
    let restaurant = world.restaurant(email, slug)?;
    let import = restaurant.imports.get(id)?;
    let next: Vec<(usize, Row)> =
        import.rows.iter().cloned().enumerate().skip(import.outcomes.len()).take(AT_A_TIME).collect();
    for (at, row) in next {
        let is_rejected =
            world.faults.rejects_row(email, at + 1) || world.faults.refuses(email, "/import", &row.name);
        let restaurant = world.restaurant(email, slug)?;
        let outcome =
            if is_rejected { Some("Refused".to_owned()) } else { store(restaurant, row.item).err() };
        restaurant.imports.get_mut(id)?.outcomes.push(outcome);
    }
    let restaurant = world.restaurant(email, slug)?;
    let import = restaurant.imports.get_mut(id)?;
    if import.outcomes.len() < import.rows.len() {
        return Some(true);
    }
    import.stage = Stage::Done;
    restaurant.changes += 1;
    Some(false)
}

fn store(restaurant: &mut Restaurant, item: Result<Item, String>) -> Result<(), String> {
    let item = item?;
    let is_same = |known: &Item| known.name == item.name && known.category == item.category;
    if restaurant.menu.iter().any(is_same) {
        return Err("Already exists".into());
    }
    restaurant.menu.push(item);
    Ok(())
}
