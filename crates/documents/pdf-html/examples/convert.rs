//! Converts a PDF into a folder: `convert FILE FOLDER [CONFIG]`, where the configuration is JSON.

use ode_pdf_html::{ConversionConfig, Limits, convert};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "Use: convert FILE FOLDER [CONFIG]";
    let (file, folder) = (arguments.next().ok_or(usage)?, arguments.next().ok_or(usage)?);
    let config: ConversionConfig = match arguments.next() {
        Some(config) => serde_json::from_str(&config)?,
        None => ConversionConfig::default(),
    };
    let conversion = convert(std::fs::read(file)?, &config, &Limits::default())?;
    for asset in &conversion.assets {
        let path = std::path::Path::new(&folder).join(&asset.path);
        std::fs::create_dir_all(path.parent().ok_or(usage)?)?;
        std::fs::write(path, &asset.bytes)?;
    }
    conversion.warnings.iter().for_each(|warning| eprintln!("{warning}"));
    Ok(())
}
