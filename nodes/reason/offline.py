"""A chat model that needs no network: it repeats what memory holds and calls the memory tools when told to.

Deterministic and honest: it says that it is offline. It shows the whole turn without a key, and it lets tests and the
demo run anywhere.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable

from everthread.nodes.block import RESIDENT
from everthread.nodes.extract.wording import sentences
from everthread.nodes.state import is_marked, mark_of
from everthread.stores.text import cjk_share

__all__ = ["OfflineModel"]

LINE = re.compile(
    r"^- (?:\[(?P<marker>m\d+)\] )?\[(?P<marks>[^\n]*?)\] (?P<statement>[^\n]*) \(memory (?P<id>mem_[0-9a-f]{32})\)$",
    re.M,
)
REMEMBER = (
    re.compile(r"^\s*(?:please\s+)?remember\b(?:\s+that)?[\s:,]+(?P<what>.+)", re.I | re.S),
    re.compile(r"^\s*[请請]?你?[记記]住[\s:：,，]*(?P<what>.+)", re.S),
)
FORGET = (
    re.compile(r"^\s*(?:please\s+)?forget\b(?:\s+(?:about|that|what I said about))?[\s:,]+(?P<what>.+)", re.I | re.S),
    re.compile(r"^\s*[请請]?你?忘[记記掉][\s:：,，]*(?P<what>.+)", re.S),
)


class OfflineModel(BaseChatModel):
    """Answers from the recalled block, and says what is due. `remember ...` calls memory_save; `forget ...` searches,
    then memory_forget."""

    tool_names: frozenset[str] = frozenset()
    """The tools it may call."""

    @property
    def _llm_type(self) -> str:
        return "offline"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """The same model, knowing these tools by name."""
        return self.model_copy(update={"tool_names": frozenset(tool.name for tool in tools)})

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = self._answer([message for message in messages if mark_of(message).get("kind") != "notice"])
        if not answer.tool_calls:
            answer.content = "\n".join([str(answer.content), *_told(messages)])
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def _answer(self, messages: Sequence[BaseMessage]) -> AIMessage:
        said = next((m.text for m in reversed(messages) if isinstance(m, HumanMessage) and not is_marked(m)), "")
        chinese = cjk_share(said) > 0.3
        if messages and isinstance(messages[-1], ToolMessage):
            return self._after_tool(messages[-1], said, chinese)
        if (wish := _wish(REMEMBER, said)) and "memory_save" in self.tool_names:
            return _call(messages, "memory_save", {"statement": wish})
        if (wish := _wish(FORGET, said)) and {"memory_search", "memory_forget"} <= self.tool_names:
            return _call(messages, "memory_search", {"query": wish})
        shown = "\n".join(
            m.text for m in messages if isinstance(m, SystemMessage) or mark_of(m).get("kind") == "memory"
        )
        return AIMessage(content=_from_memory(shown, chinese))

    def _after_tool(self, result: ToolMessage, said: str, chinese: bool) -> AIMessage:
        found = [match["id"] for match in LINE.finditer(result.text)]
        if result.name == "memory_search" and _wish(FORGET, said):
            if found:
                return _call([result], "memory_forget", {"ids": found[:1]})
            return AIMessage(
                content="没有找到要忘记的记忆。" if chinese else "I found no memory of that, so nothing was forgotten."
            )
        return AIMessage(content=result.text.split("\n<memory_context>")[0])


def _told(messages: Sequence[BaseMessage]) -> list[str]:
    """The reminders and results that came since the last answer, in words for the user."""
    last = max((n for n, m in enumerate(messages) if isinstance(m, AIMessage) and not m.tool_calls), default=-1)
    notices = [m.text for m in messages[last + 1 :] if "task" in mark_of(m)]
    return [html.unescape(text.removeprefix("<notice>").removesuffix("</notice>")) for text in notices]


def _wish(patterns: Sequence[re.Pattern[str]], said: str) -> str | None:
    """What the user wants remembered or forgotten: the first sentence behind the wish, since one memory is one fact,
    and the rest is learnt as the turn ends. None when they did not ask for it."""
    match = next((match for pattern in patterns if (match := pattern.match(said))), None)
    return next(iter(sentences(match["what"])), None) if match else None


def _call(messages: Sequence[BaseMessage], name: str, arguments: dict[str, Any]) -> AIMessage:
    # The id is made from what is asked and where, so that the same turn always makes the same call.
    seed = "\x00".join([name, repr(arguments), *(str(message.id) for message in messages[-3:])])
    call_id = "call_" + hashlib.sha256(seed.encode("utf-8", "replace")).hexdigest()[:24]
    return AIMessage(content="", tool_calls=[{"name": name, "args": arguments, "id": call_id, "type": "tool_call"}])


def _from_memory(shown: str, chinese: bool) -> str:
    known = [
        f"{html.unescape(match['statement'])} ({html.unescape(match['marks'])}; {match['id']})"
        + (f" [{match['marker']}]" if match["marker"] else "")
        for match in LINE.finditer(shown)
        if RESIDENT not in match["marks"]
    ]
    if chinese:
        if known:
            return "根据记忆：\n" + "\n".join(f"- {line}" for line in known) + "\n（离线模型：只复述记忆，不作推理。）"
        return "我没有相关的记忆。（离线模型：只复述记忆；值得记住的内容会在本轮结束时提取。）"
    if known:
        return (
            "From memory:\n"
            + "\n".join(f"- {line}" for line in known)
            + "\n(Offline model: it repeats memory, it does not reason.)"
        )
    return (
        "I have no memory of that. "
        "(Offline model: it repeats memory; what is worth keeping is learnt when the turn ends.)"
    )
