//! Keys that are not known, and what was probably meant.

use toml::de::{DeTable, DeValue};

use super::{
    MOST_PROBLEMS,
    keys::{KEYS, REPEATED, names_in},
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
                if KEYS.iter().any(|key| key.path == inner) {
                    continue;
                }
                match value.get_ref() {
                    DeValue::Table(table) => self.look_into(table, &inner),
                    DeValue::Array(tables) if REPEATED.contains(&inner.as_str()) => {
                        for table in tables.iter() {
                            if let DeValue::Table(table) = table.get_ref() {
                                self.look_into(table, &inner);
                            }
                        }
                    }
                    _ => {}
                }
            } else if inner != "load.open" && !key.span().is_empty() {
                let (help, meant) = if self.problems.len() < MOST_PROBLEMS {
                    suggest(name, path, &known)
                } else {
                    // These will only be counted.
                    (String::new(), None)
                };
                self.meant.extend(meant);
                let place = if path.is_empty() { "a plan" } else { &heading(path) };
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
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A remedy, and the path that was probably meant.
fn suggest(name: &str, table: &str, known: &[&'static str]) -> (String, Option<String>) {
    if let Some(elsewhere) = KEYS.iter().find(|key| key.name() == name) {
        return (belongs(name, elsewhere.table()), Some(elsewhere.path.to_owned()));
    }
    if name == "closed" {
        return ("write [load.closed]".to_owned(), Some("load.closed".to_owned()));
    }
    if let Some(near) = nearest(name, known.iter().copied()) {
        return (format!("did you mean `{near}`?"), Some(join(table, near)));
    }
    let elsewhere = nearest(name, KEYS.iter().map(|key| key.name()));
    if let Some(key) = KEYS.iter().find(|key| Some(key.name()) == elsewhere) {
        let help = format!("did you mean `{}`? It {}", key.name(), stands(key.table()));
        return (help, Some(key.path.to_owned()));
    }
    let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    (format!("known here: {}", known.join(", ")), None)
}

fn belongs(name: &str, table: &str) -> String {
    format!("`{name}` {}", stands(table))
}

fn stands(table: &str) -> String {
    if table.is_empty() {
        "belongs at the top of the plan, above the first [table]".to_owned()
    } else {
        format!("belongs into {}", heading(table))
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
            suggest("conections", "load.closed", &names_in("load.closed")).1.unwrap(),
            "load.closed.connections"
        );
        assert!(suggest("zzzzzzzz", "agents", &names_in("agents")).0.contains("`min`, `on_loss`"));
    }
}
