"""How fitted models are shown to people: tables in a terminal, and pictures."""
