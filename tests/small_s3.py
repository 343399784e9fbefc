"""An S3 of a few lines on loopback: what a driver needs to list a bucket and to read its objects."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

XMLNS = "http://s3.amazonaws.com/doc/2006-03-01/"
CHANGED = 1_775_000_000.0  # of every object


class _Bucket(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    buckets: Mapping[str, Mapping[str, bytes]]

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        bucket, _, key = unquote(url.path).lstrip("/").partition("/")
        objects = self.buckets.get(bucket)
        if objects is None:
            self._fault(404, "NoSuchBucket")
        elif not key:
            query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
            self._answer(200, _listed(bucket, objects, query), "application/xml")
        elif key not in objects:
            self._fault(404, "NoSuchKey")
        else:
            content = objects[key]
            first, last = 0, len(content) - 1
            if wanted := self.headers.get("Range"):
                start, _, end = wanted.removeprefix("bytes=").partition("-")
                first, last = int(start), min(int(end or last), last)
            more = {"Content-Range": f"bytes {first}-{last}/{len(content)}"} if wanted else {}
            self._answer(206 if wanted else 200, content[first : last + 1], "text/plain", more)

    do_HEAD = do_GET

    def _fault(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code></Error>".encode(), "application/xml")

    def _answer(self, status: int, body: bytes, kind: str, more: Mapping[str, str] = {}) -> None:
        self.send_response(status)
        headers = {"Content-Type": kind, "Content-Length": str(len(body)), "ETag": '"1"', **more}
        for name, value in {**headers, "Last-Modified": formatdate(CHANGED, usegmt=True)}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *said: object) -> None:
        """Nobody reads it."""


def _listed(bucket: str, objects: Mapping[str, bytes], query: Mapping[str, str]) -> bytes:
    """The answer to ListObjectsV2, in one page."""
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    own, folders = [], {}
    for key in sorted(key for key in objects if key.startswith(prefix)):
        rest = key[len(prefix) :]
        if delimiter and delimiter in rest:
            folders[prefix + rest.partition(delimiter)[0] + delimiter] = None
        else:
            own.append(key)
    told = f"<Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix><IsTruncated>false</IsTruncated>"
    told += f"<KeyCount>{len(own) + len(folders)}</KeyCount><MaxKeys>1000</MaxKeys>"
    for key in own:
        told += f"<Contents><Key>{escape(key)}</Key><LastModified>2026-03-31T23:33:20.000Z</LastModified>"
        told += f'<ETag>"1"</ETag><Size>{len(objects[key])}</Size></Contents>'
    for folder in folders:
        told += f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>"
    return f'<?xml version="1.0"?><ListBucketResult xmlns="{XMLNS}">{told}</ListBucketResult>'.encode()


@contextmanager
def small_s3(buckets: Mapping[str, Mapping[str, bytes]]) -> Iterator[str]:
    """Its address, while it serves these objects."""
    handler = type("Handler", (_Bucket,), {"buckets": buckets})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
