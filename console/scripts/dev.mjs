// The console from its sources, and the API of a running gateway next to it, on one origin with the gateway's policy:
// `npm run dev -- http://127.0.0.1:8080 [port]`. Each load of the page builds again.
import { createServer, request } from "node:http";
import { pathToFileURL } from "node:url";
import { files } from "./build.mjs";

const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
  + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css", svg: "image/svg+xml", txt: "text/plain" };

/** Where it listens. */
export async function serve(api, port, { once = false, ...options } = {}) {
  let made = new Map();
  const server = createServer(async (incoming, answer) => {
    const path = new URL(incoming.url, "http://x").pathname;
    if (!path.startsWith("/console/") || path.startsWith("/console/sign-in")) {
      const onward = request(new URL(incoming.url, api), { method: incoming.method, headers: { ...incoming.headers, host: new URL(api).host } }, (came) => {
        answer.writeHead(came.statusCode, came.headers);
        came.pipe(answer);
      });
      onward.on("error", () => answer.writeHead(502).end());
      incoming.pipe(onward);
      return;
    }
    const name = path.slice("/console/".length) || "index.html";
    if (name === "index.html" && !(once && made.size > 0)) {
      made = await files(options).catch((error) => {
        console.error(error.message);
        return new Map();
      });
    }
    const content = made.get(name);
    if (!content) {
      answer.writeHead(404).end();
      return;
    }
    answer.writeHead(200, { "content-type": TYPES[name.split(".").pop()], "content-security-policy": POLICY, "cache-control": name === "index.html" ? "no-store" : "max-age=600" });
    answer.end(content);
  });
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => { server.closeAllConnections(); server.close(); } };
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const api = process.argv[2] ?? "http://127.0.0.1:8080";
  const { url } = await serve(api, Number(process.argv[3] ?? 8090), { minify: false });
  console.log(`${url}/console/ over ${api}`);
}
