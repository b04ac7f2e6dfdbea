"""The stores. `contract.py` says what one has to be, `cas.py` serves all that can compare and swap a row."""
