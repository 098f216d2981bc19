"""
Search in real text
===================

Embeddings of text are trained on everything, and a search is about something. Here the text is what scikit-learn
says about itself: each paragraph of the docstrings of its classes is a document, and its topic is the module that
the class belongs to; paragraphs that begin as one of another module does are left out. The embedding (words weighted
by how rare they are, then 48 directions) knows no topics. From some classes a metric is learned on top of it, and a
search is judged by paragraphs of other classes, which nobody has learned from. What comes first is as good as before;
of the ten nearest more are of the right topic. Nothing is downloaded: the text is installed.
"""

import inspect
import re

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils import all_estimators

import triscreen as ts

MODULES = ("cluster", "decomposition", "ensemble", "feature_selection", "linear_model", "naive_bayes", "neighbors",
           "preprocessing", "svm", "tree")  # fmt: skip


def parts_of(name, estimator):
    """Return the paragraphs of a docstring with enough words, without the name of the class, which would tell."""
    text = (inspect.getdoc(estimator) or "").partition("\nExamples")[0]
    parts = re.split(r"\n\s*\n|\n(?=\w+ : )", text)
    return [part.replace(name, "") for part in parts if len(re.findall(r"[a-z]{3,}", part)) >= 12]


every = [(name, estimator, estimator.__module__.split(".")[1]) for name, estimator in all_estimators()]
found = [(part, module, name) for name, estimator, module in every if module in MODULES
         for part in parts_of(name, estimator)]  # fmt: skip
homes = {}
for part, module, _ in found:
    homes.setdefault(part.partition("\n")[0], set()).add(module)  # "random_state : int, default=None" has many
paragraphs, topics, owners = zip(*(one for one in found if len(homes[one[0].partition("\n")[0]]) == 1), strict=True)
topics, owners = np.array(topics), np.array(owners)
print(f"{len(paragraphs):,} paragraphs of {len(set(owners))} classes in {len(MODULES)} modules")

# %%
# Paragraphs of a third of the classes are queries; the others are searched, and learned from.

classes = np.unique(owners)
asking = np.isin(owners, np.random.default_rng(0).permutation(classes)[: len(classes) // 3])
words = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english").fit(
    [text for text, held_out in zip(paragraphs, asking, strict=True) if not held_out]
)
counts = words.transform(paragraphs)
embedding = normalize(TruncatedSVD(48, random_state=0).fit(counts[~asking]).transform(counts))

# %%
# The adapter is one matrix; what is stored can stay, or be mapped once.

adapter = ts.TripletMetric(prior="identity").fit(embedding[~asking], topics[~asking])
scores = ts.retrieval_scores(embedding[~asking], topics[~asking], embedding[asking], topics[asking], metric=adapter)
print(f"adapter {adapter.components_.shape}, relative gap {adapter.rel_gap_:.1e}, {scores['n_queries']} queries")
for name, before in scores["before"].items():
    after, most, share = scores["after"][name], scores["most"][name], scores["headroom"][name]
    print(f"{name:>13}: {before:.3f} -> {after:.3f} (the best order has {most:.3f}: {share:.0%} of the headroom)")

shown = [name for name in scores["before"] if not name.startswith("recall")]
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
for shift, kind in ((-0.2, "before"), (0.2, "after")):
    ax.bar(np.arange(len(shown)) + shift, [scores[kind][name] for name in shown], 0.4, label=kind)
ax.set_xticks(range(len(shown)), shown, rotation=30)
ax.set(ylim=(0, 1), ylabel="on classes not learned from")
ax.legend()
plt.show()
