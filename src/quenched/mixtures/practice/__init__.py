"""Learner and theory together: the clusters of a table, and how many rows it would take to see those that are not."""

from quenched.mixtures.practice.clusters import FittedClusters, find_clusters

__all__ = ["FittedClusters", "find_clusters"]
