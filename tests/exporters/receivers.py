"""Receivers on loopback: an HTTP server and an SMTP server that keep what they get."""

import socketserver
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Serving:
    """A server in a thread."""

    def __init__(self, server):
        self.server = server
        self.port = server.server_address[1]
        self._thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self):
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()


class HttpReceiver(Serving):
    """``posts``: (headers, body). ``status``: what is answered; ``location``: with it."""

    def __init__(self):
        self.posts, self.status, self.location = [], 200, None
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.posts.append((dict(self.headers), body))
                self.send_response(receiver.status)
                if receiver.location:
                    self.send_header("Location", receiver.location)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        self.url = f"http://127.0.0.1:{self.port}/hook"


class SmtpReceiver(Serving):
    """Speaks RFC 5321 as far as one mail needs it. ``mails``: (from, [to], data). ``refuses``: receivers that do not exist."""

    def __init__(self):
        self.mails, self.refuses, self.answer = [], set(), "250 taken"
        receiver = self

        class Handler(socketserver.StreamRequestHandler):
            def say(self, line):
                self.wfile.write(f"{line}\r\n".encode())

            def handle(self):
                self.say("220 test")
                sender, to = "", []
                while line := self.rfile.readline().decode().strip():
                    verb = line.upper()
                    if verb.startswith("MAIL FROM:"):
                        sender = line[10:].split(">")[0].strip("<")
                        self.say("250 ok")
                    elif verb.startswith("RCPT TO:"):
                        name = line[8:].split(">")[0].strip("<")
                        to += [] if name in receiver.refuses else [name]
                        self.say("550 nobody" if name in receiver.refuses else "250 ok")
                    elif verb == "DATA":
                        self.say("354 go on")
                        data = b""
                        while (part := self.rfile.readline()) != b".\r\n":
                            data += part
                        if receiver.answer.startswith("250"):
                            receiver.mails.append((sender, to, data.decode()))
                        self.say(receiver.answer)
                    elif verb == "QUIT":
                        self.say("221 bye")
                        return
                    else:
                        self.say("250 test")

        super().__init__(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler))
