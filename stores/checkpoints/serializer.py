"""LangGraph's serializer, compressed with a dictionary of what every thread repeats."""

from __future__ import annotations

import zlib
from collections import deque
from itertools import repeat
from typing import Any, Final

import ormsgpack
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, EXT_PYDANTIC_V2, JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from pydantic import BaseModel

_COMPRESSED, _WITHOUT_DICTIONARY = "+d1", "+zlib"
_WORTH_IT = 60
"""Bytes. A shorter value gains nothing."""
_RAW = -zlib.MAX_WBITS
"""Deflate without header and checksum: the file's pages have their own."""

_KINDS: dict[str, type[BaseMessage]] = {
    "ai": AIMessage,
    "human": HumanMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
}
"""The messages that are stored as their fields, by their type."""
_TYPES = {kind: name for name, kind in _KINDS.items()}
_FIELDS = {name: frozenset(kind.model_fields) for name, kind in _KINDS.items()}
_SHAPE = zlib.crc32(repr([(name, sorted(fields)) for name, fields in _FIELDS.items()]).encode())
"""Tells whether messages were stored with the fields that they have now."""
_LISTED: Final = "messages"
"""The type of a list of such messages."""

_OF_MESSAGES, _OPTION = b"langchain_core.messages", ormsgpack.OPT_NON_STR_KEYS

# What is most frequent comes last, since deflate writes a short distance in fewer bits. Files hold what was compressed
# with it, so it is never changed: a better one is `+d2`, beside this one.
DICTIONARY = (
    b"\xaflanggraph.types\xa9Interrupt\x83\xa5value\xa2id\xafresponse_schema\xc0\xa4Send\x92"
    b"\xbelangchain_core.messages.system\xadSystemMessage\x86\xa7content"
    b"\xa9image_url\xa4text\xa9reasoning\xa8thinking\xa9signature"
    b"\xa9file_path\xa5error\xa8function\xa5query\xa4path"
    b"\xa2id\xd9$\xa8revision\x01\xa5score\xcb?\xe0\xa3why"
    b"\xd9<semantic 0., keyword 0., recency 0., importance 0.50, authority 0."
    b"\xa6covers\xa3cut\xa7summary\xaatask_state\xa9generator\xaccompacted_at\xa8overflow\xacinstructions\xa6window"
    b"\xbclangchain_core.messages.tool\xabToolMessage\x89\xa7content\xb1additional_kwargs"
    b"\x80\xb1response_metadata\x80\xa4type\xa4tool\xa4name\xc0\xa2id"
    b"\xactool_call_id\xa8artifact\xc0\xa6status\xa7success"
    b"\xbalangchain_core.messages.ai\xa9AIMessage\x89\xa7content\xa0\xb1additional_kwargs"
    b"\x80\xb1response_metadata\x83\xaamodel_name\xadfinish_reason\xa4stop\xaatool_calls\xaemodel_provider"
    b"\xa6openai\xa9anthropic\xa4type\xa2ai\xa4name\xc0\xa2id\xd9*lc_run--019\xaatool_calls\x91\x84\xa4name\xa4args"
    b"\x81\xa2id\xa5call_\xa4type\xa9tool_call\xaatool_calls\x90"
    b"\xb2invalid_tool_calls\x90\xaeusage_metadata\xc0\x83\xacinput_tokens\xadoutput_tokens\xactotal_tokens"
    b"\xb3input_token_details\xb4output_token_details\xb3model_validate_json"
    b"\xbdlangchain_core.messages.human\xacHumanMessage\x86\xa7content\xb1additional_kwargs"
    b"\x80\xb1response_metadata\x80\xa4type\xa5human\xa4name\xc0\xa2id\xd9$\xb3model_validate_json"
    b"everthread.\xacbefore_agent\xabafter_model\xad__interrupt__\x80\xa9__error__\xae__pregel_tasks"
    b"\xa7propose\x81\xb1branch:to:propose\xb30000000003.\xa8validate\x81\xb2branch:to:validate\xb30000000003."
    b"\xa7resolve\x81\xb1branch:to:resolve\xb30000000003.\xa6commit\x81\xb0branch:to:commit\xb30000000003."
    b"\xa6review\x81\xb0branch:to:review\xb30000000003.\xa6recall\x81\xb0branch:to:recall\xb30000000003."
    b"\xa8remember\x81\xb2branch:to:remember\xb30000000003."
    b"\xabconsolidate\x81\xb5branch:to:consolidate\xb30000000003."
    b"\xa7restore\x81\xb1branch:to:restore\xb30000000003.\xa7compact\x81\xb1branch:to:compact\xb30000000003."
    b"\xa5flush\x81\xafbranch:to:flush\xb30000000003.\xa5tools\x81\xafbranch:to:tools\xb30000000003."
    b"\xa5agent\x81\xafbranch:to:agent\xb30000000003.\xa5model\x81\xafbranch:to:model\xb30000000003."
    b"\xa6reason\x81\xb0branch:to:reason\xb30000000003.\xa8retrieve\x81\xb2branch:to:retrieve\xb30000000003."
    b"\xa7extract\x81\xb1branch:to:extract\xb30000000003."
    b"\xa6window\xacinstructions\xa8recalled\xaaflushed_to\xa8receipts"
    b"\x86\xa1v\x04\xa2ts\xd9 2026-12-01T00:00:00.000000+00:00\xaechannel_values\x80\xb0channel_versions"
    b"\x83\xa9__start__\xb30000000002.\xa8messages\xb30000000002.\xafbranch:to:model\xb30000000002."
    b"\xadversions_seen\x84\xa9__input__\x80\xa9__start__\x81\xa9__start__\xb30000000001."
    b"\xb0updated_channels\x91\xa8messages\xa5blobs\x81\xa8messages"
)


