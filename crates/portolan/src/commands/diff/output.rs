//! How a report is printed.

use camino::Utf8PathBuf;
use portolan_diff::Report;
use portolan_diff::render::{
    Colour, MARKDOWN_LIMIT, TerminalOptions, github, html, image_lines, json, markdown,
    side_by_side, unified,
};
use portolan_files::write_file;
use portolan_review::compare::Trees;

use super::{DiffArgs, What};
use crate::commands::ship::ArtifactFormat;
use crate::error::CommandError;
use crate::printer::Printer;

/// The narrowest terminal that has room for two sides.
const WIDE: usize = 120;

/// The form of the answer.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs {
    /// Output format
    #[arg(short, long, value_name = "FORM", default_value = "auto")]
    output: Form,

    /// Show added and removed objects with all of their content
    #[arg(long)]
    full: bool,

    /// The most characters of a Markdown answer
    #[arg(long, value_name = "COUNT", default_value_t = MARKDOWN_LIMIT)]
    max_chars: usize,

    /// Write the answer to a file
    #[arg(long, value_name = "FILE")]
    output_file: Option<Utf8PathBuf>,

    /// Write the answer in another format to a file as well, as in `markdown=diff.md`; may be repeated
    #[arg(long = "write", value_name = "FORM=FILE", value_parser = parse_copy)]
    copies: Vec<FileCopy>,
}

/// The answer once more: in which form, and where to.
type FileCopy = (Form, Utf8PathBuf);

fn parse_copy(text: &str) -> Result<FileCopy, String> {
    let (form, file) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not of the form FORM=FILE"))?;
    let form = <Form as clap::ValueEnum>::from_str(form, false)?;
    Ok((form, Utf8PathBuf::from(file)))
}

/// The form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// Side by side on a wide terminal, else unified
    Auto,
    /// Old values above new ones
    #[value(alias = "diff")]
    Unified,
    /// Old values beside new ones
    SideBySide,
    /// A document for programs
    Json,
    /// A comment for a pull request
    Markdown,
    /// A page of its own
    Html,
    /// Annotations of a GitHub workflow
    Github,
}

impl OutputArgs {
    /// The format of an answer about artifacts.
    pub(super) fn of_artifacts(&self) -> Result<ArtifactFormat, CommandError> {
        if self.output_file.is_some() || !self.copies.is_empty() {
            return Err(CommandError::usage(
                "`diff artifacts` writes to standard output only",
            ));
        }
        match self.output {
            Form::Auto | Form::Unified => Ok(ArtifactFormat::Text),
            Form::Json => Ok(ArtifactFormat::Json),
            Form::Markdown => Ok(ArtifactFormat::Markdown),
            Form::SideBySide | Form::Html | Form::Github => Err(CommandError::usage(
                "`diff artifacts` has the formats `unified`, `json` and `markdown`",
            )),
        }
    }
}

pub(super) fn print(
    args: &DiffArgs,
    trees: &Trees,
    report: &Report,
    printer: &Printer,
) -> Result<(), CommandError> {
    for (form, path) in &args.output.copies {
        let copy = text(args, *form, true, trees, report, printer);
        write_file(path, printer.hidden().clean(&copy).as_bytes())?;
    }
    let file = args.output.output_file.as_ref();
    let text = text(
        args,
        args.output.output,
        file.is_some(),
        trees,
        report,
        printer,
    );
    match file {
        None => printer.data(text),
        Some(path) => Ok(write_file(path, printer.hidden().clean(&text).as_bytes())?),
    }
}

fn text(
    args: &DiffArgs,
    form: Form,
    to_file: bool,
    trees: &Trees,
    report: &Report,
    printer: &Printer,
) -> String {
    let canvas = printer.canvas();
    let options = TerminalOptions {
        colour: if canvas.styled && !to_file {
            Colour::Always
        } else {
            Colour::Never
        },
        width: canvas.width.unwrap_or(WIDE),
        full: args.output.full,
    };
    let is_wide = !to_file && canvas.width.is_some_and(|width| width >= WIDE);
    match form {
        Form::Auto | Form::Unified | Form::SideBySide if args.what() == What::Images => {
            image_lines(report, &options)
        }
        Form::Auto if is_wide => side_by_side(report, &options),
        Form::Auto | Form::Unified => unified(report, &options),
        Form::SideBySide => side_by_side(report, &options),
        Form::Json => json(report),
        Form::Markdown => markdown(report, args.output.max_chars),
        Form::Html => html(report, &trees.title),
        Form::Github => github(report, &trees.prefix),
    }
}
