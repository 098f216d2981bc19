"""Numba kernels: free functions over chunks, without state; each releases the interpreter lock."""
