"""
On a cluster, with a worker that leaves
=======================================

The same path in this process, and on the workers of a Dask cluster of which one leaves half way: the same metrics with
the same proofs, to the last bit. Needs the extra ``[dask]``. Here the workers are threads of this process, so that the
page can be made anywhere; ``Client(n_workers=4)`` starts processes, ``Client("tcp://host:8786")`` takes those of a real
cluster.
"""

import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import triscreen as ts

X, y = load_wine(return_X_y=True)
X = scale(X)

# %%
# Without a cluster the shards work one after the other: the reference.

here = ts.solve_path(ts.distributed.problem(None, X, y, k=5, n_shards=6), ratio=0.8, n_lambdas=25)
print(here)

# %%
# Three workers have two shards each. After ten lambdas one of them leaves: the others make its shards again, from
# files, and take over its work.

client = Client(n_workers=3, threads_per_worker=1, processes=False, dashboard_address=None)
problem = ts.distributed.problem(client, X, y, k=5, n_shards=6)
workers = []


def watch(state):
    """Let one worker go after ten lambdas."""
    if state.n_lambdas == 10:
        client.retire_workers([min(client.nthreads())])
    workers.append(len(client.nthreads()))


there = ts.solve_path(problem, ratio=0.8, n_lambdas=25, callback=watch)
print(there)
assert all(np.array_equal(here.M(t), there.M(t)) for t in range(len(here)))
assert np.array_equal(here.gaps, there.gaps)

# %%
# Nothing of it is seen in the result.

fig, axes = plt.subplots(1, 2, figsize=(9, 3.3), layout="constrained")
there.plot_losses(axes[0])
axes[1].step(np.arange(1, len(workers) + 1), workers, where="mid")
axes[1].set(xlabel="lambdas done", ylabel="workers", yticks=range(4), ylim=(0, 3.5), title="the same bits")
plt.show()

# %%
# Estimators take the cluster of this process by the name "current". A cross-validation lets its workers try starts in
# folds, each a task of its own, and chooses what it would have chosen alone.

choice = ts.TripletMetricCV(cv=3, ratios=4, scheduler="current").fit(X, y)
alone = ts.TripletMetricCV(cv=3, ratios=4).fit(X, y)
assert np.array_equal(choice.components_, alone.components_)
print(choice.chosen_, choice.lam_ratio_, choice.best_score_)
client.close()
