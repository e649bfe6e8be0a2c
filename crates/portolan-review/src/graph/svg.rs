//! A graph as an SVG picture: a column for each level of the trees, parents in the middle of their children.
//!
//! ```text
//! leaves one below the other ──▶ parents centred ──▶ boxes by column ──▶ curves between them
//! ```

use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

use super::{Graph, Kind, Relation};
use crate::Health;
use crate::clip::clip;

/// Sizes in pixels; a letter of the monospaced font is this wide.
const LETTER: f64 = 7.3;
const BOX_HEIGHT: f64 = 40.0;
const ROW: f64 = 52.0;
const COLUMN_GAP: f64 = 70.0;
const MARGIN: f64 = 24.0;
const PADDING: f64 = 12.0;

/// The most letters of a title or detail that are drawn.
const MAX_LETTERS: usize = 48;

const STYLE: &str = "\
text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1b2733}\
.detail{fill:#5a6b7b;font-size:11px}.cluster{font-size:14px;font-weight:bold}\
rect{fill:#f6f8fa;stroke:#8896a5;rx:6}.HelmRelease rect{fill:#e8f1fb;stroke:#4a7fb5}\
.Source rect{fill:#fdf6e3;stroke:#b58900}.Object rect{fill:#fff;stroke:#c8d1da}\
.failed rect{stroke:#c62828;stroke-width:2}.noted rect{stroke:#ef6c00;stroke-width:2}.suspended{opacity:.55}\
path{fill:none;stroke:#8896a5}.needs{stroke:#7b5ea7;stroke-dasharray:5 4}.reads{stroke:#b58900;stroke-dasharray:2 3}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.detail{fill:#9aa8b5}rect{fill:#161b22}\
.HelmRelease rect{fill:#10243a}.Source rect{fill:#2b2410}.Object rect{fill:#0d1117}}";

/// Where a node's box lies.
#[derive(Debug, Clone, Copy, Default)]
struct Spot {
    x: f64,
    /// The middle of the box.
    y: f64,
    width: f64,
}

/// Draws the graph.
pub(super) fn draw(graph: &Graph<'_>) -> String {
    let layout = Layout::of(graph);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w:.0}\" height=\"{h:.0}\" viewBox=\"0 0 {w:.0} {h:.0}\">\n<style>{STYLE}</style>\n{ARROW}\n",
        w = layout.width,
        h = layout.height,
    );
    for (name, y) in &layout.titles {
        push(
            &mut svg,
            &format!(
                "<text class=\"cluster\" x=\"{MARGIN}\" y=\"{y:.0}\">{}</text>",
                escaped(name)
            ),
        );
    }
    for (at, node) in graph.nodes.iter().enumerate() {
        if let Some(parent) = node.parent {
            let curve = between(layout.spots[parent], layout.spots[at]);
            push(&mut svg, &format!("<path d=\"{curve}\"/>"));
        }
    }
    for edge in &graph.edges {
        let (class, curve) = match edge.relation {
            Relation::Needs => (
                "needs",
                around(layout.spots[edge.from], layout.spots[edge.to]),
            ),
            Relation::Reads => (
                "reads",
                around(layout.spots[edge.from], layout.spots[edge.to]),
            ),
        };
        let path = format!("<path class=\"{class}\" marker-end=\"url(#arrow)\" d=\"{curve}\"/>");
        push(&mut svg, &path);
    }
    for at in 0..graph.nodes.len() {
        draw_node(&mut svg, graph, at, layout.spots[at]);
    }
    svg.push_str("</svg>\n");
    svg
}

const ARROW: &str = "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0L8 4L0 8\"/></marker></defs>";

/// Where everything lies.
struct Layout {
    spots: Vec<Spot>,
    /// The clusters' names and where they stand, when there are several.
    titles: Vec<(String, f64)>,
    width: f64,
    height: f64,
}

impl Layout {
    fn of(graph: &Graph<'_>) -> Self {
        let levels = levels(graph);
        let mut layout = Self {
            spots: vec![Spot::default(); graph.nodes.len()],
            titles: Vec::new(),
            width: 0.0,
            height: MARGIN,
        };
        layout.place_rows(graph);
        layout.place_columns(graph, &levels);
        layout
    }

    /// Leaves get a row each; a parent stands in the middle of its children.
    fn place_rows(&mut self, graph: &Graph<'_>) {
        let children = graph.children();
        for (cluster, name) in graph.clusters.iter().enumerate() {
            if graph.clusters.len() > 1 {
                self.titles.push((name.clone(), self.height + 12.0));
                self.height += 28.0;
            }
            for leaf in leaves(graph, &children, cluster) {
                self.spots[leaf].y = self.height + BOX_HEIGHT / 2.0;
                self.height += ROW;
            }
        }
        self.height += MARGIN - (ROW - BOX_HEIGHT);
        // Children stand behind their parents in the list, so that going backwards meets them first.
        for at in (0..graph.nodes.len()).rev() {
            if let (Some(first), Some(last)) = (children[at].first(), children[at].last()) {
                self.spots[at].y = f64::midpoint(self.spots[*first].y, self.spots[*last].y);
            }
        }
    }

