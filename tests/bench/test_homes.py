from __future__ import annotations

import io
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pemeans.bench import registry
from pemeans.bench.datasets import load, reachable
from pemeans.bench.formats import read_iris
from pemeans.bench.homes import CACHE_VARIABLE, FOLDER_VARIABLE, Home
from pemeans.errors import DataError

LINES = "".join(f"{i % 7}.{i % 10},3.5,1.4,0.{i % 9},Iris-setosa\n" for i in range(3000))


def archive(text: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("iris.data", text)
    return buffer.getvalue()


class Site(ThreadingHTTPServer):
    """A home on this machine: knows ranges, counts requests, and may break off."""

    content = archive(LINES)
    break_off_at: int | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str | None] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/raw/iris.zip"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        site = self.server
        assert isinstance(site, Site)
        wanted = self.headers.get("Range")
        site.asked.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        rest = site.content[start:]
        self.send_response(206 if wanted else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        stop, site.break_off_at = site.break_off_at, None
        self.wfile.write(rest[:stop])

    def log_message(self, format: str, *args: object) -> None:  # keep the test's output clean
        pass


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    server = Site()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def enter(monkeypatch: pytest.MonkeyPatch, url: str, checksum: str | None = None) -> None:
    """Register a data set whose home is that address."""
    entry = replace(
        registry.REGISTRY["iris"],
        name="tiny",
        home=Home(url, read_iris),
        checksum=checksum,
        labels_checksum=None,
    )
    monkeypatch.setitem(registry.REGISTRY, "tiny", entry)


def test_fetches_once_and_keeps(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(monkeypatch, site.url)
    assert reachable("tiny") == "home"
    first, again = load("tiny"), load("tiny")
    assert first.X.shape == (3000, 4)
    assert (first.X == again.X).all()
    assert len(site.asked) == 1
    assert reachable("tiny") == "cache"


def test_a_broken_download_goes_on_where_it_stopped(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(monkeypatch, site.url)
    site.break_off_at = 1000
    with pytest.raises(DataError, match=f"can't be fetched from {site.url}.*{FOLDER_VARIABLE}"):
        load("tiny")
    assert load("tiny").X.shape == (3000, 4)
    assert site.asked == [None, "bytes=1000-"]


def test_wrong_numbers_are_refused_and_not_kept(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    enter(monkeypatch, site.url, checksum="0" * 64)
    for _ in range(2):
        with pytest.raises(DataError, match="checksum of tiny"):
            load("tiny")
    assert len(site.asked) == 2
    assert not list((tmp_path / "cache").glob("*tiny*"))


def test_what_is_no_archive_is_refused_and_not_kept(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(monkeypatch, site.url)
    site.content = b"<html>We have moved</html>"
    with pytest.raises(DataError, match="not an archive"):
        load("tiny")
    site.content = archive(LINES)
    assert load("tiny").X.shape == (3000, 4)


def test_offline_the_error_is_one_line_and_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    enter(monkeypatch, "http://127.0.0.1:9/iris.zip")
    with pytest.raises(DataError) as caught:
        load("tiny")
    assert "\n" not in str(caught.value)
    assert f"set {FOLDER_VARIABLE} to a folder that holds tiny.npz" in str(caught.value)
