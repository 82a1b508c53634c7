// The console from its sources, and the API of a running gateway beside it, on one origin with the gateway's policy:
// `npm run dev -- http://127.0.0.1:8080 [port]`. Each load of the page builds anew.
import { createServer, request } from "node:http";
import { files } from "./build.mjs";

const api = new URL(process.argv[2] ?? "http://127.0.0.1:8080");
const port = Number(process.argv[3] ?? 8090);
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
  + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css", svg: "image/svg+xml", txt: "text/plain" };
let made = new Map();

createServer(async (incoming, answer) => {
  const path = new URL(incoming.url, "http://x").pathname;
  if (!path.startsWith("/console/")) {
    const onward = request(new URL(incoming.url, api), { method: incoming.method, headers: { ...incoming.headers, host: api.host } }, (came) => {
      answer.writeHead(came.statusCode, came.headers);
      came.pipe(answer);
    });
    onward.on("error", () => answer.writeHead(502).end());
    incoming.pipe(onward);
    return;
  }
  const name = path.slice("/console/".length) || "index.html";
  if (name === "index.html") {
    made = await files({ minify: false }).catch((error) => {
      console.error(error.message);
      return new Map();
    });
  }
  const content = made.get(name);
  if (!content) {
    answer.writeHead(404).end();
    return;
  }
  answer.writeHead(200, { "content-type": TYPES[name.split(".").pop()], "content-security-policy": POLICY, "cache-control": "no-store" });
  answer.end(content);
}).listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}/console/ over ${api.origin}`));
