"""Sums arrays over the nodes of a gang by plain TCP: a star around rank 0, frames with lengths, always in rank order.

The order of summation is fixed, so the same inputs give the same bits. Every wait has a limit; a peer that dies or does not
answer makes the others raise GangError with words. Stands beside ``train.py`` on the node; numpy and the standard library only.
"""

from __future__ import annotations

import hashlib
import json
import socket
import struct
import time
from typing import Any, Dict, Tuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Frame = Tuple[Dict[str, Any], bytes]

MAX_FRAME_BYTES = 256 * 1024 * 1024
_LENGTHS = struct.Struct(">II")


class GangError(Exception):
    """The gang is broken: a peer is gone, silent, or not one of ours. The job must end and be resumed."""


def _send(peer: socket.socket, head: dict[str, Any], body: bytes = b"") -> None:
    text = json.dumps(head).encode()
    peer.sendall(_LENGTHS.pack(len(text), len(body)) + text + body)


def _receive_exactly(peer: socket.socket, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0:
        part = peer.recv(min(size, 1 << 20))
        if not part:
            raise ConnectionError("connection closed")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _receive(peer: socket.socket) -> Frame:
    head_size, body_size = _LENGTHS.unpack(_receive_exactly(peer, _LENGTHS.size))
    if head_size + body_size > MAX_FRAME_BYTES:
        raise ConnectionError(f"frame of {head_size + body_size} bytes, limit {MAX_FRAME_BYTES}")
    head = json.loads(_receive_exactly(peer, head_size))
    return head, _receive_exactly(peer, body_size)


class Gang:
    """This rank's end of the gang.

    Attributes:
        rank: 0 to world_size - 1. world_size: 1 needs no network at all.
    """

    def __init__(
        self, rank: int, world_size: int, address: tuple[str, int], job_id: str, *, join_s: float, answer_s: float
    ) -> None:
        """Joins the gang: rank 0 listens, the others call. Raises GangError when it is not complete within ``join_s``.

        Args:
            address: rank 0's host and port. job_id: who does not know it is turned away.
            answer_s: longest wait for a peer's next frame.
        """
        self.rank, self.world_size = rank, world_size
        self._answer_s = answer_s
        self._password = hashlib.sha256(f"gang\0{job_id}".encode()).hexdigest()
        self._peers: dict[int, socket.socket] = {}
        if world_size > 1 and rank == 0:
            self._gather_peers(address, join_s)
        elif world_size > 1:
            self._call_master(address, join_s)

    def _gather_peers(self, address: tuple[str, int], join_s: float) -> None:
        deadline = time.monotonic() + join_s
        with self._listen(address) as server:
            while len(self._peers) < self.world_size - 1:
                server.settimeout(max(deadline - time.monotonic(), 0.01))
                try:
                    peer, _ = server.accept()
                except socket.timeout:
                    missing = sorted(set(range(1, self.world_size)) - set(self._peers))
                    raise GangError(f"ranks {missing} did not join within {join_s:.0f} s") from None
                self._admit(peer)

    @staticmethod
    def _listen(address: tuple[str, int]) -> socket.socket:
        """Returns a listening socket at rank 0's address, or at all own ones where that is a public one in front of it."""
        try:
            return socket.create_server(address, backlog=128)
        except OSError as error:
            try:
                return socket.create_server(("", address[1]), backlog=128)
            except OSError:
                raise GangError(f"cannot listen at {address[0]}:{address[1]}: {error}") from error

    def _admit(self, peer: socket.socket) -> None:
        """Keeps a caller that knows the job; anybody else is cut off and does not stop the others from joining."""
        peer.settimeout(5)
        try:
            head, _ = _receive(peer)
            rank = int(head["rank"])
            if head["password"] != self._password or not 0 < rank < self.world_size:
                peer.close()
                return
            _send(peer, {"welcome": True})
        except (OSError, ValueError, KeyError, TypeError):
            peer.close()
            return
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer.settimeout(self._answer_s)
        before = self._peers.get(rank)
        if before is not None:  # its welcome was lost and it called again
            before.close()
        self._peers[rank] = peer

    def _call_master(self, address: tuple[str, int], join_s: float) -> None:
        deadline = time.monotonic() + join_s
        problem: object = "no answer"
        while time.monotonic() < deadline:
            try:
                peer = socket.create_connection(address, timeout=5)
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _send(peer, {"rank": self.rank, "password": self._password})
                _receive(peer)
            except (OSError, ValueError) as error:
                problem = error
                time.sleep(0.2)
                continue
            peer.settimeout(self._answer_s)
            self._peers[0] = peer
            return
        raise GangError(f"rank 0 at {address[0]}:{address[1]} did not answer within {join_s:.0f} s: {problem}")

    def exchange(self, head: dict[str, Any], body: bytes = b"") -> list[Frame]:
        """Gives every rank the frames of all ranks, in rank order. Raises GangError."""
        if self.world_size == 1:
            return [(head, body)]
        if self.rank == 0:
            frames = [(head, body), *(self._take(rank) for rank in range(1, self.world_size))]
            for rank in range(1, self.world_size):
                for one in frames:
                    self._give(rank, one)
            return frames
        self._give(0, (head, body))
        return [self._take(0) for _ in range(self.world_size)]

    def reduce(self, values: Array, flags: dict[str, bool]) -> tuple[Array, dict[str, bool]]:
        """Returns the sum over ranks, added up in rank order, and the flags that any rank has set. Raises GangError."""
        if self.world_size == 1:
            return values, flags
        if self.rank != 0:
            self._give(0, (dict(flags), values.tobytes()))
            head, body = self._take(0)
            total = np.frombuffer(body, dtype=np.float64).reshape(values.shape)
            return total, {name: bool(head[name]) for name in flags}
        total, merged = values.copy(), dict(flags)
        for rank in range(1, self.world_size):
            head, body = self._take(rank)
            part = np.frombuffer(body, dtype=np.float64)
            if part.size != values.size:
                raise GangError(f"rank {rank} sent {part.size} numbers, {values.size} expected")
            total += part.reshape(values.shape)
            merged = {name: merged[name] or bool(head.get(name)) for name in merged}
        for rank in range(1, self.world_size):
            self._give(rank, (dict(merged), total.tobytes()))
        return total, merged

    def close(self) -> None:
        """Hangs up; the others notice at their next frame."""
        for peer in self._peers.values():
            peer.close()

    def _take(self, rank: int) -> Frame:
        try:
            return _receive(self._peers[rank])
        except socket.timeout:
            raise GangError(f"rank {rank} was silent for {self._answer_s:.0f} s") from None
        except (OSError, ValueError) as error:
            raise GangError(f"rank {rank} is gone: {error}") from error

    def _give(self, rank: int, frame: Frame) -> None:
        try:
            _send(self._peers[rank], *frame)
        except OSError as error:
            raise GangError(f"rank {rank} is gone: {error}") from error
