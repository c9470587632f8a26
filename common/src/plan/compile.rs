//! From the plan as typed to the plan as run: checks every value, applies the defaults, and reports all it finds.

use bytes::Bytes;
use http::{Method, Uri};

use super::{
    AgentsPolicy, Expect, Files, OnLoss, Plan, Request, Workload, connections, files, headers,
    keys, load,
    problem::{Problem, code},
    raw::{Field, RawPlan},
    source::Source,
    status, thresholds, url, values,
};

/// How much of a URL's path a request's name shows.
const LONGEST_NAME: usize = 100;

/// Compiles a plan; `None` only with an error among the problems.
pub(crate) fn compile(
    raw: &RawPlan,
    source_name: &str,
    source: &Source<'_>,
    files: &dyn Files,
) -> (Option<Plan>, Vec<Problem>) {
    let mut compiler = Compiler { source, problems: Vec::new() };
    let plan = compiler.plan(raw, source_name, files);
    (plan, compiler.problems)
}

/// Checks one value after the other. Each method returns `None` only when a problem is reported, here or by the
/// reader before.
pub(super) struct Compiler<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) problems: Vec<Problem>,
}

impl Compiler<'_> {
    fn plan(&mut self, raw: &RawPlan, source_name: &str, files: &dyn Files) -> Option<Plan> {
        // All are looked at before the first `?`: one missing part hides no problem of another.
        let name = match &raw.name {
            Field::Missing => Some(stem(source_name)),
            Field::Wrong => None,
            Field::Is(name) => self.name("name", name),
        };
        let url = self.url(&raw.url);
        let method = self.method(&raw.method);
        let headers = headers::check(&raw.headers, self.source, &mut self.problems);
        let body = self.body(raw, files);
        let status = status::check(&raw.status, &mut self.problems);
        let timeout = self.duration("timeout", &raw.timeout);
        let connect_timeout = self.duration("connect_timeout", &raw.connect_timeout);
        let grace = self.duration("grace", &raw.grace);
        let give_up_after = self.duration("give_up_after", &raw.give_up_after);
        let phases = load::check(self, raw);
        let connections = connections::check(self, &raw.connections);
        let seed = self.count("seed", &raw.seed);
        let min = self.count("agents.min", &raw.agents_min);
        let on_loss = self.on_loss(&raw.agents_on_loss);

        let name_of_request = method.as_ref().zip(url.as_ref()).map(|(m, u)| request_name(m, u));
        let (thresholds, stop_when) =
            thresholds::check(self, raw, phases.as_deref(), name_of_request.as_ref());

        let (url, method) = (url?, method?);
        let request = Request {
            name: name_of_request?,
            method,
            url,
            headers,
            body: body?,
            expect: Expect { status: status? },
        };
        let workload = Workload {
            requests: vec![request],
            phases: phases?,
            timeout: timeout?,
            connect_timeout: connect_timeout?,
            grace: grace?,
            give_up_after: give_up_after?,
            connections: connections?,
            seed: seed?,
        };
        let min = u32::try_from(min?).expect("the key's limit fits");
        Some(Plan {
            name: name?,
            workload,
            agents: AgentsPolicy { min, on_loss: on_loss? },
            thresholds: thresholds?,
            stop_when: stop_when?,
        })
    }

    fn url(&mut self, field: &Field<String>) -> Option<Uri> {
        let typed = match field {
            Field::Missing => {
                let help = format!("write what is requested: {}", keys::find("url").example);
                self.error(code::MISSING_KEY, 0..0, "`url` is missing", "not in the plan", help);
                return None;
            }
            Field::Wrong => return None,
            Field::Is(typed) => typed,
        };
        let checked = url::check(typed.get_ref());
        let (source, whole) = (self.source, typed.span());
        self.problems.extend(checked.problems.into_iter().map(|problem| {
            let span = if problem.span.is_empty() && typed.get_ref().is_empty() {
                whole.clone()
            } else {
                source.inside(&whole, typed.get_ref(), problem.span)
            };
            Problem { span, ..problem }
        }));
        checked.url
    }

    fn method(&mut self, field: &Field<String>) -> Option<Method> {
        let default = keys::find("method").default_text().and_then(|text| text.parse().ok());
        let typed = match field {
            Field::Missing => return default,
            Field::Wrong => return None,
            Field::Is(typed) => typed,
        };
        let text = typed.get_ref();
        let upper = text.to_ascii_uppercase();
        let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"];
        let bad = text.char_indices().find(|(_, c)| !headers::token_character(*c));
        let (part, label, help) = if let Some((at, c)) = bad {
            let help = "a method is one word: method = \"POST\"".to_owned();
            (at..at + c.len_utf8(), "not allowed in a method", help)
        } else if text.is_empty() || text.len() > 32 {
            (
                0..text.len(),
                "expected 1 to 32 characters",
                "for example: method = \"POST\"".to_owned(),
            )
        } else if upper == "CONNECT" {
            let help = "CONNECT opens a tunnel through a proxy, it requests nothing".to_owned();
            (0..text.len(), "not available", help)
        } else if *text != upper && known.contains(&upper.as_str()) {
            let help = format!("methods are in capitals: method = \"{upper}\"");
            (0..text.len(), "another method than in capitals", help)
        } else if let Ok(method) = text.parse() {
            return Some(method);
        } else {
            (0..text.len(), "not a method", "for example: method = \"POST\"".to_owned())
        };
        let part = if text.is_empty() {
            typed.span()
        } else {
            self.source.inside(&typed.span(), text, part)
        };
        let shown: String = text.chars().take(40).collect();
        self.error(code::BAD_METHOD, part, format!("`method` cannot be {shown:?}"), label, help);
        None
    }

    fn body(&mut self, raw: &RawPlan, files: &dyn Files) -> Option<Bytes> {
        if let (Some(_), Some(file)) = (raw.body.given(), raw.body_file.given()) {
            self.error(
                code::TWO_BODIES,
                file.span(),
                "both `body` and `body_file`",
                "the second body",
                "keep the one that is to be sent",
            );
            return None;
        }
        match (&raw.body, &raw.body_file) {
            (Field::Wrong, _) | (_, Field::Wrong) => None,
            (Field::Missing, Field::Missing) => Some(Bytes::new()),
            (Field::Is(body), _) => Some(Bytes::copy_from_slice(body.get_ref().as_bytes())),
            (Field::Missing, Field::Is(file)) => {
                let path = file.get_ref();
                let (message, help) = if path.is_empty() {
                    ("`body_file` is empty".to_owned(), "write a path: body_file = \"body.json\"")
                } else {
                    match files.read(path) {
                        Ok(bytes) if bytes.len() as u64 <= files::MAX_BODY_FILE => {
                            return Some(bytes);
                        }
                        // A reader may stop right behind the limit: how much more there is, nobody knows.
                        Ok(_) => (
                            format!("body file {path:?} is too large"),
                            "a body file has at most 32 MiB (33,554,432 bytes)",
                        ),
                        Err(error) => (
                            format!("cannot use body file {path:?}: {error}"),
                            "a relative path starts at the folder of the plan",
                        ),
                    }
                };
                self.error(code::BODY_FILE, file.span(), message, "not usable", help);
                None
            }
        }
    }

    fn on_loss(&mut self, field: &Field<String>) -> Option<OnLoss> {
        if let Field::Is(typed) = field
            && typed.get_ref() == "redistribute"
        {
            let message = "`on_loss` cannot be \"redistribute\" in this version";
            let help = format!("available are {}", keys::find("agents.on_loss").limits());
            self.error(code::NOT_AVAILABLE, typed.span(), message, "not available", help);
            return None;
        }
        self.choice("agents.on_loss", field, &[OnLoss::Abort, OnLoss::Continue], OnLoss::name)
    }
}

