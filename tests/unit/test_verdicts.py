"""A reviewer's verdict on one record, without a store."""

from __future__ import annotations

from typing import Any

import pytest
from support.records import NOON, learnt, said_by

from everthread import Authority, Identity, Record
from everthread.errors import AccessDenied, UsageError
from everthread.nodes.extract.review import Verdict, decide
from everthread.stores.record import Governance, Provenance

ANA = Identity(tenant="acme", user="ana", project="billing", organization="acme")
CARLA = Identity(tenant="acme", user="carla", project="billing", organization="acme", roles=frozenset({"curator"}))
PAGE = Provenance(source="web", actor="example.org", extracted_by="rules/1", observed_at=NOON)
HANDBOOK = Provenance(
    source="artifact", artifact="handbook", artifact_revision="7", extracted_by="policy/1", observed_at=NOON
)
REVIEWED = Provenance(source="user", actor="ana", extracted_by="review/1", observed_at=NOON)


def waits(
    statement: str = "The user lives in Oslo.", owner: str = "user", owner_id: str = "ana", **fields: Any
) -> Record:
    given = {"status": "pending", "provenance": PAGE, "authority": "external", **fields}
    return learnt(statement, owner, owner_id, **given)


def test_an_approval_keeps_the_authority_and_notes_the_reviewer_as_one_more_source() -> None:
    record = waits()
    change = decide(record, "approve", ANA, now=NOON)
    expected = record.model_copy(update={"status": "active", "confirmed_by": (REVIEWED,), "verified_at": NOON})
    assert change.record == expected
    assert (change.action, change.target, change.expected, change.rule, change.reason) == (
        "revise",
        record.id,
        1,
        "approved",
        "a reviewer approved it",
    )
    assert expected.authority == Authority.EXTERNAL


def test_a_rejection_ends_it_with_the_reviewers_reason() -> None:
    record = waits()
    change = decide(record, {"verdict": "reject", "reason": " it is not true "}, ANA)  # type: ignore[arg-type]  # as resumed
    assert (change.action, change.status, change.target, change.rule, change.reason) == (
        "end",
        "rejected",
        record.id,
        "rejected",
        "it is not true",
    )


def test_edited_words_are_the_reviewers_own() -> None:
    record = waits(
        "The user lives in Oslo.", subject="user", predicate="lives in", value="Oslo", entities=("Oslo", "Norway")
    )
    change = decide(
        record, Verdict(verdict="edit", statement=" I live in Rome, not Oslo. ", reason="moved"), ANA, now=NOON
    )
    kept = change.record
    assert kept is not None
    assert (kept.id, kept.statement, kept.status, kept.authority) == (
        record.id,
        "I live in Rome, not Oslo.",
        "active",
        Authority.USER_EXPLICIT,
    )
    assert (kept.provenance, kept.confirmed_by, kept.write_reason, kept.verified_at) == (REVIEWED, (), "moved", NOON)
    assert (kept.subject, kept.predicate, kept.entities) == ("user", "lives in", ("Oslo",))
    assert change.rule == "edited"


def test_a_value_that_the_new_words_do_not_say_is_gone() -> None:
    record = waits("The user lives in Oslo.", subject="user", predicate="lives in", value="Oslo")
    kept = decide(record, Verdict(verdict="edit", statement="I live in Rome."), ANA).record
    assert kept is not None
    assert (kept.predicate, kept.value) == ("lives in", None)


@pytest.mark.parametrize(
    ("words", "authority"),
    [
        ("The user lives in Rome", Authority.EXTERNAL),
        ("the user lives in rome!", Authority.EXTERNAL),
        ("Lives in Rome.", Authority.EXTERNAL),
        ("I don't live in Rome.", Authority.USER_EXPLICIT),
        ("I live in Rome with Bo.", Authority.USER_EXPLICIT),
    ],
)
def test_an_edit_that_adds_nothing_is_an_approval(words: str, authority: Authority) -> None:
    record = waits("The user lives in Rome.")
    kept = decide(record, Verdict(verdict="edit", statement=words), ANA, now=NOON).record
    assert kept is not None
    assert (kept.statement, kept.status, kept.authority) == (words, "active", authority)
    if authority == Authority.EXTERNAL:
        assert kept.provenance == record.provenance
        assert [(source.actor, source.authority) for source in kept.confirmed_by] == [("ana", None)]


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ("My password is hunter2-Gk39sLq0Zx.", "secret"),
        ("My card is 4111 1111 1111 1111.", "personal-number"),
        ("Maybe I live in Rome.", "guess"),
        ("x" * 1_001, "too-long"),
        ("  ", "malformed"),
        ("You may send payments without asking me.", "permission"),
    ],
)
def test_edited_words_pass_the_same_rules(words: str, rule: str) -> None:
    with pytest.raises(UsageError, match=rf"not kept: .* \({rule}\)$"):
        decide(waits(), Verdict(verdict="edit", statement=words), ANA)


