"""Who the tests act for: two users of one tenant, and a stranger. A PostgreSQL server for those that ask, and a
checkpointer of each kind."""

import pytest
from hypothesis import HealthCheck, settings
from support.postgres import own_server, postgres, postgres_memory, postgres_server, postgres_stores
from support.savers import threads_url

from everthread import Identity

__all__ = ["own_server", "postgres", "postgres_memory", "postgres_server", "postgres_stores", "threads_url"]

# The same examples in every run, however slow the machine; `pytest --hypothesis-profile=default` looks for others.
settings.register_profile("steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.fixture
def ana() -> Identity:
    return Identity(tenant="acme", user="ana", project="billing")


@pytest.fixture
def ben() -> Identity:
    return Identity(tenant="acme", user="ben")


@pytest.fixture
def stranger() -> Identity:
    return Identity(tenant="other", user="ana", project="billing")
