//! `expect.status`: codes and ranges of codes, flattened into a sorted list.

use std::ops::{Range, RangeInclusive};

use toml::Spanned;

use super::{
    keys,
    problem::{Problem, code},
    raw::{Field, RawStatus},
};

const POSSIBLE: RangeInclusive<u16> = 100..=999;

/// The accepted codes, sorted, each once; empty where the plan gives none. `None` only with an error reported, here or
/// by the reader before.
pub(crate) fn check(
    field: &Field<Vec<Spanned<RawStatus>>>,
    problems: &mut Vec<Problem>,
) -> Option<Vec<u16>> {
    let list = match field {
        Field::Missing => return Some(Vec::new()),
        Field::Wrong => return None,
        Field::Is(list) => list,
    };
    if list.get_ref().is_empty() {
        problems.push(Problem::error(
            code::BAD_STATUS,
            list.span(),
            "`expect.status` accepts no answer at all",
            "no code in here",
            format!("for example: {}; without it, codes below 400 are accepted", example()),
        ));
        return None;
    }
    let mut accepted = [false; 1_000];
    let mut good = true;
    for item in list.get_ref() {
        let codes = match item.get_ref() {
            RawStatus::Code(code) => code_in_range(*code, item.span()),
            RawStatus::Range(text) => range(text, item.span()),
        };
        match codes {
            Ok(codes) => {
                let twice = codes.clone().find(|code| accepted[usize::from(*code)]);
                if let Some(twice) = twice {
                    problems.push(Problem::warning(
                        code::DUPLICATE_STATUS,
                        item.span(),
                        format!("status {twice} is listed twice"),
                        "is in the list before",
                        "remove one of them",
                    ));
                }
                for code in codes {
                    accepted[usize::from(code)] = true;
                }
            }
            Err(problem) => {
                problems.push(*problem);
                good = false;
            }
        }
    }
    good.then(|| POSSIBLE.filter(|code| accepted[usize::from(*code)]).collect())
}

fn example() -> &'static str {
    keys::find("expect.status").example
}

fn bad(message: String, span: Range<usize>) -> Box<Problem> {
    let help = format!("a status code has three digits: {}", example());
    Box::new(Problem::error(code::BAD_STATUS, span, message, "expected 100 to 999", help))
}

fn code_in_range(number: i128, span: Range<usize>) -> Result<RangeInclusive<u16>, Box<Problem>> {
    match u16::try_from(number) {
        Ok(code) if POSSIBLE.contains(&code) => Ok(code..=code),
        _ if number.unsigned_abs() > 1 << 100 => {
            Err(bad("this is no status code".to_owned(), span))
        }
        _ => Err(bad(format!("{number} is no status code"), span)),
    }
}

fn range(text: &str, span: Range<usize>) -> Result<RangeInclusive<u16>, Box<Problem>> {
    let code = |text: &str| {
        let text = text.trim();
        let digits = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u16>().ok().filter(|code| digits && POSSIBLE.contains(code))
    };
    if let Some((first, last)) = text.split_once('-')
        && let (Some(first), Some(last)) = (code(first), code(last))
    {
        return if first <= last {
            Ok(first..=last)
        } else {
            let help = format!("write the lower code first: \"{last}-{first}\"");
            let message = format!("the range {text:?} runs backwards");
            let label = "the first code is the higher one";
            Err(Box::new(Problem::error(code::BAD_STATUS, span, message, label, help)))
        };
    }
    let shown: String = text.chars().take(40).collect();
    let help = match (code(text), text.strip_suffix("xx").or(text.strip_suffix("XX"))) {
        (Some(code), _) => format!("write a single code without quotes: {code}"),
        (None, Some(class)) if class.len() == 1 => {
            format!("write the range: \"{class}00-{class}99\"")
        }
        _ => format!("write a range as \"200-299\": {}", example()),
    };
    let message = format!("{shown:?} is no range of status codes");
    Err(Box::new(Problem::error(code::BAD_STATUS, span, message, "expected \"200-299\"", help)))
}
