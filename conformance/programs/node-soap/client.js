// Calls the bookshop with node-soap, all it knows taken from the WSDL.
//
// Usage: client.js WSDL ISBN TITLE
// Prints `ok WHAT` or `FAILED WHAT: WHY` for every check; exits 1 when one failed.
"use strict";

const soap = require("soap");

function check(what, holds, why) {
  if (!holds) process.exitCode = 1;
  console.log(holds ? `ok ${what}` : `FAILED ${what}: ${JSON.stringify(why)}`);
}

// Every title in a reply, in order.
function titles(value) {
  if (Array.isArray(value)) return value.flatMap(titles);
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, inner]) => (key === "title" ? [inner] : titles(inner)));
}

// What a fault says of itself, whichever version it came in.
function read(fault) {
  const { faultcode, faultstring, Code, Reason, detail, Detail } = fault;
  const text = faultstring ?? Reason?.Text;
  return {
    code: String(faultcode ?? Code?.Value).split(":").pop(),
    reason: text?.$value ?? text,
    detail: detail ?? Detail,
  };
}

async function checkFault(what, client, isbn, code) {
  try {
    check(what, false, (await client.BookLiteAsync({ isbn }))[0]);
  } catch (error) {
    const fault = error.root?.Envelope?.Body?.Fault;
    if (!fault) return check(what, false, error.message);
    const said = read(fault);
    check(`${what}: code ${code}`, said.code === code, fault);
    check(`${what}: reason names ${isbn}`, String(said.reason).includes(isbn), fault);
    check(`${what}: detail`, Object.keys(said.detail ?? {}).length === 1, fault);
  }
}

async function main() {
  const [wsdl, isbn, title] = process.argv.slice(2);
  for (const is12 of [false, true]) {
    const version = is12 ? "SOAP 1.2" : "SOAP 1.1";
    const client = await soap.createClientAsync(wsdl, { forceSoap12Headers: is12 });

    let found = titles((await client.BookLiteAsync({ isbn }))[0]);
    check(`${version} BookLite`, found.length === 1 && found[0] === title, found);
    for (const [operation, count] of [["BookHeavy1", 1], ["BookHeavy5", 5]]) {
      found = titles((await client[`${operation}Async`]({ isbn }))[0]);
      check(`${version} ${operation}`, found.length === count && found[0] === title, found);
    }
    const hello = (await client.HelloAsync({ isbn }))[0];
    check(`${version} Hello`, hello && Object.keys(hello).length > 0, hello);

    const sender = is12 ? "Sender" : "Client";
    const broken = isbn.slice(0, -1) + (isbn.endsWith("0") ? "1" : "0");
    await checkFault(`${version} unknown ISBN`, client, "0000000000", sender);
    await checkFault(`${version} bad checksum`, client, broken, sender);
  }
}

main();
