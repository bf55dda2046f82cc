//! A comparison as a picture: a line a case, a dot a contestant, at its time, by itself or relative to the best peer's.

use std::fmt::Write as _;

use crate::report::{Report, Row};

/// How our own contestant is called in the picture.
pub const OURS: &str = "Marquetry";

const WIDTH: f64 = 1000.0;
const PLOT_LEFT: f64 = 330.0;
const PLOT_RIGHT: f64 = 880.0;
const ROW_HEIGHT: f64 = 19.0;
const HEADER_HEIGHT: f64 = 62.0;
const GROUP_HEIGHT: f64 = 52.0;

/// What dots are placed by; logarithmic, and what is beyond its ends is drawn at the edge.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Its lines and their names, from one end to the other.
    marks: &'static [(f64, &'static str)],
    /// The mark whose line is the heaviest.
    heavy: f64,
    /// The largest value that is good, and its name.
    bar: f64,
    bar_unit: &'static str,
    /// Values are multiples of the best peer's, which stands at the line's end. Else our own stands there.
    is_relative: bool,
}

impl Axis {
    /// Multiples of the best peer's time, of which `bar` is the largest that is good.
    pub const fn relative(bar: f64) -> Self {
        const MARKS: &[(f64, &str)] = &[
            (0.25, "0.25×"),
            (0.5, "0.5×"),
            (1.0, "1×"),
            (2.0, "2×"),
            (4.0, "4×"),
            (8.0, "8×"),
            (16.0, "16×"),
        ];
        Self { marks: MARKS, heavy: 1.0, bar, bar_unit: "×", is_relative: true }
    }

    /// Microseconds, of which `bar` are the most that is good.
    pub const fn microseconds(bar: f64) -> Self {
        const MARKS: &[(f64, &str)] = &[
            (10.0, "10 µs"),
            (100.0, "100 µs"),
            (1e3, "1 ms"),
            (1e4, "10 ms"),
            (1e5, "100 ms"),
            (1e6, "1 s"),
            (1e7, "10 s"),
        ];
        Self { marks: MARKS, heavy: 1e3, bar, bar_unit: " µs", is_relative: false }
    }

    /// Where a value is.
    fn place(&self, value: f64) -> f64 {
        let (low, high) = match self.marks {
            [(low, _), .., (high, _)] => (*low, *high),
            _ => (1.0, 2.0),
        };
        let part = (value.clamp(low, high) / low).ln() / (high / low).ln();
        PLOT_LEFT + part * (PLOT_RIGHT - PLOT_LEFT)
    }
}

/// Okabe and Ito's colours, which people with any colour vision tell apart; ours is the most vivid.
const OURS_COLOUR: &str = "#d55e00";
const COLOURS: [&str; 6] = ["#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f"];

/// Draws the report as an SVG document.
pub fn draw(report: &Report, axis: &Axis) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in report.rows.iter().flat_map(|row| &row.peers) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let mut body = legend(&report.title, &names);
    let mut y = HEADER_HEIGHT;
    // What ours does with fewer of the processor's instructions is in the tables alone.
    let is_lower = |rows: &[&Row]| rows.iter().all(|row| row.more["is_lower_level"] == true);
    for (group, rows) in report.groups().into_iter().filter(|(_, rows)| !is_lower(rows)) {
        y = draw_group(&mut body, y, group, &rows, &names, axis);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"12\" fill=\"#222\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n",
        height = y + 14.0
    )
}

fn legend(title: &str, names: &[&str]) -> String {
    let mut text =
        format!("<text x=\"20\" y=\"26\" font-size=\"16\" font-weight=\"bold\">{}</text>\n", escape(title));
    let mut x = 26.0;
    for name in std::iter::once(&OURS).chain(names) {
        text += &dot(x, 46.0, name, names);
        let _ = writeln!(text, "<text x=\"{}\" y=\"50\">{}</text>", x + 10.0, escape(name));
        // Widths of text are not known here; 7 a letter is a little more than Helvetica's mean.
        x += 34.0 + 7.0 * name.chars().map(|_| 1.0).sum::<f64>();
    }
    text
}

