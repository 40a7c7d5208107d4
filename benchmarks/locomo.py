"""LoCoMo: which turns of a long chat of two people answer a question.

    python benchmarks/locomo.py --data FILE.json

R@k is the mean share of a question's evidence turns among the first k. Categories 1 to 4 and the adversarial
ones apart; those ask the one person for what the other said, and their evidence is the other's.
"""

from datasets import locomo
from retrieval import Benchmark, Table, main

COLUMNS = (*(f"turn R@{k}" for k in (1, 5, 10, 20)), "session any@5", "turn MRR")
BENCHMARK = Benchmark(
    name="locomo",
    title="LoCoMo",
    source="LoCoMo (CC BY-NC 4.0), turns with their captions.",
    conversations=locomo,
    tables=(
        Table("locomo", "Categories 1 to 4", COLUMNS, COLUMNS),
        Table("locomo-5", "Category 5, adversarial", COLUMNS),
    ),
    answered=("locomo",),
    unanswered=(("locomo-5", "adversarial"), ("foreign", "another chat's questions")),
)

if __name__ == "__main__":
    main(BENCHMARK, __doc__)
