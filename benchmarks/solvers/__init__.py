"""One small file per solver."""
