"""MADial-Bench: which of a person's short memories a dialogue should recall, in Chinese and in English.

    python benchmarks/madial.py --data DIR          DIR holds ch/ and en/

The query is what was said before the turn in question. Each memory is a thread of its own.
"""

from collections.abc import Iterator
from pathlib import Path

from datasets import Conversation, madial
from retrieval import Benchmark, Table, main

COLUMNS = (*(f"turn R@{k}" for k in (1, 5, 10, 20)), "turn any@10", "turn MRR")


def both(folder: Path) -> Iterator[Conversation]:
    """The Chinese memories, then the English ones."""
    yield from madial(folder, "zh")
    yield from madial(folder, "en")


BENCHMARK = Benchmark(
    name="madial",
    title="MADial-Bench",
    source="MADial-Bench (MIT), memories and the dialogues before the turn in question.",
    conversations=both,
    tables=(Table("madial-zh", "Chinese", COLUMNS), Table("madial-en", "English", COLUMNS)),
    answered=("madial-zh", "madial-en"),
    unanswered=(),
)

if __name__ == "__main__":
    main(BENCHMARK, __doc__)
