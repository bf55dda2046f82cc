//! A comparison as a picture: a line a case, a dot a contestant, at its time, by itself or relative to the best peer's.

use std::fmt::Write as _;

use crate::report::{Better, Report, Row};

/// How our own contestant is called in the picture.
pub const OURS: &str = "Marquetry";

/// The least width of a picture.
const WIDTH: f64 = 1000.0;
/// Of the plot: its width, where it begins at least, and what is to its right.
const PLOT_WIDTH: f64 = 550.0;
const PLOT_LEFT_MIN: f64 = 330.0;
const VALUES_WIDTH: f64 = 120.0;
/// Around names of cases, which end where the plot begins, and on the picture's right.
const MARGIN: f64 = 20.0;
const LABEL_GAP: f64 = 12.0;
/// Widths of text are not known here: a bold letter of a case's name, many of which are capitals, is a little less.
const LABEL_LETTER_WIDTH: f64 = 8.0;
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
    unit: &'static str,
    /// Values are multiples of the best peer's, which stands at the line's end. Else our own stands there.
    is_relative: bool,
}

impl Axis {
    /// Multiples of the best peer's time.
    pub const fn relative() -> Self {
        const MARKS: &[(f64, &str)] = &[
            (0.25, "0.25×"),
            (0.5, "0.5×"),
            (1.0, "1×"),
            (2.0, "2×"),
            (4.0, "4×"),
            (8.0, "8×"),
            (16.0, "16×"),
        ];
        Self { marks: MARKS, heavy: 1.0, unit: "×", is_relative: true }
    }

    /// Microseconds.
    pub const fn microseconds() -> Self {
        const MARKS: &[(f64, &str)] = &[
            (10.0, "10 µs"),
            (100.0, "100 µs"),
            (1e3, "1 ms"),
            (1e4, "10 ms"),
            (1e5, "100 ms"),
            (1e6, "1 s"),
            (1e7, "10 s"),
        ];
        Self { marks: MARKS, heavy: 1e3, unit: " µs", is_relative: false }
    }

    /// What a row's values are divided by; nothing where it is not known.
    fn one(&self, row: &Row) -> Option<f64> {
        if self.is_relative { row.best_peer().map(|(_, best)| *best) } else { Some(1.0) }
    }
}

/// Where things are in the picture of a report.
struct Plot<'a> {
    axis: &'a Axis,
    left: f64,
}

