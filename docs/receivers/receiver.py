#!/usr/bin/env python3
"""Takes Earshot's webhooks. Python 3.8 or later, nothing else.

    SECRET=hush python3 receiver.py              the Connection has headers: {"x-secret": "hush"}
    WEBHOOK_SECRET=whsec_... python3 receiver.py the Connection has signingSecrets: ["whsec_..."]

What a receiver must do: check who sends, remember `name` and take each Scan once, answer at once, and do
the work afterwards. Without either secret it takes what anybody sends: for trying out alone.
"""
import base64, hashlib, hmac, json, os, queue, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PORT = int(os.environ.get("PORT", "4000"))
SECRET = os.environ.get("SECRET", "")
SIGNING = os.environ.get("WEBHOOK_SECRET", "")
MAX_BYTES = 1024 * 1024

seen, lock, work = set(), threading.Lock(), queue.Queue()  # a database, in earnest: unique by `name`


def genuine(headers, body):
    if SECRET and not hmac.compare_digest(headers.get("x-secret", "").encode(), SECRET.encode()):
        return False
    if SIGNING:  # https://www.standardwebhooks.com
        stamp = headers.get("webhook-timestamp", "")
        if not stamp.isdigit() or abs(time.time() - int(stamp)) > 300:
            return False
        key = base64.b64decode(SIGNING.split("_", 1)[1])
        signed = ".".join([headers.get("webhook-id", ""), stamp, ""]).encode() + body
        mine = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        theirs = headers.get("webhook-signature", "").split(" ")
        return any(hmac.compare_digest(mine.encode(), one.encode()) for one in theirs)
    return True


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("content-length") or 0)
        if length > MAX_BYTES:
            return self.answer(413)
        body = self.rfile.read(length)
        if not genuine(self.headers, body):
            return self.answer(401)
        try:
            event = json.loads(body)
            name = event["name"]
        except (ValueError, KeyError, TypeError):
            return self.answer(400)
        with lock:
            fresh = name not in seen
            seen.add(name)
        if fresh:
            work.put(event)
        self.answer(204)  # also to one that came before: it is here, and needs not come again

    def answer(self, status):
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def use():
    while True:
        event = work.get()
        post = event["post"]
        words = post.get("title") or post.get("text") or ""
        print("scan", event["name"], json.dumps(words), post["url"], flush=True)


threading.Thread(target=use, daemon=True).start()
server = ThreadingHTTPServer(("127.0.0.1", PORT), Receiver)
print(f"ready http://127.0.0.1:{PORT}/", flush=True)
server.serve_forever()
