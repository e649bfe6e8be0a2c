//! The smallest `helm template`: `template NAME CHART [-n NAMESPACE] [-f FILE]… [--set TEXT]… [--show-only FILE]…`.

use camino::Utf8PathBuf;
use portolan_helm::values::Overrides;
use portolan_helm::{Chart, OutputOptions, Release, TemplateInput, template};
use portolan_vfs::Disk;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut plain = Vec::new();
    let (mut overrides, mut output) = (Overrides::default(), OutputOptions::default());
    let mut namespace = "default".to_owned();
    let mut skip_schema_validation = false;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut next = || args.next().ok_or(format!("{arg} needs a value"));
        match arg.as_str() {
            "-n" => namespace = next()?,
            "-f" => {
                let name = next()?;
                let content = std::fs::read(&name)?;
                overrides.files.push((name, content));
            }
            "--set" => overrides.typed.push(next()?),
            "--show-only" => output.show_only.push(next()?),
            "--skip-schema-validation" => skip_schema_validation = true,
            _ => plain.push(arg),
        }
    }
    let [name, path] = plain.as_slice() else {
        return Err("a name and a chart are needed".into());
    };
    let disk = Disk::open(&Utf8PathBuf::from(path))?;
    let chart = Chart::load(&disk, "/".into())?;
    let input = TemplateInput {
        values: overrides.merge(&mut |name| Err(format!("{name} is not read")))?,
        skip_schema_validation,
        ..TemplateInput::new(Release::new(name.as_str(), namespace))
    };
    let rendered = template(&chart, &input)?;
    #[expect(clippy::print_stdout, reason = "an example prints its answer")]
    {
        print!("{}", rendered.to_text(&output)?);
    }
    Ok(())
}
