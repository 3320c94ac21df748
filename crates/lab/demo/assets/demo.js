// The page's life: what the server tells is drawn, what a visitor moves is sent. Nothing else is asked of anybody.
"use strict";

const SHOWN = 180; // seconds
const ANY_PRICE = 105; // where the slider of a budget stands for none
const samples = [];
let controls = null;

const at = (id) => document.getElementById(id);
const kinds = [...document.querySelectorAll(".kind")];

// ---- drawing

// A path through values of 0 to 1, the newest at the right edge; null interrupts it.
function trace(values) {
  let path = "", pen = false;
  values.forEach((value, i) => {
    if (value === null) { pen = false; return; }
    const y = 100 - 100 * Math.min(1, Math.max(0, value));
    path += `${pen ? "L" : "M"}${SHOWN - values.length + i} ${y.toFixed(1)}`;
    pen = true;
  });
  return path;
}

// The surface between two rows of values.
function surface(below, above) {
  const start = SHOWN - above.length;
  const point = (value, i) => `${start + i} ${(100 - 100 * Math.min(1, value)).toFixed(1)}`;
  const back = below.map(point).reverse();
  return above.length ? `M${above.map(point).join("L")}L${back.join("L")}Z` : "";
}

function draw(svg, shapes) {
  while (svg.childElementCount < shapes.length) {
    svg.append(document.createElementNS("http://www.w3.org/2000/svg", "path"));
  }
  while (svg.childElementCount > shapes.length) svg.lastChild.remove();
  shapes.forEach(([name, path], i) => {
    svg.children[i].setAttribute("class", name);
    svg.children[i].setAttribute("d", path);
  });
}

const GRID = ["grid", "M0 0H180M0 50H180M60 0V100M120 0V100"];
const TICKS = ["tick", "M0 100V105M60 100V105M120 100V105M180 100V105"]; // the page has their labels
const percent = (share) => share === null ? "–" : `${Math.round(100 * share)} %`;
const millis = (ms) => ms === null ? "–" : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
const decades = (ms) => ms === null ? null : Math.log10(Math.max(1, ms)) / 4; // 1 ms to 10 s

function chart(id, words, shapes) {
  const figure = at(id);
  figure.querySelector("output").textContent = words;
  draw(figure.querySelector(".chart svg"), [GRID, TICKS, ...shapes]);
}

function filled(values) {
  const known = values.map((value) => value ?? 0);
  return [["area", surface(known.map(() => 0), known)], ["line", trace(values)]];
}

function show() {
  const now = samples.at(-1);
  if (!now || !controls) return;
  const all = (pick) => samples.map(pick);
  chart("load", percent(now.busy), filled(all((s) => s.busy)));
  const budgets = controls.clients.filter((client) => client.budget !== null)
    .map((client) => ["budget", `M0 ${100 - client.budget}H${SHOWN}`]);
  const price = now.price === null ? "no price" : `${now.price.toFixed(2)} EUR`;
  chart("price", price, [...budgets, ...filled(all((s) => s.price))]);
  chart("times", `${millis(now.times.p50)} · ${millis(now.times.p99)}`, [
    ["second", trace(all((s) => decades(s.times.p99)))], ["line", trace(all((s) => decades(s.times.p50)))],
  ]);
  chart("compressed", percent(now.compressed), filled(all((s) => s.compressed)));
  // Up to a round number, which stands beside the charts.
  const most = 5 * Math.ceil(Math.max(1, ...all((s) => s.demand / kinds.length * 0.3)));
  kinds.forEach((card, place) => showKind(card, all((s) => s.kinds[place]), most));
  at("offers").replaceChildren(...(now.offers.length ? now.offers.map(offer) : [row(["none: nothing has a price", "", "", ""])]));
  const marks = Object.entries(now.marks).map(([mark, replies]) => row([mark === "default" ? "none" : mark.toUpperCase(), `${replies.toFixed(0)}/s`], 1));
  at("marks").replaceChildren(...(marks.length ? marks : [row(["none", ""], 1)]));
  at("own").textContent = `${(100 * now.own).toFixed(1)} %`;
}

