"""
The figures of the paper, small
===============================

Yoshida, Takeuchi, Karasuyama, *Safe Triplet Screening for Distance Metric Learning*, KDD 2018, on wine in place of
segment and phishing; the full ones are in the benchmarks.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.preprocessing import minmax_scale

import triscreen as ts
from triscreen.report import gather

X, y = load_wine(return_X_y=True)
X = minmax_scale(X, (-1, 1))
problem = ts.Problem(X, ts.knn_triplets(X, y, k=10))
path = ts.solve_path(problem, ratio=0.8, screening=ts.Screening("mid", ranges=False))
_ = gather(path, problem, X, y)

# %%
# *Spheres and rules compared*: the share of triplets that each decides before the first iteration, from the
# solution at the lambda before. "mid" and the path's own line (tubes) are ours.

fig, ax = plt.subplots(figsize=(9, 4), layout="constrained")
path.plot_screening(ax)
ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small", frameon=False)
plt.show()

# %%
# *Dynamic screening*: what PGB decides while the solver runs.

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
path.plot_dynamic(ax)
plt.show()

# %%
# *Ranges of lambda*: how far the proof from one solution reaches.

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
path.plot_ranges(ax)
plt.show()

# %%
# *Rules compared* on GB, PGB and DGB: the sphere alone, with the half-space, with the cone.

lam, before = 0.02 * problem.lambda_max(), ts.solve(problem, 0.025 * problem.lambda_max())
rates = {}
for sphere in ("gb", "pgb", "dgb"):
    for rule in ("sphere", "linear", "semidefinite"):
        sol = ts.solve(problem, lam, solver="bb", start=before, screening=ts.Screening(sphere, rule=rule, every=5))
        decided = sum(event["L"] + event["R"] for event in sol.screening)
        rates[f"{sphere}, {rule}"] = decided / problem.triplets.n_triplets
fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
ax.barh(list(rates), list(rates.values()))
ax.set_xlabel("share decided in the end")
plt.show()
print({name: round(float(rate), 3) for name, rate in rates.items()})

# %%
# *The plain hinge with PGB*: the share that is decided on its path, and seconds of each lambda with it and without.

hinge = ts.Problem(X, ts.knn_triplets(X, y, k=10), loss=ts.Hinge())
pgb = ts.Screening("pgb", every=10, ranges=False, active_set=False)
fig, (rate, time) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
for name, screening in (("no screening", None), ("PGB", pgb)):
    found = ts.solve_path(hinge, ratio=0.7, n_lambdas=20, tol=1e-5, screening=screening)
    if screening is not None:
        rate.semilogx(found.lambdas, found.screening_rates)
    time.loglog(found.lambdas, found.seconds, label=name)
for ax, title in ((rate, "share decided"), (time, "seconds")):
    ax.set(xlabel="lambda", title=title)
    ax.invert_xaxis()
time.legend()
plt.show()