impl Plot<'_> {
    /// With room for the names of all cases.
    fn of<'a>(report: &Report, axis: &'a Axis) -> Plot<'a> {
        let letters = |row: &Row| row.case.chars().map(|_| 1.0).sum::<f64>();
        let letters = report.rows.iter().map(letters).fold(0.0, f64::max);
        Plot { axis, left: (MARGIN + letters * LABEL_LETTER_WIDTH + LABEL_GAP).max(PLOT_LEFT_MIN) }
    }

    fn right(&self) -> f64 {
        self.left + PLOT_WIDTH
    }

    fn width(&self) -> f64 {
        self.right() + VALUES_WIDTH
    }

    /// Where a value is.
    fn place(&self, value: f64) -> f64 {
        let (low, high) = match self.axis.marks {
            [(low, _), .., (high, _)] => (*low, *high),
            _ => (1.0, 2.0),
        };
        let part = (value.clamp(low, high) / low).ln() / (high / low).ln();
        self.left + part * PLOT_WIDTH
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
    let plot = Plot::of(report, axis);
    let mut body = legend(&report.title, &names);
    let mut y = HEADER_HEIGHT;
    // What ours does with fewer of the processor's instructions is in the tables alone.
    let is_lower = |rows: &[&Row]| rows.iter().all(|row| row.more["is_lower_level"] == true);
    for (group, rows) in report.groups().into_iter().filter(|(_, rows)| !is_lower(rows)) {
        y = draw_group(&mut body, y, group, &rows, &names, &plot);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" font-size=\"12\" fill=\"#222\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{body}</svg>\n",
        width = plot.width(),
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
fn draw_group(
    body: &mut String,
    top: f64,
    group: &str,
    rows: &[&Row],
    names: &[&str],
    plot: &Plot<'_>,
) -> f64 {
    let axis = plot.axis;
    let first = top + GROUP_HEIGHT;
    let bottom = first + ROW_HEIGHT * rows.iter().map(|_| 1.0).sum::<f64>();
    let _ = writeln!(
        body,
        "<text x=\"20\" y=\"{}\" font-weight=\"bold\" font-size=\"13\">{}</text>",
        first - 14.0,
        escape(group)
    );
    let mut y = first;
    for row in rows {
        draw_bar(body, y, row, plot);
        y += ROW_HEIGHT;
    }
    for &(mark, name) in axis.marks {
        let (x, weight) = (plot.place(mark), if mark == axis.heavy { 1.5 } else { 0.6 });
        let _ = writeln!(
            body,
            "<line x1=\"{x}\" y1=\"{first}\" x2=\"{x}\" y2=\"{bottom}\" stroke=\"#999\" stroke-width=\"{weight}\"/>\
             <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" fill=\"#666\">{name}</text>",
            first - 6.0
        );
    }
    let bars = bars(rows, axis);
    if let [first_bar, ..] = bars[..] {
        // They were divided and multiplied.
        let (x, anchor, told) = if bars.iter().all(|bar| (bar / first_bar - 1.0).abs() < 1e-6) {
            (plot.place(first_bar), "middle", format!("bar {}{}", short(first_bar), axis.unit))
        } else {
            (plot.left, "start", "green: within the row's bar".to_owned())
        };
        let _ = writeln!(
            body,
            "<text x=\"{x}\" y=\"{}\" text-anchor=\"{anchor}\" fill=\"#2a7a2a\">{told}</text>",
            first - 22.0
        );
    }
    let _ = writeln!(
        body,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#666\">{}</text>",
        plot.width() - MARGIN,
        first - 6.0,
        if axis.is_relative { "best peer" } else { OURS },
    );
    let mut y = first;
    for row in rows {
        draw_row(body, y + ROW_HEIGHT / 2.0, row, names, plot);
        y += ROW_HEIGHT;
    }
    bottom
}

/// The bars of the rows that have one, as the axis counts.
fn bars(rows: &[&Row], axis: &Axis) -> Vec<f64> {
    let bars = rows.iter().filter_map(|row| Some(row.bar / axis.one(row)?));
    bars.filter(|bar| !bar.is_nan()).collect()
}

/// A number of at most two places.
fn short(value: f64) -> String {
    format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Draws what is good of a row, whose upper edge is at `y`, and where that ends.
fn draw_bar(body: &mut String, y: f64, row: &Row, plot: &Plot<'_>) {
    let Some(one) = plot.axis.one(row).filter(|_| !row.bar.is_nan()) else { return };
    let x = plot.place(row.bar / one);
    let (from, to) = match row.better {
        Better::Lower => (plot.left, x),
        Better::Higher => (x, plot.right()),
    };
    let _ = writeln!(
        body,
        "<rect x=\"{from}\" y=\"{y}\" width=\"{}\" height=\"{ROW_HEIGHT}\" fill=\"#eef6ee\"/>\
         <line x1=\"{x}\" y1=\"{y}\" x2=\"{x}\" y2=\"{}\" stroke=\"#2a7a2a\" stroke-dasharray=\"4 3\"/>",
        to - from,
        y + ROW_HEIGHT
    );
}

fn draw_row(body: &mut String, y: f64, row: &Row, names: &[&str], plot: &Plot<'_>) {
    let Some(one) = plot.axis.one(row) else { return };
    let shown = if plot.axis.is_relative { Some(one) } else { row.ours };
    let shown = shown.map_or("–".to_owned(), |shown| format!("{shown:.1}"));
    let (failed, weight) =
        (row.holds() == Some(false), if row.holds() == Some(false) { "bold" } else { "normal" });
    let _ = writeln!(
        body,
        "<line x1=\"{}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"#ddd\" stroke-width=\"0.7\"/>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\" font-weight=\"{weight}\" fill=\"{}\">{}</text>\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#666\">{shown} {}</text>",
        plot.left,
        plot.right(),
        plot.left - LABEL_GAP,
        y + 4.0,
        if failed { "#b00000" } else { "#222" },
        escape(&row.case),
        plot.width() - MARGIN,
        y + 4.0,
        row.unit
    );
    for (name, value) in &row.peers {
        *body += &dot(plot.place(value / one), y, name, names);
    }
    if let Some(ours) = row.ours {
        *body += &dot(plot.place(ours / one), y, OURS, names);
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
    use serde_json::json;

    use super::*;

    fn report(rows: Vec<Row>) -> Report {
        let (name, title) = ("test".to_owned(), "A test".to_owned());
        Report { name, title, notes: Vec::new(), setting: json!({}), rows }
    }

    fn row(case: &str, better: Better, bar: f64) -> Row {
        Row {
            group: "reading".to_owned(),
            case: case.to_owned(),
            unit: "ms",
            better,
            ours: Some(30.0),
            peers: vec![("peer".to_owned(), 20.0)],
            bar,
            ratio: None,
            more: json!({}),
        }
    }

    #[test]
    fn the_scale_is_logarithmic_and_ends() {
        let (relative, microseconds) = (Axis::relative(), Axis::microseconds());
        let plot = Plot::of(&report(Vec::new()), &relative);
        let place = |value| plot.place(value);
        assert!((place(2.0) - place(1.0) - (place(16.0) - place(8.0))).abs() < 1e-9);
        assert_eq!(place(0.01), PLOT_LEFT_MIN);
        assert_eq!(place(99.0), PLOT_LEFT_MIN + PLOT_WIDTH);
        assert_eq!(Plot::of(&report(Vec::new()), &microseconds).place(10.0), PLOT_LEFT_MIN);
    }

    #[test]
    fn a_plot_begins_behind_the_longest_name() {
        let axis = Axis::relative();
        let name = "string80 DELTA_LENGTH_BYTE_ARRAY UNCOMPRESSED";
        let long = report(vec![row("int32", Better::Lower, 16.0), row(name, Better::Lower, 16.0)]);
        let plot = Plot::of(&long, &axis);
        let room = plot.left - LABEL_GAP - MARGIN;
        assert!(room >= f64::from(u32::try_from(name.len()).unwrap()) * LABEL_LETTER_WIDTH, "{room}");
        assert!(draw(&long, &axis).contains(&format!("viewBox=\"0 0 {} ", plot.width())));
    }

    #[test]
    fn each_row_has_the_bar_of_its_own() {
        let axis = Axis::relative();
        let plot = Plot::of(&report(Vec::new()), &axis);
        let green = |from: f64, to: f64| format!("<rect x=\"{from}\" y=\"{}\" width=\"{}\"", 114, to - from);
        let svg = draw(&report(vec![row("one", Better::Lower, 16.0)]), &axis);
        assert!(svg.contains(&green(plot.left, plot.place(0.8))), "{svg}");
        assert!(svg.contains(">bar 0.8×</text>"), "{svg}");
        let rows = vec![row("one", Better::Lower, 16.0), row("two", Better::Lower, 24.0)];
        let svg = draw(&report(rows), &axis);
        assert_eq!(svg.matches("#eef6ee").count(), 2);
        assert!(svg.contains("green: within the row's bar") && !svg.contains(">bar "), "{svg}");
        let svg = draw(&report(vec![row("one", Better::Higher, 40.0)]), &axis);
        assert!(svg.contains(&green(plot.place(2.0), plot.right())), "{svg}");
        // What has no bar has no green.
        let svg = draw(&report(vec![row("one", Better::Lower, f64::NAN)]), &axis);
        assert!(!svg.contains("#eef6ee") && !svg.contains("bar"), "{svg}");
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
