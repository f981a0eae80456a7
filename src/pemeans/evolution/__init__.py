"""Private Evolution for k-means: a file for every operator of the paper."""
