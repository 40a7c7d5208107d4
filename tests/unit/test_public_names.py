"""The public names, pinned: adding or removing one is a decision."""

from __future__ import annotations

import subprocess
import sys

import everthread
import everthread.graphs
import everthread.migrate
import everthread.nodes
import everthread.stores


def test_the_public_names_are_these_and_all_can_be_imported() -> None:
    pinned = {
        everthread: {
            "Authority",
            "Evidence",
            "Identity",
            "MemoryContext",
            "MemoryState",
            "Record",
            "Scope",
            "__version__",
        },
        everthread.stores: {
            "Evidence",
            "MemoryStore",
            "PostgresStore",
            "SqliteStore",
            "Worker",
            "open_checkpointer",
            "open_store",
            "thread_config",
        },
        everthread.nodes: {
            "Compact",
            "Consolidate",
            "ContextProvider",
            "Extract",
            "Flush",
            "MemoryState",
            "Provided",
            "Reason",
            "Reference",
            "Report",
            "Restore",
            "Retrieve",
            "Track",
            "adelegate",
            "agent_jobs",
            "archive",
            "as_agent",
            "correct",
            "delegate",
            "delegate_later",
            "door",
            "identity_of",
            "job_handlers",
            "memory_block",
            "memory_tools",
            "note_answer",
            "promote",
            "propose_policy",
            "request",
            "resume_task",
            "review",
            "runtime_for",
            "sub_thread",
            "summaries_of",
            "unarchive",
            "unmarked",
            "unverified",
            "verify",
            "waiting",
        },
        everthread.graphs: {
            "MemoryMiddleware",
            "acompact_now",
            "compact_now",
            "create_consolidation_graph",
            "create_memory_agent",
            "create_recall_graph",
            "create_remember_graph",
            "gate",
        },
        everthread.migrate: {
            "Item",
            "Layout",
            "Map",
            "MigrationReport",
            "PostgresSource",
            "RefusedCount",
            "RestoreReport",
            "Skipped",
            "is_export",
            "items_of",
            "load_maps",
            "migrate",
            "postgres_items",
            "read",
            "restore",
        },
    }
    assert {module: set(module.__all__) for module in pinned} == pinned
    for module, names in pinned.items():
        assert [name for name in names if not hasattr(module, name)] == []
    assert callable(everthread.graphs.gate)


def test_importing_everthread_loads_nothing_heavy() -> None:
    heavy = ["langgraph", "numpy", "apsw", "wordllama"]
    script = f"import everthread, everthread.stores, sys; print([m for m in {heavy} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"
