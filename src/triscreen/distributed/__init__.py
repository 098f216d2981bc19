"""The same problem on the workers of a Dask cluster, with the same certificate, to the same bits, whatever dies.

Needs the extra ``[dask]`` for more than one process; see docs/distributed.md.
"""

from triscreen.distributed.problem import ShardedProblem, problem

__all__ = ["ShardedProblem", "problem"]
