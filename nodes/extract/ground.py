"""What candidates are judged on: who asks, in which thread, and the messages with their real sources (R102, R104)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cached_property

from everthread.nodes.extract import wording
from everthread.nodes.extract.authority import authority_of
from everthread.nodes.extract.candidate import Candidate
from everthread.nodes.extract.echo import is_echo
from everthread.nodes.extract.grounding import FRAME, GROUNDED
from everthread.stores.identity import Identity
from everthread.stores.record import Authority, Evidence, Record, now_utc
from everthread.stores.text import query_terms

__all__ = ["Ground", "Rule", "Verdict", "all_said", "forbidden", "is_injected", "unfinished"]


class Ground:
    """What candidates are judged on: who asks, in which thread, and the messages with their real sources."""

    def __init__(
        self,
        identity: Identity,
        thread_id: str,
        lines: Sequence[Evidence],
        *,
        extracted_by: str,
        trusted_tools: frozenset[str] = frozenset(),
        known: Sequence[Record] = (),
        picked_by_model: bool = False,
        around: Sequence[Evidence] = (),
        now: datetime | None = None,
    ) -> None:
        self.identity = identity
        self.thread_id = thread_id
        self.lines = tuple(lines)
        self.extracted_by = extracted_by
        self.trusted_tools = trusted_tools
        self.known = tuple(known)
        self.picked_by_model = picked_by_model
        """Whether a model named the id of what is to be corrected, and no person."""
        self.around = tuple(around)
        """More of the thread, which nothing rests on: whose words a statement may have, too."""
        self.now = now or now_utc()

    def rests_on(self, candidate: Candidate) -> list[Evidence]:
        """The messages that the candidate points to and that exist, in the thread's order."""
        return [self.lines[position] for position in self.numbers(candidate)]

    def ids(self, candidate: Candidate) -> tuple[str, ...]:
        """Their ids."""
        return tuple(line.message_id for line in self.rests_on(candidate))

    def authority(self, candidate: Candidate) -> Authority:
        """How far the candidate's source can settle the question."""
        return authority_of(
            self.rests_on(candidate),
            user=self.identity.user,
            trusted_tools=self.trusted_tools,
            stated=candidate.stated,
            echoes=self._echoes(candidate),
        )

    def _echoes(self, candidate: Candidate) -> frozenset[str]:
        """Ids of the results of trusted tools that say the candidate in words that they were given."""
        said = f"{candidate.statement} {candidate.value or ''}"
        return frozenset(
            self.lines[position].message_id
            for position in self.numbers(candidate)
            if self.lines[position].source == "tool"
            and self.lines[position].speaker in self.trusted_tools
            and is_echo(said, position, self.lines, self.outside)
        )

    @cached_property
    def outside(self) -> frozenset[int]:
        """Positions of the messages from outside: neither the user's, nor the assistant's, nor a trusted tool's."""
        return frozenset(position for position, line in enumerate(self.lines) if self._is_outside(line))

    def told_from_outside(self, positions: Sequence[int]) -> list[str]:
        """What came from outside, in the window and around it, but for the messages at these positions."""
        within = [self.lines[position].text for position in sorted(self.outside.difference(positions))]
        return [*within, *(line.text for line in self.around if self._is_outside(line))]

    def _is_outside(self, line: Evidence) -> bool:
        return (
            line.source != "assistant"
            and authority_of([line], user=self.identity.user, trusted_tools=self.trusted_tools) == Authority.EXTERNAL
        )

    def is_users_word(self, candidate: Candidate) -> bool:
        """Whether it rests on nothing but what this user said."""
        return self.authority(candidate) >= Authority.USER_IMPLIED

    @cached_property
    def words(self) -> tuple[frozenset[str], ...]:
        """The content words of each message."""
        return tuple(frozenset(query_terms(line.text)) for line in self.lines)

    @cached_property
    def sentences(self) -> tuple[tuple[str, ...], ...]:
        """The sentences of each message."""
        return tuple(tuple(wording.sentences(line.text)) for line in self.lines)

    def numbers(self, candidate: Candidate) -> list[int]:
        """Positions in `lines` of the messages that it rests on."""
        return [n - 1 for n in sorted(set(candidate.messages)) if 1 <= n <= len(self.lines)]

    @cached_property
    def forbidden(self) -> frozenset[int]:
        """Numbers of the messages that must not be remembered."""
        return forbidden(self.lines)

    @cached_property
    def unfinished(self) -> frozenset[int]:
        """Numbers of the messages of turns that got no answer."""
        return unfinished(self.lines)


Verdict = str | None
"""Why a rule objects, or None."""
Rule = Callable[[Candidate, Ground], Verdict]


def forbidden(lines: Sequence[Evidence]) -> frozenset[int]:
    """Numbers of the messages that "do not remember this" covers (R104).

    It covers the message that says it; when that says little else, the user's message before it as well; and always
    whatever follows in that turn, since an answer repeats the words.
    """
    blocked: set[int] = set()
    for index, line in enumerate(lines):
        if line.source != "user" or not wording.forbids_memory(line.text):
            continue
        first = index
        if wording.only_forbids(line.text):
            first = max((n for n in range(index) if lines[n].source == "user"), default=index)
        last = next((n for n in range(index + 1, len(lines)) if lines[n].source == "user"), len(lines))
        blocked.update(range(first + 1, last + 1))
    return frozenset(blocked)


def unfinished(lines: Sequence[Evidence]) -> frozenset[int]:
    """Numbers of the messages of turns without an answer: the model's call failed, so nothing is learnt (R102).

    A turn starts where the user speaks after somebody else did. A turn without any assistant message got no answer.
    """
    turns: list[list[int]] = []
    for index, line in enumerate(lines):
        if not turns or (line.source == "user" and lines[index - 1].source != "user"):
            turns.append([])
        turns[-1].append(index)
    # A transcript that holds one side only (imported notes) has no calls that could have failed.
    if not any(line.source == "assistant" for line in lines):
        return frozenset()
    return frozenset(n + 1 for turn in turns if all(lines[n].source != "assistant" for n in turn) for n in turn)


def is_injected(line: Evidence) -> bool:
    """Whether a transcript line is a message that memory itself put in (R111)."""
    payload = line.payload or {}
    kept = payload.get("data", payload)
    return "everthread" in (kept.get("additional_kwargs") or {})


def all_said(candidate: Candidate, ground: Ground, test: Callable[[str], bool]) -> bool:
    """Whether every sentence of the user's that says it passes the test; without one that says most of it, whether all
    of those do that it rests on."""
    said = [
        sentence
        for position in ground.numbers(candidate)
        if ground.lines[position].source == "user"
        for sentence in ground.sentences[position]
    ]
    wanted = set(query_terms(candidate.statement)) - FRAME
    saying = [each for each in said if wanted and len(wanted & set(query_terms(each))) >= GROUNDED * len(wanted)]
    return bool(said) and all(map(test, saying or said))
