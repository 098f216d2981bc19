"""One cluster for all tests of a process."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def cluster():
    """(client, cluster) of three worker processes."""
    pytest.importorskip("distributed")
    from clusters import cluster_of

    with cluster_of(3) as (client, cluster):
        yield client, cluster


@pytest.fixture
def client(cluster):
    """Three workers, none of them stopped."""
    from clusters import scale_to

    scale_to(*cluster, 3)
    return cluster[0]


@pytest.fixture(scope="session")
def reference():
    """The path that a cluster must find, from this process."""
    from small import made, walked

    return walked(made(None))
