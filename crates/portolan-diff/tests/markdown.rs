//! Markdown comments as a `CommonMark` reader sees them.

mod sides;

use std::fmt::Write as _;

use portolan_diff::render::{MARKDOWN_LIMIT, markdown};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use sides::{compared, pull_request_report};

/// The code blocks of a text, and the HTML tags outside of them.
fn read(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut blocks, mut html) = (Vec::new(), Vec::new());
    let mut block: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                assert_eq!(&*language, "diff");
                block = Some(String::new());
            }
            Event::End(TagEnd::CodeBlock) => blocks.extend(block.take()),
            Event::Text(text) => {
                if let Some(block) = &mut block {
                    block.push_str(&text);
                }
            }
            Event::Html(text) | Event::InlineHtml(text) => html.push(text.to_string()),
            _ => {}
        }
    }
    (blocks, html)
}

fn count(html: &[String], tag: &str) -> usize {
    html.iter().map(|text| text.matches(tag).count()).sum()
}

#[test]
fn every_object_is_one_folded_block() {
    let text = markdown(&pull_request_report(), MARKDOWN_LIMIT);
    let (blocks, html) = read(&text);
    let changes = pull_request_report().changes.len();
    assert_eq!(blocks.len(), changes);
    assert_eq!(count(&html, "<details>"), changes);
    assert_eq!(count(&html, "</details>"), changes);
}

#[test]
fn a_value_cannot_close_its_block() {
    let config = |value: &str| {
        format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: x}}, data: {{page: {value}}}}}"
        )
    };
    let hostile = r#""```\n</details>\n<b>bold</b>\n`````\n# heading""#;
    let text = markdown(&compared(&config("calm"), &config(hostile)), MARKDOWN_LIMIT);
    let (blocks, html) = read(&text);
    assert_eq!(blocks.len(), 1);
    assert!(blocks[0].contains("+ <b>bold</b>"), "{text}");
    assert_eq!(count(&html, "</details>"), 1);
    assert_eq!(count(&html, "<b>"), 0);
}

/// Many objects with long values, as a large pull request has them.
fn large(objects: usize, lines: usize, word: &str) -> String {
    let mut text = String::new();
    for object in 0..objects {
        let _ = write!(
            text,
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: config-{object}}}\ndata:\n  a: |\n"
        );
        for line in 0..lines {
            let _ = writeln!(text, "    {word} of line {line}");
        }
    }
    text
}

#[test]
fn a_comment_never_exceeds_its_limit_and_stays_well_formed() {
    for (objects, lines) in [(3, 10), (20, 400), (3_000, 2), (1, 9_000)] {
        let report = compared(&large(objects, lines, "old"), &large(objects, lines, "new"));
        let text = markdown(&report, MARKDOWN_LIMIT);
        assert!(text.len() <= MARKDOWN_LIMIT, "{} bytes", text.len());
        let (blocks, html) = read(&text);
        assert_eq!(blocks.len(), count(&html, "<details>"));
        assert_eq!(count(&html, "<details>"), count(&html, "</details>"));
        if blocks.len() < objects {
            assert!(text.contains("not shown"), "says what is left out");
        }
    }
}

#[test]
fn even_a_tiny_limit_is_kept() {
    for limit in [0, 10, 100, 1_000] {
        let text = markdown(&pull_request_report(), limit);
        assert!(text.len() <= limit, "{} of {limit}", text.len());
    }
}