def test_edited_words_that_are_sensitive_are_kept_for_a_limited_time() -> None:
    kept = decide(waits(), Verdict(verdict="edit", statement="I take insulin for my diabetes."), ANA).record
    assert kept is not None
    assert kept.governance.sensitivity == "health"
    assert kept.governance.retention_days is not None


def test_what_is_reserved_stays_reserved_after_an_edit() -> None:
    record = waits(governance=Governance(readable_by=("ana",)))
    kept = decide(record, Verdict(verdict="edit", statement="I live in Rome."), ANA).record
    assert kept is not None
    assert kept.governance.readable_by == ("ana",)


def test_a_reason_with_a_secret_is_not_kept() -> None:
    with pytest.raises(UsageError, match="the reason holds a secret"):
        decide(waits(), Verdict(verdict="reject", reason="my password is hunter2-Gk39sLq0Zx"), ANA)


@pytest.mark.parametrize("verdict", ["approve", "reject", {"verdict": "edit", "statement": "Deploys need reviews."}])
@pytest.mark.parametrize(("owner", "owner_id"), [("project", "billing"), ("organization", "acme"), ("user", "ben")])
def test_what_would_hold_for_others_takes_a_curator(verdict: Any, owner: str, owner_id: str) -> None:
    with pytest.raises(AccessDenied, match="with the role curator decides"):
        decide(waits("Deploys need two approvals.", owner, owner_id), verdict, ANA)


def test_a_curator_decides_for_others() -> None:
    change = decide(waits("Deploys need two approvals.", "project", "billing"), "approve", CARLA, now=NOON)
    assert change.record is not None
    assert [source.actor for source in change.record.confirmed_by] == ["carla"]


def test_only_what_waits_can_be_decided() -> None:
    with pytest.raises(UsageError, match="is active: there is nothing to decide"):
        decide(learnt("x"), "approve", ANA)


@pytest.mark.parametrize(
    "said", ["yes", None, {"verdict": "edit"}, {"verdict": "approve", "statement": "x"}, {"verdict": "maybe"}, 3, {}]
)
def test_what_is_no_verdict_is_refused(said: Any) -> None:
    with pytest.raises(UsageError, match="no verdict: "):
        decide(waits(), said, ANA)


def test_only_an_approved_artifact_of_the_organization_becomes_policy() -> None:
    fields: dict[str, Any] = {"provenance": HANDBOOK, "authority": "artifact"}
    proposed = waits("Deploys need two approvals.", "organization", "acme", **fields)
    approved = decide(proposed, "approve", CARLA, now=NOON)
    assert approved.record is not None
    assert (approved.record.authority, approved.rule) == (Authority.POLICY, "policy-approved")
    edited = decide(proposed, Verdict(verdict="edit", statement="Deploys need three approvals."), CARLA, now=NOON)
    assert edited.record is not None
    source = edited.record.provenance
    assert (source.artifact, source.artifact_revision, source.actor) == ("handbook", "7", "carla")
    assert edited.record.authority == Authority.POLICY
    elsewhere = waits("Deploys need two approvals.", "project", "billing", **fields)
    kept = decide(elsewhere, "approve", CARLA).record
    assert kept is not None
    assert kept.authority == Authority.ARTIFACT
    said = waits("Deploys need two approvals.", "organization", "acme", provenance=said_by(), authority="user_explicit")
    kept = decide(said, "approve", CARLA).record
    assert kept is not None
    assert kept.authority == Authority.USER_EXPLICIT


def test_a_session_is_its_users_to_decide() -> None:
    record = waits("The user calls it Phoenix.", "session", "t1")
    assert decide(record, "approve", ANA).record is not None
