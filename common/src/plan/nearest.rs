//! Keys that are not known, and what was probably meant.

use toml::de::{DeTable, DeValue};

use super::{
    MOST_PROBLEMS,
    keys::{KEYS, REPEATED, names_in, shown},
    problem::{Problem, code},
};

/// What [`unknown_keys`] found.
#[derive(Debug, Default)]
pub(crate) struct Unknown {
    pub(crate) problems: Vec<Problem>,
    /// The paths of the keys that were probably meant: not to be called missing as well.
    pub(crate) meant: Vec<String>,
}

/// Reports every key the plan's tables do not know.
pub(crate) fn unknown_keys(document: &DeTable<'_>) -> Unknown {
    let mut unknown = Unknown::default();
    unknown.look_into(document, "");
    unknown
}

impl Unknown {
    fn look_into(&mut self, table: &DeTable<'_>, path: &str) {
        let known = names_in(path);
        // A key without a place is none: the reader made it up for a line that starts with =.
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let inner = join(path, name);
            if known.contains(&name) {
                // Where the value is a table, but no names belong into it (headers), any may be there.
                if !names_in(&inner).is_empty() {
                    self.look_into_value(value.get_ref(), &inner);
                }
            } else if !key.span().is_empty() {
                let (help, meant) = if self.problems.len() < MOST_PROBLEMS {
                    suggest(name, path, &known)
                } else {
                    // These will only be counted.
                    (String::new(), Vec::new())
                };
                self.meant.extend(meant);
                let shown = shown(path);
                let place = if path.is_empty() { "a plan" } else { &heading(&shown) };
                self.problems.push(Problem::error(
                    code::UNKNOWN_KEY,
                    key.span(),
                    format!("{place} has no key {name:?}"),
                    "not a known key",
                    help,
                ));
            }
        }
    }

    fn look_into_value(&mut self, value: &DeValue<'_>, path: &str) {
        match value {
            DeValue::Table(table) => self.look_into(table, path),
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    if let DeValue::Table(table) = item.get_ref() {
                        self.look_into(table, &format!("{path}[{index}]"));
                    }
                }
            }
            _ => {}
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A remedy, and the paths that were probably meant.
fn suggest(name: &str, table: &str, known: &[&'static str]) -> (String, Vec<String>) {
    // In a phase, what belongs to a load belongs to that of the phase.
    let phase =
        table.find(']').and_then(|end| table.get(..=end)).filter(|p| p.starts_with("phases["));
    let in_phase = |path: &str| match phase {
        Some(phase) if path == "load" || path.starts_with("load.") => format!("{phase}.{path}"),
        _ => path.to_owned(),
    };
    let elsewhere = |name: &str| -> Vec<String> {
        let same = KEYS.iter().filter(|key| key.name() == name).map(|key| in_phase(key.path));
        same.collect()
    };
    let there = elsewhere(name);
    if !there.is_empty() {
        return (format!("`{name}` {}", belongs(&there)), there);
    }
    if ["closed", "open"].contains(&name) {
        let path = in_phase(&format!("load.{name}"));
        return (format!("write [{}]", shown(&path)), vec![path]);
    }
    if let Some(near) = nearest(name, known.iter().copied()) {
        return (format!("did you mean `{near}`?"), vec![join(table, near)]);
    }
    if let Some(near) = nearest(name, KEYS.iter().map(|key| key.name())) {
        let there = elsewhere(near);
        return (format!("did you mean `{near}`? It {}", belongs(&there)), there);
    }
    let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    (format!("known here: {}", known.join(", ")), Vec::new())
}

/// Where the keys with these paths stand.
fn belongs(paths: &[String]) -> String {
    let mut tables: Vec<String> = Vec::new();
    for path in paths {
        let table = shown(path.rsplit_once('.').map_or("", |(table, _)| table));
        // Steps stand in the table of their load; one of the two is enough.
        if !table.ends_with(".steps") && !tables.contains(&table) {
            tables.push(table);
        }
    }
    let headings: Vec<String> =
        tables.iter().filter(|table| !table.is_empty()).map(|table| heading(table)).collect();
    let into = format!("into {}", headings.join(" or "));
    match (tables.iter().any(String::is_empty), headings.is_empty()) {
        (true, true) => "belongs at the top of the plan, above the first [table]".to_owned(),
        (true, false) => {
            format!("belongs at the top of the plan, above the first [table], or {into}")
        }
        (false, _) => format!("belongs {into}"),
    }
}

/// How the table is written in a plan.
fn heading(table: &str) -> String {
    if REPEATED.contains(&table) { format!("[[{table}]]") } else { format!("[{table}]") }
}

/// The word that is only a few slips of the keyboard away; the first of two equally near.
pub(crate) fn nearest<'a>(
    typed: &str,
    words: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // Nothing is near a text that is longer than any key.
    if typed.chars().count() > 40 {
        return None;
    }
    let plain = typed.to_lowercase().replace('-', "_");
    let slips = |word: &str| distance(&plain, word);
    let (slips, word) = words.into_iter().map(|word| (slips(word), word)).min_by_key(|at| at.0)?;
    (slips <= (word.chars().count() / 3).clamp(1, 3)).then_some(word)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=to.len()).collect()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut least = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_counted() {
        for (from, to, slips) in
            [("url", "url", 0), ("ulr", "url", 1), ("", "url", 3), ("conections", "connections", 1)]
        {
            assert_eq!(distance(from, to), slips, "{from} {to}");
            assert_eq!(distance(to, from), slips, "{to} {from}");
        }
    }

    #[test]
    fn only_what_is_near_is_suggested() {
        let words = ["timeout", "connect_timeout", "url"];
        assert_eq!(nearest("timout", words), Some("timeout"));
        assert_eq!(nearest("Connect-Timeout", words), Some("connect_timeout"));
        assert_eq!(nearest("threads", words), None);
        assert_eq!(nearest("x", words), None);
        assert_eq!(nearest(&"timeout".repeat(100), words), None);
    }

    #[test]
    fn a_key_of_another_table_is_sent_there() {
        let top = names_in("");
        assert!(suggest("connections", "", &top).0.contains("[load.closed]"));
        assert!(suggest("timeout", "load.closed", &names_in("load.closed")).0.contains("top"));
        assert!(suggest("reqests", "", &top).0.contains("`requests`? It belongs into"));
        assert_eq!(
            suggest("conections", "load.closed", &names_in("load.closed")).1,
            ["load.closed.connections"]
        );
        assert!(suggest("zzzzzzzz", "agents", &names_in("agents")).0.contains("`min`, `on_loss`"));
    }
}
