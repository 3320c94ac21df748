//! The front page: an overview with commands to try.

use crate::catalogue::{Book, Size};

/// Renders the page at `/`. `address` is the client's address of the shop, `book` an existing book.
pub(crate) fn page(address: &str, book: &Book, count: usize) -> String {
    let isbn = &book.isbn;
    let sizes = Size::ALL.map(Size::name).join(", ");
    let operations = Size::ALL.map(Size::operation).join(", ");
    format!(
        r#"<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>The bookshop</title></head><body>
<h1>The bookshop</h1>
<p>An inventory of {count} books, requested by ISBN and returned in four forms with the same information:
a Web service (SOAP), a page, JSON and gRPC. Orders and the tokens of a chat are event streams. It exists to be
measured.</p>
<h2>Try it</h2>
<pre>
curl {address}/page/{isbn}
curl {address}/json/{isbn}?size=heavy1
curl {address}/isbns.csv
curl -N '{address}/orders?events=20&amp;gap=50ms'
curl -N '{address}/v1/chat/completions?gap=20ms' -d '
{{"messages": [{{"role": "user", "content": "Tell me a story"}}], "max_tokens": 50, "stream": true}}'
curl '{address}/soap?wsdl'
curl {address}/soap -H 'Content-Type: text/xml; charset=utf-8' -H 'SOAPAction: ""' -d '
&lt;s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"&gt;&lt;s:Body&gt;
&lt;BookLite xmlns="{namespace}"&gt;&lt;isbn&gt;{isbn}&lt;/isbn&gt;&lt;/BookLite&gt;
&lt;/s:Body&gt;&lt;/s:Envelope&gt;'
</pre>
<h2>What there is</h2>
<ul>
<li><a href="/page/{isbn}">/page/ISBN</a> and <a href="/json/{isbn}">/json/ISBN</a>, both with ?size= one of {sizes}; lite is the default</li>
<li>/soap: SOAP 1.1 and 1.2 by POST; <a href="/soap?wsdl">/soap?wsdl</a> describes the operations {operations}</li>
<li>gRPC over HTTP/2: bookshop.v1.Bookshop (<a href="/bookshop.proto">/bookshop.proto</a>), health, server reflection</li>
<li><a href="/orders">/orders</a>: an event stream with ?events=, ?first=, ?gap=50ms or exp:50ms, ?seed= and ?format= sse or ndjson</li>
<li>/v1/chat/completions: POST as to OpenAI, with "stream" and "max_tokens", and ?first=, ?gap= and ?seed=</li>
<li><a href="/isbns.csv">/isbns.csv</a>: every ISBN, one per line, under the heading isbn</li>
<li><a href="/healthz">/healthz</a> and <a href="/metrics">/metrics</a>: for those who watch over it</li>
</ul>
</body></html>
"#,
        namespace = crate::NAMESPACE,
    )
}
