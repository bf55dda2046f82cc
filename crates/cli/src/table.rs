//! Text in columns, fitted to a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::terminal::Terminal;
pub(crate) use marquetry::base::print::{is_harmful, printable};

/// What a column of text, or a title, keeps when a table is squeezed into a terminal.
const SQUEEZED_WIDTH_MIN: usize = 8;

/// Spaces that align a cell, at most. Where nothing limits a line, a cell may have a megabyte, and others below it would get as
/// many spaces.
const ALIGNED_WIDTH_MAX: usize = 400;

/// Between two columns.
const GAP: usize = 2;

/// Cells of text under titles.
pub(crate) struct Table {
    titles: Vec<String>,
    sides: Vec<Side>,
    rows: Vec<Vec<String>>,
    indent: usize,
    /// The titles are printed.
    pub(crate) is_titled: bool,
}

/// The side that a column's cells stand at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// For text, which is cut where there is no room.
    Left,
    /// For dates and other words that are useless when cut.
    LeftWhole,
    /// For numbers. Never cut, for half a number is a lie.
    Right,
}

impl Table {
    pub(crate) fn new(columns: impl IntoIterator<Item = (impl Into<String>, Side)>) -> Table {
        let (titles, sides) =
            columns.into_iter().map(|(title, side)| (printable(&title.into()), side)).unzip();
        Table { titles, sides, rows: Vec::new(), indent: 0, is_titled: true }
    }

    /// Spaces before every line.
    #[must_use]
    pub(crate) fn indented(mut self, indent: usize) -> Table {
        self.indent = indent;
        self
    }

    /// Adds a row, with as many cells as there are titles.
    pub(crate) fn push(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.titles.len());
        self.rows.push(cells);
    }

    /// Appends the table to `out`; the number of columns that found no room.
    pub(crate) fn print(&self, terminal: Terminal, out: &mut Vec<u8>) -> usize {
        let widest = |at: usize| self.rows.iter().map(|row| row[at].width()).max().unwrap_or(0);
        let columns = (0..self.titles.len()).map(|at| {
            let (cells, title) = (widest(at), self.titles[at].width());
            let natural = cells.max(title);
            let kept = match self.sides[at] {
                Side::Left => natural.min(SQUEEZED_WIDTH_MIN),
                Side::LeftWhole | Side::Right => cells.max(title.min(SQUEEZED_WIDTH_MIN)),
            };
            (natural, kept)
        });
        let (natural, kept): (Vec<usize>, Vec<usize>) = columns.unzip();
        let (widths, shown) = match terminal.width {
            Some(width) => fit(&natural, &kept, width.saturating_sub(self.indent)),
            None => (natural, self.titles.len()),
        };
        if self.is_titled {
            self.line(&self.titles, &widths[..shown], |text| terminal.bold(text), out);
        }
        for row in &self.rows {
            self.line(row, &widths[..shown], str::to_string, out);
        }
        self.titles.len() - shown
    }

    fn line(&self, cells: &[String], widths: &[usize], dress: impl Fn(&str) -> String, out: &mut Vec<u8>) {
        let mut text = " ".repeat(self.indent);
        for (at, &width) in widths.iter().enumerate() {
            if at > 0 {
                text.push_str(&" ".repeat(GAP));
            }
            let cell = cut(&cells[at], width);
            let space = " ".repeat(width.min(ALIGNED_WIDTH_MAX).saturating_sub(cell.width()));
            if self.sides[at] == Side::Right {
                text.push_str(&space);
            }
            text.push_str(&dress(&cell));
            // No spaces at the end of a line.
            if self.sides[at] != Side::Right && at + 1 < widths.len() {
                text.push_str(&space);
            }
        }
        out.extend_from_slice(text.trim_end().as_bytes());
        out.push(b'\n');
    }
}

