"""An export of everthread's own, brought back: the same ids, revisions, times, statuses, threads and tasks.

A file can be edited by anybody. Its seal proves that it is as this store gave it out; then everything is kept as it is.
Without that proof nothing of it outranks what a user implied, what would steer the store itself is refused, and its
messages are a file's words, from which nothing is learnt as if the user had said it.
"""

from __future__ import annotations

import hmac
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from pydantic import AwareDatetime, ConfigDict, ValidationError

from everthread.errors import AccessDenied, EverthreadError, StoreError, UsageError
from everthread.migrate.report import RefusedCount
from everthread.migrate.unproven import Export, Refused, lowered
from everthread.stores.contract import MemoryStore
from everthread.stores.door import fault_in
from everthread.stores.entries import Owner, PortableEntry, read_entry
from everthread.stores.export import FORMAT, VERSION, Seal
from everthread.stores.identity import Frozen, Identity, Label, Scope, complaint
from everthread.stores.record import now_utc
from everthread.stores.transfer import Outcome, Row

__all__ = ["Proof", "RestoreReport", "is_export", "restore"]

BATCH = 100
"""Entries that are written in one transaction."""
OF_THREADS = ("artifact", "task", "input")
"""What a thread keeps besides its messages: nothing of it is known by its words when those were erased."""
NAMED = 1_000
"""Conflicts that a report names; all are counted."""

Proof = Literal["sealed", "as-is", "none"]
"""Why a file is believed: its seal is this store's, an admin says so, or it is not."""


class Header(Frozen):
    """The first line of an export, as far as it is needed here."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: Literal["export"]
    format: Literal["everthread-export"]
    version: int
    id: Label
    at: AwareDatetime
    tenant: Label
    user: Label
    scope: Scope | None
    store: str
    counts: dict[str, int]


class RestoreReport(Frozen):
    """What became of the entries of an export, by type; the numbers add up to `read`."""

    export: str
    """The export's id."""
    user: str
    """Whose memory it is."""
    exported_at: AwareDatetime
    """When it was made."""
    proof: Proof
    """Why it was believed, or that it was not."""
    changed: bool
    """Whether the file is not as it was written."""
    dry_run: bool
    """Whether nothing was written."""
    read: int
    """Entries in the file, without its log, which is not brought back."""
    new: dict[str, int]
    """What is here now and was not."""
    there: dict[str, int]
    """What was here already, perhaps gone on from there."""
    erased: dict[str, int]
    """What was erased here, and stays away."""
    other: dict[str, int]
    """What was left alone, since something else has its id here."""
    conflicts: tuple[str, ...]
    """The first thousand of those, each with its type and id."""
    refused: tuple[RefusedCount, ...]
    """What a rule refused for want of proof, the most frequent first."""
    lowered: int
    """Records that came with less authority than the file says."""
    pending: int
    """Records that wait for review, and did not in the file."""


