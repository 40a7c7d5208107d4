"""The numbers of PostgreSQL's advisory locks."""

from __future__ import annotations

from hashlib import blake2b

__all__ = ["number_of"]


def number_of(purpose: str, *names: str) -> int:
    """A lock's number, of 64 bits: one for each purpose and names. Two that fall together wait for each other, and no
    more."""
    text = "\0".join(("everthread", purpose, *names)).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big", signed=True)
