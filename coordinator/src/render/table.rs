//! Columns that line up.

/// Which way the cells of a column lean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lean {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows of cells; the first row is the heading.
#[derive(Debug)]
pub(super) struct Table {
    leans: Vec<Lean>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these headings.
    pub(super) fn new<const N: usize>(headings: [(Lean, &str); N]) -> Self {
        Self {
            leans: headings.iter().map(|(lean, _)| *lean).collect(),
            rows: vec![headings.iter().map(|(_, heading)| (*heading).to_owned()).collect()],
        }
    }

    /// Adds a row, one cell per heading.
    pub(super) fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.leans.len());
        self.rows.push(cells.into());
    }

    /// The lines, without line ends and without spaces at their ends.
    pub(super) fn lines(&self) -> Vec<String> {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.leans.len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&self.leans).zip(&widths);
            let cells: Vec<String> = cells
                .map(|((cell, lean), width)| match lean {
                    Lean::Left => format!("{cell:<width$}"),
                    Lean::Right => format!("{cell:>width$}"),
                })
                .collect();
            cells.join("  ").trim_end().to_owned()
        };
        self.rows.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table =
            Table::new([(Lean::Left, "agent"), (Lean::Right, "p50"), (Lean::Left, "state")]);
        table.row(["a-rather-long-name".to_owned(), "1.23µs".to_owned(), "done".to_owned()]);
        table.row(["b".to_owned(), "–".to_owned(), String::new()]);
        assert_eq!(
            table.lines(),
            [
                "agent                  p50  state",
                "a-rather-long-name  1.23µs  done",
                "b                        –",
            ]
        );
    }
}
