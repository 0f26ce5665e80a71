"""Files of shared memory as clients make them, with names that no other run uses."""

import os
import uuid
from pathlib import Path

FOLDER = Path("/dev/shm")


class SharedFiles:
    """Files in /dev/shm, which are removed at the end. `key(NAME)` is what a client registers."""

    def __init__(self):
        self.prefix = f"galatea_test_{os.getpid()}_{uuid.uuid4().hex[:8]}_"

    def path(self, name):
        return FOLDER / (self.prefix + name)

    def key(self, name):
        return f"/{self.prefix}{name}"

    def write(self, name, content=b"", size=None, hex=""):
        """Makes the file of `size` bytes, which begin with `content` or with the bytes in `hex`; its key."""
        content = content or bytes.fromhex(hex)
        with open(self.path(name), "wb") as file:
            file.write(content)
            file.truncate(len(content) if size is None else size)
        return self.key(name)

    def put(self, name, content, offset=0):
        """Writes into a file that is there."""
        with open(self.path(name), "r+b") as file:
            file.seek(offset)
            file.write(content)

    def read(self, name, offset=0, size=-1):
        with open(self.path(name), "rb") as file:
            file.seek(offset)
            return file.read(size)

    def remove(self, name):
        self.path(name).unlink()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for path in FOLDER.glob(f"{self.prefix}*"):
            path.unlink(missing_ok=True)
