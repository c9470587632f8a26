//! Aligned tables for lists.

/// Lays out rows under headings. Columns are as wide as their widest cell; the last one is not padded.
pub(super) fn table<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = headings.map(width);
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = width(cell).max(*widest);
        }
    }
    let lines = std::iter::once(headings.map(str::to_owned)).chain(rows.iter().cloned());
    lines.map(|cells| line(&cells, &widths)).collect()
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let padded: Vec<String> = cells
        .iter()
        .zip(widths)
        .map(|(cell, widest)| {
            // Control characters in what others named would break the table, or the terminal.
            let cell: String = cell.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            format!("{cell:<widest$}")
        })
        .collect();
    let mut line = padded.join("  ").trim_end().to_owned();
    line.push('\n');
    line
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_nothing_trails() {
        let rows = [
            ["lab1".to_owned(), "idle".to_owned(), String::new()],
            ["laboratory-2".to_owned(), "r1".to_owned(), "rack=b".to_owned()],
        ];
        assert_eq!(
            table(["AGENT", "RUN", "LABELS"], &rows),
            "AGENT         RUN   LABELS\nlab1          idle\nlaboratory-2  r1    rack=b\n"
        );
    }

    #[test]
    fn what_others_named_cannot_break_a_line() {
        let rows = [["a\nb\u{1b}[2J".to_owned()]];
        assert_eq!(table(["PLAN"], &rows), "PLAN\na b [2J\n");
    }
}
