"""Anonymous shared memory: the inbox the server writes, the outbox the worker writes."""

import _thread
import errno
import mmap
import os
import weakref
from bisect import bisect_left, insort
from collections import deque

import numpy as np

BLOCK_ALIGNMENT = 64
FIRST_SIZE = 1 << 20

_UINT8 = np.dtype(np.uint8)
_TOO_LARGE = (
    "no room for %d bytes in the shared memory of a Python model: it has %d bytes and may not have more than %d "
    "(shm-max-byte-size)"
)


class _BlockReference(weakref.ref):
    """A weak reference to the array over a block. When the array is gone, so are its views: they keep their base."""

    __slots__ = ("offset",)


class Inbox:
    """The server's arena. Its blocks are arrays here; each goes back when the last array over it is gone."""

    def __init__(self, fd):
        self._fd = fd
        self._map = None
        self._size = 0
        # By identity: references to arrays have no hash.
        self._references = {}
        # Offsets to give back; filled by garbage collection in any thread, hence a deque.
        self.pending = deque()
        self.on_pending = None

    def array(self, offset, shape, dtype, length):
        """A writable array over a block; ValueError when the block lies outside of the arena."""
        if offset + length > self._size:
            self._remap(offset + length)
        array = np.ndarray(shape, dtype, buffer=self._map, offset=offset)
        reference = _BlockReference(array, self._on_block_unused)
        reference.offset = offset
        self._references[id(reference)] = reference
        return array

    def block(self, offset, length):
        return self.array(offset, (length,), _UINT8, length)

    def _remap(self, needed):
        """Follows the growth of the arena; arrays over older maps keep those alive."""
        size = os.fstat(self._fd).st_size
        if needed > size:
            raise ValueError("block at %d lies outside of the arena of %d bytes" % (needed, size))
        self._map = mmap.mmap(self._fd, size)
        self._size = size

    def _on_block_unused(self, reference):
        self._references.pop(id(reference), None)
        self.pending.append(reference.offset)
        notify = self.on_pending
        if notify is not None:
            notify()

    def take_pending(self):
        """Offsets that can go back now."""
        taken = []
        pending = self.pending
        while pending:
            try:
                taken.append(pending.popleft())
            except IndexError:  # another thread was faster
                break
        return taken


class Outbox:
    """The worker's arena: first fit over a sorted list of free ranges, grown by doubling."""

    def __init__(self, fd):
        self._fd = fd
        # The server ends a worker whose arena is larger than this; None: any size.
        self.limit = None
        self._lock = _thread.allocate_lock()
        self._map = None
        self._size = 0
        self._backed = 0
        self._starts = []
        self._free = {}
        self._used = {}

    def store(self, payload, length):
        """Copies `payload` (an array of any strides, or bytes) into a new block; the block's offset.

        OSError when there is no memory: the arena is unchanged then.
        """
        with self._lock:
            offset = self._allocate(max(length, 1))
            target = self._map
        if isinstance(payload, np.ndarray):
            np.copyto(np.ndarray(payload.shape, payload.dtype, buffer=target, offset=offset), payload)
        else:
            memoryview(target)[offset : offset + length] = payload
        return offset

    def free(self, offsets):
        with self._lock:
            for offset in offsets:
                length = self._used.pop(offset, None)
                if length is not None:
                    self._insert(offset, length)

    def trim(self):
        """Gives the memory back to the system when no block is in use."""
        with self._lock:
            if not self._used and self._map is not None:
                self._map.madvise(mmap.MADV_REMOVE)
                self._backed = 0

    def _allocate(self, length):
        length = -(-length // BLOCK_ALIGNMENT) * BLOCK_ALIGNMENT
        start = self._find(length)
        if start is None:
            self._grow(length)
            start = self._find(length)
        self._back(start + length)
        size = self._remove(start)
        if size > length:
            self._add(start + length, size - length)
        self._used[start] = length
        return start

    def _find(self, length):
        free = self._free
        for start in self._starts:
            if free[start] >= length:
                return start
        return None

    def _grow(self, length):
        old = self._size
        size = max(FIRST_SIZE, old, os.fstat(self._fd).st_size)
        while size - old < length or size == old:
            size *= 2
        if self.limit is not None and size > self.limit:
            size = self.limit
            if size - old + self._free_at_end() < length:
                raise OSError(errno.ENOMEM, _TOO_LARGE % (length, old, self.limit))
        os.ftruncate(self._fd, size)
        self._map = mmap.mmap(self._fd, size)
        self._size = size
        self._insert(old, size - old)

    def _free_at_end(self):
        start = self._starts[-1] if self._starts else self._size
        return self._free.get(start, 0) if start + self._free.get(start, 0) == self._size else 0

    def _back(self, end):
        """Reserves the pages up to `end`: without that, running out of memory is a SIGBUS in a write and not an OSError."""
        if end > self._backed:
            os.posix_fallocate(self._fd, self._backed, end - self._backed)
            self._backed = end

    def _insert(self, start, length):
        """Adds a free range, merged with its neighbours."""
        at = bisect_left(self._starts, start)
        if at < len(self._starts) and self._starts[at] == start + length:
            length += self._remove(start + length)
        if at > 0:
            before = self._starts[at - 1]
            if before + self._free[before] == start:
                length += self._remove(before)
                start = before
        self._add(start, length)

    def _add(self, start, length):
        insort(self._starts, start)
        self._free[start] = length

    def _remove(self, start):
        del self._starts[bisect_left(self._starts, start)]
        return self._free.pop(start)
