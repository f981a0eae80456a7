"""The locked room: statistics, noise, ledger and the curator, the only door to the private rows."""
