"""A customer's server, for the demo: says which Scans came, and acknowledges them."""

import http.server
import json

MAX_BYTES = 1 << 20


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200)

    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        if length > MAX_BYTES:
            self.close_connection = True
            return self.answer(413)
        try:
            scan = json.loads(self.rfile.read(length))
            print("got", scan.get("type"), scan.get("name"), flush=True)
        except (ValueError, AttributeError):
            print("got something else", flush=True)
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        if status != 204:
            self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("0.0.0.0", 8000), Receiver).serve_forever()
