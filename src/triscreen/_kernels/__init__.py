"""Numba kernels: free functions over chunks, without state; each releases the interpreter lock.

``SUMS`` allows the compiler to reorder and fuse additions, without which reductions do not vectorise; the error
bound of a sum holds for any order. NaN and infinity keep their meaning.
"""
