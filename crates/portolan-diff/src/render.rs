//! The ways of printing a [`Report`](crate::Report).
//!
//! | function | for |
//! |---|---|
//! | [`unified`] | a terminal or a log |
//! | [`side_by_side`] | a wide terminal |
//! | [`json`] | programs; its keys are stable |
//! | [`markdown`] | the comment on a pull request |
//! | [`html`] | a separate page |
//! | [`github`] | annotations in a workflow's log |
//!
//! Each output is safe where it is shown: control characters, markup and workflow commands in rendered values are
//! escaped.

mod github;
mod html;
mod json;
mod line;
mod markdown;
mod paint;
mod terminal;
mod words;

pub use github::github;
pub use html::html;
pub use json::json;
pub use markdown::{MARKDOWN_LIMIT, MARKER, markdown};
pub use paint::Colour;
pub use terminal::{TerminalOptions, image_lines, side_by_side, unified};
