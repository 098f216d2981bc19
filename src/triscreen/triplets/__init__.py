"""Who is compared with whom: one file per kind of triplet set."""

from triscreen.triplets.base import Sums, TripletSet
from triscreen.triplets.given import GivenTriplets, given_triplets
from triscreen.triplets.knn import KnnTriplets, knn_triplets

__all__ = ["GivenTriplets", "KnnTriplets", "Sums", "TripletSet", "given_triplets", "knn_triplets"]
