"""scikit-learn's way in: thin classes over triplets, problem, solve and path."""

from triscreen.estimators.classifier import TripletClassifier
from triscreen.estimators.comparison import ComparisonKFold, ComparisonMetric
from triscreen.estimators.cv import TripletMetricCV
from triscreen.estimators.scaling import Scaling
from triscreen.estimators.triplet import TripletMetric

__all__ = ["ComparisonKFold", "ComparisonMetric", "Scaling", "TripletClassifier", "TripletMetric", "TripletMetricCV"]
