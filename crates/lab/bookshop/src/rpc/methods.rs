//! The methods.

use std::collections::HashMap;
use std::rc::Rc;

use posthaste_grpc_schema::reflection::{
    REFLECTION_METHOD, REFLECTION_SERVICES, ServerReflectionRequest,
};
use posthaste_grpc_schema::{
    HEALTH, HealthCheckRequest, HealthCheckResponse, HealthListRequest, HealthListResponse,
    ServingStatus,
};
use posthaste_http::grpc::{Code, Status, frame};

use super::call::Messages;
use super::messages::{
    GetBookReply, GetBookRequest, LineQuote, ListBooksReply, ListBooksRequest, OrderLine,
    OrderTotal, reply, size,
};
use super::reflection::reflection;
use super::{CallOutcome, Replies};
use crate::body::Outlet;
use crate::catalogue::{Book, LookupError};
use crate::clock::now;
use crate::events::{EventLaw, EventLawError, EventMoment, StreamCount};
use crate::metrics::ReplyForm;
use crate::selection::select;
use crate::service::ShopService;

/// The shop's service.
const BOOKSHOP: &str = "bookshop.v1.Bookshop";

/// Number of messages of `ListBooks` without a count.
const BOOKS: u32 = 10;

/// Maximum number of lines of an order.
const MOST_LINES: u32 = 10_000;

/// A method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    GetBook,
    ListBooks,
    PlaceOrder,
    QuoteLines,
    Check,
    List,
    Watch,
    Reflection,
}

impl Route {
    /// The method of a path.
    pub(super) fn from_path(path: &str) -> Result<Self, Status> {
        let unknown = |message: String| Err(Status::new(Code::Unimplemented, message));
        let (service, method) = path
            .strip_prefix('/')
            .and_then(|path| path.split_once('/'))
            .unwrap_or((path, ""));
        match (service, method) {
            (BOOKSHOP, "GetBook") => Ok(Self::GetBook),
            (BOOKSHOP, "ListBooks") => Ok(Self::ListBooks),
            (BOOKSHOP, "PlaceOrder") => Ok(Self::PlaceOrder),
            (BOOKSHOP, "QuoteLines") => Ok(Self::QuoteLines),
            (HEALTH, "Check") => Ok(Self::Check),
            (HEALTH, "List") => Ok(Self::List),
            (HEALTH, "Watch") => Ok(Self::Watch),
            (service, REFLECTION_METHOD) if REFLECTION_SERVICES.contains(&service) => {
                Ok(Self::Reflection)
            }
            (BOOKSHOP, method) => unknown(format!(
                "{BOOKSHOP} has no method {method:?}: there are GetBook, ListBooks, PlaceOrder and QuoteLines"
            )),
            (service, _) => unknown(format!(
                "there is no service {service:?} with this method: there are {BOOKSHOP}, {HEALTH} and server reflection"
            )),
        }
    }

    /// True for methods without a service time. Monitoring must neither wait in the queue nor lengthen it.
    pub(super) const fn is_monitoring(self) -> bool {
        matches!(
            self,
            Self::Check | Self::List | Self::Watch | Self::Reflection
        )
    }
}

/// Runs a method up to the head of its reply.
pub(super) async fn run(
    shop: &Rc<ShopService>,
    route: Route,
    mut messages: Messages,
) -> Result<CallOutcome, Status> {
    match route {
        Route::GetBook => {
            let reply = get_book(shop, &messages.one().await?)?;
            Ok(CallOutcome::Message(frame(&reply)))
        }
        Route::ListBooks => list_books(shop.clone(), messages.one().await?),
        Route::PlaceOrder => place_order(shop, messages).await,
        Route::QuoteLines => {
            let shop = shop.clone();
            Ok(stream(|outlet| async move {
                quote_lines(&shop, messages, &outlet).await
            }))
        }
        Route::Check => {
            let request: HealthCheckRequest = messages.one().await?;
            match health(&request.service) {
                ServingStatus::ServiceUnknown => {
                    let message = format!("there is no service {:?}", request.service);
                    Err(Status::new(Code::NotFound, message))
                }
                status => Ok(CallOutcome::Message(frame(&health_reply(status)))),
            }
        }
        Route::List => {
            let HealthListRequest {} = messages.one().await?;
            let all = ["", BOOKSHOP, HEALTH]
                .into_iter()
                .chain(REFLECTION_SERVICES);
            let statuses: HashMap<_, _> = all
                .map(|name| (name.to_owned(), health_reply(ServingStatus::Serving)))
                .collect();
            Ok(CallOutcome::Message(frame(&HealthListResponse {
                statuses,
            })))
        }
        Route::Watch => {
            let request: HealthCheckRequest = messages.one().await?;
            Ok(stream(|outlet| async move {
                let status = health(&request.service);
                outlet.send(frame(&health_reply(status))).await;
                // It never changes; the client or its deadline ends the call.
                std::future::pending().await
            }))
        }
        Route::Reflection => {
            let shop = shop.clone();
            Ok(stream(|outlet| async move {
                while let Some(request) = messages.next::<ServerReflectionRequest>().await? {
                    let answer = reflection(&shop)?.answer(request);
                    outlet.send(frame(&answer)).await;
                }
                Ok(())
            }))
        }
    }
}

