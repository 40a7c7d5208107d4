"""LongMemEval-S: which turns and sessions of some fifty answer a question, by the official protocol.

    python benchmarks/longmemeval.py --data DIR     DIR holds *_questions.jsonl.gz and *_sessions.jsonl.gz

User turns only; gold are those with the answer, in an answer session; questions about what was never said and those
that no user turn answers are not counted. "published any@5" is what many publish: one answer session among five, all
questions counted.
"""

from datasets import longmemeval
from retrieval import Benchmark, Table, main

SESSIONS = tuple(f"session {which}@{k}" for which in ("any", "all") for k in (1, 5, 10))
TURNS = ("turn any@5", "turn all@5", "turn R@10", "turn MRR")
BENCHMARK = Benchmark(
    name="longmemeval",
    title="LongMemEval-S",
    source="The cleaned set (MIT), user turns, official retrieval protocol.",
    conversations=longmemeval,
    tables=(
        Table("longmemeval", "Sessions", SESSIONS, ("session any@1", "session all@5", "turn all@5", "turn MRR")),
        Table("longmemeval", "Turns", TURNS),
        Table("", "One answer session among five, all questions counted", ("published any@5",)),
    ),
    answered=("longmemeval",),
    unanswered=(("abstention", "what was never said"), ("foreign", "another haystack's questions")),
)

if __name__ == "__main__":
    main(BENCHMARK, __doc__)
