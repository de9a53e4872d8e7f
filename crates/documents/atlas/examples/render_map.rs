//! Draws a map: `render_map SPEC.json OUT.png [PREVIEW_WIDTH]`.

use ode_atlas::{Options, Spec, render};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let spec = Spec::parse(&std::fs::read(&args[1])?)?;
    let preview_width = args.get(3).map(|width| width.parse()).transpose()?;
    let out = std::io::BufWriter::new(std::fs::File::create(&args[2])?);
    println!("{:?}", render(&spec, &Options { preview_width, ..Options::default() }, out)?);
    Ok(())
}