def is_export(path: Path) -> bool:
    """Whether the file begins as an export of everthread's does."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.readline(65_536))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("format") == FORMAT


def restore(
    store: MemoryStore,
    path: Path,
    identity: Identity,
    *,
    as_is: bool = False,
    dry_run: bool = False,
    advance: Callable[[int], None] = lambda count: None,
) -> RestoreReport:
    """Bring back what an export holds, and report what became of it.

    The file is read whole before anything is written. Ids, revisions, times, statuses, relations and the order are
    kept. What is here is never changed: the same is passed over, anything else that has an id of the file is named as
    a conflict. What was erased here stays away, with what a thread keeps that may repeat it. Every batch is a
    transaction: after an interruption run it again. It can be searched at once.

    With the seal of this store, or `as_is` (which needs the role admin: the operator owns both stores), all is kept as
    it is. Otherwise records have at most `user_implied` and say that they were imported, what is not the user's own or
    gives orders waits for review, and receipts, inputs, jobs and consent are not taken.

    Raises UsageError when the file is none, is torn, or is of another tenant or user, or when everything of its user
    was erased here since, AccessDenied when the identity may not, or its user has not agreed to memory.
    """
    try:
        with path.open("rb") as file:  # opened once: what was looked at is what is read
            return _restore(store, path, file, identity, as_is, dry_run, advance)
    except EverthreadError:
        raise  # AccessDenied is an OSError as well
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from error


def _restore(
    store: MemoryStore,
    path: Path,
    file: BinaryIO,
    identity: Identity,
    as_is: bool,
    dry_run: bool,
    advance: Callable[[int], None],
) -> RestoreReport:
    header, count, seen = _inspect(path, file, store.transfer.key())
    proof: Proof = "sealed" if seen.is_sealed and header.store == store.transfer.id() else "as-is" if as_is else "none"
    _check(store, identity, header, proof, as_is=as_is, changed=not seen.is_whole)
    _check_erasures(store, header)
    run = _Restoring(store, identity, header, proof, dry_run)
    if not dry_run:
        store.transfer.note(identity, "import", {"export": header.id, "of": header.user, "proof": proof})
    lines = _entries(file)
    while batch := list(islice(lines, BATCH)):
        run.keep(batch)
        advance(len(batch))
    return run.report(count, changed=not seen.is_whole)


class Seen(NamedTuple):
    """What the last line of a file proves."""

    is_whole: bool
    """The lines before it are those that were written."""
    is_sealed: bool
    """This store wrote them."""


def _inspect(path: Path, file: BinaryIO, key: bytes) -> tuple[Header, int, Seen]:
    """The header, how many entries there are, and what the seal is worth; every line is looked at."""
    seal, count = Seal(key), 0
    header = _header(path, file.readline())
    file.seek(0)
    last: dict[str, Any] = {}
    for number, line in enumerate(file, 1):
        if last.get("type") == "end":
            raise UsageError(f"{path}:{number}: lines follow the end of the export; leave them out")
        last = _object(path, number, line)
        if last.get("type") == "end":
            continue
        seal.add(line)
        if number > 1 and last.get("type") != "audit":
            _checked(path, number, last)
            count += 1
    if last.get("type") != "end":
        raise UsageError(f"{path} ends before its last line: it is a part of an export; export again")
    end = seal.end()
    whole = (last.get("lines"), last.get("sha256")) == (end["lines"], end["sha256"])
    sealed = whole and hmac.compare_digest(str(last.get("seal")).encode(), end["seal"].encode())
    return header, count, Seen(whole, sealed)


def _header(path: Path, line: bytes) -> Header:
    found = _object(path, 1, line)
    if found.get("format") != FORMAT:
        raise UsageError(f"{path} is not an export of everthread; name its layout with --from")
    if isinstance(found.get("version"), int) and found["version"] > VERSION:
        raise UsageError(f"{path} was exported by a newer everthread (version {found['version']}); upgrade everthread")
    try:
        return Header.model_validate(found)
    except ValidationError as error:
        raise UsageError(f"{path}:1: {complaint(error)}") from error


def _object(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}:{number}: not a line of JSON; the file is torn or was edited") from error
    if not isinstance(found, dict):
        raise UsageError(f"{path}:{number}: not an object; the file was edited")
    return found


def _checked(path: Path, number: int, entry: dict[str, Any]) -> None:
    try:
        fault = fault_in(read_entry(entry))
    except UsageError as error:
        raise UsageError(f"{path}:{number}: {error}") from error
    if fault is not None:
        raise UsageError(f"{path}:{number}: {entry['type']}: {fault} of the line")


def _check_erasures(store: MemoryStore, header: Header) -> None:
    """UsageError when everything of the user was erased here after the export: then nothing of it comes back."""
    asking = Identity(tenant=header.tenant, user=header.user, roles=frozenset({"admin"}))
    after = 0
    while page := store.audit(asking, action="erase", after=after):
        for entry in page:
            if header.user in entry.detail.get("users", ()) and entry.at > header.at:
                raise UsageError(
                    f"everything of user {header.user} was erased here on {entry.at:%Y-%m-%d}, after this export was "
                    "made; it stays away"
                )
        after = page[-1].seq


def _entries(file: BinaryIO) -> Iterator[PortableEntry]:
    """The entries of a file that was inspected, without its first line, its log and its last."""
    file.seek(0)
    for line in islice(file, 1, None):
        found = json.loads(line)
        if found["type"] not in ("audit", "end"):
            yield read_entry(found)


def _check(store: MemoryStore, identity: Identity, header: Header, proof: Proof, *, as_is: bool, changed: bool) -> None:
    """Whether this identity may bring this back."""
    admin = "admin" in identity.roles
    if header.at > now_utc():
        raise UsageError(
            f"it says that it was made on {header.at:%Y-%m-%d}, which is not yet; set the clock or export again"
        )
    if header.tenant != identity.tenant:
        raise UsageError(f"it is an export of tenant {header.tenant}, not of {identity.tenant}")
    if as_is and not admin:
        raise AccessDenied("only the role admin may say that an export is to be believed as it is")
    if as_is and changed:
        raise UsageError(
            "the file is not as it was exported, so it cannot be believed as it is; import it without that"
        )
    if header.user != identity.user and not (admin and proof != "none"):
        raise UsageError(f"it is an export of user {header.user}, not of {identity.user}")
    if proof == "none" and store.consent(identity) != "on":
        raise AccessDenied(
            f"user {identity.user} has not agreed to memory, and nothing proves this export; set consent to 'on' first"
        )


class _Restoring:
    """Counts and decides while entries go by."""

    def __init__(self, store: MemoryStore, identity: Identity, header: Header, proof: Proof, dry_run: bool) -> None:
        self._store = store
        self._identity = identity
        self._header = header
        self._proof = proof
        self._dry_run = dry_run
        self._owner = Owner(header.tenant, header.user)
        self._acting = Identity(tenant=header.tenant, user=header.user)
        self._counts: dict[Outcome, Counter[str]] = {
            outcome: Counter() for outcome in ("new", "there", "erased", "other")
        }
        self._refused: Counter[Refused] = Counter()
        self._conflicts: list[str] = []
        self._touched: set[str] = set()
        self._gone: set[str] = set()
        self._lowered = self._pending = 0

    def keep(self, batch: Sequence[PortableEntry]) -> None:
        """Write what is to be written of a batch, and count what became of each entry. What a thread keeps comes after
        its messages: they tell what was erased here."""
        self._keep([entry for entry in batch if entry.type not in OF_THREADS])
        later = [entry for entry in batch if entry.type in OF_THREADS]
        self._keep([entry for entry in later if not self._may_repeat(entry)])
        doubtful = [entry for entry in later if self._may_repeat(entry)]
        here = self._look(doubtful)
        self._count(doubtful, ["there" if outcome == "there" else "erased" for outcome in here])

    def _keep(self, open_: Sequence[PortableEntry]) -> None:
        if self._proof == "sealed":
            # what is not waiting here any more was done
            self._count(jobs := [entry for entry in open_ if entry.type == "job"], ["there"] * len(jobs))
            open_ = [entry for entry in open_ if entry.type != "job"]
        if self._proof != "none":
            self._count(open_, self._write([entry.rows(self._owner) for entry in open_]))
            return
        known = self._look(open_)
        self._count_some(open_, known, only=("there", "erased"))
        rest = [entry for entry, outcome in zip(open_, known, strict=True) if outcome in ("new", "other")]
        self._keep_lowered(rest)

    def _keep_lowered(self, entries: Sequence[PortableEntry]) -> None:
        """Write what nothing proves, as far as that goes."""
        export = Export(self._header.id, self._header.at)
        judged = [(entry, lowered(entry, self._identity, self._owner, export)) for entry in entries]
        taken = [(entry, found) for entry, found in judged if not isinstance(found, Refused)]
        self._refused.update(found for _, found in judged if isinstance(found, Refused))
        outcomes = self._write([found.rows for _, found in taken])
        self._count([entry for entry, _ in taken], outcomes)
        for (_, found), outcome in zip(taken, outcomes, strict=True):
            if outcome == "new":
                self._lowered += found.is_lowered
                self._pending += found.is_pending

    def _write(self, rows: Sequence[Sequence[Row]]) -> list[Outcome]:
        return self._store.transfer.restore(self._acting, rows, dry_run=self._dry_run) if rows else []

    def _look(self, entries: Sequence[PortableEntry]) -> list[Outcome]:
        """What would become of these entries as they are in the file."""
        rows = [entry.rows(self._owner) for entry in entries]
        return self._store.transfer.restore(self._acting, rows, dry_run=True) if rows else []

    def _may_repeat(self, entry: PortableEntry) -> bool:
        """Whether an entry may repeat what was erased here: what a thread keeps besides its messages goes with them."""
        threads = self._touched if entry.type == "artifact" else self._gone
        return bool(threads.intersection(entry.threads_of()))

    def _count(self, entries: Sequence[PortableEntry], outcomes: Sequence[Outcome]) -> None:
        self._count_some(entries, outcomes, only=("new", "there", "erased", "other"))

    def _count_some(
        self, entries: Sequence[PortableEntry], outcomes: Sequence[Outcome], *, only: Sequence[Outcome]
    ) -> None:
        for entry, outcome in zip(entries, outcomes, strict=True):
            if outcome not in only:
                continue
            self._counts[outcome][entry.type] += 1
            if outcome == "other" and len(self._conflicts) < NAMED:
                self._conflicts.append(f"{entry.type} {entry.known_as()}")
            if outcome == "erased":
                self._touched.update(entry.threads_of())
                if entry.type == "thread":
                    self._gone.update(entry.threads_of())

    def report(self, read: int, *, changed: bool) -> RestoreReport:
        """What was done."""
        found = {outcome: dict(counts) for outcome, counts in self._counts.items()}
        report = RestoreReport(
            export=self._header.id,
            user=self._header.user,
            exported_at=self._header.at,
            proof=self._proof,
            changed=changed,
            dry_run=self._dry_run,
            read=read,
            new=found["new"],
            there=found["there"],
            erased=found["erased"],
            other=found["other"],
            conflicts=tuple(self._conflicts),
            refused=tuple(
                RefusedCount(rule=refused.rule, reason=refused.reason, count=count)
                for refused, count in self._refused.most_common()
            ),
            lowered=self._lowered,
            pending=self._pending,
        )
        if not self._dry_run:
            done = {"export": report.export, "new": report.new, "erased": report.erased, "other": report.other}
            self._store.transfer.note(self._identity, "import", done)
        return report