/// Draws one group's panel from `top` down; returns where it ends.
fn draw_group(body: &mut String, top: f64, group: &str, rows: &[&Row], names: &[&str], axis: &Axis) -> f64 {
    let first = top + GROUP_HEIGHT;
    let bottom = first + ROW_HEIGHT * rows.iter().map(|_| 1.0).sum::<f64>();
    let _ = writeln!(
        body,
        "<text x=\"20\" y=\"{}\" font-weight=\"bold\" font-size=\"13\">{}</text>",
        first - 14.0,
        escape(group)
    );
    let _ = writeln!(
        body,
        "<rect x=\"{PLOT_LEFT}\" y=\"{first}\" width=\"{}\" height=\"{}\" fill=\"#eef6ee\"/>",
        axis.place(axis.bar) - PLOT_LEFT,
        bottom - first
    );
    for &(mark, name) in axis.marks {
        let (x, weight) = (axis.place(mark), if mark == axis.heavy { 1.5 } else { 0.6 });
        let _ = writeln!(
            body,
            "<line x1=\"{x}\" y1=\"{first}\" x2=\"{x}\" y2=\"{bottom}\" stroke=\"#999\" stroke-width=\"{weight}\"/>\
             <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" fill=\"#666\">{name}</text>",
            first - 6.0
        );
    }
    let x = axis.place(axis.bar);
    let (bar, unit) = (axis.bar, axis.bar_unit);
    let _ = writeln!(
        body,
        "<line x1=\"{x}\" y1=\"{first}\" x2=\"{x}\" y2=\"{bottom}\" stroke=\"#2a7a2a\" stroke-dasharray=\"4 3\"/>\
         <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" fill=\"#2a7a2a\">bar {bar}{unit}</text>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#666\">{}</text>",
        first - 22.0,
        WIDTH - 20.0,
        first - 6.0,
        if axis.is_relative { "best peer" } else { OURS },
    );
    let mut y = first;
    for row in rows {
        draw_row(body, y + ROW_HEIGHT / 2.0, row, names, axis);
        y += ROW_HEIGHT;
    }
    bottom
}

fn draw_row(body: &mut String, y: f64, row: &Row, names: &[&str], axis: &Axis) {
    let (one, shown) = if axis.is_relative {
        let Some(&(_, best)) = row.best_peer() else { return };
        (best, Some(best))
    } else {
        (1.0, row.ours)
    };
    let shown = shown.map_or("–".to_owned(), |shown| format!("{shown:.1}"));
    let (failed, weight) =
        (row.holds() == Some(false), if row.holds() == Some(false) { "bold" } else { "normal" });
    let _ = writeln!(
        body,
        "<line x1=\"{PLOT_LEFT}\" y1=\"{y}\" x2=\"{PLOT_RIGHT}\" y2=\"{y}\" stroke=\"#ddd\" stroke-width=\"0.7\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\" font-weight=\"{weight}\" fill=\"{}\">{}</text>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#666\">{shown} {}</text>",
        PLOT_LEFT - 12.0,
        y + 4.0,
        if failed { "#b00000" } else { "#222" },
        escape(&row.case),
        WIDTH - 20.0,
        y + 4.0,
        row.unit
    );
    for (name, value) in &row.peers {
        *body += &dot(axis.place(value / one), y, name, names);
    }
    if let Some(ours) = row.ours {
        *body += &dot(axis.place(ours / one), y, OURS, names);
    }
}

/// A contestant's mark: a circle, or for us a diamond.
fn dot(x: f64, y: f64, name: &str, names: &[&str]) -> String {
    if name == OURS {
        return format!(
            "<path d=\"M{x:.1} {:.1} l6.5 6.5 l-6.5 6.5 l-6.5 -6.5z\" fill=\"{OURS_COLOUR}\" stroke=\"#fff\"/>\n",
            y - 6.5
        );
    }
    let index = names.iter().position(|other| *other == name).unwrap_or_default();
    let colour = COLOURS[index % COLOURS.len()];
    format!(
        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.6\" fill=\"{colour}\" fill-opacity=\"0.85\" stroke=\"#fff\"/>\n"
    )
}

/// A contestant's values in a panel of a chart of lines.
#[derive(Clone, Debug)]
pub struct Line {
    /// The panel that it is in.
    pub panel: String,
    /// The contestant: [`OURS`], or a peer's name.
    pub name: String,
    /// Sizes and values, both above 0.
    pub points: Vec<(f64, f64)>,
}

const PANEL_WIDTH: f64 = 300.0;
const PANEL_HEIGHT: f64 = 260.0;
const PANEL_GAP: f64 = 80.0;

