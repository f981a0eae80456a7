"""Fetching raw files from their public homes: cached, and going on where a broken download stopped."""

from __future__ import annotations

import http.client
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pooch

from pemeans.bench.formats import Table
from pemeans.errors import DataError

FOLDER_VARIABLE = "PEMEANS_DATA"
"""The environment variable that names a folder with ``<name>.npz`` files."""
CACHE_VARIABLE = "PEMEANS_CACHE"
"""The environment variable that moves the cache from the user's own place for such."""
TIMEOUT = 30
"""Seconds without a byte after which a home counts as out of reach."""
CHUNK = 1 << 16


@dataclass(frozen=True)
class Home:
    """Where a data set's raw file lives, and how it is read."""

    url: str
    read: Callable[[Path], Table]

    def fetch(self, name: str) -> Table:
        """Download the raw file, unless it is in the cache, and read it.

        Raises
        ------
        DataError
            The home is out of reach, or what it sent can't be read.
        """
        raw = self._download(name)
        try:
            return self.read(raw)
        except DataError:
            raw.unlink(missing_ok=True)  # else every later try would read the damaged file again
            raise

    def forget(self) -> None:
        """Drop the raw file from the cache, as something is wrong with it."""
        (cache_folder() / self._file).unlink(missing_ok=True)

    @property
    def _file(self) -> str:
        return self.url.rstrip("/").rpartition("/")[2]

    def _download(self, name: str) -> Path:
        pooch.get_logger().setLevel("WARNING")
        try:
            path = pooch.retrieve(
                self.url, known_hash=None, fname=self._file, path=cache_folder(), downloader=go_on
            )
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise DataError(
                f"data set {name!r} can't be fetched from {self.url} ({reason}); try again with a network, "
                f"or set {FOLDER_VARIABLE} to a folder that holds {name}.npz"
            ) from None
        return Path(path)


def cache_folder() -> Path:
    """Where fetched files are kept."""
    return Path(os.environ.get(CACHE_VARIABLE) or pooch.os_cache("pemeans"))


def go_on(url: str, output_file: str, owner: Any) -> None:
    """A downloader for pooch that asks for the missing rest of a file only.

    What has arrived stays beside the cached files as ``<file>.part``. The numbers read from the whole file
    are checked later, so that a file that changed in between does not go unnoticed.
    """
    part = cache_folder() / f"{url.rstrip('/').rpartition('/')[2]}.part"
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "pemeans"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            resumed = response.status == http.HTTPStatus.PARTIAL_CONTENT
            with part.open("ab" if resumed else "wb") as file:
                shutil.copyfileobj(response, file, CHUNK)
            expected = int(response.headers.get("Content-Length") or -1)
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            part.unlink(missing_ok=True)
            go_on(url, output_file, owner)
            return
        raise
    if expected >= 0 and part.stat().st_size != expected + (have if resumed else 0):
        raise OSError("the connection broke off")
    shutil.move(part, output_file)
