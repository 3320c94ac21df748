// The client by `Forwarded`, as npm's forwarded-parse reads the field.
//
// Takes PEER FILE: the address of the peer, and a JSON list of cases, each a list of field lines. Prints a JSON list
// with the client of each case, or null if the field is malformed. The peer and 10.0.0.0/8 are trusted.

const fs = require("fs");
const net = require("net");
const parse = require("forwarded-parse");

const [peer, file] = process.argv.slice(2);
const trusted = new net.BlockList();
trusted.addSubnet("10.0.0.0", 8);

// The address of a node (RFC 7239, section 6), or null if it has none.
function address(node) {
  const found = /^(?:\[([^\]]+)\]|([0-9.]+))(?::(?:[0-9]{1,5}|_[A-Za-z0-9._-]+))?$/.exec(node || "");
  if (!found) return null;
  const [, six, four] = found;
  if (four !== undefined) return net.isIPv4(four) ? four : null;
  if (!net.isIPv6(six)) return null;
  return six.replace(/^::ffff:(?=[0-9.]+$)/i, "");
}

function client(lines) {
  let elements;
  try {
    // Empty lines are no part of the list (RFC 9110, section 5.6.1).
    elements = parse(lines.filter((line) => line !== "").join(", "));
  } catch (error) {
    return null;
  }
  let last = peer;
  for (const element of elements.reverse()) {
    const sender = address(element.for);
    if (sender === null) break;
    last = sender;
    if (net.isIPv6(sender) || !trusted.check(sender)) break;
  }
  return last;
}

console.log(JSON.stringify(JSON.parse(fs.readFileSync(file, "utf8")).map(client)));