/// Draws lines over sizes as an SVG document: both axes are logarithmic, so that what is linear rises as steeply as the grey lines, by which all of a panel
/// may be judged. `unit` is that of all values.
pub fn draw_lines(title: &str, unit: &str, lines: &[Line]) -> String {
    let (mut names, mut panels): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for line in lines {
        if line.name != OURS && !names.contains(&&*line.name) {
            names.push(&line.name);
        }
        if !panels.contains(&&*line.panel) {
            panels.push(&line.panel);
        }
    }
    let mut body = legend(title, &names);
    let mut left = PANEL_GAP;
    for panel in panels {
        let of: Vec<&Line> = lines.iter().filter(|line| line.panel == panel).collect();
        draw_panel(&mut body, left, panel, unit, &of, &names);
        left += PANEL_WIDTH + PANEL_GAP;
    }
    let (width, height) = (left.max(WIDTH), HEADER_HEIGHT + PANEL_HEIGHT + 70.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"12\" fill=\"#222\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}

/// Whole powers of ten around what there is: from the first to the last.
fn decades(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let low = values.clone().fold(f64::INFINITY, f64::min).log10().floor();
    let high = values.fold(f64::NEG_INFINITY, f64::max).log10().ceil();
    if low.is_finite() && high.is_finite() { (low, high.max(low + 1.0)) } else { (0.0, 1.0) }
}

fn draw_panel(body: &mut String, left: f64, panel: &str, unit: &str, lines: &[&Line], names: &[&str]) {
    let points = || lines.iter().flat_map(|line| &line.points);
    let (sizes, values) = (decades(points().map(|point| point.0)), decades(points().map(|point| point.1)));
    let (top, bottom) = (HEADER_HEIGHT + 30.0, HEADER_HEIGHT + 30.0 + PANEL_HEIGHT);
    let x = |decade: f64| left + (decade - sizes.0) / (sizes.1 - sizes.0) * PANEL_WIDTH;
    let y = |decade: f64| bottom - (decade - values.0) / (values.1 - values.0) * PANEL_HEIGHT;
    let _ = writeln!(
        body,
        "<text x=\"{left}\" y=\"{}\" font-weight=\"bold\" font-size=\"13\">{}, {}</text>\
         <clipPath id=\"clip{left}\"><rect x=\"{left}\" y=\"{top}\" width=\"{PANEL_WIDTH}\" height=\"{PANEL_HEIGHT}\"/></clipPath>",
        top - 12.0,
        escape(unit),
        escape(panel)
    );
    let mut decade = sizes.0;
    while decade <= sizes.1 {
        let (at, mark) = (x(decade), power_of_ten(decade));
        let _ = writeln!(
            body,
            "<line x1=\"{at}\" y1=\"{top}\" x2=\"{at}\" y2=\"{bottom}\" stroke=\"#ddd\"/>\
             <text x=\"{at}\" y=\"{}\" text-anchor=\"middle\" fill=\"#666\">{mark}</text>",
            bottom + 16.0
        );
        decade += 1.0;
    }
    decade = values.0;
    while decade <= values.1 {
        let (at, mark) = (y(decade), power_of_ten(decade));
        let _ = writeln!(
            body,
            "<line x1=\"{left}\" y1=\"{at}\" x2=\"{}\" y2=\"{at}\" stroke=\"#ddd\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#666\">{mark}</text>",
            left + PANEL_WIDTH,
            left - 6.0,
            at + 4.0
        );
        // What is linear, from here.
        let _ = writeln!(
            body,
            "<line x1=\"{left}\" y1=\"{at}\" x2=\"{}\" y2=\"{}\" stroke=\"#bbb\" stroke-dasharray=\"2 4\" clip-path=\"url(#clip{left})\"/>",
            x(sizes.1),
            y(decade + sizes.1 - sizes.0)
        );
        decade += 1.0;
    }
    for line in lines {
        let at: Vec<(f64, f64)> =
            line.points.iter().map(|(size, value)| (x(size.log10()), y(value.log10()))).collect();
        let path: Vec<String> = at.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let index = names.iter().position(|name| *name == line.name);
        let colour = index.map_or(OURS_COLOUR, |index| COLOURS[index % COLOURS.len()]);
        let _ = writeln!(
            body,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
            path.join(" ")
        );
        for (x, y) in at {
            *body += &dot(x, y, &line.name, names);
        }
    }
}

/// A mark of a logarithmic axis: 0.001, 1, 100,000.
fn power_of_ten(decade: f64) -> String {
    let text = if decade < 0.0 {
        format!("{:.*}", decimals(decade), 10f64.powf(decade))
    } else {
        format!("{:.0}", 10f64.powf(decade))
    };
    let places = text.len();
    if decade < 4.0 {
        return text;
    }
    let mut out = String::new();
    for (index, digit) in text.chars().enumerate() {
        if index > 0 && (places - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// How many places behind the point a negative power of ten has.
fn decimals(decade: f64) -> usize {
    (1..).take_while(|places| f64::from(*places) < -decade).count() + 1
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_logarithmic_and_ends() {
        let axis = Axis::relative(1.5);
        let place = |value| axis.place(value);
        assert!((place(2.0) - place(1.0) - (place(16.0) - place(8.0))).abs() < 1e-9);
        assert_eq!(place(0.01), PLOT_LEFT);
        assert_eq!(place(99.0), PLOT_RIGHT);
        assert_eq!(Axis::microseconds(500.0).place(10.0), PLOT_LEFT);
    }

    #[test]
    fn axes_are_marked_at_powers_of_ten() {
        assert_eq!(
            [-3.0, -1.0, 0.0, 2.0, 4.0, 6.0].map(power_of_ten),
            ["0.001", "0.1", "1", "100", "10,000", "1,000,000"]
        );
        assert_eq!(decades([0.02, 30.0].into_iter()), (-2.0, 2.0));
        assert_eq!(decades([10.0].into_iter()), (1.0, 2.0));
        assert_eq!(decades(std::iter::empty()), (0.0, 1.0));
    }

    #[test]
    fn lines_are_drawn_in_the_panel_of_their_own() {
        let line = |panel: &str, name: &str| Line {
            panel: panel.to_owned(),
            name: name.to_owned(),
            points: vec![(10.0, 0.5), (100.0, 5.0)],
        };
        let svg = draw_lines(
            "More",
            "seconds",
            &[line("by size", OURS), line("by size", "peer"), line("by columns", OURS)],
        );
        assert_eq!(svg.matches("<polyline").count(), 3);
        assert_eq!(svg.matches("<clipPath").count(), 2);
        assert!(svg.contains(">seconds, by columns</text>"), "{svg}");
    }
}
