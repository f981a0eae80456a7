"""The methods that the paper compares with: each correctly private, and as strong as its authors meant it."""
