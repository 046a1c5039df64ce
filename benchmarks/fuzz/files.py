"""Fuzz targets for a kernel's file names and files, which the server reads off its event loop."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path, PurePath
from random import Random

from benchmarks.fuzz.target import Call, Target
from benchmarks.fuzz.values import hostile_name, mutated
from dm_jupyter.server.files.data_files import DataFiles
from dm_jupyter.server.kernels.handoff import Handover, files_of
from kernel_sandbox import names
from kernel_sandbox.files import beneath
from kernel_sandbox.files.folders import empty_folder
from kernel_sandbox.files.workspace_layer import WorkspaceLayer

__all__ = ["HANDED_OVER", "FileNames", "HandOver", "LayerChanges", "fill"]

HANDED_OVER = {
    "question": "How many?",
    "files": ["a.csv", "in/b.csv"],
    "folder": "",
    "cell_id": "x",
    "request_id": "r",
    "options": {"model": "m"},
    "kind": "abandoned",
}
"""Content of the magic's message."""
FRESH_AFTER = 20
"""Inputs that share one layer before it is emptied."""
MOST_DEPTH = 150
"""More than twice the depth to which a layer is read."""


class HandOver(Target):
    """Comm messages of the magic, up to the names of the files."""

    documented = (ValueError, FileNotFoundError)
    on_loop = False

    def __init__(self, root: Path) -> None:
        self._files = DataFiles(root)
        self._root = root

    def prepare(self, random: Random) -> Call:
        """Return the call for the next input."""
        data = mutated(random, HANDED_OVER) if random.randrange(3) else dict(HANDED_OVER)
        if isinstance(data, dict) and random.randrange(4):
            data["files"] = [hostile_name(random) for _ in range(random.randrange(4))]
            data["folder"] = random.choice(("", str(self._root), hostile_name(random)))
        kernel = random.choice(("restricted", "own"))

        def call() -> None:
            handover = Handover.from_data(data if isinstance(data, dict) else {})
            folder = self._root / "work"
            found = files_of(handover, self._files, folder, kernel)
            for name in found.files if kernel == "restricted" else ():
                assert (self._root / name).is_relative_to(folder), name
                assert ".." not in PurePath(name).parts, name

        return call


class FileNames(Target):
    """File names, as the server checks and opens them."""

    documented = (OSError, ValueError)
    on_loop = False

    def __init__(self, folder: int, root: Path) -> None:
        self._folder = folder
        self._secret = (root / "secret.csv").read_bytes()

    def prepare(self, random: Random) -> Call:
        """Return the call for the next input."""
        name = hostile_name(random)

        def call() -> None:
            place = PurePath(name)
            names.is_obeyed(place.name)
            names.is_code(place.name)
            names.carries_code(place.name)
            names.hidden_module(place)
            with beneath.open_to_read(self._folder, place) as source:
                assert source.read(100) != self._secret, name

        return call


class LayerChanges(Target):
    """Files that a cell left in the layer, up to the contents of the user's folder."""

    documented = (OSError,)
    on_loop = False
    weight = 1

    def __init__(self, layer: WorkspaceLayer, root: Path) -> None:
        self._layer = layer
        self._root = root
        self._inputs = 0

    def prepare(self, random: Random) -> Call:
        """Return the call for the next input."""
        self._inputs += 1
        if self._inputs % FRESH_AFTER == 0:
            empty_folder(self._layer.upper)
            empty_folder(self._layer.folder)
            fill(self._layer.folder)
        for _ in range(random.randrange(1, 3)):
            with contextlib.suppress(OSError, ValueError):
                self._plant(random, self._layer.upper / hostile_name(random).replace("..", "up"))
        allows = bool(random.randrange(2))
        self._layer.is_gated = bool(random.randrange(2))

        def call() -> None:
            self._layer.settle()
            self._layer.decide(allows=allows)
            for change in self._layer.take_news():
                json.dumps(change.to_json()).encode()
                if change.state == "written":
                    assert not names.is_obeyed(PurePath(change.path).name), change
            assert (self._root / "secret.csv").read_text() == "secret"

        return call

    def _plant(self, random: Random, path: Path) -> None:
        if not path.is_relative_to(self._layer.upper) or len(path.parts) > MOST_DEPTH:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            path.unlink()  # a pipe would wait for its reader
        match random.randrange(7):
            case 0:
                path.symlink_to(
                    random.choice((self._root / "secret.csv", "../secret.csv", "a.csv", "."))
                )
            case 1:
                os.mkfifo(path)
            case 2:
                path.mkdir()
            case 3:
                with contextlib.suppress(PermissionError):  # a removal mark; only root can make it
                    os.mknod(path, 0o020000, 0)
            case 4:
                path.write_bytes(random.randbytes(random.choice((0, 9, 9000))))
                path.chmod(random.choice((0o0, 0o755, 0o4755, 0o644)))
            case _:
                path.write_bytes(b"x")


def fill(folder: Path) -> None:
    """Create the files of an empty working folder, one of them a link that leads out."""
    (folder / "in").mkdir()
    for name in ("a.csv", "old.csv", "in/a.csv"):
        (folder / name).write_text("a")
    (folder / "link.csv").symlink_to("../.ssh/id_rsa")