/// The row of a request in reports.
fn request_name(method: &Method, url: &Uri) -> String {
    let path = url.path();
    let shown: String = path.chars().take(LONGEST_NAME).collect();
    let more = if shown.len() < path.len() { "…" } else { "" };
    format!("{method} {shown}{more}")
}

/// A file's name without folders and ending, as far as it can be shown.
fn stem(source_name: &str) -> String {
    let file = source_name.rsplit(['/', '\\']).next().unwrap_or(source_name);
    let stem = match file.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => file,
    };
    let shown: String =
        stem.chars().take(100).map(|c| if values::unprintable(c) { '_' } else { c }).collect();
    if shown.trim().is_empty() || shown == "-" { "plan".to_owned() } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_without_a_name_has_the_name_of_its_file() {
        for (file, name) in [
            ("plan.toml", "plan"),
            ("/a/b.c/check out.v2.toml", "check out.v2"),
            ("C:\\plans\\x.toml", "x"),
            (".hidden", ".hidden"),
            ("-", "plan"),
            ("", "plan"),
            ("a\nb", "a_b"),
        ] {
            assert_eq!(stem(file), name, "{file:?}");
        }
    }

    #[test]
    fn a_long_path_is_cut_in_the_name_of_the_request() {
        let url: Uri = format!("http://h/{}", "a".repeat(500)).parse().unwrap();
        let name = request_name(&Method::GET, &url);
        assert!(name.starts_with("GET /aaa") && name.ends_with("a…"), "{name}");
        assert_eq!(request_name(&Method::POST, &"http://h/a?b=1".parse().unwrap()), "POST /a");
    }
}
