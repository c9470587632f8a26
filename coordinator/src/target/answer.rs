//! From a request to its response.

use std::sync::Arc;

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ALLOW, CONNECTION, CONTENT_TYPE},
};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};

use super::{
    body::Answer,
    counters::Seat,
    route::{Route, route},
};

/// The most that `/echo` gives back: it holds the body whole, because many clients send all of
/// theirs before they read, and a stream would then block both sides for ever.
const MAX_ECHO: usize = 8 << 20;

const HELLO: Bytes = Bytes::from_static(b"Hello, world!");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain");
const BINARY: HeaderValue = HeaderValue::from_static("application/octet-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Answers one request. The only error is a body that did not arrive whole.
pub(super) async fn answer(
    request: Request<Incoming>,
    seat: Arc<Seat>,
) -> Result<Response<Answer>, hyper::Error> {
    let (head, body) = request.into_parts();
    let route = route(head.uri.path());
    if route == Ok(Route::Stats) {
        seat.watches();
        drain(body).await?;
        return Ok(stats(&head.method, &seat));
    }
    seat.loads();
    let mut echo = Some(Bytes::new());
    if route == Ok(Route::Echo) {
        echo = collect(body).await?;
    } else {
        drain(body).await?;
    }
    seat.request();
    Ok(match route {
        Ok(Route::Delay(delay)) => {
            tokio::time::sleep(delay).await;
            ok(TEXT, Answer::Whole(HELLO))
        }
        Ok(Route::Bytes(n)) => ok(BINARY, Answer::Blocks(n)),
        Ok(Route::Status(code)) => status(code),
        Ok(Route::Echo) => match echo {
            Some(body) => {
                ok(head.headers.get(CONTENT_TYPE).cloned().unwrap_or(BINARY), Answer::Whole(body))
            }
            None => {
                let text = format!("/echo gives back at most {MAX_ECHO} bytes (8 MiB)\n");
                let mut response = with_status(StatusCode::PAYLOAD_TOO_LARGE, text);
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                response
            }
        },
        Ok(Route::Hello | Route::Stats) => ok(TEXT, Answer::Whole(HELLO)),
        Err(error) => with_status(error.status(), format!("{error}\n")),
    })
}

fn ok(content_type: HeaderValue, body: Answer) -> Response<Answer> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

fn with_status(code: StatusCode, text: String) -> Response<Answer> {
    let mut response = ok(TEXT, Answer::Whole(text.into()));
    *response.status_mut() = code;
    response
}

fn status(code: StatusCode) -> Response<Answer> {
    if matches!(code, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED)
    {
        let mut response = Response::new(Answer::Whole(Bytes::new()));
        *response.status_mut() = code;
        return response;
    }
    with_status(code, format!("{code}\n"))
}

fn stats(method: &Method, seat: &Seat) -> Response<Answer> {
    let stats = match *method {
        Method::GET | Method::HEAD => seat.counters().read(),
        Method::POST => seat.counters().reset(),
        _ => {
            let text = "/__stats answers GET, and POST sets the counters to zero\n".to_owned();
            let mut response = with_status(StatusCode::METHOD_NOT_ALLOWED, text);
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST"));
            return response;
        }
    };
    ok(JSON, Answer::Whole(stats.to_json().into()))
}

/// Reads a body and forgets it, so that the connection stays good for the next request.
async fn drain(mut body: Incoming) -> Result<(), hyper::Error> {
    while let Some(frame) = body.frame().await {
        drop(frame?);
    }
    Ok(())
}

/// Reads a body, or `None` as soon as it is too long to be echoed.
async fn collect(mut body: Incoming) -> Result<Option<Bytes>, hyper::Error> {
    if body.size_hint().lower() > MAX_ECHO as u64 {
        return Ok(None);
    }
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            if whole.len() + data.len() > MAX_ECHO {
                return Ok(None);
            }
            whole.extend_from_slice(&data);
        }
    }
    Ok(Some(whole.into()))
}
