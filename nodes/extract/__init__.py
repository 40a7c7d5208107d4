"""Extraction: what a turn teaches, and what it must not (one door for writes)."""

from everthread.nodes.extract.candidate import Candidate, Extractor
from everthread.nodes.extract.model import ModelExtractor
from everthread.nodes.extract.node import Extract
from everthread.nodes.extract.redacted import Redacted
from everthread.nodes.extract.rules import RuleExtractor

__all__ = ["Candidate", "Extract", "Extractor", "ModelExtractor", "Redacted", "RuleExtractor"]
