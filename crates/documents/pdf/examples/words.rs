//! Prints the text of PDF files: `words [--boxes] FILE…`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut has_boxes = false;
    let mut status = ExitCode::SUCCESS;
    for argument in std::env::args().skip(1) {
        if argument == "--boxes" {
            has_boxes = true;
            continue;
        }
        let bytes = match std::fs::read(&argument) {
            Ok(bytes) => bytes,
            Err(error) => {
                eprintln!("{argument}: {error}");
                status = ExitCode::FAILURE;
                continue;
            }
        };
        match ode_pdf::read(bytes, &ode_pdf::Limits::default()) {
            Ok(document) if has_boxes => print_boxes(&document),
            Ok(document) => print!("{}", document.to_text()),
            Err(refusal) => {
                eprintln!("{argument}: {refusal}");
                status = ExitCode::from(2);
            }
        }
    }
    status
}

fn print_boxes(document: &ode_pdf::Document) {
    for page in &document.pages {
        println!(
            "page {} {:.0}x{:.0} images {:.2} rules {} unknown {}",
            page.number,
            page.width,
            page.height,
            page.image_share,
            page.rules.len(),
            page.unknown_glyphs
        );
        for (number, block) in page.blocks.iter().enumerate() {
            println!(" block {number}");
            for line in &page.lines[block.lines.clone()] {
                print!("  ");
                for word in &page.words[line.words.clone()] {
                    let bbox = word.bbox;
                    print!("{}[{:.0},{:.0},{:.0},{:.0}] ", word.text, bbox.x0, bbox.y0, bbox.x1, bbox.y1);
                }
                println!();
            }
        }
    }
    for attachment in &document.attachments {
        println!(
            "attachment {} {:?} {:?} {} bytes",
            attachment.name,
            attachment.media_type,
            attachment.relation,
            attachment.bytes.len()
        );
    }
    for warning in &document.warnings {
        println!("warning {warning}");
    }
}
