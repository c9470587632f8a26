//! A request as it came over the wire.

/// The largest head that is read; a longer one ends the connection as malformed.
const MAX_HEAD: usize = 1 << 20;

/// One request, received whole.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Which connection it came on, counted from 0 in order of acceptance.
    pub connection: u64,
    /// Which request of its connection it is, counted from 0.
    pub index: u64,
    /// Which request of the whole target it is, counted from 0; set when the body is here.
    pub number: u64,
    /// The head as it came, with the empty line that ends it.
    pub head: Vec<u8>,
    /// The body, decoded if it was chunked.
    pub body: Vec<u8>,
}

impl Received {
    /// The request line without its line end.
    pub fn line(&self) -> &str {
        let end = self.head.iter().position(|&byte| byte == b'\r').unwrap_or(self.head.len());
        std::str::from_utf8(&self.head[..end]).unwrap_or_default()
    }

    /// The method.
    pub fn method(&self) -> &str {
        self.line().split(' ').next().unwrap_or_default()
    }

    /// The request target: path and query.
    pub fn path(&self) -> &str {
        self.line().split(' ').nth(1).unwrap_or_default()
    }

    /// The header lines, as name and value, in the order they came.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        std::str::from_utf8(&self.head)
            .unwrap_or_default()
            .split("\r\n")
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name, value.trim()))
    }

    /// The first header of that name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().find(|(is, _)| is.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Whether the client expects the connection to be closed after the response.
    pub(super) fn wants_close(&self) -> bool {
        let connection = self.header("connection").unwrap_or_default();
        if self.line().ends_with("HTTP/1.0") {
            !connection.eq_ignore_ascii_case("keep-alive")
        } else {
            connection.eq_ignore_ascii_case("close")
        }
    }

    /// How the body's end is told; `None` if the head contradicts itself or is no HTTP/1 head.
    pub(super) fn framing(&self) -> Option<Framing> {
        let mut words = self.line().split(' ');
        let (_, _, version) = (words.next()?, words.next()?, words.next()?);
        if !version.starts_with("HTTP/1.") || words.next().is_some() {
            return None;
        }
        match (self.header("transfer-encoding"), self.header("content-length")) {
            (None, None) => Some(Framing::Length(0)),
            (None, Some(length)) => length.parse().ok().map(Framing::Length),
            (Some(coding), None) if coding.eq_ignore_ascii_case("chunked") => {
                Some(Framing::Chunked)
            }
            (Some(_), _) => None,
        }
    }
}

/// How the end of a body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length(usize),
    Chunked,
}

/// What the bytes read so far hold.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part<T> {
    /// All of it, and how many bytes it took.
    Whole(T, usize),
    /// Not all of it yet.
    More,
    /// It cannot become right.
    Malformed,
}

/// The head's length, with the empty line, if it is all here.
pub(super) fn head(bytes: &[u8], searched: usize) -> Part<()> {
    // The end may straddle what was searched before.
    let from = searched.saturating_sub(3);
    match find(&bytes[from..], b"\r\n\r\n") {
        Some(at) => Part::Whole((), from + at + 4),
        None if bytes.len() > MAX_HEAD => Part::Malformed,
        None => Part::More,
    }
}

/// A chunked body and its trailers, if they are all here.
pub(super) fn chunked(bytes: &[u8]) -> Part<Vec<u8>> {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let Some(line) = find(&bytes[at..], b"\r\n") else { return Part::More };
        let size = std::str::from_utf8(&bytes[at..at + line]).unwrap_or_default();
        let size = size.split(';').next().unwrap_or_default().trim();
        let Ok(size) = u32::from_str_radix(size, 16) else { return Part::Malformed };
        let size = size as usize;
        at += line + 2;
        if size == 0 {
            return trailers(bytes, at, body);
        }
        let Some(chunk) = bytes.get(at..at + size + 2) else { return Part::More };
        if !chunk.ends_with(b"\r\n") {
            return Part::Malformed;
        }
        body.extend_from_slice(&chunk[..size]);
        at += size + 2;
    }
}

fn trailers(bytes: &[u8], mut at: usize, body: Vec<u8>) -> Part<Vec<u8>> {
    while let Some(line) = find(&bytes[at..], b"\r\n") {
        at += line + 2;
        if line == 0 {
            return Part::Whole(body, at);
        }
    }
    Part::More
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_ends_at_its_empty_line_also_when_it_comes_in_two_reads() {
        let bytes = b"GET / HTTP/1.1\r\n\r\nGET";
        assert_eq!(head(bytes, 0), Part::Whole((), 18));
        for searched in 0..18 {
            assert_eq!(head(&bytes[..searched], 0), Part::More, "{searched} bytes");
            assert_eq!(head(bytes, searched), Part::Whole((), 18), "after {searched} bytes");
        }
    }

    #[test]
    fn a_chunked_body_is_decoded_and_its_trailers_are_skipped() {
        let bytes = b"3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\nX: y\r\n\r\nrest";
        assert_eq!(chunked(bytes), Part::Whole(b"abc0123456789".to_vec(), bytes.len() - 4));
        for end in 0..bytes.len() - 4 {
            assert_eq!(chunked(&bytes[..end]), Part::More, "{end} bytes");
        }
        assert_eq!(chunked(b"zz\r\n"), Part::Malformed);
        assert_eq!(chunked(b"1\r\nabc\r\n"), Part::Malformed);
    }

    #[test]
    fn a_body_told_in_two_ways_is_malformed() {
        let with = |headers: &str| Received {
            head: format!("POST / HTTP/1.1\r\n{headers}\r\n").into_bytes(),
            ..Received::default()
        };
        assert_eq!(with("").framing(), Some(Framing::Length(0)));
        assert_eq!(with("Content-Length: 5\r\n").framing(), Some(Framing::Length(5)));
        assert_eq!(with("transfer-encoding: chunked\r\n").framing(), Some(Framing::Chunked));
        let both = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n";
        assert_eq!(with(both).framing(), None);
        assert_eq!(with("Content-Length: five\r\n").framing(), None);
    }
}
