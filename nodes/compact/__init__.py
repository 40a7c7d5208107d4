"""When the thread outgrows the model: a summary and a TaskState stand for its older part, which stays stored."""

from everthread.nodes.compact.budget import count_tokens
from everthread.nodes.compact.coverage import ThreadSummary, summaries_of
from everthread.nodes.compact.cut import safe_cut
from everthread.nodes.compact.node import Compact
from everthread.nodes.compact.summary import ModelSummariser, RuleSummariser, Summariser, Summary
from everthread.nodes.compact.task_state import ModelTracker, RuleTracker, TaskState, Tracker
from everthread.nodes.compact.track import Track, resume_task

__all__ = [
    "Compact",
    "ModelSummariser",
    "ModelTracker",
    "RuleSummariser",
    "RuleTracker",
    "Summariser",
    "Summary",
    "TaskState",
    "ThreadSummary",
    "Track",
    "Tracker",
    "count_tokens",
    "resume_task",
    "safe_cut",
    "summaries_of",
]