fn stream<F>(produce: impl FnOnce(Outlet) -> F + 'static) -> CallOutcome
where
    F: Future<Output = Result<(), Status>> + 'static,
{
    CallOutcome::Stream(Box::new(|outlet| -> Replies { Box::pin(produce(outlet)) }))
}

fn get_book(shop: &ShopService, request: &GetBookRequest) -> Result<GetBookReply, Status> {
    let number = find(shop, &request.isbn)?;
    content(shop, number, request.size)
}

/// The content of a reply about book `number`, in a size by its number in the enumeration.
fn content(shop: &ShopService, number: usize, wanted: i32) -> Result<GetBookReply, Status> {
    let size = size(wanted).ok_or_else(|| {
        let message = format!("there is no size {wanted}: the enumeration Size has 0 to 6");
        Status::new(Code::InvalidArgument, message)
    })?;
    Ok(reply(&select(shop.catalogue(), number, size)))
}

fn list_books(shop: Rc<ShopService>, request: ListBooksRequest) -> Result<CallOutcome, Status> {
    let first = find(&shop, &request.isbn)?;
    content(&shop, first, request.size)?;
    let law =
        law(&request).map_err(|error| Status::new(Code::InvalidArgument, error.to_string()))?;
    Ok(stream(move |outlet| async move {
        let count = StreamCount::begin(&shop, ReplyForm::Grpc);
        let books = shop.catalogue().books().len();
        let write = |moment: &EventMoment| {
            let book = (first + moment.number as usize - 1) % books;
            frame(&ListBooksReply {
                number: moment.number,
                sent_ns: moment.sent_ns,
                due_ns: moment.due_ns,
                // The size has been checked.
                content: content(&shop, book, request.size).ok(),
            })
        };
        count.send(law, &outlet, write).await;
        count.complete();
        Ok(())
    }))
}

fn law(request: &ListBooksRequest) -> Result<EventLaw, EventLawError> {
    let mut law = EventLaw::new(BOOKS);
    law.seed = request.seed;
    if request.count != 0 {
        law.set("events", &request.count.to_string())?;
    }
    for (name, value) in [("gap", &request.gap), ("first", &request.first)] {
        if !value.is_empty() {
            law.set(name, value)?;
        }
    }
    law.check()
}

async fn place_order(shop: &ShopService, mut messages: Messages) -> Result<CallOutcome, Status> {
    let mut total = OrderTotal::default();
    while let Some(line) = messages.next::<OrderLine>().await? {
        total.lines = next_line(total.lines)?;
        total.copies += u64::from(line.copies);
        total.total_cents += line_cents(shop, &line)?;
    }
    if total.lines == 0 {
        let message = "an order needs a line: send at least one";
        return Err(Status::new(Code::InvalidArgument, message));
    }
    Ok(CallOutcome::Message(frame(&total)))
}

async fn quote_lines(
    shop: &ShopService,
    mut messages: Messages,
    outlet: &Outlet,
) -> Result<(), Status> {
    let (mut number, mut total_cents) = (0, 0);
    while let Some(line) = messages.next::<OrderLine>().await? {
        number = next_line(number)?;
        let line_cents = line_cents(shop, &line)?;
        total_cents += line_cents;
        let quote = LineQuote {
            number,
            sent_ns: now(),
            isbn: line.isbn,
            line_cents,
            total_cents,
        };
        shop.metrics().count_event(ReplyForm::Grpc);
        shop.pay();
        outlet.send(frame(&quote)).await;
    }
    Ok(())
}

fn next_line(lines: u32) -> Result<u32, Status> {
    if lines < MOST_LINES {
        return Ok(lines + 1);
    }
    let message = format!("a call takes at most {MOST_LINES} lines: send the others in another");
    Err(Status::new(Code::ResourceExhausted, message))
}

/// The price of a line of an order.
fn line_cents(shop: &ShopService, line: &OrderLine) -> Result<u64, Status> {
    let book = &shop.catalogue().books()[find(shop, &line.isbn)?];
    if line.copies == 0 {
        let message = format!("{}: a line needs a number of copies, at least 1", line.isbn);
        return Err(Status::new(Code::InvalidArgument, message));
    }
    if line.copies > book.stock {
        let message = format!("{}: there are only {} copies", line.isbn, book.stock);
        return Err(Status::new(Code::FailedPrecondition, message));
    }
    Ok(cents(book) * u64::from(line.copies))
}

fn cents(book: &Book) -> u64 {
    let digits = book.price.bytes().filter(u8::is_ascii_digit);
    digits.fold(0, |cents, digit| cents * 10 + u64::from(digit - b'0'))
}

fn find(shop: &ShopService, isbn: &str) -> Result<usize, Status> {
    shop.catalogue().find(isbn).map_err(|error| {
        let code = match error {
            LookupError::Invalid { .. } => Code::InvalidArgument,
            LookupError::Unknown(_) => Code::NotFound,
        };
        Status::new(code, error.to_string())
    })
}

/// Health of a service, or of all if the name is empty.
fn health(service: &str) -> ServingStatus {
    let is_known =
        matches!(service, "" | BOOKSHOP | HEALTH) || REFLECTION_SERVICES.contains(&service);
    if is_known {
        ServingStatus::Serving
    } else {
        ServingStatus::ServiceUnknown
    }
}

fn health_reply(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse {
        status: status as i32,
    }
}
