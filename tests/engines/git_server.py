"""Git over HTTP on the loopback interface, as engines read it: `git http-backend`, behind a server of a few lines.

`down` makes it answer as a server in trouble does.
"""

from __future__ import annotations

import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class GitServer:
    """Bare repositories in FOLDER, at `url`/NAME.git."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.down = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.git = self  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)

    def __enter__(self) -> GitServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def create(self, name: str) -> str:
        """Make an empty repository that takes pushes; its address."""
        bare = self.folder / f"{name}.git"
        subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", bare], check=True)
        subprocess.run(["git", "-C", bare, "config", "http.receivepack", "true"], check=True)
        return f"{self.url}/{name}.git"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"  # the end of an answer is that of the connection

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the method that it replaces
        """Nothing: who asks tells what went wrong."""

    def do_GET(self) -> None:
        git: GitServer = self.server.git  # type: ignore[attr-defined]
        if git.down:
            self.send_error(503)
            return
        where = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(git.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": where.path,
            "QUERY_STRING": where.query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(["git", "http-backend"], input=body, capture_output=True, env=env, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        lines = [line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line]
        status = next((int(value.split()[0]) for name, value in lines if name == "Status"), 200)
        self.send_response(status)
        for name, value in lines:
            if name != "Status":
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET  # noqa: N815 - the names are the server's
