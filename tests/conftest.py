"""Who the tests act for: two users of one tenant, and a stranger."""

import pytest

from everthread import Identity


@pytest.fixture
def ana() -> Identity:
    return Identity(tenant="acme", user="ana", project="billing")


@pytest.fixture
def ben() -> Identity:
    return Identity(tenant="acme", user="ben")


@pytest.fixture
def stranger() -> Identity:
    return Identity(tenant="other", user="ana", project="billing")