/// The widths of the columns in a line of `width`, and how many of them find room.
fn fit(natural: &[usize], kept: &[usize], width: usize) -> (Vec<usize>, usize) {
    let total = |widths: &[usize]| widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    // Columns that find no room even when all are squeezed need not squeeze the others.
    let mut used = 0;
    let find_room = kept.iter().enumerate().take_while(|(at, cells)| {
        used += **cells + if *at == 0 { 0 } else { GAP };
        *at == 0 || used <= width
    });
    let shown = find_room.count();
    let mut widths = natural[..shown].to_vec();
    // The widest gives first, one cell at a time, so that in the end the widest are equally wide.
    while total(&widths) > width {
        let can_give = |at: &usize| widths[*at] > kept[*at];
        let Some(widest) = (0..shown).filter(can_give).max_by_key(|&at| widths[at]) else { break };
        let second =
            (0..shown).filter(|&at| at != widest && can_give(&at)).map(|at| widths[at]).max().unwrap_or(0);
        // A cell may hold a megabyte: down to the next widest at once.
        let over = total(&widths) - width;
        let least = kept[widest].max(second.min(widths[widest] - 1));
        widths[widest] -= over.min(widths[widest] - least);
    }
    (widths, shown)
}

/// `text` in at most `width` columns, the cut marked by an ellipsis.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_string();
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used >= width {
            break;
        }
        kept.push(c);
    }
    if width > 0 {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(table: &Table, width: Option<usize>) -> (String, usize) {
        let mut out = Vec::new();
        let left_out = table.print(Terminal { width, colour: false }, &mut out);
        (String::from_utf8(out).unwrap(), left_out)
    }

    #[test]
    fn columns_are_aligned_by_what_is_seen() {
        let mut table =
            Table::new([("name", Side::Left), ("rows", Side::Right), ("note", Side::Left)]).indented(1);
        table.push(vec!["東京".into(), "7".into(), "a long note".into()]);
        table.push(vec!["x".into(), "1,000".into(), String::new()]);
        let wide = " name   rows  note\n 東京      7  a long note\n x     1,000\n";
        assert_eq!(printed(&table, None), (wide.to_string(), 0));
        let narrow = " name   rows  note\n 東京      7  a long …\n x     1,000\n";
        assert_eq!(printed(&table, Some(22)), (narrow.to_string(), 0));
        assert_eq!(printed(&table, Some(15)), (" name   rows\n 東京      7\n x     1,000\n".to_string(), 1));
    }

    #[test]
    fn a_huge_cell_costs_the_others_nothing() {
        let mut table = Table::new([("a", Side::Left), ("b", Side::Right)]);
        for cell in ["x".repeat(1_000_000), "y".to_string()] {
            table.push(vec![cell, "1".to_string()]);
        }
        let (text, _) = printed(&table, None);
        assert!(text.len() < 1_000_000 + 4 * ALIGNED_WIDTH_MAX, "{}", text.len());
    }

    #[test]
    fn the_widest_give_first() {
        assert_eq!(fit(&[30, 10, 20], &[8; 3], 54), (vec![20, 10, 20], 3));
        assert_eq!(fit(&[30, 10, 20], &[8; 3], 44), (vec![15, 10, 15], 3));
        assert_eq!(fit(&[30, 10, 20], &[8, 10, 20], 44), (vec![10, 10, 20], 3));
        assert_eq!(fit(&[30, 10, 20], &[8; 3], 20), (vec![9, 9], 2));
        assert_eq!(fit(&[30], &[30], 20), (vec![30], 1));
        assert_eq!(fit(&[1_000_000, 5], &[8, 5], 80), (vec![73, 5], 2));
    }

    #[test]
    fn cells_cannot_speak_to_the_terminal() {
        assert_eq!(printable("a\x1b[31m\nb\u{202e}"), "a\\u{1b}[31m\\nb\\u{202e}");
        assert_eq!(printable("a\u{200b}\u{feff}\u{9b}"), "a\\u{200b}\\u{feff}\\u{9b}");
        assert_eq!(printable("é \u{1F600}"), "é \u{1F600}");
        assert_eq!(printable("नि\u{200d}"), "नि\u{200d}");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("東京都", 4), "東…");
    }
}
