// A visitor of the demo with a real browser: Debian's chromium, driven over the DevTools protocol.
//
// Usage: client.js URL CHROMIUM
// Prints `ok WHAT` or `FAILED WHAT: WHY` for every check; exits 1 when one failed.
"use strict";

const http = require("node:http");
const puppeteer = require("puppeteer-core");

const PATIENCE = { timeout: 60_000 };
const [url, executablePath] = process.argv.slice(2);

function check(what, holds, why) {
  if (!holds) process.exitCode = 1;
  console.log(holds ? `ok ${what}` : `FAILED ${what}: ${JSON.stringify(why)}`);
}

// What is seen where a selector leads.
const text = (page, selector) => page.$eval(selector, (element) => element.textContent);

async function waits(page, what, condition) {
  const holds = await page.waitForFunction(condition, PATIENCE).then(() => true, () => false);
  check(what, holds, await text(page, "main"));
}

// A page that writes down what it asks of whom, and what goes wrong.
async function open(browser) {
  const page = await browser.newPage();
  const wrong = [], asked = [];
  page.on("console", (message) => { if (["error", "warn"].includes(message.type())) wrong.push(message.text()); });
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("request", (request) => asked.push(request.url()));
  return { page, wrong, asked };
}

async function looks(page) {
  const interactive = await page.evaluate(async () => {
    while (document.getElementById("state").textContent !== "live") await new Promise(requestAnimationFrame);
    return Math.round(performance.now());
  });
  check(`live ${interactive} ms after it was asked for`, true);
  await waits(page, "requests are served", () => parseInt(document.querySelector(".served dd").textContent, 10) > 0);
  const before = await text(page, "#figures");
  await page.waitForFunction((old) => document.getElementById("figures").textContent !== old, PATIENCE, before);
  check("figures move", true);
  await waits(page, "packets are marked", () => /AF21.*LE/.test(document.getElementById("marks").textContent));
}

// By keyboard alone, as somebody without a mouse would.
async function moves(page) {
  await page.focus("#demand");
  // Each key is a change; what the server tells of one must not undo the next.
  await page.keyboard.press("Home");
  for (let presses = 0; presses < 12; presses += 1) await page.keyboard.press("ArrowRight");
  await waits(page, "keys in a row add up", () =>
    document.getElementById("news").textContent.includes("Demand: 120 requests/s") &&
    document.getElementById("demand").value === "120");
  await page.keyboard.press("End");
  await waits(page, "more demand makes it dear", () =>
    document.querySelector("#price output").textContent > "0.10 EUR" &&
    parseInt(document.querySelector(".dear dd").textContent, 10) > 0);
  await waits(page, "and it is told", () => document.getElementById("news").textContent.includes("Phones stay away"));
  await waits(page, "the broker has the offer", () => /standard@0\.\d+/.test(document.getElementById("offers").textContent));
  await page.select("#protection", "none");
  await waits(page, "without protection there is no price", () =>
    document.querySelector("#price output").textContent === "no price");
  await waits(page, "and requests fail", () =>
    [...document.querySelectorAll(".failed dd")].some((rate) => parseInt(rate.textContent, 10) > 0));
}

// What is refused is said until something is taken, and the fields show what holds.
async function refused(page) {
  const held = await page.$eval("#compression", (field) => field.value);
  await page.evaluate(() => {
    const real = window.fetch;
    window.fetch = () => { window.fetch = real; return Promise.resolve(new Response("no", { status: 503 })); };
  });
  await page.select("#compression", "never");
  const said = () => document.getElementById("state").textContent === "refused: no";
  await waits(page, "a refusal is said", said);
  const before = await text(page, "#figures");
  await page.waitForFunction((old) => document.getElementById("figures").textContent !== old, PATIENCE, before);
  check("and stands", await page.evaluate(said), await text(page, "#state"));
  const shown = await page.$eval("#compression", (field) => field.value);
  check("the fields show what holds", shown === held, shown);
  await page.select("#compression", "never");
  await waits(page, "what is taken ends it", () => document.getElementById("state").textContent === "live");
}

// Every control has a name for those who hear the page, and nothing is wider than a phone.
async function reads(page) {
  const nameless = await page.$$eval("input, select", (fields) =>
    fields.filter((field) => !field.labels.length).map((field) => field.id));
  check("every field has a label", nameless.length === 0, nameless);
  const repeated = await page.$$eval("[id]", (all) =>
    all.map((element) => element.id).filter((id, place, ids) => ids.indexOf(id) !== place));
  check("every id is there once", repeated.length === 0, repeated);
  for (const width of [1280, 390, 320]) {
    await page.setViewport({ width, height: 800 });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    check(`fits ${width} px`, wide <= width, wide);
  }
}

// Whoever comes later sees what has happened before, and what holds.
async function returns(browser) {
  const { page } = await open(browser);
  await page.goto(url);
  await waits(page, "a later page has the past", () =>
    document.querySelector("#load .chart svg").lastChild?.getAttribute("d").split("L").length > 5);
  await waits(page, "and the controls", () => document.getElementById("protection").value === "none");
}

// A page of another site cannot drive it: what it wants is within bounds, and never holds.
async function intrudes(browser, visited) {
  const held = () => visited.evaluate(() => JSON.stringify(controls));
  const before = await held();
  const wanted = JSON.stringify({ ...JSON.parse(before), demand: 10 });
  const elsewhere = http.createServer((_, reply) => reply.end("<title>elsewhere</title>")).listen(0, "127.0.0.1");
  await new Promise((listens) => elsewhere.once("listening", listens));
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${elsewhere.address().port}/`);
  const ways = [["cors", "application/json"], ["cors", "text/plain"], ["no-cors", "text/plain"]];
  await page.evaluate(async (target, ways, body) => Promise.allSettled(ways.map(([mode, kind]) =>
    fetch(target, { method: "POST", mode, headers: { "Content-Type": kind }, body }))),
  `${url}controls`, ways, wanted);
  // Longer than a change takes.
  await new Promise((passed) => setTimeout(passed, 3000));
  const after = await held();
  check("another site changes nothing", after === before, after);
  elsewhere.close();
}

(async () => {
  const args = ["--no-sandbox", "--disable-background-networking"];
  const browser = await puppeteer.launch({ executablePath, args });
  try {
    const { page, wrong, asked } = await open(browser);
    await page.goto(url);
    await looks(page);
    await moves(page);
    await refused(page);
    await reads(page);
    await returns(browser);
    await intrudes(browser, page);
    check("nothing is wrong in the console", wrong.length === 0, wrong);
    const away = asked.filter((asked) => !asked.startsWith(url) && !asked.startsWith("data:"));
    check("nothing is asked of anybody else", away.length === 0, away);
  } finally {
    await browser.close();
  }
})().catch((error) => check("the visit", false, error.message));
