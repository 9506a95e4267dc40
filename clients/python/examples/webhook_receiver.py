"""Receives the server's events, and refuses what others post.

SECRET=whsec_… PORT=9000 python clients/python/examples/webhook_receiver.py
"""

from __future__ import annotations

import os
from http.server import BaseHTTPRequestHandler, HTTPServer

from whatsapp_memory_client import WebhookVerificationError, verify_webhook


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = 204
        try:
            event = verify_webhook(body, dict(self.headers), os.environ["SECRET"])
            # An event may come twice: its webhook-id is the same then.
            print(f"{self.headers['webhook-id']}: {event['type']}", flush=True)
        except WebhookVerificationError as error:
            print(f"refused: {error}", flush=True)
            status = 401
        self.send_response(status)
        self.end_headers()


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(os.environ.get("PORT", "9000"))), Receiver).serve_forever()