class CompactSerializer(JsonPlusSerializer):
    """Stores what `JsonPlusSerializer` would, compressed; reads both, so a stock saver's file opens.

    A checkpoint is mostly names: of its channels and nodes, and of the fields of messages. What has five nodes takes
    1,000 bytes, 325 compressed alone, and 200 compressed with a dictionary that has the names already.
    """

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """(type, bytes); the type ends in `+d1` when the bytes are compressed."""
        kind, plain = super().dumps_typed(obj) if (fields := _fields_of(obj)) is None else self._listed(fields)
        if len(plain) < _WORTH_IT:
            return kind, plain
        press = zlib.compressobj(wbits=_RAW, zdict=DICTIONARY)
        packed = press.compress(plain) + press.flush()
        return (kind + _COMPRESSED, packed) if len(packed) < len(plain) else (kind, plain)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The object of a (type, bytes) pair."""
        kind, stored = data
        if kind.endswith(_COMPRESSED):
            kind, stored = kind.removesuffix(_COMPRESSED), zlib.decompressobj(_RAW, DICTIONARY).decompress(stored)
        elif kind.endswith(_WITHOUT_DICTIONARY):  # as it was written before there was one
            kind, stored = kind.removesuffix(_WITHOUT_DICTIONARY), zlib.decompress(stored)
        if kind == _LISTED:
            shape, *fields = self._unpacked(stored)
            return _made(fields) if shape == _SHAPE else [_KINDS[each["type"]](**each) for each in fields]
        return self._unpacked(stored) if kind == "msgpack" else super().loads_typed((kind, stored))

    def _listed(self, fields: list[dict[str, Any]]) -> tuple[str, bytes]:
        return _LISTED, super().dumps_typed([_SHAPE, *fields])[1]

    def _unpacked(self, stored: bytes) -> Any:
        return ormsgpack.unpackb(stored, ext_hook=self._object, option=_OPTION)

    def _object(self, code: int, stored: bytes) -> Any:
        """A message of LangChain's with exactly the fields that it was stored with: it was valid then, and to prove it
        again takes most of the time that a thread takes to load. Anything else as LangGraph makes it."""
        if code == EXT_DELTA_SNAPSHOT:
            return _DeltaSnapshot(self._unpacked(stored))
        if code == EXT_PYDANTIC_V2 and _OF_MESSAGES in stored[:40]:
            _, name, fields, *_ = self._unpacked(stored)
            kind = _KINDS.get(fields.get("type"))
            if kind is not None and kind.__name__ == name and fields.keys() == _FIELDS[fields["type"]]:
                return _made([fields])[0]
        return self._unpack_ext_hook(code, stored)


def _fields_of(value: Any) -> list[dict[str, Any]] | None:
    """The fields of each message, if `value` is a list of nothing but messages that are stored so."""
    if type(value) is not list or not value or any(type(each) not in _TYPES for each in value):
        return None
    fields = [each.model_dump() for each in value]
    # What has a type or attributes of its own is stored as LangGraph stores it.
    plain = all(
        each["type"] == _TYPES[type(message)] and len(each) == len(_FIELDS[each["type"]])
        for each, message in zip(fields, value, strict=True)
    )
    return fields if plain else None


def _made(fields: list[dict[str, Any]]) -> list[BaseMessage]:
    """What `kind(**each)` is, for fields that are valid and complete. Column by column, since a loop in Python takes
    twice as long."""
    messages = [_new(_KINDS[each["type"]]) for each in fields]
    # One set for all of a kind. Pydantic adds to it what a host sets besides, so that the next list gets another.
    names = {name: set(known) for name, known in _FIELDS.items()}
    for put, values in (
        (_put_fields, fields),
        (_put_names, [names[each["type"]] for each in fields]),
        (_put_extra, [{} for _ in fields]),
        (_put_private, repeat(None)),
    ):
        deque(map(put, messages, values), maxlen=0)
    return messages


_new: Any = object.__new__
_put_fields, _put_names, _put_extra, _put_private = (
    BaseModel.__dict__[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)
