"""A chat model that replays replies and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import Field

__all__ = ["FakeModel"]


class FakeModel(BaseChatModel):
    """Answers with `replies` in order, the last one again and again; an exception among them is raised."""

    replies: list[Any] = Field(default_factory=lambda: ["ok"])
    """Strings, AIMessages, or exceptions to raise."""
    prompts: list[list[BaseMessage]] = Field(default_factory=list)
    """Every request, in order."""
    tools: list[Any] = Field(default_factory=list)
    """The tools bound last."""

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply = self.replies[min(len(self.prompts), len(self.replies) - 1)]
        self.prompts.append(list(messages))
        if isinstance(reply, BaseException):
            raise reply
        message = reply.model_copy(deep=True) if isinstance(reply, AIMessage) else AIMessage(content=str(reply))
        return ChatResult(generations=[ChatGeneration(message=message)])

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """The same model, with the tools noted."""
        self.tools[:] = tools
        return self

    @property
    def _llm_type(self) -> str:
        return "fake"
