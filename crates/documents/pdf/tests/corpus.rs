//! Every document of the shared corpus gives a model or a clear refusal, within bounds.

use std::path::{Path, PathBuf};

use ode_pdf::{Limits, Refusal};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "pdf") {
            found.push(path);
        }
    }
}

#[test]
fn every_document_gives_a_model_or_a_clear_refusal() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/corpus");
    let mut found = Vec::new();
    files(&corpus, &mut found);
    if found.is_empty() {
        eprintln!("SKIPPED: no PDF files under {}", corpus.display());
        return;
    }
    found.sort();
    for path in &found {
        let bytes = std::fs::read(path).expect("the corpus is readable");
        match ode_pdf::read(bytes, &Limits::default()) {
            Ok(document) => check_model(&document, path),
            Err(refusal) => assert_ne!(refusal, Refusal::Failed, "{}", path.display()),
        }
    }
}

/// Ranges fit together, words are in exactly one line, boxes are finite and the right way round.
fn check_model(document: &ode_pdf::Document, path: &Path) {
    for page in &document.pages {
        let place = format!("{} page {}", path.display(), page.number);
        let mut next_word = 0;
        for line in &page.lines {
            assert_eq!(line.words.start, next_word, "{place}: words are in exactly one line");
            assert!(!line.words.is_empty(), "{place}: a line has words");
            next_word = line.words.end;
        }
        assert_eq!(next_word, page.words.len(), "{place}: every word is in a line");
        let lines: usize = page.blocks.iter().map(|block| block.lines.len()).sum();
        assert_eq!(lines, page.lines.len(), "{place}: every line is in a block");
        for word in &page.words {
            let bbox = word.bbox;
            assert!(bbox.x0 <= bbox.x1 && bbox.y0 <= bbox.y1, "{place}: {word:?}");
            assert!(
                [bbox.x0, bbox.y0, bbox.x1, bbox.y1].iter().all(|edge| edge.is_finite()),
                "{place}: {word:?}"
            );
            assert_eq!(word.edges.len(), word.text.chars().count() + 1, "{place}: {word:?}");
            assert!(!word.text.is_empty(), "{place}: a word has letters");
        }
        assert!((0.0..=1.0).contains(&page.image_share), "{place}");
    }
}
