"""Who is compared with whom: one file per kind of triplet set."""

from triscreen.triplets.all import AllTriplets, all_triplets, triplet_count
from triscreen.triplets.base import Sums, TripletSet
from triscreen.triplets.given import GivenTriplets, given_triplets
from triscreen.triplets.knn import KnnTriplets, knn_triplets

__all__ = [
    "AllTriplets",
    "GivenTriplets",
    "KnnTriplets",
    "Sums",
    "TripletSet",
    "all_triplets",
    "given_triplets",
    "knn_triplets",
    "triplet_count",
]
