//! Parses and executes a template with its helpers.

use std::sync::Arc;

use portolan_gotmpl::{
    Executor, Limits, Options, TemplateSet, TextParser, Value, clean_output, exec_message,
    helm_functions, parse_message,
};

use super::{MissingKeyName, TemplateArgs};
use crate::diagnostic::{Diagnostic, Place};
use crate::error::CommandError;
use crate::input::Input;
use crate::printer::Printer;
use crate::random_args::CommandHost;

/// Why a template gave nothing, and the line that is to blame.
pub(super) struct Refusal {
    message: String,
    line: usize,
    column: usize,
}

impl Refusal {
    /// Prints it with the line.
    pub(super) fn tell(&self, input: &Input, printer: &Printer) {
        let text = String::from_utf8_lossy(&input.bytes);
        let (line, column) = (self.line, self.column);
        let place = Place {
            file: &input.name,
            text: &text,
            line,
            column,
        };
        let place = (line > 0).then_some(place);
        printer.diagnostic(&Diagnostic {
            message: self.message.clone(),
            place,
            hints: Vec::new(),
        });
    }
}

/// What the template prints.
pub(super) fn execute(args: &TemplateArgs, input: &Input, dot: Value) -> Result<String, Refusal> {
    let limits = Limits::default();
    let mut parser = TextParser::new(Arc::new(helm_functions()), limits.parse_depth);
    if let [left, right] = args.delimiters.as_slice() {
        parser = parser.with_delimiters(left, right);
    }
    let mut set = TemplateSet::default();
    for file in &args.include {
        let helper = Input::read(file).map_err(|error| Refusal::outside(&error))?;
        add(&mut set, &parser, &helper).map_err(|mut refusal| {
            refusal.line = 0;
            refusal
        })?;
    }
    add(&mut set, &parser, input)?;
    let options = Options {
        missing_key: args.missing_key.into(),
        ..Options::default()
    };
    let outside = |error: CommandError| Refusal::outside(&error);
    let mut host = CommandHost::new(&input.name, args.random).map_err(outside)?;
    let mut executor =
        Executor::new(&set, &parser, options, &limits, &mut host).with_budget(args.limit.budget());
    let output = executor.execute(&input.name, dot).map_err(|error| {
        let own = error
            .place
            .as_ref()
            .filter(|place| place.file == input.name);
        let (line, column) = own.map_or((0, 0), |place| (place.line, place.column + 1));
        Refusal {
            message: exec_message(&error),
            line,
            column,
        }
    })?;
    host.check().map_err(outside)?;
    Ok(if args.missing_key == MissingKeyName::Zero {
        clean_output(output)
    } else {
        output
    })
}

fn add(set: &mut TemplateSet, parser: &TextParser, input: &Input) -> Result<(), Refusal> {
    let parsed = parser
        .parse(&input.name, &String::from_utf8_lossy(&input.bytes))
        .map_err(|error| Refusal {
            message: parse_message(&error),
            line: error.line,
            column: 1,
        })?;
    set.add(&parsed);
    Ok(())
}

impl Refusal {
    fn outside(error: &CommandError) -> Self {
        Self {
            message: format!("{:#}", error.source),
            line: 0,
            column: 0,
        }
    }
}
