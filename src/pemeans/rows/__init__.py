"""The private rows, wherever they live. Only `pemeans.privacy` asks them anything."""