// A chart has the height of half as much again as is asked for: what ends all at once is cut off.
function showKind(card, seconds, most) {
  const now = seconds.at(-1);
  const names = ["served", "dear", "away", "failed"];
  let below = seconds.map(() => 0);
  const shapes = names.map((name) => {
    const above = seconds.map((s, i) => below[i] + s[name] / most);
    const shape = [`stack ${name}`, surface(below, above)];
    below = above;
    return shape;
  });
  draw(card.querySelector(".chart svg"), [GRID, TICKS, ...shapes]);
  card.querySelector(".scale li").textContent = `${most}/s`;
  names.forEach((name) => { card.querySelector(`.${name} dd`).textContent = `${now[name].toFixed(0)}/s`; });
  card.querySelector(".times output").textContent = now.p50 === null ? "nobody is served" : `p50 ${millis(now.p50)}, p99 ${millis(now.p99)}`;
}

// A row of a table; its cells are numbers from the one of this place on.
function row(cells, numbers = 2) {
  const line = document.createElement("tr");
  cells.forEach((text, i) => {
    const cell = document.createElement("td");
    cell.textContent = text;
    if (i >= numbers) cell.className = "n";
    line.append(cell);
  });
  return line;
}

const offer = ({ name, provider, price, left }) => row([name, provider, price, `${left.toFixed(1)} s`]);

function clock(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

function news({ at: seconds, text }) {
  const item = document.createElement("li"), time = document.createElement("time");
  time.textContent = clock(seconds);
  item.append(time, text);
  at("news").prepend(item);
  while (at("news").childElementCount > 60) at("news").lastChild.remove();
}

// ---- controls

const fields = (place) => ["budget", "network", "wish", "mark"].map((what) => at(`${what}-${place}`));

function words() {
  const demand = Number(at("demand").value);
  at("demand-value").textContent = `${demand} requests/s`;
  kinds.forEach((_, place) => {
    const cents = Number(at(`budget-${place}`).value);
    const pays = cents === ANY_PRICE ? "any price" : `up to ${(cents / 100).toFixed(2)} EUR`;
    at(`budget-value-${place}`).textContent = pays;
    at(`budget-${place}`).setAttribute("aria-valuetext", pays);
  });
  at("demand").setAttribute("aria-valuetext", `${demand} requests per second`);
}

// What holds; where a change is on its way the fields are ahead of it.
function obey(now) {
  controls = now;
  if (!out) fill();
  show();
}

// Every field as it holds; one that somebody is moving stays where it is.
function fill() {
  const set = (field, value) => { if (field !== moving) field.value = value; };
  set(at("demand"), controls.demand);
  set(at("protection"), controls.protection);
  set(at("compression"), controls.compression);
  controls.clients.forEach((client, place) => {
    const [budget, network, wish, mark] = fields(place);
    set(budget, client.budget ?? ANY_PRICE);
    set(network, client.network);
    set(wish, client.wish);
    set(mark, client.mark);
  });
  words();
}

function wanted() {
  const clients = kinds.map((_, place) => {
    const [budget, network, wish, mark] = fields(place).map((field) => field.value);
    return { budget: Number(budget) === ANY_PRICE ? null : Number(budget), network, wish, mark };
  });
  return {
    demand: Number(at("demand").value),
    protection: at("protection").value,
    compression: at("compression").value,
    clients,
  };
}

let out = false; // a change is on its way
let more = false; // and something was changed since
let refusal = null; // why the last change was not taken

// One at a time: a refusal then undoes nothing that was taken.
async function want() {
  more = true;
  if (out) return;
  out = true;
  while (more) {
    more = false;
    refusal = await refused(wanted());
  }
  out = false;
  if (!refusal) return;
  state("lost", refusal);
  if (controls) fill();
}

// Why a change is refused, or null.
async function refused(change) {
  try {
    const reply = await fetch("/controls", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(change),
    });
    return reply.ok ? null : `refused: ${(await reply.text()).trim()}`;
  } catch {
    return "not changed: there was no connection";
  }
}

let moving = null;
document.addEventListener("input", (event) => { moving = event.target; words(); });
document.addEventListener("change", () => { moving = null; want(); });

// ---- what the server tells

function state(name, text) {
  if (at("state").textContent === text) return;
  at("state").className = name;
  at("state").textContent = text;
}

const events = new EventSource("/events");
const on = (name, take) => events.addEventListener(name, (event) => take(JSON.parse(event.data)));
on("controls", obey);
on("news", news);
on("sample", (sample) => {
  // A demo that has begun anew has another clock.
  if (samples.length && sample.at < samples.at(-1).at) samples.length = 0;
  samples.push(sample);
  if (samples.length > SHOWN) samples.shift();
  // A refusal stands until a change is taken.
  if (refusal) state("lost", refusal);
  else state("live", "live");
  requestAnimationFrame(show);
});
events.onerror = () => state("lost", "no connection: waiting for it");
words();