    /// A column is as wide as its widest box.
    fn place_columns(&mut self, graph: &Graph<'_>, levels: &[usize]) {
        let count = levels.iter().max().map_or(0, |deepest| deepest + 1);
        let mut widths = vec![0.0_f64; count];
        for (node, level) in graph.nodes.iter().zip(levels) {
            let letters = shown(&node.title).width().max(shown(&node.detail).width());
            widths[*level] = widths[*level].max(letters as f64 * LETTER + 2.0 * PADDING);
        }
        let mut x = MARGIN;
        let mut lefts = Vec::with_capacity(count);
        for width in &widths {
            lefts.push(x);
            x += width + COLUMN_GAP;
        }
        self.width = x;
        for (spot, level) in self.spots.iter_mut().zip(levels) {
            (spot.x, spot.width) = (lefts[*level], widths[*level]);
        }
    }
}

/// How far each node is from its root; sources stand behind everything that reads them.
fn levels(graph: &Graph<'_>) -> Vec<usize> {
    let mut levels: Vec<usize> = Vec::with_capacity(graph.nodes.len());
    for node in &graph.nodes {
        let level = match (node.kind, node.parent) {
            (Kind::Source, _) => levels.iter().max().map_or(0, |deepest| deepest + 1),
            (_, Some(parent)) => levels[parent] + 1,
            (_, None) => 0,
        };
        levels.push(level);
    }
    let deepest = levels.iter().max().copied().unwrap_or(0);
    for (node, level) in graph.nodes.iter().zip(&mut levels) {
        if node.kind == Kind::Source {
            *level = deepest;
        }
    }
    levels
}

/// The nodes of a cluster without children, as a walk through its trees meets them.
fn leaves(graph: &Graph<'_>, children: &[Vec<usize>], cluster: usize) -> Vec<usize> {
    let mut leaves = Vec::new();
    let mut stack: Vec<usize> = graph.roots(cluster).collect();
    stack.reverse();
    while let Some(at) = stack.pop() {
        if children[at].is_empty() {
            leaves.push(at);
        }
        stack.extend(children[at].iter().rev());
    }
    leaves
}

fn draw_node(svg: &mut String, graph: &Graph<'_>, at: usize, spot: Spot) {
    let node = &graph.nodes[at];
    let mut class = node.kind.as_str().to_owned();
    match node.health {
        Health::Failed => class.push_str(" failed"),
        Health::Noted => class.push_str(" noted"),
        Health::Ready => {}
    }
    if node.suspended {
        class.push_str(" suspended");
    }
    let (top, text) = (spot.y - BOX_HEIGHT / 2.0, spot.x + PADDING);
    let detail = shown(&node.detail);
    let title_y = if detail.is_empty() {
        spot.y + 4.0
    } else {
        spot.y - 3.0
    };
    let tooltip = escaped(&format!(
        "{} {}\n{}",
        node.kind.as_str(),
        node.id,
        node.content
    ));
    push(
        svg,
        &format!(
            "<g class=\"{class}\"><title>{tooltip}</title><rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BOX_HEIGHT}\"/>\
             <text x=\"{text:.1}\" y=\"{title_y:.1}\">{}</text><text class=\"detail\" x=\"{text:.1}\" y=\"{:.1}\">{}</text></g>",
            spot.x,
            spot.width,
            escaped(&shown(&node.title)),
            spot.y + 13.0,
            escaped(&detail),
        ),
    );
}

/// From the right side of one box to the left side of another.
fn between(from: Spot, to: Spot) -> String {
    let (x1, x2) = (from.x + from.width, to.x);
    let middle = f64::midpoint(x1, x2);
    let (y1, y2) = (from.y, to.y);
    format!("M{x1:.1} {y1:.1}C{middle:.1} {y1:.1} {middle:.1} {y2:.1} {x2:.1} {y2:.1}")
}

/// Around the right sides of both boxes; to the left side of one that stands further right.
fn around(from: Spot, to: Spot) -> String {
    if to.x > from.x + from.width {
        return between(from, to);
    }
    let (x1, x2) = (from.x + from.width, to.x + to.width);
    let bulge = x1.max(x2) + COLUMN_GAP * 0.55;
    let (y1, y2) = (from.y + 8.0, to.y - 8.0);
    format!("M{x1:.1} {y1:.1}C{bulge:.1} {y1:.1} {bulge:.1} {y2:.1} {x2:.1} {y2:.1}")
}

fn shown(text: &str) -> String {
    clip(text, MAX_LETTERS)
}

fn push(svg: &mut String, element: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(svg, "{element}");
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML has no way to write the others.
            letter if letter.is_control() && letter != '\n' => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}
