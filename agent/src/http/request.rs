//! A request of the plan, made ready once.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Uri, header};
use http_body_util::Full;
use inrush_common::plan::{self, Expect};

use super::codec;

/// The body of every request: one piece, not copied.
pub(crate) type Body = Full<Bytes>;

/// Bodies up to this size are kept beside their head, once more, to go out with it in one write.
pub(crate) const MOST_AHEAD: usize = 4096;

/// A request with everything in it that does not vary.
#[derive(Debug)]
pub(crate) struct Prepared {
    method: Method,
    target: Uri,
    headers: HeaderMap,
    body: Bytes,
    /// All of it as it goes over the wire; empty when hyper has to write it itself, each time.
    wire: Box<[u8]>,
    /// Which answers are successes.
    pub(crate) expect: Expect,
}

impl Prepared {
    /// Adds what HTTP asks for and the plan leaves out: `Host`, and the length of an empty body where the method
    /// announces one. The length of any other body is written by hyper.
    pub(crate) fn new(request: &plan::Request) -> Self {
        let mut headers = HeaderMap::with_capacity(request.headers.len() + 2);
        let given = |name| request.headers.iter().any(|header| header.name == name);
        if !given(header::HOST)
            && let Some(host) = host(&request.url)
        {
            headers.insert(header::HOST, host);
        }
        for header in &request.headers {
            headers.append(header.name.clone(), header.value.clone());
        }
        let announces = [Method::POST, Method::PUT, Method::PATCH].contains(&request.method);
        let framed = given(header::CONTENT_LENGTH) || given(header::TRANSFER_ENCODING);
        if request.body.is_empty() && announces && !framed {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let mut prepared = Self {
            method: request.method.clone(),
            target: origin_form(&request.url),
            headers,
            body: request.body.clone(),
            wire: Box::default(),
            expect: request.expect.clone(),
        };
        // hyper has to see a `close`: it is about what comes after the response.
        let keeps = |header: &plan::Header| {
            header.name != header::CONNECTION
                || header.value.as_bytes().eq_ignore_ascii_case(b"keep-alive")
        };
        if prepared.body.len() <= MOST_AHEAD && request.headers.iter().all(keeps) {
            prepared.wire = codec::encoded(prepared.to_http()).into();
        }
        prepared
    }

    /// The same for the last request on a connection: it says that it is, unless the plan says something about that.
    pub(crate) fn last(request: &plan::Request) -> Self {
        let mut request = request.clone();
        if request.headers.iter().all(|header| header.name != header::CONNECTION) {
            let value = HeaderValue::from_static("close");
            request.headers.push(plan::Header { name: header::CONNECTION, value });
        }
        Self::new(&request)
    }

    /// Bytes of the body.
    pub(crate) fn body_len(&self) -> usize {
        self.body.len()
    }

    /// What to write, head and body. `None` when hyper must write it.
    pub(crate) fn wire(&self) -> Option<&[u8]> {
        (!self.wire.is_empty()).then_some(&*self.wire)
    }

    /// As much of it as hyper needs to know to read the response when the request was written by somebody else: the
    /// method. `headers` is empty, and is used for the response's.
    pub(crate) fn stand_in(&self, headers: HeaderMap) -> http::Request<Body> {
        let mut request = http::Request::new(Full::default());
        *request.method_mut() = self.method.clone();
        *request.headers_mut() = headers;
        request
    }

    /// One copy to send. Names, values, target and body are shared, not copied.
    pub(crate) fn to_http(&self) -> http::Request<Body> {
        let mut request = http::Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.target.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

/// Bytes of this request on the wire in HTTP/1.1, head and body.
pub fn request_bytes(request: &plan::Request) -> u64 {
    let sent = Prepared::new(request).to_http();
    let line = sent.method().as_str().len() + sent.uri().to_string().len() + "  HTTP/1.1\r\n".len();
    let headers = sent.headers().iter();
    let headers: usize =
        headers.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len()).sum();
    // The length of a body is written by hyper, where the plan frames it in no way of its own.
    let framed = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING];
    let framed = framed.iter().any(|name| sent.headers().contains_key(name));
    let length = if request.body.is_empty() || framed {
        0
    } else {
        format!("content-length: {}\r\n", request.body.len()).len()
    };
    (line + headers + length + "\r\n".len() + request.body.len()) as u64
}

/// Host and port as the URL has them, without user information.
fn host(url: &Uri) -> Option<HeaderValue> {
    let authority = url.authority()?.as_str();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    HeaderValue::from_str(host).ok()
}

fn origin_form(url: &Uri) -> Uri {
    url.path_and_query().map_or_else(Uri::default, |path| Uri::from(path.clone()))
}

#[cfg(test)]
mod tests {
    use http::HeaderName;
    use inrush_common::plan::Header;

    use super::*;

    fn request(method: Method, url: &str, headers: &[(&str, &str)]) -> plan::Request {
        plan::Request {
            name: "it".to_owned(),
            method,
            url: url.parse().unwrap(),
            headers: headers
                .iter()
                .map(|(name, value)| Header {
                    name: name.parse::<HeaderName>().unwrap(),
                    value: value.parse().unwrap(),
                })
                .collect(),
            body: Bytes::new(),
            expect: Expect::default(),
        }
    }

    #[test]
    fn the_target_is_path_and_query_and_the_host_has_the_port() {
        let plan = request(Method::GET, "http://example.test:81/a%20b?q=1&r=c+d", &[]);
        let sent = Prepared::new(&plan).to_http();
        assert_eq!(sent.uri().to_string(), "/a%20b?q=1&r=c+d");
        assert_eq!(sent.headers()[header::HOST], "example.test:81");
        assert_eq!(sent.headers().len(), 1);
        let plan = request(Method::GET, "http://[::1]:81", &[]);
        let sent = Prepared::new(&plan).to_http();
        assert_eq!(sent.uri().to_string(), "/");
        assert_eq!(sent.headers()[header::HOST], "[::1]:81");
    }

    #[test]
    fn the_plans_own_headers_are_kept_in_order_and_not_doubled() {
        let own = [("x-a", "1"), ("host", "other.test"), ("x-a", "2")];
        let sent = Prepared::new(&request(Method::GET, "http://example.test/", &own)).to_http();
        assert_eq!(sent.headers().get_all("x-a").iter().collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(sent.headers().get_all(header::HOST).iter().collect::<Vec<_>>(), ["other.test"]);
    }

    #[test]
    fn the_last_request_on_a_connection_says_so_unless_the_plan_speaks_of_it() {
        let connection = |own: &[(&str, &str)]| {
            let sent = Prepared::last(&request(Method::GET, "http://example.test/", own)).to_http();
            let values = sent.headers().get_all(header::CONNECTION);
            values.iter().map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(connection(&[]), ["close"]);
        assert_eq!(connection(&[("connection", "keep-alive")]), ["keep-alive"]);
    }

    #[test]
    fn a_post_without_a_body_says_so_and_a_get_does_not() {
        let length = |method| {
            let prepared = Prepared::new(&request(method, "http://example.test/", &[]));
            prepared.to_http().headers().get(header::CONTENT_LENGTH).cloned()
        };
        assert_eq!(length(Method::POST), Some(HeaderValue::from_static("0")));
        assert_eq!(length(Method::GET), None);
    }
}
