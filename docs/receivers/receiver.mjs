// Takes Earshot's webhooks. Node 18 or later, nothing else.
//
//     SECRET=hush node receiver.mjs               the Connection has headers: {"x-secret": "hush"}
//     WEBHOOK_SECRET=whsec_... node receiver.mjs  the Connection has signingSecrets: ["whsec_..."]
//
// What a receiver must do: check who sends, remember `name` and take each Scan once, answer at once, and do
// the work afterwards. Without either secret it takes what anybody sends: for trying out alone.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const port = Number(process.env.PORT ?? 4000);
const secret = process.env.SECRET ?? '';
const signing = process.env.WEBHOOK_SECRET ?? '';
const maxBytes = 1024 * 1024;

const seen = new Set(); // a database, in earnest: unique by `name`

// Always of the same length, and compared in the same time.
const digest = (text) => createHash('sha256').update(text).digest();
const same = (a, b) => timingSafeEqual(digest(a), digest(b));

function genuine(headers, body) {
  if (secret && !same(headers['x-secret'] ?? '', secret)) return false;
  if (signing) { // https://www.standardwebhooks.com
    const stamp = headers['webhook-timestamp'] ?? '';
    if (!/^\d+$/.test(stamp) || Math.abs(Date.now() / 1000 - Number(stamp)) > 300) return false;
    const key = Buffer.from(signing.slice('whsec_'.length), 'base64');
    const mac = createHmac('sha256', key).update(`${headers['webhook-id'] ?? ''}.${stamp}.`).update(body);
    const mine = `v1,${mac.digest('base64')}`;
    return (headers['webhook-signature'] ?? '').split(' ').some((theirs) => same(mine, theirs));
  }
  return true;
}

function use({ name, post }) {
  console.log('scan', name, JSON.stringify(post.title ?? post.text ?? ''), post.url);
}

createServer((request, response) => {
  const answer = (status) => response.writeHead(status).end();
  if (request.method !== 'POST') return answer(405);
  const chunks = [];
  let length = 0;
  request.on('data', (chunk) => {
    length += chunk.length;
    if (length > maxBytes) request.destroy();
    chunks.push(chunk);
  });
  request.on('error', () => {});
  request.on('end', () => {
    const body = Buffer.concat(chunks);
    if (!genuine(request.headers, body)) return answer(401);
    let event;
    try {
      event = JSON.parse(body);
      if (typeof event.name !== 'string') throw new Error('no name');
    } catch {
      return answer(400);
    }
    const fresh = !seen.has(event.name);
    seen.add(event.name);
    answer(204); // also to one that came before: it is here, and needs not come again
    if (fresh) setImmediate(use, event);
  });
}).listen(port, '127.0.0.1', () => console.log(`ready http://127.0.0.1:${port}/`));
