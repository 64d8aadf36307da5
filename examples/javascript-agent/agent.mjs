// An agent for Proctor in JavaScript: it looks at the depth picture, drives where there is room and turns
// away from what is near. It speaks as docs/protocol.md tells; nothing of Proctor is installed here.
//
//   node agent.mjs [--port 8080] [--stop-after 60]
//
// With PROCTOR_AGENT_TOKEN set, only an evaluator that knows the token is let in.

import { createHash, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";
import { parseArgs } from "node:util";
import { inflateSync } from "node:zlib";
import { WebSocketServer } from "ws";

const JSON_SUBPROTOCOL = "proctor.v1.json";
const [STOP, FORWARD, LEFT, RIGHT] = [0, 1, 2, 3];
const NEAR_MM = 1300; // turn away from what is nearer; the floor comes into view at 2.2 m only
const FULL_TURN = 24; // turns of 15 degrees

const known = { port: { type: "string", default: "8080" }, "stop-after": { type: "string", default: "60" } };
const giveUp = (error) => (console.error(`${error.message}\nusage: node agent.mjs [--port N] [--stop-after N]`), process.exit(2));
let options;
try {
  options = parseArgs({ options: known }).values;
} catch (error) {
  giveUp(error);
}

// What one connection remembers. Many may be open at once, so nothing of this is global.
class Wanderer {
  begin({ episode, observation_format: formats }) {
    if (episode.task_type !== "vln") throw new Error(`this agent cannot do ${episode.task_type}`);
    if (formats?.depth?.encoding !== "png") throw new Error("this agent needs depth as PNG");
    this.actionsLeft = Math.min(Number(options["stop-after"]), episode.max_steps);
    this.turn = episode.seed % 2 ? LEFT : RIGHT; // chance comes from the seed, so that a run can be repeated
    this.turns = 0;
    this.before = null; // what was seen before going FORWARD
    console.log(`${episode.episode_id}: ${episode.instruction.text}`);
  }

  act(observation) {
    if (this.actionsLeft === undefined) throw new Error("get_action came before reset_episode");
    this.actionsLeft -= 1;
    // Without a STOP there is no success. After a full turn without a way out, there is none.
    if (this.actionsLeft <= 0 || this.turns >= FULL_TURN) return STOP;
    const room = roomAhead(decodeDepth(Buffer.from(observation.depth, "base64")));
    // What lies too low to be seen is noticed when going FORWARD changes nothing.
    const isStuck = this.before?.every((mm, third) => Math.abs(mm - room[third]) < 5);
    this.before = null;
    if (room[1] >= NEAR_MM && !isStuck) {
      this.turns = 0;
      this.before = room;
      return FORWARD;
    }
    // The side is chosen once and kept until the way is free: changing it each time would dither in a corner.
    if (this.turns === 0 && room[0] !== room[2]) this.turn = room[0] > room[2] ? LEFT : RIGHT;
    this.turns += 1;
    return this.turn;
  }
}

// How far it is to the nearest thing in the left, middle and right third of the picture, in millimetres.
// The upper third shows what is above the robot, and is left out; 0 means unknown, not near.
function roomAhead({ width, height, pixels }) {
  const thirds = [Infinity, Infinity, Infinity];
  for (let y = Math.floor(height / 3); y < height; y += 2) {
    for (let x = 0; x < width; x += 2) {
      const depth = pixels[y * width + x], third = Math.floor((3 * x) / width);
      if (depth > 0 && depth < thirds[third]) thirds[third] = depth;
    }
  }
  return thirds;
}

// Reads a 16-bit greyscale PNG file, not interlaced, into a Uint16Array, row by row from the top.
function decodeDepth(file) {
  if (file.toString("latin1", 1, 4) !== "PNG") throw new Error("depth is no PNG file");
  const [width, height] = [file.readUInt32BE(16), file.readUInt32BE(20)];
  if (file[24] !== 16 || file[25] !== 0 || file[28] !== 0) throw new Error("depth is no 16-bit grey PNG");
  if (width * height > 1 << 24) throw new Error(`depth of ${width} x ${height} pixels is too big`);
  const parts = []; // chunks are length, name, data, checksum; the pixels are in those named IDAT
  for (let at = 8, end; at + 12 <= file.length; at = end + 4) {
    end = at + 8 + file.readUInt32BE(at);
    if (file.toString("latin1", at + 4, at + 8) === "IDAT") parts.push(file.subarray(at + 8, end));
  }
  const stride = 2 * width; // bytes in a row; the same byte of the left neighbour is two back
  const bytes = inflateSync(Buffer.concat(parts), { maxOutputLength: height * (stride + 1) });
  if (bytes.length !== height * (stride + 1)) throw new Error("the depth picture is cut off");
  const pixels = new Uint16Array(width * height);
  let above = new Uint8Array(stride), row = new Uint8Array(stride);
  for (let y = 0; y < height; y += 1) {
    const start = y * (stride + 1), filter = bytes[start];
    for (let i = 0; i < stride; i += 1) {
      const a = i < 2 ? 0 : row[i - 2], b = above[i], c = i < 2 ? 0 : above[i - 2];
      let guess = 0; // what the filter foretold: the file holds the difference to it
      if (filter === 1) guess = a;
      else if (filter === 2) guess = b;
      else if (filter === 3) guess = (a + b) >> 1;
      else if (filter === 4) guess = paeth(a, b, c);
      row[i] = bytes[start + 1 + i] + guess; // a Uint8Array keeps the lowest 8 bits
    }
    for (let x = 0; x < width; x += 1) pixels[y * width + x] = (row[2 * x] << 8) | row[2 * x + 1];
    [above, row] = [row, above];
  }
  return { width, height, pixels };
}

// Whichever of left, above and above-left is nearest to left + above - above-left.
function paeth(a, b, c) {
  const toA = Math.abs(b - c), toB = Math.abs(a - c), toC = Math.abs(a + b - 2 * c);
  if (toA <= toB && toA <= toC) return a;
  return toB <= toC ? b : c;
}

function converse(socket) {
  const agent = new Wanderer();
  const send = (message) => socket.send(JSON.stringify(message));
  const hello = { type: "hello", protocol: "proctor", version: 1, name: "javascript-agent" };
  send({ ...hello, pictures: "jpeg", request_ids: true }); // colour is not looked at: the smaller, the better
  socket.on("error", (error) => console.error(`connection: ${error.message}`)); // "close" follows
  socket.on("message", (frame, isBinary) => {
    let message = {};
    try {
      if (isBinary) throw new Error("expected JSON in a text frame, found a binary frame");
      message = JSON.parse(frame.toString());
      const { type, session_id, request_id } = message;
      if (type === "reset_episode") agent.begin(message);
      else if (type === "get_action") {
        send({ type: "action", session_id, request_id, action: agent.act(message.observation) });
      } else if (type === "episode_end") console.log(`${message.status} after ${message.num_steps} actions`);
      else if (type === "error") console.error(`evaluator: ${message.kind}: ${message.message}`);
    } catch (error) {
      console.error(error.message);
      send({ type: "error", session_id: message?.session_id, kind: "exception", message: error.message });
    }
  });
}

const token = process.env.PROCTOR_AGENT_TOKEN;
const digest = (text = "") => createHash("sha256").update(text).digest();
const isAllowed = (header) => !token || timingSafeEqual(digest(header), digest(`Bearer ${token}`));
const http = createServer((request, reply) => reply.writeHead(request.url === "/healthz" ? 200 : 404).end());
const server = new WebSocketServer({
  server: http,
  maxPayload: 16 << 20,
  handleProtocols: (offered) => (offered.has(JSON_SUBPROTOCOL) ? JSON_SUBPROTOCOL : false),
  verifyClient: ({ req }) => isAllowed(req.headers.authorization), // else the answer is 401
});
server.on("connection", converse);
server.on("error", giveUp); // the port is taken, say
if (!/^\d{1,5}$/.test(options.port)) giveUp(new Error(`--port: expected a number, found ${options.port}`));
http.listen(Number(options.port), () => console.log(`listening on port ${http.address().port}`));

process.once("SIGTERM", () => {
  for (const socket of server.clients) socket.close(1001, "the agent is being stopped");
  http.close(); // the process ends when the last connection has
  setTimeout(() => process.exit(0), 2000).unref();
});
