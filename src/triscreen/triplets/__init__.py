"""Who is compared with whom: one file per kind of triplet set."""

from triscreen.triplets.all import AllTriplets, all_triplets, triplet_count
from triscreen.triplets.base import Sums, TripletSet
from triscreen.triplets.blocks import BlockTriplets
from triscreen.triplets.given import GivenTriplets, given_triplets
from triscreen.triplets.knn import knn_triplets
from triscreen.triplets.labelled import labelled_triplets

__all__ = [
    "AllTriplets",
    "BlockTriplets",
    "GivenTriplets",
    "Sums",
    "TripletSet",
    "all_triplets",
    "given_triplets",
    "knn_triplets",
    "labelled_triplets",
    "triplet_count",
]
