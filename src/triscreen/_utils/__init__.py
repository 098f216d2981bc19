"""What knows nothing about metrics: arguments, threads, files, tables."""
