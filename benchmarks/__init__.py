"""The benchmarks of triscreen: the experiments of the paper, peers and scaling; `python benchmarks/run.py --list`."""
